"""Columns -> codes: every feature becomes small whole numbers, in the order of its values.

slot:   0 .. levels-1   the distinct values of a numeric feature, ascending, or the categories in order
        levels          missing
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cached_property
from typing import TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from service.core.schema import MISSING, Column, Feature

Ints: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.float64] | NDArray[np.int64]
Kept: TypeAlias = Numbers | NDArray[np.float32]
"""Numbers as an audit has them: as float32 where that holds each of them."""


FEW_OF = 4
"""Fewer rows than one in so many are coded by themselves."""


class CodedFeature:
    """A feature of the training rows: its numbers, or the codes of its categories.

    ``kept: (row,)`` are the numbers of a numeric feature, float64 (NaN is missing) or int64, with ``missing: (row,)``
    where int64 cells lack a value; an audit keeps what float32 holds as float32, pages of a file mostly.
    ``codes: (row,)`` unsigned. A numeric feature is coded when that is asked for: growth sorts numbers and needs no
    codes.
    """

    def __init__(
        self,
        feature: Feature,
        *,
        numbers: Kept | None = None,
        missing: NDArray[np.bool_] | None = None,
        codes: NDArray[np.unsignedinteger] | None = None,
    ) -> None:
        self.feature = feature
        self.kept: Kept = np.empty(0) if numbers is None else numbers
        self.missing = missing
        self._codes = codes

    @property
    def numbers(self) -> Numbers:
        """(row,) all numbers, each time made anew of what is kept as float32: then it is better to `pick` some."""
        return _widen(self.kept)

    def pick(self, rows: Ints) -> Numbers:
        """(any,) the numbers of some ``rows``."""
        return _widen(self.kept.take(rows))

    @cached_property
    def _coded(self) -> tuple[NDArray[np.unsignedinteger], Numbers]:
        """Codes and distinct numbers of a numeric feature."""
        row = np.flatnonzero(~self.is_missing())
        # adding 0 turns -0.0 into 0.0, so that the two are one value
        known = self.pick(row) + 0
        order, ends = sort_numbers(known)
        ends[-1:] = True
        values = known.take(order[ends])
        codes = np.full(len(self.kept), len(values), dtype=smallest_unsigned(len(values)))
        codes[row.take(order)] = np.cumsum(ends) - ends
        return codes, values

    @property
    def codes(self) -> NDArray[np.unsignedinteger]:
        """(row,) codes in value order; `levels` where the cell is missing."""
        return self._coded[0] if self._codes is None else self._codes

    def code_rows(self, rows: Ints) -> tuple[NDArray[np.integer], int]:
        """(entry,) codes of some ``rows`` in value order, and the code of a missing cell.

        A few rows of numbers that are not coded are coded by themselves: the codes skip what other rows have.
        """
        if self.feature.kind != "numeric" or self._codes is not None or "_coded" in vars(self):
            return self.codes[rows], self.levels
        if len(rows) * FEW_OF > len(self.kept):
            return self.codes[rows], self.levels
        missing, numbers = self.is_missing(rows), self.pick(rows)
        values, known = np.unique(numbers[~missing] + numbers.dtype.type(0), return_inverse=True)
        codes = np.full(len(rows), len(values))
        codes[~missing] = known
        return codes, len(values)

    @property
    def values(self) -> Numbers:
        """(level,) the distinct numbers of a numeric feature, ascending."""
        return self._coded[1]

    @property
    def levels(self) -> int:
        """How many distinct values or categories there are; also the code of a missing cell."""
        return len(self.values) if self.feature.kind == "numeric" else len(self.feature.categories)

    @property
    def is_nominal(self) -> bool:
        """True where the categories have no order."""
        return self.feature.kind in ("nominal", "boolean")

    def is_missing(self, rows: Ints | slice = slice(None)) -> NDArray[np.bool_]:
        """True for those of the ``rows`` that lack a value."""
        if self.feature.kind != "numeric":
            return np.asarray(self.codes[rows] == self.levels)
        if self.kept.dtype.kind == "f":
            return np.isnan(self.kept[rows])
        return np.zeros(len(self.kept), bool)[rows] if self.missing is None else self.missing[rows]

    @cached_property
    def has_missing(self) -> bool:
        """True where some row lacks a value."""
        return bool(self.is_missing().any())

    def take(self, rows: NDArray[np.bool_] | Ints) -> CodedFeature:
        """Those rows of the feature, which keeps its categories."""
        if self.feature.kind != "numeric":
            return CodedFeature(self.feature, codes=self.codes[rows])
        missing = None if self.missing is None else self.missing[rows]
        return CodedFeature(self.feature, numbers=_widen(self.kept[rows]), missing=missing)

    def as_column(self) -> Column:
        """The column that was encoded; of numbers as levels, the column of these levels."""
        feature = self.feature
        if feature.kind == "numeric":
            return Column(feature.name, "numeric", self.numbers, missing=self.missing)
        codes = self.codes.astype(np.int32)
        codes[codes == self.levels] = MISSING
        return Column(feature.name, feature.kind, codes, feature.categories)


def _widen(numbers: Kept) -> Numbers:
    return numbers.astype(np.float64) if numbers.dtype == np.float32 else cast("Numbers", numbers)


def encode(columns: Sequence[Column], numbers_as_levels: bool = False) -> tuple[CodedFeature, ...]:
    """The columns as features; with ``numbers_as_levels`` each distinct number is a level of an ordinal feature."""
    return tuple(
        _encode_numbers(column, numbers_as_levels) if column.kind == "numeric" else _encode_categories(column)
        for column in columns
    )


def _encode_numbers(column: Column, as_levels: bool) -> CodedFeature:
    integer = column.values.dtype.kind == "i"
    values = column.values
    whole: Numbers = values.astype(np.int64, copy=False) if integer else values.astype(np.float64, copy=False)
    numbers = CodedFeature(Feature(column.name, "numeric", (), integer), numbers=whole, missing=column.missing)
    if not as_levels:
        return numbers
    return CodedFeature(Feature(column.name, "ordinal", tuple(numbers.values.tolist()), integer), codes=numbers.codes)


def _encode_categories(column: Column) -> CodedFeature:
    levels = len(column.categories)
    codes = np.where(column.values < 0, levels, column.values).astype(smallest_unsigned(levels))
    return CodedFeature(Feature(column.name, column.kind, column.categories), codes=codes)


def smallest_unsigned(largest: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned dtype that holds ``largest``."""
    return np.min_scalar_type(largest)


