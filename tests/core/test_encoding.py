"""Codes keep the order of values."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.encoding import encode
from tests.core.making import labels, numbers

REAL = st.floats(allow_nan=False) | st.sampled_from([5e-324, -5e-324, 1 + 2**-52, 1.0, math.inf, -math.inf])


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
