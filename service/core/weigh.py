"""Entries -> every candidate of some features in some nodes; growth and the audit both start here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.branches import adds_up, find_typical, weigh_apart
from service.core.candidates import (
    Block,
    Candidates,
    Lack,
    Slots,
    count_slots,
    split_missing,
    total_segments,
    weigh_constants,
    weigh_cuts,
    weigh_missing,
)
from service.core.entries import Entries
from service.core.learner import Learner
from service.core.runs import Weighed
from service.core.scan import Grouping, scan_cuts
from service.core.statistics import Ints, Tally
from service.core.subsets import weigh_multiway, weigh_subsets

BLOCK_CELLS = 250_000
"""Features are weighed together up to about so many entries x features."""


def list_blocks(learner: Learner, features: Ints, entries: int) -> Iterator[Ints]:
    """The given features in order, in runs that are weighed together: cut alike, and not too many cells."""
    most = max(1, BLOCK_CELLS // max(entries, 1))
    run: list[int] = []
    for index in features.tolist():
        if run and (len(run) == most or learner.is_ordered(index) != learner.is_ordered(run[-1])):
            yield np.array(run)
            run = []
        run.append(index)
    if run:
        yield np.array(run)


def weigh_block(
    learner: Learner, batch: Batch, features: NDArray[np.int64], *, constants: bool = False
) -> tuple[Block, list[Candidates]]:
    """All candidates of ``features``, which are cut alike, in all nodes of the batch; segments are node-major."""
    return weigh_features(learner, batch, features, constants=constants)[:2]


def weigh_features(
    learner: Learner, batch: Batch, features: NDArray[np.int64], *, constants: bool = False
) -> tuple[Block, list[Candidates], Weighed]:
    """As `weigh_block`, with what the candidates were made from."""
    counted = count_block(learner, batch.entries, batch.tally, features)
    block, slots = counted.block, counted.slots
    known, missing = split_missing(slots, block)
    ordered = learner.is_ordered(int(features[0]))
    if learner.lack is Lack.BRANCH and not ordered:
        # what is missing is one more category
        known, missing = slots, missing.take(np.empty(0, np.int64))
    weighed = Weighed(counted.segment, counted.code, counted.width, block, (known, missing), learner.lack)
    tables = _weigh(learner, batch, block, (known, missing), weighed, ordered=ordered, constants=constants)
    if not adds_up(batch.tally):
        tables = [
            weigh_apart(batch.tally, batch.stats, weighed.lay_out_for(table), table, block.node[table.segment])
            for table in tables
        ]
    return block, tables, weighed


@dataclass(frozen=True, slots=True)
class Counted:
    """Counted slots, with the ``segment`` and the ``code``, below ``width``, of each entry: (feature, entry)."""

    block: Block
    slots: Slots
    segment: Ints
    code: Ints
    width: int


def count_block(learner: Learner, entries: Entries, tally: Tally, features: NDArray[np.int64]) -> Counted:
    """The slots of ``features`` in all nodes of ``entries``, as ``tally`` sums them; segments are node-major."""
    count = len(features)
    coded = [learner.features[f].code_rows(entries.row) for f in features]
    levels = np.array([most for _, most in coded])
    nodes = np.arange(entries.nodes)
    block = Block(np.repeat(nodes, count), np.tile(features, entries.nodes), np.tile(levels, entries.nodes))
    code = np.stack([codes for codes, _ in coded]).astype(np.int64)
    segment = entries.node * count + np.arange(count)[:, None]
    width = int(levels.max()) + 1
    return Counted(block, count_slots(tally, segment, code, len(block.node), width), segment, code, width)


def weigh_lines(learner: Learner, batch: Batch, features: Ints) -> tuple[Block, list[Candidates]]:
    """As `weigh_block`, for ``features`` that `Batch.ordered` has lines of."""
    ordered = batch.ordered
    if ordered is None:
        return weigh_block(learner, batch, features)
    ordered = batch.pick_lines(features)
    grouping = Grouping(batch.entries.node, batch.starts(), batch.rows)
    parameters = learner.parameters
    free = parameters.min_samples_leaf == 1 and parameters.min_weight_leaf == 0 and learner.directions is None
    free = free and not parameters.has_cut_rules
    # rows that weigh next to nothing may be tied with what lies beside them
    alike = batch.tally.counts_rows and learner.objective.alteration is None
    strict = free and alike and learner.objective.criterion.strict
    return scan_cuts(batch.nodes(), ordered, grouping, strict=strict)


def _weigh(
    learner: Learner, batch: Batch, block: Block, slots: tuple[Slots, Slots], weighed: Weighed, *, ordered: bool,
    constants: bool,
) -> list[Candidates]:  # fmt: skip
    """``slots``: the known ones and the missing ones."""
    known, missing = slots
    lack = learner.lack
    totals = total_segments(known, missing, len(block.node), lack)
    tally = batch.tally
    if ordered:
        tables = [weigh_cuts(known, totals, tally, block)]
    elif learner.parameters.nominal == "multiway":
        tables = weigh_multiway(known, totals, tally, block)
    else:
        exhaustive = learner.parameters.max_subset_categories if learner.parameters.nominal == "subset" else None
        typical = None
        if not adds_up(tally) and exhaustive is not None:
            typical = find_typical(tally, weighed.lay_out(None), known, block, exhaustive)
        alteration = learner.objective.alteration
        tables = [weigh_subsets(known, totals, tally, block, exhaustive, alteration, typical)]
    if lack is not Lack.APART:
        tables.append(weigh_missing(totals, tally, block))
    if constants:
        tables.append(weigh_constants(known, totals, tally, block))
    return [table for table in tables if len(table.segment)]
