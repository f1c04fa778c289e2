"""Thresholds part neighbours exactly, whole numbers of any size too."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
from hypothesis import example, given
from hypothesis import strategies as st

from service.core.thresholds import find_midpoints, largest_values_up_to, round_down

WHOLE = st.integers(-(2**63), 2**63 - 1) | st.integers(-5, 5) | st.integers(2**53 - 3, 2**53 + 3)
REAL = st.floats(allow_nan=False) | st.sampled_from([5e-324, -5e-324, 1 + 2**-52, 1.0, math.inf, -math.inf])


@given(REAL, REAL)
@example(-5e-324, 0.0)
@example(1e308, 1.7e308)
@example(-math.inf, math.inf)
def test_a_threshold_parts_two_floats(one: float, other: float) -> None:
    """The lower value is at or below the threshold, the upper one above it, whatever the two are."""
    if one == other:
        return
    low, high = sorted((one, other))
    (threshold,), _ = find_midpoints(np.array([low]), np.array([high]))
    assert low <= threshold < high


@given(st.floats(-1e300, 1e300), st.floats(-1e300, 1e300))
def test_a_threshold_is_the_middle(one: float, other: float) -> None:
    """It is the double nearest to the middle, computed exactly; only a middle that rounds to the upper value is not."""
    low, high = sorted((one, other))
    middle = float((Fraction(low) + Fraction(high)) / 2)
    if high in (low, middle) or 0 < abs(middle) < 1e-300:
        return
    assert find_midpoints(np.array([low]), np.array([high]))[0].tolist() == [middle]


@given(WHOLE, WHOLE, REAL)
@example(2**53, 2**53 + 1, float(2**53))
@example(-(2**63), 2**63 - 1, -0.5)
@example(2**63 - 2, 2**63 - 1, 2.0**63)
def test_whole_numbers_and_floats_agree(one: int, other: int, asked: float) -> None:
    """Whole numbers are parted at their exact middle rounded down, and the float beside it sends none another way."""
    if one == other:
        return
    low, high = sorted((one, other))
    (threshold,), (whole,) = find_midpoints(np.array([low]), np.array([high]))
    assert int(whole) == (low + high) // 2
    for value in {low, high, int(asked) if math.isfinite(asked) else 0}:
        if float(value) == value:
            assert (float(value) <= threshold) == (value <= int(whole))


@given(WHOLE)
@example(2**63 - 1)
@example(2**62 + 1)
@example(-(2**63))
def test_round_down(whole: int) -> None:
    """The float is not above the whole number, and the next float is."""
    (rounded,) = round_down(np.array([whole]))
    assert Fraction(float(rounded)) <= whole < Fraction(float(np.nextafter(rounded, np.inf)))


def test_data_thresholds_are_training_values() -> None:
    """With threshold_value = data a threshold is the largest value of all training rows not above the middle."""
    known = np.array([1.0, 4.0, 4.5, 9.0])
    assert largest_values_up_to(known, np.array([5.0, 8.9, 1.0]), np.zeros(3, np.int64))[0].tolist() == [4.5, 4.5, 1.0]
    assert largest_values_up_to(np.array([1, 2**53 + 1]), np.zeros(1), np.array([2**60]))[1].tolist() == [2**53 + 1]