def argsort_keys(keys: NDArray[np.integer], bound: int) -> NDArray[np.int64]:
    """Stable order of ``keys: (entry,)``, all in [0, bound).

    Least significant digit first, 16 bits at a time: numpy sorts uint16 by counting, several times faster than
    it sorts int64.
    """
    order = keys.astype(np.uint16).argsort(kind="stable")
    shift = 16
    while (bound - 1) >> shift:
        digit = (keys >> shift).astype(np.uint16).take(order)
        order = order.take(digit.argsort(kind="stable"))
        shift += 16
    return order


FEW_TURNS = 8
"""Up to so many groups it is quicker to look each of them out than to sort."""


def argsort_turns(turn: NDArray[np.unsignedinteger], turns: int) -> Ints:
    """Stable order of ``turn: (entry,)``; what has none, which is ``turns``, is left out."""
    if turns <= FEW_TURNS:
        return np.concatenate([(turn == one).nonzero()[0] for one in range(turns)])
    return argsort_keys(turn, turns + 1)[: np.count_nonzero(turn < turns)]


def list_turns(parent: Ints) -> Ints:
    """(node,) the turn in which each node comes, the first being 0: within a turn their ``parent: (node,)`` ascend."""
    return np.cumsum(np.diff(parent, prepend=-1) <= 0)


SORTED_BY_CELL = 1500
"""From so many on it pays to sort numbers by cells first."""
CELL_BITS = 16
"""Cells for fewer numbers than half of 2^16 are 2^16, and 2^32 for more."""
WINDOW = 256
"""So few numbers numpy sorts without parting them, five times as fast as twice as many."""


def argsort_numbers(numbers: Numbers) -> Ints:
    """Stable order of numbers without NaN."""
    if len(numbers) < SORTED_BY_CELL:
        return numbers.argsort(kind="stable")
    return sort_numbers(numbers)[0]


def sort_numbers(numbers: Numbers) -> tuple[Ints, NDArray[np.bool_]]:
    """Stable order of numbers without NaN, and (entry,) whether the next in order is another; the last is False.

    By cells of a uniform grid, which is counting, then those that share one: numpy is quick where most are in order
    already, as many equal numbers are. Where there is no such grid, the numbers themselves are sorted.
    """
    if not len(numbers):
        return np.empty(0, np.int64), np.empty(0, bool)
    if numbers.dtype.kind == "i" and int(numbers.max()) - int(numbers.min()) < 2**CELL_BITS:
        whole = (numbers - numbers.min()).astype(np.uint16)
        order = np.argsort(whole, kind="stable")
        whole = whole.take(order)
        return order, np.append(whole[1:] != whole[:-1], False)
    cell, bits = _find_cells(numbers)
    if cell is not None:
        order, ascending = _sort_cells(cell, bits)
        alike = np.zeros(len(cell), bool)
        np.equal(ascending[1:], ascending[:-1], out=alike[:-1])
        shared = alike.copy()
        shared[1:] |= alike[:-1]
        place = np.flatnonzero(shared)
        part = numbers.take(order[place])
        if (part[1:] < part[:-1]).any():
            again = np.argsort(part, kind="stable")
            order[place], part = order[place].take(again), part.take(again)
        turns = ~alike
        # numbers of one cell stand side by side there, too
        turns[place] |= np.append(part[1:] != part[:-1], True)
        turns[-1] = False
        return order, turns
    order = np.argsort(numbers, kind="stable")
    numbers = numbers.take(order)
    return order, np.append(numbers[1:] != numbers[:-1], False)


