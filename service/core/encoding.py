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
from service.core.sorting import Ints, Numbers, sort_numbers

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
