"""Thresholds between neighbouring values, which part them exactly, and the values at or below thresholds."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from service.core.sorting import Ints, Numbers


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
