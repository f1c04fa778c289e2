"""What cuts among rows in value order send right: a run of entries, wherever rows that lack a value go.

These stand last in their node:

    left              right             1, 2, 2 and 5 are the values of a node, and - lacks one
    1 2 2             5 - -             a cut, with what is missing on the right
    1 2 2 - -         5                 the same cut, with what is missing on the left
    - -               1 2 2 5           missing against present
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.candidates import NO_ROUTE
from service.core.scan import LACKING, Ordered
from service.core.statistics import Ints, Tally


@dataclass(frozen=True, slots=True)
class Sides:
    """What some cuts send right: so many entries, ``right``, from ``begin`` on.

    ``missing_to`` is that of `Candidates`; ``alone`` tells that missing is split from present. All are (cut,), those
    of a node in candidate order; ``begin``, and ``place``, after which the cut lies, are flat in (line, entry).
    """

    place: Ints
    line: Ints
    node: Ints
    begin: Ints
    right: Ints
    missing_to: Ints
    alone: NDArray[np.bool_]

    def take(self, index: Ints) -> Sides:
        """Some of the cuts."""
        return Sides(*(getattr(self, name)[index] for name in self.__slots__))


def list_sides(batch: Batch, ordered: Ordered, place: Ints, left: Ints, lacking: Ints | None, least: int) -> Sides:
    """What cuts after flat places in (line, entry) send right: with missing values on the left, and on the right.

    ``left: (entry,)`` of a node's rows are left of each place. ``lacking: (line, node)`` rows lack a value; branches
    with fewer than ``least`` rows are left out then.
    """
    if lacking is not None:
        place = place.repeat(2)
    line, last = np.divmod(place, len(batch.entries.row))
    node = batch.entries.node[last]
    right = batch.rows[node] - left[last]
    if lacking is None:
        return Sides(place, line, node, place + 1, right, np.full(len(place), NO_ROUTE), np.zeros(len(place), bool))
    missing_to, gone = np.arange(len(place)) % 2, lacking[line, node]
    alone = ordered.code.ravel()[place + 1] == LACKING
    right = np.where(alone, batch.rows[node], right) - gone * (missing_to == 0)
    begin = place + 1 - np.where(alone, right, 0)
    kept = np.minimum(right, batch.rows[node] - right) >= least
    kept &= (missing_to == 0) | (gone > 0) & ~alone
    missing_to[gone == 0] = NO_ROUTE
    return Sides(place, line, node, begin, right, missing_to, alone).take(np.flatnonzero(kept))


def sum_right(batch: Batch, ordered: Ordered, sides: Sides) -> Iterator[Ints]:
    """Exact sums (class or 1, cut) of what goes right."""
    end, cuts = sides.right.cumsum(), len(sides.node)
    inside = (sides.begin + sides.right - end).repeat(sides.right) + np.arange(end[-1] if cuts else 0)
    return _sum_rows(batch.tally, ordered.row.ravel().take(inside), np.arange(cuts).repeat(sides.right), cuts)


def part_rows(batch: Batch, ordered: Ordered, sides: Sides, taken: Ints) -> NDArray[np.bool_]:
    """(entry,) True where it goes right: one cut of a node at most is ``taken``, False without one."""
    nodes, entries, node = batch.entries.nodes, len(batch.entries.row), sides.node[taken]
    line, begin, end = np.zeros(nodes, np.int64), np.zeros(nodes, np.int64), np.zeros(nodes, np.int64)
    line[node], begin[node] = sides.line[taken] * entries, (first := sides.begin[taken])
    end[node] = first + sides.right[taken]
    # every line holds the rows of a node at the same places: the line of its cut tells where each row stands
    place = line.repeat(batch.rows) + np.arange(entries)
    right = np.empty(batch.tally.all_rows, bool)
    right[ordered.row.take(place)] = (place >= begin.repeat(batch.rows)) & (place < end.repeat(batch.rows))
    return right[batch.entries.row]


def _sum_rows(tally: Tally, row: NDArray[np.int32], group: Ints, groups: int) -> Iterator[Ints]:
    """The scored sums (class or 1, group) of training rows: ``row``, ``group``: (any,)."""
    classes = max(tally.classes, 1)
    key = group if tally.label is None else tally.label.take(row) * np.int64(groups) + group
    for parts in tally.spread_over_rows():
        for part in parts or (None,):
            weights = None if part is None else part.take(row)
            total = np.bincount(key, weights, classes * groups)
            yield total.astype(np.int64, copy=False).reshape(classes, groups)
