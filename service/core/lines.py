"""Entries of one large node in the order of a number: any of its cuts, weighed when it is asked for.

    line      5  2  8  9  0  3  1  ...      entries, ascending by value
    ends      .  |  |  .  |  |  |           a cut lies after the last entry of each value

Running sums along the line are the left branches, so no cut needs more than a place in it to be found again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.branches import adds_up
from service.core.candidates import Block, Candidates, Lack
from service.core.cuts import Cuts, build_cuts
from service.core.encoding import sort_numbers
from service.core.learner import Learner
from service.core.runs import Layout
from service.core.statistics import Ints

STEP = 2**14
"""Cuts are weighed so many at a time, which the processor's cache holds."""
ZERO = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class Line:
    """A numeric ``feature`` that no entry of a node lacks: ``entry: (place,)`` int32, ``ends: (place,)``."""

    feature: int
    entry: NDArray[np.int32]
    ends: NDArray[np.bool_]

    @property
    def block(self) -> Block:
        """The one segment of its candidates."""
        return Block(ZERO, np.array([self.feature]))

    def find_cuts(self) -> Ints:
        """(cut,) the places after which cuts lie."""
        return np.flatnonzero(self.ends)

    def count_bytes(self) -> int:
        """About how much memory it takes."""
        return self.entry.nbytes + self.ends.nbytes


def can_line(learner: Learner, batch: Batch, feature: int) -> bool:
    """True where `draw_line` may be asked for a feature of a batch of one node."""
    coded = learner.features[feature]
    return coded.feature.kind == "numeric" and not coded.has_missing and adds_up(batch.tally)


def draw_line(learner: Learner, batch: Batch, feature: int) -> Line:
    """The entries of a batch of one node in the order of a feature."""
    numbers = learner.features[feature].numbers.take(batch.entries.row)
    order, ends = sort_numbers(numbers)
    return Line(feature, order.astype(np.int32), ends)


def walk_cuts(batch: Batch, line: Line, *, scored: bool = True) -> Iterator[Candidates]:
    """All cuts in value order, about `STEP` at a time, without the rows beside them.

    Their branches have the statistics that are ``scored``, or all.
    """
    cut = line.find_cuts()
    first, before = 0, list[Ints]()
    for part in np.array_split(cut, max(1, len(cut) // STEP)):
        if not len(part):
            continue
        # up to the part's last cut, whose left branch is what the next part begins with
        run = line.entry[None, first : int(part[-1]) + 1]
        left = batch.tally.accumulate(run, ZERO, part - first, np.zeros_like(part), by_entry=True, scored=scored)[0]
        if before:
            left = [sums + more for sums, more in zip(left, before, strict=True)]
        first, before = int(part[-1]) + 1, [sums[:, -1:] for sums in left]
        yield _build(batch, part, left, scored=scored)


def add_neighbours(batch: Batch, line: Line, table: Candidates) -> Candidates:
    """Cuts with the rows beside them."""
    lower, upper = (batch.entries.row[line.entry[place]] for place in (table.rows[0] - 1, table.rows[0]))
    return replace(table, lower=lower, upper=upper)


def pick_cuts(batch: Batch, line: Line, cut: Ints) -> Candidates:
    """Some cuts, after the places ``cut: (candidate,)``, with all statistics."""
    left = batch.tally.accumulate(line.entry[None], ZERO, cut, np.zeros_like(cut), by_entry=True, scored=False)[0]
    return add_neighbours(batch, line, _build(batch, cut, left, scored=False))


def _build(batch: Batch, cut: Ints, left: list[Ints], *, scored: bool) -> Candidates:
    """Without the rows beside the cuts, which scores do not need."""
    node, none = np.zeros_like(cut), np.empty(0, np.int64)
    candidates = build_cuts(batch.nodes(), Cuts(node, node, cut, left, cut + 1, none, none))
    if scored or batch.tally.classes:
        return candidates
    right = [np.take(total, node, axis=1) - part for total, part in zip(batch.sums, left, strict=True)]
    branches = np.stack([batch.tally.combine(left, node), batch.tally.combine(right, node)], axis=1)
    return replace(candidates, branches=branches)


class LineRuns:
    """As `runs.Weighed`, of the cuts of a line: branches are runs of it."""

    def __init__(self, line: Line) -> None:
        self._line = line

    @cached_property
    def _layout(self) -> Layout:
        place = np.arange(len(self._line.entry) + 1)
        whole, none = np.array([[0], [len(self._line.entry)]]), np.zeros((2, 1), np.int64)
        return Layout(self._line.entry.astype(np.int64), place[:-1], place[1:], ZERO, whole, none, Lack.DIRECTED)

    def lay_out_for(self, _: Candidates) -> Layout:
        """The entries in order: each place is a slot."""
        return self._layout

    def find_nodes(self, _: Candidates, place: Ints) -> Ints:
        """(candidate,) the node of each: the one that there is."""
        return np.zeros_like(place)

    def count_bytes(self) -> int:
        """About how much memory it takes, laid out or not."""
        return 24 * len(self._line.entry)
