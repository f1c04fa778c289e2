"""Absolute deviations from the weighted median of any union of runs of entries.

A wavelet matrix (Claude, Navarro and Ordonez 2015, "The wavelet matrix") over the ranks of the targets: bit by bit,
from the highest on, entries are parted stably by their bit, so that a run stays a run among those with a 0 and among
those with a 1. Every set goes to the side where half of its weight is reached: after log2(entries of a node) steps it
is at its median, with the weights and sums of all that lies below. All sets go at once, whatever they are.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np

from service.core.criteria import Floats
from service.core.quantities import Ranking
from service.core.runs import Runs
from service.core.statistics import Ints, Tally

Plane: TypeAlias = Ints | None
"""What each entry adds to a sum, or running sums of that: (place,) or (place + 1,); None where each adds 1."""
Step: TypeAlias = "tuple[Ints, list[Plane]]"
"""How many of the entries before each place go to the first part, and running sums of what these add: (place + 1,)."""
PORTION = 400_000
"""Sets are asked for in portions of about so many runs."""
FEW_OF = 8
"""Fewer runs than one in so many entries are few: most entries soon are in none of them."""


def find_middles(tally: Tally, entry: Ints, runs: Runs, node: Ints) -> tuple[Floats, Floats]:
    """(set,) The total absolute deviation of each set from its weighted median, and that, the lower of two.

    A set is a union of runs: (run, set) of ``entry: (place,)``, all of one ``node: (set,)``; 0 without any.
    """
    begin, end = runs
    deviation, median = np.zeros(len(node)), np.zeros(len(node))
    filled = np.flatnonzero((end > begin).any(0))
    if tally.ranking is None or not len(filled):
        return deviation, median
    ladder = _Ladder(tally, tally.ranking, entry)
    for portion in np.array_split(filled, begin.shape[0] * len(filled) // PORTION + 1):
        deviation[portion], median[portion] = ladder.descend(begin[:, portion], end[:, portion], node[portion], None)
    return deviation, median


def find_medians(tally: Tally, node: Ints, rows: Ints) -> tuple[Floats, Floats]:
    """(node,) The deviation of each node from its weighted median, and that: the middle of two that share the weight.

    ``node: (entry,)`` is grouped, ``rows: (node,)`` are the entries of each.
    """
    if tally.ranking is None:
        raise ValueError("targets are not ranked")
    end = np.cumsum(rows)
    ladder = _Ladder(tally, tally.ranking, np.arange(len(node)))
    distinct = _list_distinct(tally.ranking, node, len(rows))
    return ladder.descend((end - rows)[None], end[None], np.arange(len(rows)), distinct)


@dataclass(frozen=True, slots=True)
class _Rung:
    """Entries in the order of one step: which they are, their ranks, and what they add; everything is (place,)."""

    entry: Ints
    rank: Ints
    planes: list[Plane]

    def take(self, places: Ints) -> _Rung:
        """Some of the places, in that order."""
        planes = [None if plane is None else plane.take(places) for plane in self.planes]
        return _Rung(self.entry.take(places), self.rank.take(places), planes)

    def part(self, bit: int) -> tuple[_Rung, Step]:
        """The order after a step, and the step."""
        zero = (self.rank >> bit) & 1 == 0
        zeros = np.zeros(len(zero) + 1, np.int64)
        np.cumsum(zero, out=zeros[1:])
        sums = [_accumulate(None if plane is None else plane * zero) for plane in self.planes]
        return self.take(np.concatenate([np.flatnonzero(zero), np.flatnonzero(~zero)])), (zeros, sums)

    def narrow(self, begin: Ints, end: Ints) -> tuple[_Rung, Ints, Ints]:
        """Without what is in none of the runs from ``begin`` to ``end``, if that is much; where these are then."""
        places = len(self.rank)
        opened = np.bincount(begin.ravel(), minlength=places + 1) - np.bincount(end.ravel(), minlength=places + 1)
        inside = np.cumsum(opened[:-1]) > 0
        kept = np.zeros(places + 1, np.int64)
        np.cumsum(inside, out=kept[1:])
        if kept[-1] > places * 3 // 4:
            return self, begin, end
        return self.take(np.flatnonzero(inside)), kept[begin], kept[end]


class _Ladder:
    """The steps of the matrix, kept for several portions of sets; of few sets what none of them needs is left out."""

    def __init__(self, tally: Tally, ranking: Ranking, entry: Ints) -> None:
        planes, self._weighs, self._units = _list_planes(tally, entry)
        self._whole = [_accumulate(plane) for plane in planes]
        self._ranking, self._top = ranking, _Rung(entry, ranking.rank[entry], planes)
        self._bits = range(int(self._top.rank.max(initial=0)).bit_length() - 1, -1, -1)
        self._bottom, self._steps = self._top, list[Step]()

    def descend(
        self, begin: Ints, end: Ints, node: Ints, distinct: tuple[Ints, Floats] | None
    ) -> tuple[Floats, Floats]:
        """Deviation and median of each set: (set,)."""
        total = _sum_runs(self._whole, begin, end)
        below = [np.zeros_like(part) for part in total]
        rung, few = self._top, begin.size * FEW_OF < len(self._top.rank)
        for depth, bit in enumerate(self._bits):
            if few:
                rung, begin, end = rung.narrow(begin, end)
                rung, (zeros, planes) = rung.part(bit)
            else:
                if depth == len(self._steps):
                    self._bottom, step = self._bottom.part(bit)
                    self._steps.append(step)
                rung, (zeros, planes) = self._bottom, self._steps[depth]
            low, high = zeros[begin], zeros[end]
            inside = (high - low).sum(0)
            found = [inside if p is None else (p[end] - p[begin]).sum(0) for p in planes]
            here = [part + more for part, more in zip(below, found, strict=True)]
            left = self._exceed(here, total, node) >= 0
            below = [np.where(left, part, more) for part, more in zip(below, here, strict=True)]
            begin = np.where(left, low, zeros[-1] + begin - low)
            end = np.where(left, high, zeros[-1] + end - high)
        alike = _sum_runs([_accumulate(plane) for plane in rung.planes], begin, end)
        rest = [t - 2 * b - a for t, b, a in zip(total, below, alike, strict=True)]
        at = rung.entry[np.where(end > begin, begin, 0).max(0)]  # an entry at the median of the set
        deviation = self._combine(rest, False, node) - self._ranking.offset[at] * self._combine(rest, True, node)
        median = self._ranking.value[at]
        if distinct is not None:
            even = self._exceed([b + a for b, a in zip(below, alike, strict=True)], total, node) == 0
            start, values = distinct
            after = np.minimum(start[node] + self._ranking.rank[at] + 1, len(values) - 1)
            median = np.where(even, median / 2 + values[after] / 2, median)
        return np.maximum(deviation, 0.0), median

    def _exceed(self, some: Sequence[Ints], total: Sequence[Ints], node: Ints) -> Floats:
        """(set,) by how much some of the weight exceeds the rest; the sign is always right."""
        return self._combine([2 * s - t for s, t in zip(some, total, strict=True)], True, node)

    def _combine(self, sums: Sequence[Ints], weight: bool, node: Ints) -> Floats:
        """(set,) the weight, or the sum about the centre, of whole-number parts."""
        parts = [s * unit[node] for s, unit, w in zip(sums, self._units, self._weighs, strict=True) if w == weight]
        return np.asarray(sum(parts[1:], start=parts[0]), np.float64)


def _list_distinct(ranking: Ranking, node: Ints, nodes: int) -> tuple[Ints, Floats]:
    """(node,) where the distinct targets of each node begin, and these (distinct,), ascending."""
    order = np.lexsort((ranking.rank, node))
    new = (np.diff(node[order], prepend=-1) != 0) | (np.diff(ranking.rank[order], prepend=-1) != 0)
    count = np.bincount(node[order][new], minlength=nodes)
    return np.cumsum(count) - count, ranking.value[order][new]


def _list_planes(tally: Tally, entry: Ints) -> tuple[list[Plane], list[bool], list[Floats]]:
    """Whole-number parts of weight and weighted offset (place,), which of them weigh, and their units (node,)."""
    planes: list[Plane] = []
    weighs, units = [], []
    for weigh, quantity in zip((True, False), tally.quantities, strict=False):
        for part, unit in zip(quantity.parts or (None,), quantity.units or (np.ones(len(tally.centre)),), strict=True):
            planes.append(None if part is None else part[entry].astype(np.int64))
            weighs.append(weigh)
            units.append(unit)
    return planes, weighs, units


def _accumulate(values: Plane) -> Plane:
    """(place + 1,) running sums from 0 on."""
    if values is None:
        return None
    out = np.zeros(len(values) + 1, np.int64)
    np.cumsum(values, out=out[1:])
    return out


def _sum_runs(planes: Sequence[Plane], begin: Ints, end: Ints) -> list[Ints]:
    """(set,) per plane the sums over all runs of each set."""
    return [(end - begin).sum(0) if plane is None else (plane[end] - plane[begin]).sum(0) for plane in planes]
