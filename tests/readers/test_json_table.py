"""Posted data to tables: the three forms say the same, and each way to be wrong is told with its place."""

from __future__ import annotations

import time
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import Fault, InvalidData
from service.core.schema import Table
from service.readers.cells import Declared
from service.readers.json_table import Limits, read_table
from service.readers.json_text import parse

LIMITS = Limits(rows=5, columns=4)


def read(
    data: dict[str, Any],
    declared: dict[str, Declared] | None = None,
    order: list[str] | None = None,
    limits: Limits = LIMITS,
) -> Table:
    """The table of posted data."""
    return read_table(data, declared=declared or {}, order=order, limits=limits)


def faults_of(
    data: dict[str, Any],
    declared: dict[str, Declared] | None = None,
    order: list[str] | None = None,
    limits: Limits = LIMITS,
) -> list[Fault]:
    """The faults of posted data."""
    with pytest.raises(InvalidData) as caught:
        read(data, declared, order, limits)
    return list(caught.value.faults)


def as_lists(table: Table) -> list[Any]:
    """A table in a form that compares."""
    return [
        (one.name, one.kind, one.categories, np.nan_to_num(one.values).tolist(), one.is_missing().tolist())
        for one in table.columns
    ]


@given(
    st.integers(1, 5).flatmap(
        lambda rows: st.tuples(
            st.lists(st.none() | st.integers(), min_size=rows, max_size=rows),
            st.lists(st.none() | st.sampled_from("abc"), min_size=rows, max_size=rows),
            st.lists(st.none() | st.booleans(), min_size=rows, max_size=rows),
        )
    )
)
def test_forms_agree(columns: tuple[list[Any], ...]) -> None:
    """Columns, records, and a header with rows give the same table, in the order of the names."""
    named = dict(zip(["n", "s", "b"], columns, strict=True))
    rows = [list(row) for row in zip(*columns, strict=True)]
    by_column = as_lists(read({"columns": named}))
    assert as_lists(read({"records": [dict(zip(named, row, strict=True)) for row in rows]})) == by_column
    assert as_lists(read({"header": list(named), "rows": rows})) == by_column
    declared = {name: Declared(kind) for name, kind, *_ in by_column}
    assert as_lists(read({"rows": rows}, declared=declared, order=list(named))) == by_column


def test_records_in_any_order() -> None:
    """Keys may come in any order and be absent: cells are found by name, absent ones are missing."""
    table = read({"records": [{"a": 1, "b": "x"}, {"b": "y", "a": 2}, {"c": True}]})
    assert as_lists(table) == as_lists(
        read({"columns": {"a": [1, 2, None], "b": ["x", "y", None], "c": [None, None, True]}})
    )
    swapped = read({"records": [{"a": 1, "b": 2}, {"b": 4, "a": 3}]})
    assert as_lists(swapped) == as_lists(read({"columns": {"a": [1, 3], "b": [2, 4]}}))


def test_declared_kinds() -> None:
    """The kinds that are declared are those that the columns get."""
    declared = {"a": Declared("nominal"), "b": Declared("ordinal", ("y", "x"))}
    table = read({"columns": {"a": [2, 1], "b": ["x", "y"]}}, declared=declared)
    assert [(column.kind, column.categories) for column in table.columns] == [
        ("nominal", (1, 2)),
        ("ordinal", ("y", "x")),
    ]


def test_unknown_columns_are_listed_unread() -> None:
    """Where a model is asked, a column that it does not know is named, and nothing in it is a fault."""
    table = read({"columns": {"extra": [1, "mixed"], "a": [1, 2]}}, declared={"a": Declared("numeric")}, order=["a"])
    assert table.names() == ("extra", "a")
    assert table.columns[0].is_missing().all()


