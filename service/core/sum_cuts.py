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

    def walk(self, line: Line, *, scored: bool) -> Iterator[tuple[Ints, Floats, Floats]]:
        """The places of cuts in value order, and their branches (channel, 2, cut), some at a time.

        With what scores need, or all. First with what is missing on the right, then on the left; nothing may be.
        """
        cut, planes = line.find_cuts(), self._planes[: self._scored] if scored else self._planes
        missing = [[int(part.sum()) for part in plane.fetch(line.missing.astype(np.int64))] for plane in planes]
        none, before = ([[0] * len(plane.units) for plane in planes] for _ in range(2))
        first = 0
        for begin in range(0, len(cut), STEP):
            place = cut[begin : begin + STEP]
            end = int(place[-1]) + 1
            entry = line.entry[first:end].astype(np.int64)
            sums = [
                _add_up(plane.fetch(entry), reached, place - first)
                for plane, reached in zip(planes, before, strict=True)
            ]
            branches = self._branch(place + 1, planes, sums, none)
            moved = branches
            if len(line.missing):
                moved = self._branch(place + 1 + len(line.missing), planes, sums, missing)
            first = end
            yield place, branches, moved

    def _branch(self, rows: Ints, planes: list[Plane], sums: list[list[Ints]], more: list[list[int]]) -> Floats:
        """(channel, 2, cut) branches with so many ``rows`` and ``sums`` on the left, and some ``more``."""
        branches = np.empty((len(planes) + 1, 2, len(rows)))
        branches[0, 0] = rows
        np.subtract(self._rows, branches[0, 0], out=branches[0, 1])
        for plane, parts, extra, sides in zip(planes, sums, more, branches[1:], strict=True):
            for which, upto in enumerate(parts):
                part = np.empty_like(sides) if which else sides
                # whole numbers below 2^53: neither they nor their differences are rounded
                np.add(upto, extra[which], out=part[0])
                np.subtract(plane.totals[which], part[0], out=part[1])
                part *= plane.units[which]
                if which:
                    np.add(sides, part, out=sides)
        return branches


def _add_up(amounts: list[Ints], before: list[int], cut: Ints) -> list[Ints]:
    """By part what lies up to each ``cut``, a place in ``amounts``; ``before`` is what lies before these."""
    found = []
    for which, upto in enumerate(amounts):
        np.add(np.cumsum(upto, out=upto), before[which], out=upto)
        before[which] = int(upto[-1])
        found.append(upto if len(upto) == len(cut) else upto.take(cut))
    return found


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
