"""Entries -> every candidate of some features in some nodes; growth and the audit both start here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import (
    Block,
    Candidates,
    Slots,
    count_slots,
    split_missing,
    total_segments,
    weigh_constants,
    weigh_cuts,
    weigh_missing,
)
from service.core.criteria import Floats
from service.core.encoding import CodedFeature
from service.core.objective import Objective
from service.core.parameters import Parameters
from service.core.statistics import Entries, Ints, Tally
from service.core.subsets import weigh_multiway, weigh_subsets

BLOCK_CELLS = 250_000
"""Features are weighed together up to about so many entries x features."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Nodes that are searched together.

    ``stats: (channel, node)``, ``rows: (node,)``. ``used: (node, feature)`` marks features that the path used up;
    ``bounds: (2, node)`` are the least and greatest prediction that monotonic ancestors allow; None: no such rule.
    """

    entries: Entries
    tally: Tally
    stats: Floats
    rows: Ints
    used: NDArray[np.bool_] | None = None
    bounds: Floats | None = None


@dataclass(frozen=True, slots=True)
class Learner:
    """Everything about a run that does not change from node to node.

    ``directions: (feature,)`` 1, -1 or 0: predictions must rise, fall, or may do either.
    """

    features: tuple[CodedFeature, ...]
    objective: Objective
    parameters: Parameters
    directions: Ints | None = None

    def is_ordered(self, feature: int) -> bool:
        """True where a feature is split by cuts along its order."""
        coded = self.features[feature]
        return coded.feature.kind == "numeric" or (
            coded.feature.kind == "ordinal" and self.parameters.nominal != "multiway"
        )


def list_blocks(learner: Learner, entries: int) -> Iterator[NDArray[np.int64]]:
    """Feature indices in order, in runs that are weighed together: cut alike, and not too many cells."""
    most = max(1, BLOCK_CELLS // max(entries, 1))
    run: list[int] = []
    for index in range(len(learner.features)):
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
    entries, count = batch.entries, len(features)
    levels = np.array([learner.features[f].levels for f in features])
    nodes = np.arange(entries.nodes)
    block = Block(np.repeat(nodes, count), np.tile(features, entries.nodes), np.tile(levels, entries.nodes))
    code = np.stack([learner.features[f].codes[entries.row] for f in features]).astype(np.int64)
    segment = entries.node * count + np.arange(count)[:, None]
    slots = count_slots(batch.tally, segment, code, len(block.node), int(levels.max()) + 1)
    return block, _weigh(learner, batch, block, slots, learner.is_ordered(int(features[0])), constants)


def weigh_chosen(learner: Learner, batch: Batch, chosen: Ints) -> tuple[Block, list[Candidates]]:
    """The candidates of one feature for each node: ``chosen: (node,)``, -1 for none; segment = node."""
    entries = batch.entries
    levels = np.array([coded.levels for coded in learner.features])[chosen]
    block = Block(np.arange(entries.nodes), chosen, levels)
    code = np.zeros(len(entries.row), np.int64)
    of_entry = chosen[entries.node]
    for f in np.unique(chosen[chosen >= 0]):
        at = np.flatnonzero(of_entry == f)
        code[at] = learner.features[f].codes[entries.row[at]]
    slots = count_slots(batch.tally, entries.node, code, entries.nodes, int(levels.max()) + 1)
    ordered = np.array([learner.is_ordered(f) for f in range(len(learner.features))])[chosen]
    tables = []
    for kind in (True, False):
        mine = (chosen >= 0) & (ordered == kind)
        tables += _weigh(learner, batch, block, slots.take(mine[slots.segment]), kind, False) if mine.any() else []
    return block, tables


def _weigh(
    learner: Learner, batch: Batch, block: Block, slots: Slots, ordered: bool, constants: bool
) -> list[Candidates]:
    own_branch = learner.parameters.missing == "branch"
    known, missing = split_missing(slots, block)
    if own_branch and not ordered:
        # what is missing is one more category
        known, missing = slots, missing.take(np.empty(0, np.int64))
    totals = total_segments(known, missing, len(block.node))
    tally = batch.tally
    if ordered:
        tables = [weigh_cuts(known, totals, tally, block, own_branch)]
    elif learner.parameters.nominal == "multiway":
        tables = weigh_multiway(known, totals, tally, block)
    else:
        tables = [weigh_subsets(known, totals, tally, block, learner.parameters.nominal == "one_vs_rest")]
    tables.append(weigh_missing(totals, tally, block))
    if constants:
        tables.append(weigh_constants(known, totals, tally, block))
    return [table for table in tables if len(table.segment)]
