"""Absolute deviations from the medians of both sides of a cut that moves along a line.

From one cut to some thousands later a median moves only as far as the weight that is passed can push it. So the targets
that it may be at are looked into, with a wavelet matrix (see `medians`). All others are below it or above, and sums of
these are kept by side, for each block of the targets in their order:

    targets, ascending     |     below    |:  may be it  :|     above    |
    side of each           |  L R L L R M |  R L + L M +  |  R + R L R R |      left, right, missing, passed (+)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import Floats
from service.core.lines import Line
from service.core.medians import Ladder, Outside, Scale
from service.core.statistics import Ints, Tally

BLOCK = 1024
"""Targets whose sums are kept together."""
SLACK = 1e-9
"""Of the weight, more than rounding takes away."""
LEFT, RIGHT, MISSING, PASSED = range(4)
ZERO = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class _Passed:
    """Entries that the cut moves over, in their order, with their sums; ``count: (cut,)`` of them are left of each."""

    entry: NDArray[np.int32]
    sums: list[Ints]
    count: Ints


class Moving:
    """The sides of the cuts of a ``line``, which are asked for in ascending order; ``tally`` has one node."""

    def __init__(self, tally: Tally, line: Line) -> None:
        if tally.ranking is None:
            raise ValueError("targets are not ranked")
        self._tally, self._line, self._ranking, self._scale = tally, line, tally.ranking, Scale(tally)
        order, places = self._ranking.order, len(self._ranking.order)
        self._rank = self._ranking.rank.take(order)
        self._place = np.empty(places, np.int32)
        self._place[order] = np.arange(places, dtype=np.int32)
        self._side = np.full(places, RIGHT, np.int8)
        self._side[self._place[line.missing]] = MISSING
        self._moved = 0
        self._sums = [self._sum_blocks(some) for some in (line.entry[:0], line.entry, line.missing)]

    def move(self, cut: Ints) -> tuple[Floats, Floats]:
        """(2, cut) the deviations left and right of the next cuts, which lie after the places ``cut: (cut,)``.

        Also those with what is missing on that side.
        """
        entry = self._line.entry[self._moved : int(cut[-1]) + 1]
        sums = self._sum_blocks(entry)
        passed = _Passed(entry, [part.sum(keepdims=True) for part in sums], cut - self._moved + 1)
        self._side[self._place[entry]] = PASSED
        self._sums[RIGHT] = [part - gone for part, gone in zip(self._sums[RIGHT], sums, strict=True)]
        known = np.stack([self._deviate((LEFT,), passed), self._deviate((RIGHT,), passed)])
        whole = known
        if len(self._line.missing):
            whole = np.stack([self._deviate((side, MISSING), passed) for side in (LEFT, RIGHT)])
        self._side[self._place[entry]] = LEFT
        self._sums[LEFT] = [part + come for part, come in zip(self._sums[LEFT], sums, strict=True)]
        self._moved += len(entry)
        return known, whole

    def stay(self) -> tuple[float, float]:
        """The deviation of all that has a value, and of what is missing, which is something."""
        none = self._line.entry[:0]
        passed = _Passed(none, [part.sum(keepdims=True) for part in self._sum_blocks(none)], ZERO)
        return float(self._deviate((LEFT, RIGHT), passed)[0]), float(self._deviate((MISSING,), passed)[0])

    def _sum_blocks(self, entry: NDArray[np.int32]) -> list[Ints]:
        """(block,) by plane, what entries add to the sums of each block."""
        block, blocks = self._place[entry] // BLOCK, len(self._place) // BLOCK + 1
        amounts = [None if part is None else part.take(entry) for part in self._tally.list_amounts()]
        return [np.bincount(block, amount, blocks).astype(np.int64) for amount in amounts]

    def _sum(self, entry: Ints) -> list[Ints]:
        """(1,) by plane."""
        return [
            np.array([len(entry)]) if part is None else part.take(entry).sum(keepdims=True).astype(np.int64)
            for part in self._tally.list_amounts()
        ]

    def _deviate(self, sides: Sequence[int], passed: _Passed) -> Floats:
        """(cut,) the deviation of all on some ``sides`` and what is passed: left of the cuts, or right if these are."""
        inside = np.zeros(PASSED + 1, bool)
        inside[list(sides)] = True
        sums = [np.cumsum([0, *sum(parts)]) for parts in zip(*(self._sums[side] for side in sides), strict=True)]
        first, last = self._bound([part[1:] for part in sums], passed)
        block = first // BLOCK
        begin = block * BLOCK
        place = begin + np.flatnonzero(inside[self._side[begin:last]])
        entry = self._ranking.order[place]
        near = entry[place >= first]
        below = [part[block] + more for part, more in zip(sums, self._sum(entry[place < first]), strict=True)]
        whole = [part[-1] - less for part, less in zip(sums, self._sum(near), strict=True)]
        # what is not near is all the same
        low, high = int(self._rank[first]), int(self._rank[last - 1])
        if RIGHT in sides:
            both = np.concatenate([passed.entry, near])
            runs = passed.count[None], np.full_like(passed.count, len(both))[None]
        else:
            both = np.concatenate([near, passed.entry])
            runs = np.zeros_like(passed.count)[None], len(near) + passed.count[None]
        rank = self._ranking.rank[both].clip(low - 1, high + 1) - (low - 1)
        ladder = Ladder(self._tally, self._ranking, both, rank)
        return ladder.descend(*runs, np.zeros_like(passed.count), Outside(whole, below))[0]

    def _bound(self, upto: list[Ints], passed: _Passed) -> tuple[int, int]:
        """The places, from the first up to the last, that medians may be at; all that are equal, or none of them.

        ``upto``: (block,) the sums up to the end of each block, of what is not passed.
        """
        total = [part[-1:] for part in upto]
        ahead, pushed = self._scale.exceed(upto, total, ZERO), self._scale.weigh(passed.sums, ZERO)
        pushed = pushed + SLACK * (pushed + self._scale.weigh(total, ZERO))
        reached, certain = ahead >= -pushed, ahead >= pushed
        first, last = int(reached.argmax()) * BLOCK, len(self._rank)
        if certain.any():
            last = min((int(certain.argmax()) + 1) * BLOCK, last)
        lowest, highest = self._rank[first], self._rank[last - 1]
        return int(np.searchsorted(self._rank, lowest)), int(np.searchsorted(self._rank, highest, "right"))
