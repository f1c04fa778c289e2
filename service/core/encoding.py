"""Columns -> codes: every feature becomes small whole numbers, in the order of its values.

slot:   0 .. levels-1   the distinct values of a numeric feature, ascending, or the categories in order
        levels          missing
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.schema import Column, Feature


@dataclass(frozen=True, slots=True)
class CodedFeature:
    """A feature of the training data: ``codes: (row,)`` of the smallest unsigned type, ``values: (level,)``.

    ``values`` are the distinct numbers of a numeric feature, ascending, and empty for the other kinds.
    """

    feature: Feature
    codes: NDArray[np.unsignedinteger]
    values: NDArray[np.float64] | NDArray[np.int64]

    @property
    def levels(self) -> int:
        """How many distinct values or categories there are; also the code of a missing cell."""
        return len(self.values) if self.feature.kind == "numeric" else len(self.feature.categories)

    @property
    def is_nominal(self) -> bool:
        """True where the categories have no order."""
        return self.feature.kind in ("nominal", "boolean")

    def has_missing(self) -> bool:
        """True where some row lacks a value."""
        return bool((self.codes == self.levels).any())


def encode(columns: Sequence[Column], numbers_as_levels: bool = False) -> tuple[CodedFeature, ...]:
    """Codes of each column; with ``numbers_as_levels`` each distinct number becomes a level of an ordinal feature."""
    return tuple(
        _encode_numbers(column, numbers_as_levels) if column.kind == "numeric" else _encode_categories(column)
        for column in columns
    )


def _encode_numbers(column: Column, as_levels: bool) -> CodedFeature:
    missing = column.is_missing()
    integer = column.values.dtype.kind == "i"
    # adding 0 turns -0.0 into 0.0, so that the two are one value
    values, known = np.unique(column.values[~missing] + column.values.dtype.type(0), return_inverse=True)
    codes = np.full(len(missing), len(values), dtype=smallest_unsigned(len(values)))
    codes[~missing] = known
    if as_levels:
        return CodedFeature(Feature(column.name, "ordinal", tuple(values.tolist()), integer), codes, values[:0])
    return CodedFeature(Feature(column.name, "numeric", (), integer), codes, values)


def _encode_categories(column: Column) -> CodedFeature:
    levels = len(column.categories)
    codes = np.where(column.values < 0, levels, column.values).astype(smallest_unsigned(levels))
    return CodedFeature(Feature(column.name, column.kind, column.categories), codes, np.empty(0))


def smallest_unsigned(largest: int) -> np.dtype[np.unsignedinteger]:
    """The smallest unsigned dtype that holds ``largest``."""
    return np.min_scalar_type(largest)


def argsort_keys(keys: NDArray[np.int64], bound: int) -> NDArray[np.int64]:
    """Stable order of ``keys: (entry,)``, all in [0, bound).

    Least significant digit first, 16 bits at a time: numpy sorts uint16 by counting, several times faster than
    it sorts int64.
    """
    order = np.argsort((keys & 0xFFFF).astype(np.uint16), kind="stable")
    shift = 16
    while bound >> shift:
        digit = (keys >> shift).astype(np.uint16)[order]
        order = order[np.argsort(digit, kind="stable")]
        shift += 16
    return order


def find_midpoints(
    values: NDArray[np.float64] | NDArray[np.int64], lower: NDArray[np.int64], upper: NDArray[np.int64]
) -> tuple[NDArray[np.float64], NDArray[np.int64]]:
    """Thresholds between ``values[lower]`` and ``values[upper]``, exact for floats and for whole numbers.

    Returns (cut,) float64, and (cut,) int64 that say the same of whole numbers (0 where values are floats).
    """
    if values.dtype.kind == "i":
        return _find_integer_midpoints(values[lower].astype(np.int64), values[upper].astype(np.int64))
    low, high = values[lower].astype(np.float64), values[upper].astype(np.float64)
    with np.errstate(over="ignore", invalid="ignore"):
        middle = (low + high) / 2
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
