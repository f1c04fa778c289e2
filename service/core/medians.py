"""Absolute deviations from the weighted median of any union of runs of entries.

A wavelet matrix (Claude, Navarro and Ordonez 2015, "The wavelet matrix") over the ranks of the targets: bit by bit,
from the highest on, entries are parted stably by their bit, so that a run stays a run among those with a 0 and among
those with a 1. Every set goes to the side where half of its weight is reached: after log2(entries of a node) steps it
is at its median, with the weights and sums of all that lies below. All sets go at once, whatever they are.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

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
    ladder = Ladder(tally, tally.ranking, entry, tally.ranking.rank[entry])
    for portion in np.array_split(filled, begin.shape[0] * len(filled) // PORTION + 1):
        deviation[portion], median[portion] = ladder.descend(begin[:, portion], end[:, portion], node[portion])
    return deviation, median


def find_medians(tally: Tally, rows: Ints) -> tuple[Floats, Floats]:
    """(node,) The deviation of each node from its weighted median, and that: the middle of two that share the weight.

    ``rows: (node,)`` are the entries of each.
    """
    if tally.ranking is None:
        raise ValueError("targets are not ranked")
    ranking, nodes, end = tally.ranking, np.arange(len(rows)), np.cumsum(rows)
    begin, scale = end - rows, Scale(tally)
    sums = [_accumulate(plane) for plane in _list_planes(tally, ranking.order)]
    total = _sum_runs(sums, begin[None], end[None])

    def has_half(place: Ints) -> NDArray[np.bool_]:
        return scale.exceed(_sum_runs(sums, begin[None], place[None] + 1), total, nodes) >= 0

    place = _bisect(begin, end - 1, has_half)
    at = ranking.order[place]
    rank = ranking.rank[at]
    # targets that equal the median stand side by side
    first = _bisect(begin, place, lambda before: ranking.rank[ranking.order[before]] >= rank)
    last = _bisect(place, end, lambda behind: ranking.rank[ranking.order.take(behind, mode="clip")] > rank)
    below, upto = (_sum_runs(sums, begin[None], place[None]) for place in (first, last))
    deviation = scale.deviate(total, below, upto, ranking.offset[at], nodes)
    median, after = ranking.value[at], ranking.value[ranking.order[np.minimum(last, end - 1)]]
    return deviation, np.where(scale.exceed(upto, total, nodes) == 0, median / 2 + after / 2, median)


def _bisect(low: Ints, high: Ints, is_there: Callable[[Ints], NDArray[np.bool_]]) -> Ints:
    """(node,) the first place from ``low`` on that something is true of, as it is from there on; or else ``high``."""
    while (low < high).any():
        middle = (low + high) // 2
        there = is_there(middle) | (low == high)
        low, high = np.where(there, low, middle + 1), np.where(there, middle, high)
    return low


class Scale:
    """What whole-number sums come to: those of weight, and those of what weighs times its offset from the centre."""

    def __init__(self, tally: Tally) -> None:
        self._weighs, self._units = list[bool](), list[Floats]()
        for weigh, quantity in zip((True, False), tally.quantities, strict=False):
            units = quantity.units or (np.ones(len(tally.centre)),)
            self._weighs += [weigh] * len(units)
            self._units += units

    def weigh(self, sums: Sequence[Ints], node: Ints) -> Floats:
        """(..., set) the weight that sums come to."""
        return self._combine(sums, True, node)

    def exceed(self, some: Sequence[Ints], total: Sequence[Ints], node: Ints) -> Floats:
        """(..., set) by how much some of the weight exceeds the rest; the sign is always right."""
        return self._combine([2 * s - t for s, t in zip(some, total, strict=True)], True, node)

    def deviate(
        self, total: Sequence[Ints], below: Sequence[Ints], upto: Sequence[Ints], offset: Floats, node: Ints
    ) -> Floats:
        """(set,) the deviation from a target with that ``offset``, by the sums ``below`` it and ``upto`` it."""
        rest = [t - b - u for t, b, u in zip(total, below, upto, strict=True)]
        return np.maximum(self._combine(rest, False, node) - offset * self._combine(rest, True, node), 0.0)

    def _combine(self, sums: Sequence[Ints], weight: bool, node: Ints) -> Floats:
        """(..., set) the weight, or the sum about the centre, in a ``node: (set,)``."""
        parts = [s * unit[node] for s, unit, w in zip(sums, self._units, self._weighs, strict=True) if w == weight]
        return np.asarray(sum(parts[1:], start=parts[0]), np.float64)


@dataclass(frozen=True, slots=True)
class _Rung:
    """Entries in the order of one step: which they are, their ranks, and what they add; everything is (place,)."""

    entry: Ints
    rank: NDArray[np.int32]
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


@dataclass(frozen=True, slots=True)
class Outside:
    """What all sets have beside their runs: sums of the ``whole``, and of the ``part`` below all medians, by plane."""

    whole: list[Ints]
    part: list[Ints]


class Ladder:
    """The steps of the matrix, kept for several portions of sets; of few sets what none of them needs is left out.

    Entries stand in the order ``entry``, and have a ``rank`` each: both (place,).
    """

    def __init__(self, tally: Tally, ranking: Ranking, entry: Ints, rank: NDArray[np.int32]) -> None:
        planes, self._scale = _list_planes(tally, entry), Scale(tally)
        self._whole = [_accumulate(plane) for plane in planes]
        self._ranking, self._top = ranking, _Rung(entry, rank, planes)
        self._bits = range(int(self._top.rank.max(initial=0)).bit_length() - 1, -1, -1)
        self._bottom, self._steps = self._top, list[Step]()

    def descend(self, begin: Ints, end: Ints, node: Ints, outside: Outside | None = None) -> tuple[Floats, Floats]:
        """Deviation and median of each set: (set,)."""
        total = _sum_runs(self._whole, begin, end)
        below = [np.zeros_like(part) for part in total]
        if outside is not None:
            total = [part + more for part, more in zip(total, outside.whole, strict=True)]
            below = [part + more for part, more in zip(below, outside.part, strict=True)]
        # medians of sets that have most in common are close
        rung, few = self._top, outside is not None or begin.size * FEW_OF < len(self._top.rank)
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
            left = self._scale.exceed(here, total, node) >= 0
            below = [np.where(left, part, more) for part, more in zip(below, here, strict=True)]
            begin = np.where(left, low, zeros[-1] + begin - low)
            end = np.where(left, high, zeros[-1] + end - high)
        alike = _sum_runs([_accumulate(plane) for plane in rung.planes], begin, end)
        at = rung.entry[np.where(end > begin, begin, 0).max(0)]  # an entry at the median of the set
        upto = [b + a for b, a in zip(below, alike, strict=True)]
        return self._scale.deviate(total, below, upto, self._ranking.offset[at], node), self._ranking.value[at]


def _list_planes(tally: Tally, entry: Ints) -> list[Plane]:
    """Whole-number parts of weight and weighted offset: (place,)."""
    return [None if part is None else part.take(entry).astype(np.int64) for part in tally.list_amounts()]


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