def _sort_cells(cell: NDArray[np.uint32], bits: int) -> tuple[Ints, NDArray[np.integer]]:
    """Stable order of cells below 2^bits, and the cells in it.

    Where the upper halves of the cells put few in one place they are all that is counted. Windows that hold what shares
    an upper half are sorted then, and windows between these for what two of them share.
    """
    if bits == CELL_BITS or np.bincount(cell[::4] >> CELL_BITS).max() > WINDOW // 2:
        order = argsort_keys(cell, 2**bits)
        return order, cell.take(order)
    order = (cell >> CELL_BITS).astype(np.uint16).argsort(kind="stable")
    key = cell.take(order).astype(np.uint64)
    key <<= 32
    key |= order.view(np.uint64)
    for begin in (0, WINDOW // 2):
        end = begin + (len(key) - begin) // WINDOW * WINDOW
        key[begin:end].reshape(-1, WINDOW).sort(axis=1)
        key[end:].sort()
    if (key[1:] < key[:-1]).any():
        key.sort(kind="stable")  # what is nearly in order is merged quickly
    np.bitwise_and(key, 2**32 - 1, out=order.view(np.uint64))
    key >>= 32
    return order, key


def _find_cells(numbers: Numbers) -> tuple[NDArray[np.uint32] | None, int]:
    """The cell of each number on a uniform grid of 2^bits, and these bits; None where there is no such grid."""
    if len(numbers) < SORTED_BY_CELL:
        return None, 0
    low, high = numbers.min(), numbers.max()
    bits = CELL_BITS if len(numbers) < 2 ** (CELL_BITS - 1) else 2 * CELL_BITS
    span = float(high) - float(low)
    scale = (2.0**bits - 1) / span if span > 0 else 0.0
    if not (0 < scale < np.inf and np.isfinite(float(low))):
        return None, 0
    # each step is monotone, whatever rounding does
    scaled = numbers.astype(np.float64, copy=False) - float(low)
    scaled *= scale
    return scaled.astype(np.uint32), bits


def find_midpoints(low: Numbers, high: Numbers) -> tuple[NDArray[np.float64], Ints]:
    """Thresholds between neighbouring values, ``low < high``: (cut,), exact for floats and for whole numbers.

    Returns (cut,) float64, and (cut,) int64 that say the same of whole numbers (0 where values are floats).
    """
    if low.dtype.kind == "i":
        return _find_integer_midpoints(low.astype(np.int64), high.astype(np.int64))
    low, high = low.astype(np.float64), high.astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = (low + high) / 2
        if not np.isfinite(middle).all():
            middle = np.where(np.isfinite(middle), middle, low / 2 + high / 2)
    # rounding, or an infinite neighbour, may put the middle on the upper value: then the lower one separates
    return np.where((middle >= low) & (middle < high), middle, low), np.zeros(len(low), np.int64)


def _find_integer_midpoints(
    low: NDArray[np.int64], high: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    floor = (low & high) + ((low ^ high) >> 1)  # the mean rounded down, without overflow
    half = (low ^ high) & 1
    return round_down(floor) + np.where(np.abs(floor) < 2**51, half * 0.5, 0.0), floor


def round_down(whole: NDArray[np.int64]) -> NDArray[np.float64]:
    """The largest float64 not above each whole number, so that a float is <= it exactly when it is <= the number."""
    near = whole.astype(np.float64)
    # 2^63 itself does not fit int64, and no int64 reaches it
    above = (near >= 2.0**63) | (np.minimum(near, 2.0**62).astype(np.int64) > whole) & (near <= 2.0**62)
    fits = (near > 2.0**62) & (near < 2.0**63)
    above |= fits & (np.where(fits, near, 0.0).astype(np.int64) > whole)
    return np.where(above, np.nextafter(near, -np.inf), near)


def largest_values_up_to(
    values: NDArray[np.float64] | NDArray[np.int64], thresholds: NDArray[np.float64], whole: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Each threshold moved down to the largest of all training ``values`` not above it, as C4.5 prints them."""
    if values.dtype.kind == "i":
        moved = values[np.searchsorted(values, whole, side="right") - 1].astype(np.int64)
        return round_down(moved), moved
    return values[np.searchsorted(values, thresholds, side="right") - 1].astype(np.float64), whole
