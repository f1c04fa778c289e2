"""Entries -> every candidate of some features in some nodes; growth and the audit both start here."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.bins import WIDTHS, Binned
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
from service.core.criteria import Floats
from service.core.cuts import Nodes
from service.core.encoding import CodedFeature
from service.core.entries import Entries
from service.core.medians import find_medians
from service.core.objective import Objective
from service.core.parameters import Parameters
from service.core.prune_cost import Floor
from service.core.quantities import Selection, count_runs, find_starts
from service.core.runs import Weighed
from service.core.scan import Grouping, Ordered, scan_cuts
from service.core.schema import Target
from service.core.statistics import Ints, Labels, Tally
from service.core.subsets import weigh_multiway, weigh_subsets

BLOCK_CELLS = 250_000
"""Features are weighed together up to about so many entries x features."""


@dataclass(frozen=True, slots=True)
class Batch:
    """Nodes that are searched together.

    ``sums`` are the nodes' (see `Tally`), ``stats: (channel, node)``; ``rows``, ``impurity``: (node,). ``ordered``
    holds the same entries in value order, or ``binned`` their bins, where that is kept up. ``used: (node, feature)``
    marks features that the path used up; ``bounds: (2, node)`` are the least and greatest prediction that monotonic
    ancestors allow; None: no such rule. ``answer: (node,)`` is what a batch just made says of its nodes, if that is
    not the mean.
    """

    entries: Entries
    tally: Tally
    sums: list[Ints]
    stats: Floats
    rows: Ints
    impurity: Floats
    used: NDArray[np.bool_] | None = None
    bounds: Floats | None = None
    ordered: Ordered | None = None
    binned: Binned | None = None
    answer: Floats | None = None

    def nodes(self) -> Nodes:
        """What cuts need to know of the nodes."""
        return Nodes(self.tally, self.sums, self.rows)

    def pick_lines(self, features: Ints) -> Ordered:
        """The lines of ``features``, which are kept in order."""
        if self.ordered is None:
            raise ValueError("the batch has no rows in order")
        if len(features) == len(self.ordered.feature):
            return self.ordered
        return self.ordered.take_lines(np.searchsorted(self.ordered.feature, features))

    def starts(self) -> Ints:
        """(node,) where each node's entries begin."""
        return self.rows.cumsum() - self.rows

    def take(self, inside: Selection, keep: Selection) -> Batch:
        """Some of the nodes, ``keep``, with their entries, ``inside``."""
        rows = self.rows[keep]
        node = np.arange(len(rows)).repeat(rows)
        entries = self.entries.take(inside, node, len(rows))
        return Batch(
            entries,
            self.tally.take(inside, keep, entries.row),
            [s[:, keep] for s in self.sums],
            self.stats[:, keep],
            rows,
            self.impurity[keep],
            None if self.used is None else self.used[keep],
            None if self.bounds is None else self.bounds[:, keep],
            None if self.ordered is None else self.ordered.take(inside),
            None if self.binned is None else self.binned.take(inside, keep),
        )

    def keep(self, kept: NDArray[np.bool_]) -> Batch:
        """The nodes that are ``kept: (node,)``; looking them out is many times quicker than a mask."""
        return self.take(kept.repeat(self.rows).nonzero()[0], kept.nonzero()[0])

    def run(self, first: int, last: int) -> Batch:
        """The nodes from ``first`` up to ``last``."""
        begin = int(self.rows[:first].sum())
        return self.take(slice(begin, begin + int(self.rows[first:last].sum())), slice(first, last))


MANY_LEVELS = 6
"""So many levels below a node repay putting its rows in order three times as soon."""


@dataclass(frozen=True, slots=True)
class Sizes:
    """From which numbers of rows on which way of searching is taken; they change how long it takes, and nothing else.

    ``coarse``: from so many rows at the root on, bins are counted; below, rows are kept in order. ``scan``: nodes with
    fewer rows are taken off 255 bins, which would hold a few or none; off fewer bins only smaller ones are.
    ``portion``: small nodes are then grown together up to about so many rows.
    """

    coarse: int = 20_000
    scan: int = 1000
    portion: int = 250_000

    def find_small(self, binned: Binned, ahead: Ints) -> Floats:
        """(node,) nodes with fewer rows are taken off the bins, sooner where the levels ``ahead`` repay the sorting."""
        most = self.scan * max(binned.find_widths()) / WIDTHS[-1]
        return np.where(ahead < MANY_LEVELS, most, 3 * most)


_LACK = {"branch": Lack.BRANCH, "surrogate": Lack.APART, "fractional": Lack.APART}


@dataclass(frozen=True, slots=True)
class Learner:
    """Everything about a run that does not change from node to node.

    ``directions: (feature,)`` 1, -1 or 0: predictions must rise, fall, or may do either. ``floor``: which nodes are not
    worth a split whatever it is.
    """

    features: tuple[CodedFeature, ...]
    objective: Objective
    parameters: Parameters
    directions: Ints | None = None
    sizes: Sizes = Sizes()
    floor: Floor | None = None

    def is_ordered(self, feature: int) -> bool:
        """True where a feature is split by cuts along its order."""
        coded = self.features[feature]
        return coded.feature.kind == "numeric" or (
            coded.feature.kind == "ordinal" and self.parameters.nominal != "multiway"
        )

    @property
    def lack(self) -> Lack:
        """What becomes of missing values when candidates are weighed."""
        return _LACK.get(self.parameters.missing, Lack.DIRECTED)

    @property
    def parts_rows(self) -> bool:
        """True where rows that lack a value go to all branches, with a part of their weight each."""
        return self.parameters.missing == "fractional" and any(coded.has_missing for coded in self.features)

    def find_spent(self) -> NDArray[np.bool_]:
        """(feature,) True where one split uses a feature up, if features are not reused; else cuts may come again."""
        if self.parameters.reuse_features == "never":
            return np.ones(len(self.features), bool)
        return ~np.array([self.is_ordered(f) for f in range(len(self.features))], bool)


def make_batch(
    target: Target,
    entries: Entries,
    objective: Objective,
    used: NDArray[np.bool_] | None = None,
    bounds: Floats | None = None,
    label: Labels | None = None,
) -> Batch:
    """The statistics of the nodes that ``entries`` are in; every node has at least one entry.

    ``label: (entry,)`` are their classes, where these are at hand.
    """
    tally = Tally(target, entries, label)
    start = find_starts(entries.node, entries.nodes)
    sums = tally.sum_nodes(entries.node, start)
    stats = tally.combine(sums, np.arange(entries.nodes))
    rows = count_runs(start, len(entries.node))
    answer = None
    if tally.ranking is not None:
        deviation, answer = find_medians(tally, entries.node, rows)
        stats = np.concatenate([stats, deviation[None]])
    if tally.pairs is not None:
        total, answer = tally.pairs.find_medoids(entries.row, rows)
        stats = np.concatenate([stats, (total / (2.0 * stats[0]))[None]])
    return Batch(entries, tally, sums, stats, rows, objective.impurity(stats), used, bounds, answer=answer)


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