@pytest.mark.parametrize(
    ("data", "places"),
    [
        ({}, ["/data"]),
        ({"columns": {}, "records": []}, ["/data"]),
        ({"columns": {"a": [1]}, "header": ["a"]}, ["/data"]),
        ({"rows": [[1]]}, ["/data"]),
        ({"header": ["a"]}, ["/data"]),
        ({"table": []}, ["/data"]),
        ({"columns": [1]}, ["/data/columns"]),
        ({"columns": {"a": 1, "b": [1], "c": None}}, ["/data/columns/a", "/data/columns/c"]),
        ({"columns": {}}, ["/data"]),
        ({"columns": {"a": []}}, ["/data"]),
        ({"columns": {"a": [1, 2], "b": [1], "c/d": [1, 2, 3]}}, ["/data/columns/b", "/data/columns/c~1d"]),
        ({"columns": {"a": [1, "x"], "b": [1, 2], "c": [True, 1]}}, ["/data/columns/a/1", "/data/columns/c/1"]),
        ({"columns": {"a": [1] * 6}}, ["/data/columns"]),
        ({"columns": {name: [1] for name in "abcde"}}, ["/data/columns"]),
        ({"records": {}}, ["/data/records"]),
        ({"records": []}, ["/data"]),
        ({"records": [{}]}, ["/data"]),
        ({"records": [{"a": 1}, [2], 3]}, ["/data/records/1", "/data/records/2"]),
        ({"records": [{"a": 1}, {"a": "x"}]}, ["/data/records/1/a"]),
        ({"records": [{"a": 1}] * 6}, ["/data/records"]),
        ({"records": [{name: 1} for name in "abcde"]}, ["/data/records"]),
        ({"header": "a", "rows": []}, ["/data/header"]),
        ({"header": [], "rows": [[]]}, ["/data"]),
        ({"header": ["a", 1], "rows": []}, ["/data/header/1"]),
        ({"header": ["a", "b", "a"], "rows": [[1, 2, 3]]}, ["/data/header/2"]),
        ({"header": list("abcde"), "rows": []}, ["/data/header"]),
        ({"header": ["a"], "rows": {}}, ["/data/rows"]),
        ({"header": ["a"], "rows": []}, ["/data"]),
        ({"header": ["a"], "rows": [1, [2]]}, ["/data/rows/0"]),
        ({"header": ["a", "b"], "rows": [[1, 2], [1], [1, 2, 3]]}, ["/data/rows/1", "/data/rows/2"]),
        ({"header": ["a", "b"], "rows": [[1, 2], [1, "x"]]}, ["/data/rows/1/1"]),
        ({"header": ["a"], "rows": [[1]] * 6}, ["/data/rows"]),
    ],
)
def test_faults(data: dict[str, Any], places: list[str]) -> None:
    """Whatever is wrong with a table's form, size or cells is told at its place, all of a kind at once."""
    assert [fault.place for fault in faults_of(data)] == places


@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"rows": [1, 2]}, "/data/rows/0"),
        ({"rows": [[1, 2], [1]]}, "/data/rows/1"),
        ({"rows": [[1, "abc"]]}, "/data/rows/0/1"),
        ({"rows": []}, "/data"),
    ],
)
def test_faults_of_rows_alone(data: dict[str, Any], place: str) -> None:
    """Rows without a header are held against the model's features."""
    declared = {"a": Declared("numeric"), "b": Declared("boolean")}
    assert faults_of(data, declared=declared, order=["a", "b"])[0].place == place


@pytest.mark.parametrize(
    ("data", "says"),
    [
        ({"header": ["a", "b", "a"], "rows": []}, "'a' is named twice"),
        ({"header": ["a"], "rows": [[1, 2]]}, "Row 0 has 2 cells; there are 1 columns"),
        ({"columns": {"a": [1], "b": [1, 2]}}, "'b' has 2 rows, 'a' has 1"),
        ({"columns": {"a": [1] * 6}}, "There are 6 rows; at most 5 are read here (TREEWRIGHT_MAX_ROWS)"),
        ({"columns": {"a": []}}, "There are no rows"),
        ({"records": [{}]}, "There are no columns"),
    ],
)
def test_messages(data: dict[str, Any], says: str) -> None:
    """A message has the numbers and names that it takes to find the mistake."""
    assert says in faults_of(data)[0].message


def test_many_faults_are_cut() -> None:
    """A table that is wrong in every row is answered by its first hundred faults."""
    limits = Limits(rows=1000, columns=4)
    assert len(faults_of({"header": ["a"], "rows": [[]] * 1000}, limits=limits)) == 100


@pytest.mark.parametrize("form", ["columns", "rows", "records"])
def test_large_tables_are_quick(form: str) -> None:
    """100,000 x 20 numbers are parsed, checked and converted with no loop over cells, in about half a second."""
    rows = np.random.default_rng(0).random((100_000, 20)).tolist()
    names = [f"x{index}" for index in range(20)]
    forms: dict[str, Any] = {
        "columns": {"columns": dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))},
        "rows": {"header": names, "rows": rows},
        "records": {"records": [dict(zip(names, row, strict=True)) for row in rows]},
    }
    text = orjson.dumps(forms[form])
    spent = []
    for _ in range(3):
        began = time.process_time()
        table = read(parse(text), limits=Limits(rows=10**6, columns=100))
        spent.append(time.process_time() - began)
        if spent[-1] < 1:
            break
    assert table.rows == 100_000
    assert min(spent) < 1.5, "a loop over cells takes several seconds"
