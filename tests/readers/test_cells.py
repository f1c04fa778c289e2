"""Cells to columns: kinds found and declared, missing cells, categories and their order, faults with rows."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import Fault, InvalidData
from service.core.schema import MISSING, Column, Kind, Label, keep_apart
from service.readers.cells import Declared, read_column

LABELS = (
    st.none() | st.booleans() | st.integers(-3, 3) | st.sampled_from([0.5, 1.0, -0.0, 2.0]) | st.sampled_from("abé1")
)


def read(cells: list[Any], declared: Declared | None = None) -> Column:
    """The column named x of these cells."""
    return read_column("x", cells, declared, lambda row: f"/data/columns/x/{row}")


def fault_of(cells: list[Any], declared: Declared | None = None) -> Fault:
    """The only fault of these cells."""
    with pytest.raises(InvalidData) as caught:
        read(cells, declared)
    (fault,) = caught.value.faults
    return fault


def decode(column: Column) -> list[Label | None]:
    """The cells of a column of categories."""
    return [None if code == MISSING else column.categories[code] for code in column.values]


@pytest.mark.parametrize(
    ("cells", "kind", "dtype"),
    [
        ([1, 2, 3], "numeric", np.int64),
        ([1, 2.5], "numeric", np.float64),
        ([1.0, 2.0], "numeric", np.float64),
        ([2**63 - 1, -(2**63)], "numeric", np.int64),
        ([2**63, 0], "numeric", np.float64),
        (["a", "b"], "nominal", np.int32),
        ([True, False], "boolean", np.int32),
        ([None, None], "numeric", np.float64),
        ([None, 1], "numeric", np.int64),
        ([None, 0.5], "numeric", np.float64),
        ([None, "a"], "nominal", np.int32),
        ([None, True], "boolean", np.int32),
    ],
)
def test_kind_is_found(cells: list[Any], kind: Kind, dtype: type) -> None:
    """JSON's types tell the kind, null takes no part, and whole numbers stay whole."""
    column = read(cells)
    assert (column.kind, column.values.dtype) == (kind, dtype)
    assert column.is_missing().tolist() == [cell is None for cell in cells]


def test_whole_numbers_past_2_53_stay_apart() -> None:
    """Neighbouring 54-bit integers keep their digits, also beside missing cells."""
    column = read([2**53, None, 2**53 + 1])
    assert column.values.tolist() == [2**53, 0, 2**53 + 1]


@given(st.lists(st.none() | st.floats(allow_nan=False, allow_infinity=False) | st.integers(-(2**53), 2**53)))
def test_numbers_round_trip(cells: list[float | None]) -> None:
    """Every number comes out as it went in, and exactly the nulls are missing."""
    column = read(cells)
    missing = column.is_missing().tolist()
    back = [None if gone else value for gone, value in zip(missing, column.values.tolist(), strict=True)]
    assert back == cells


@given(st.lists(LABELS, min_size=1))
def test_labels_round_trip(cells: list[Label | None]) -> None:
    """Coded labels decode to equal ones of the same JSON type: 1, true and "1" never meet, 1 and 1.0 always do."""
    column = read(cells, Declared("nominal"))
    assert [keep_apart(label) for label in decode(column)] == [keep_apart(cell) for cell in cells]


@given(st.lists(LABELS, min_size=1), st.randoms())
def test_categories_do_not_depend_on_row_order(cells: list[Label | None], source: random.Random) -> None:
    """Shuffled rows give the same categories, in the same order and the same form."""
    shuffled = source.sample(cells, len(cells))
    told, other = (repr(read(rows, Declared("nominal")).categories) for rows in (cells, shuffled))
    assert told == other


def test_order_of_categories() -> None:
    """False, true, numbers ascending, strings by code point."""
    cells = ["b", 10, True, "B", 9.5, "é", False, "", -1]
    assert read(cells, Declared("nominal")).categories == (False, True, -1, 9.5, 10, "", "B", "b", "é")


def test_boolean_has_both_categories() -> None:
    """A boolean column has false and true as codes 0 and 1, whichever of them occurs."""
    column = read([True, None, True])
    assert (column.categories, column.values.tolist()) == ((False, True), [1, MISSING, 1])


def test_ordinal_keeps_its_order() -> None:
    """An ordinal column's codes follow the declared order, and unused categories keep their place."""
    column = read(["L", None, "S"], Declared("ordinal", ("S", "M", "L")))
    assert (column.categories, column.values.tolist()) == (("S", "M", "L"), [2, MISSING, 0])


def test_ordinal_extends_for_prediction() -> None:
    """Where a model is asked, levels that it does not know come after those it knows."""
    column = read(["XL", "M", "A"], Declared("ordinal", ("S", "M"), extend=True))
    assert (column.categories, decode(column)) == (("S", "M", "A", "XL"), ["XL", "M", "A"])


def test_ordinal_of_mixed_labels_keeps_them_apart() -> None:
    """A declared true is not a posted 1."""
    declared = Declared("ordinal", (True, 2))
    assert read([2, True], declared).values.tolist() == [1, 0]
    assert fault_of([True, 1], declared).place == "/data/columns/x/1"


@pytest.mark.parametrize(
    ("cells", "declared", "row", "says"),
    [
        ([1, None, "abc", "d"], None, 2, 'row 0 has 1, row 2 has "abc"'),
        (["a", 1], None, 1, 'row 0 has "a", row 1 has 1'),
        ([None, True, 0], None, 2, "row 1 has true, row 2 has 0"),
        ([1, 2, [3]], None, 2, "a list in row 2"),
        ([{"a": 1}, 2], None, 1, "row 0 has an object, row 1 has 2"),
        ([{"a": 1}, None], None, 0, "an object in row 0"),
        ([[1], [2]], None, 0, "a list in row 0"),
        ([1, "abc"], Declared("numeric"), 1, 'is numeric, row 1 has "abc"'),
        ([1, True], Declared("numeric"), 1, "is numeric, row 1 has true"),
        ([True, None, "abc"], Declared("boolean"), 2, 'is boolean, row 2 has "abc"'),
        ([True, 1], Declared("boolean"), 1, "is boolean, row 1 has 1"),
        (["a", ["b"]], Declared("nominal"), 1, "is nominal, row 1 has a list"),
        (["S", "?"], Declared("ordinal", ("S", "M")), 1, '"?" in row 1'),
        (["a", 1e20], Declared("nominal"), 1, "past 64 bits in row 1"),
        ([1, "x" * 1000], None, 1, 'xxx..."'),
    ],
)
def test_faults(cells: list[Any], declared: Declared | None, row: int, says: str) -> None:
    """A cell that does not fit is a fault that names the column, the first such row and what it has."""
    fault = fault_of(cells, declared)
    assert fault.place == f"/data/columns/x/{row}"
    assert says in fault.message
    assert "'x'" in fault.message
    assert len(fault.message) < 400


def test_negative_zero_is_zero() -> None:
    """As a category, -0.0 is 0.0 whichever stands first."""
    assert [math.copysign(1, read([cell, 1.5], Declared("nominal")).categories[0]) for cell in (-0.0, 0.0)] == [1, 1]
