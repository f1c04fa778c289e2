"""Both sides of some cuts of a line, with all that is told of them: the entries of a node, parted by the cuts.

    line      5  2 | 8  9  0 | 3  1         entries by value, and two cuts
    group     1  2  0  2  2  0  1 ...       by entry: how many of the cuts it lies behind

Sums over groups, and running sums of these, are what lies before each cut. Medians are found in two steps: groups are
counted in blocks of the order of the targets, which says in what block the median of a side is; that is looked into.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.criteria import Floats
from service.core.encoding import smallest_unsigned
from service.core.medians import Scale
from service.core.quantities import Ranking
from service.core.statistics import Ints, Labels, Tally

BLOCK = 1024
"""So many entries, in the order of their targets, are counted together."""
FEW_CUTS = 512
"""Medians are found for so many cuts at a time."""
ZERO = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True, eq=False)
class Parts:
    """How many of some ``cuts`` each entry lies behind, ``group: (entry,)``, and which ``cut`` each candidate is."""

    group: Labels
    cuts: int
    cut: Ints

    def sum(self, tally: Tally) -> list[Ints]:
        """Sums (class or 1, candidate) of what lies before."""
        sums = tally.sum(self.group.astype(np.int64), self.cuts + 1)
        return [part.cumsum(1).take(self.cut, axis=1) for part in sums]

    def count_bytes(self) -> int:
        """About how much memory it takes."""
        return self.group.nbytes


def part_line(entry: NDArray[np.int32], cut: Ints) -> Parts:
    """The entries of a line, all of a node's, parted after the places ``cut: (candidate,)``."""
    place, index = np.unique(cut, return_inverse=True)
    group: Labels = np.empty(len(entry), smallest_unsigned(len(place)))
    numbers = np.arange(len(place) + 1).astype(group.dtype)
    group[entry] = numbers.repeat(np.diff(place + 1, prepend=0, append=len(entry)))
    return Parts(group, len(place), index)


class Sorted:
    """The entries of one node in the order of their targets, for the medians of any parts."""

    def __init__(self, tally: Tally, ranking: Ranking) -> None:
        self._ranking, self._scale = ranking, Scale(tally)
        self._amounts = [None if part is None else part.take(ranking.order) for part in tally.list_amounts()]
        self._blocks = -(-len(ranking.order) // BLOCK)

    def find_deviations(self, parts: Parts) -> tuple[list[Ints], Floats]:
        """Sums, each (side, candidate), of weight and offset, and total deviations (side, candidate) from medians."""
        group = parts.group.take(self._ranking.order)
        found = []
        for first in range(0, parts.cuts, FEW_CUTS):
            cuts = min(parts.cuts - first, FEW_CUTS)
            here = group if cuts == parts.cuts else (group.astype(np.int64) - first).clip(0, cuts)
            found.append(self._look_up(here, cuts))
        sums, deviations = zip(*found, strict=True)
        whole = [np.concatenate(part, axis=1).take(parts.cut, axis=1) for part in zip(*sums, strict=True)]
        return whole, np.concatenate(deviations, axis=1).take(parts.cut, axis=1)

    def _look_up(self, group: NDArray[np.integer], cuts: int) -> tuple[list[Ints], Floats]:
        """Of some cuts, by ``group: (place,)`` in the order of the targets."""
        key = group.astype(np.int64)
        for block in range(self._blocks):
            key[block * BLOCK : (block + 1) * BLOCK] += block * (cuts + 1)
        upto = [self._count(key, amount, cuts) for amount in self._amounts]
        total, sides = [part[-1] for part in upto], np.arange(2 * cuts)
        block = (self._scale.exceed([part[1:] for part in upto], total, ZERO) >= 0).argmax(0)
        place = block[:, None] * BLOCK + np.arange(BLOCK)
        counted = self._list_counted(group, cuts, place)
        running = [part[block, sides][:, None] + some.cumsum(1) for part, some in zip(upto, counted, strict=True)]
        reached = self._scale.exceed(running, [part[:, None] for part in total], ZERO) >= 0
        at = self._ranking.order[block * BLOCK + reached.argmax(1)]
        # targets that equal the median stand side by side
        rank = self._ranking.rank
        edges = [np.searchsorted(rank, rank[at], side, self._ranking.order) for side in ("left", "right")]
        below, with_it = (self._sum_before(group, cuts, upto, edge) for edge in edges)
        deviation = self._scale.deviate(total, below, with_it, self._ranking.offset[at], ZERO)
        return [part.reshape(2, -1) for part in total], deviation.reshape(2, -1)

    def _count(self, key: Ints, amount: Floats | None, cuts: int) -> Ints:
        """(block + 1, side * cut) the sums over all blocks before each."""
        table = np.bincount(key, amount, self._blocks * (cuts + 1)).astype(np.int64).reshape(self._blocks, -1)
        behind = table.cumsum(0).cumsum(1)
        upto = np.zeros((self._blocks + 1, 2, cuts), np.int64)
        upto[1:, 0], upto[1:, 1] = behind[:, :-1], behind[:, -1:] - behind[:, :-1]
        return upto.reshape(self._blocks + 1, -1)

    def _list_counted(self, group: NDArray[np.integer], cuts: int, place: Ints) -> list[Ints]:
        """(side * cut, any) what the entries at ``place`` add to each side's sums, for those that are on it."""
        last = len(group) - 1
        inside, place = place <= last, np.minimum(place, last)
        cut = np.tile(np.arange(cuts), 2)[:, None]
        before = group[place] <= cut
        before[cuts:] ^= True
        mine = before & inside
        return [
            mine.astype(np.int64) if amount is None else (amount[place] * mine).astype(np.int64)
            for amount in self._amounts
        ]

    def _sum_before(self, group: NDArray[np.integer], cuts: int, upto: list[Ints], edge: Ints) -> list[Ints]:
        """(side * cut,) the sums over all places before an ``edge`` each."""
        block = edge // BLOCK
        place = block[:, None] * BLOCK + np.arange(BLOCK)
        place = np.where(place < edge[:, None], place, len(group))
        counted = self._list_counted(group, cuts, place)
        return [part[block, np.arange(2 * cuts)] + some.sum(1) for part, some in zip(upto, counted, strict=True)]


def weigh_parts(batch: Batch, parts: Parts, ordered: Sorted | None) -> Floats:
    """(channel, branch, candidate) the branches of cuts; with a last branch where deviations do not add up.

    See `branches.weigh_runs`; ``ordered`` where there are medians.
    """
    node = np.zeros(len(parts.cut), np.int64)
    if ordered is None:
        left = parts.sum(batch.tally)
        right = [whole - part for whole, part in zip(batch.sums, left, strict=True)]
        return np.stack([batch.tally.combine(left, node), batch.tally.combine(right, node)], axis=1)
    sums, deviation = ordered.find_deviations(parts)
    branches = np.zeros((3, 3, len(node)))
    for side in range(2):
        branches[:2, side] = batch.tally.combine([part[side][None] for part in sums], node)
    branches[2, :2], branches[2, 2] = deviation, batch.stats[2, 0] - deviation.sum(0)
    return branches
