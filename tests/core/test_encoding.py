"""Codes keep the order of values, and thresholds part neighbours exactly."""

from __future__ import annotations

import math
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.core.encoding import (
    SORTED_BY_CELL,
    argsort_keys,
    argsort_numbers,
    argsort_turns,
    encode,
    find_midpoints,
    largest_values_up_to,
    list_turns,
    round_down,
    smallest_unsigned,
    sort_numbers,
)
from tests.core.making import labels, numbers

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


@pytest.mark.parametrize(
    ("cells", "codes", "levels"),
    [
        ([2.5, -math.inf, None, math.inf, 2.5], [1, 0, 3, 2, 1], 3),
        ([-0.0, 0.0, 1.0], [0, 0, 1], 2),
        ([2**53 + 1, 2**53, None, -(2**63)], [2, 1, 3, 0], 3),
        ([None, None], [0, 0], 0),
    ],
)
def test_codes_of_numbers(cells: list[float | None], codes: list[int], levels: int) -> None:
    """Codes follow the values: infinities are values, -0.0 is 0.0, whole numbers stay apart, missing comes last."""
    (coded,) = encode([numbers("x", cells)])
    assert (coded.codes.tolist(), coded.levels) == (codes, levels)
    assert coded.has_missing == (None in cells)


@given(st.lists(st.none() | REAL | st.floats(-2, 2), min_size=1, max_size=40))
def test_codes_can_be_read_back(cells: list[float | None]) -> None:
    """The value of each row's code is the row's value, and the codes use every level."""
    (coded,) = encode([numbers("x", cells)])
    known = [*coded.values.tolist(), None]
    assert [known[code] for code in coded.codes] == [cell if cell is None else cell + 0.0 for cell in cells]
    assert set(coded.codes[~coded.is_missing()].tolist()) == set(range(coded.levels))


def test_codes_of_categories() -> None:
    """Categories keep their order, and a missing cell gets the code after the last, in the smallest type."""
    (coded,) = encode([labels("size", ["S", None, "L"], ["S", "M", "L"], "ordinal")])
    assert (coded.codes.tolist(), coded.levels, coded.codes.dtype) == ([0, 3, 2], 3, np.uint8)
    assert not coded.is_nominal


def test_numbers_as_levels() -> None:
    """Each distinct number is a level of an ordinal feature where that is asked for."""
    (coded,) = encode([numbers("x", [30, 10, None, 30])], numbers_as_levels=True)
    assert (coded.feature.kind, coded.feature.categories, coded.codes.tolist()) == ("ordinal", (10, 30), [1, 0, 2, 1])


@given(st.lists(st.integers(0, 2**40), max_size=60), st.integers(0, 3))
def test_keys_are_sorted_stably(keys: list[int], repeats: int) -> None:
    """Sorting 16 bits at a time gives the order of a stable sort, ties included."""
    array = np.array(keys * (repeats + 1), np.int64) >> (12 * repeats)
    order = argsort_keys(array, int(array.max(initial=0)) + 1)
    assert order.tolist() == sorted(range(len(array)), key=lambda place: array[place])


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["normal", "few", "clusters", "heavy", "huge", "infinite", "constant", "whole", "wide whole"]),
    st.sampled_from([0, 1, 3, SORTED_BY_CELL, 5000, 40_000]),
    st.integers(0, 2**32 - 1),
)
def test_numbers_are_sorted_as_numpy_does_it(kind: str, count: int, seed: int) -> None:
    """Sorting by cells first gives the stable order, whatever the numbers' spread, and where one number ends."""
    source = np.random.default_rng(seed)
    array: np.ndarray[Any, Any] = source.normal(size=count)
    if kind in ("few", "infinite"):
        array = np.round(array, 1)
        array[source.random(count) < 0.1] = np.inf if kind == "infinite" else -0.0
    elif kind == "clusters":
        array = source.integers(0, 100, count) + source.random(count) / 10_000
    elif kind == "heavy":
        array = np.exp(30 * array)
    elif kind == "huge":
        array = array.clip(-4, 4) / 4 * np.finfo(np.float64).max
    elif kind == "constant":
        array[:] = 3.0
    elif kind == "whole":
        array = source.integers(-1000, 1000, count)
    elif kind == "wide whole":
        array = source.integers(2**62, 2**62 + 10**6, count) * source.choice([-1, 1], count)
    expected = np.argsort(array, kind="stable").tolist()
    assert argsort_numbers(array).tolist() == expected
    order, turns = sort_numbers(array)
    assert order.tolist() == expected
    ascending = array[expected]
    assert turns.tolist() == [*(ascending[1:] != ascending[:-1]).tolist(), False][:count]


@pytest.mark.parametrize("turns", [1, 2, 30, 300, 70_000])
@settings(deadline=None, max_examples=20)
@given(st.integers(0, 400), st.integers(0, 2**32 - 1))
def test_entries_come_by_turns(turns: int, entries: int, seed: int) -> None:
    """Few turns or many: entries stand by turn, each turn's as they stood, and those without one are left out."""
    turn = np.random.default_rng(seed).integers(0, turns + 1, entries).astype(smallest_unsigned(turns))
    kept = [place for place in range(entries) if turn[place] < turns]
    assert argsort_turns(turn, turns).tolist() == sorted(kept, key=lambda place: turn[place])


def test_a_turn_ends_where_parents_do_not_ascend() -> None:
    """Nodes of ascending parents come in one turn; a parent again, or one further up, begins the next."""
    assert list_turns(np.array([0, 2, 3, 2, 4, 4, 1])).tolist() == [0, 0, 0, 1, 1, 2, 3]
