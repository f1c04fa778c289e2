"""Nodes that are searched together, and what is known of them."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.bins import Binned
from service.core.criteria import Floats
from service.core.cuts import Nodes
from service.core.entries import Entries
from service.core.medians import find_medians
from service.core.objective import Objective
from service.core.quantities import Selection, count_runs, find_starts
from service.core.scan import Ordered
from service.core.schema import Target
from service.core.statistics import Ints, Labels, Tally


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
    return sum_batch(Tally(target, entries, label), entries, objective, used, bounds)


def sum_batch(
    tally: Tally,
    entries: Entries,
    objective: Objective,
    used: NDArray[np.bool_] | None = None,
    bounds: Floats | None = None,
) -> Batch:
    """As `make_batch`, of entries whose ``tally`` is there."""
    start = find_starts(entries.node, entries.nodes)
    sums = tally.sum_nodes(entries.node, start)
    stats = tally.combine(sums, np.arange(entries.nodes))
    rows = count_runs(start, len(entries.node))
    answer = None
    if tally.ranking is not None:
        deviation, answer = find_medians(tally, rows)
        stats = np.concatenate([stats, deviation[None]])
    if tally.pairs is not None:
        total, answer = tally.pairs.find_medoids(entries.row, rows)
        stats = np.concatenate([stats, (total / (2.0 * stats[0]))[None]])
    return Batch(entries, tally, sums, stats, rows, objective.impurity(stats), used, bounds, answer=answer)
