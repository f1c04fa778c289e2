"""Cuts of a line where every row weighs 1 and has a number: their branches by running sums, with no table in between.

    targets in value order      3.1 -0.2 4.0 ...     as whole-number parts, see `quantities`
    running sums of each        the left branch of every cut; the right one is the rest of the node

Entries of a line lie anywhere in memory, so that most of the time goes into fetching what they add: both parts of a
number are fetched as one where they fit.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np

from service.core.batch import Batch
from service.core.criteria import Floats
from service.core.lines import STEP, Line
from service.core.statistics import Ints

HALF = 32
"""Bits of each of two parts that are fetched as one."""


@dataclass(frozen=True, slots=True)
class Plane:
    """What entries add to a quantity, ``amounts``: (entry,) by part, or both parts in one; units and totals by part."""

    amounts: list[Ints]
    units: list[float]
    totals: list[float]

    def fetch(self, entry: Ints) -> list[Ints]:
        """By part, what some entries add."""
        found = [amount.take(entry) for amount in self.amounts]
        if len(found) == len(self.units):
            return found
        (both,) = found
        high = both >> HALF
        both <<= HALF
        both >>= HALF
        return [high, both]


class Sums:
    """Goes along lines of a batch of one node whose rows weigh 1 and have one number each."""

    def __init__(self, batch: Batch) -> None:
        self._rows, self._scored = float(batch.rows[0]), batch.tally.scored - 1
        totals = iter([float(total[0, 0]) for total in batch.sums[1:]])
        self._planes = []
        for quantity in batch.tally.quantities[1:]:
            units = [float(unit[0]) for unit in quantity.units]
            self._planes.append(Plane(pack_parts(quantity.parts), units, [next(totals) for _ in units]))

    def walk(self, line: Line, *, scored: bool) -> Iterator[tuple[Ints, Floats]]:
        """The places of cuts in value order, and their branches (channel, 2, cut), some at a time.

        With what scores need, or all.
        """
        cut, planes = line.find_cuts(), self._planes[: self._scored] if scored else self._planes
        before = [[0] * len(plane.units) for plane in planes]
        first = 0
        for begin in range(0, len(cut), STEP):
            part = cut[begin : begin + STEP]
            end = int(part[-1]) + 1
            entry = line.entry[first:end].astype(np.int64)
            branches = np.empty((len(planes) + 1, 2, len(part)))
            np.add(part, 1, out=branches[0, 0], casting="unsafe")
            np.subtract(self._rows, branches[0, 0], out=branches[0, 1])
            for plane, reached, (left, right) in zip(planes, before, branches[1:], strict=True):
                _add_up(plane, plane.fetch(entry), reached, part - first, left, right)
            first = end
            yield part, branches


def _add_up(plane: Plane, amounts: list[Ints], before: list[int], cut: Ints, left: Floats, right: Floats) -> None:
    """Write what is left and right of each ``cut``, a place in ``amounts``; ``before`` is what lies before, by part."""
    for which, (upto, unit, total) in enumerate(zip(amounts, plane.units, plane.totals, strict=True)):
        np.add(np.cumsum(upto, out=upto), before[which], out=upto)
        before[which] = int(upto[-1])
        low, high = (np.empty_like(left), np.empty_like(right)) if which else (left, right)
        # whole numbers below 2^53: neither they nor their differences are rounded
        low[:] = upto if len(upto) == len(cut) else upto.take(cut)
        np.subtract(total, low, out=high)
        low *= unit
        high *= unit
        if which:
            left += low
            right += high


def pack_parts(parts: tuple[Floats, ...]) -> list[Ints]:
    """Whole-number parts (entry,), of which two are made one if they fit."""
    amounts = [part.astype(np.int64) for part in parts]
    bound = 1 << (HALF - 1)
    if len(amounts) != 2 or any(int(part.max()) >= bound or int(part.min()) < -bound for part in amounts):
        return amounts
    high, low = amounts
    high <<= HALF
    low &= (1 << HALF) - 1
    high |= low
    return [high]
