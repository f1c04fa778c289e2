"""Arrays of numbers that are cut out of a large body make the same table as all of it read the usual way."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import orjson
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.core.errors import InvalidData
from service.core.schema import Table
from service.errors import MalformedBody
from service.readers import json_text, numbers
from service.readers.cells import Declared
from service.readers.json_table import Limits, read_table
from service.readers.json_text import parse
from service.readers.numbers import Numbers

pytest.importorskip("simdjson")

LIMITS = Limits(50, 20)
WHOLE = st.integers(-(2**63), 2**64 - 1) | st.integers(-3, 3)
REAL = st.floats(allow_nan=False, allow_infinity=False) | st.sampled_from([0.5, -0.0, 1e22, 5e-324, 2.0**53])
LISTS = st.one_of(st.lists(kind, min_size=1, max_size=6) for kind in (REAL, WHOLE, REAL | st.none(), WHOLE | st.none()))
ANY = LISTS | st.lists(WHOLE | REAL | st.none() | st.booleans() | st.sampled_from(["a", "[1,2]", ']"']), max_size=6)
NAMES = ["a", "b", "c"]
KINDS = st.dictionaries(
    st.sampled_from(NAMES),
    st.sampled_from(
        [Declared("numeric"), Declared("nominal"), Declared("boolean"), Declared("ordinal", (1, 2.5), extend=True)]
    ),
)


@pytest.fixture(autouse=True)
def _any_length(monkeypatch: pytest.MonkeyPatch) -> None:
    """Cut however short the array."""
    monkeypatch.setattr(json_text, "_LARGE", 0)
    monkeypatch.setattr(numbers, "SHORTEST", 0)


def show(table: Table) -> list[Any]:
    """A table in terms that tell everything about it apart."""
    return [
        (
            column.name,
            column.kind,
            column.values.dtype.str,
            column.values.tobytes(),
            repr(column.categories),
            None if column.missing is None else column.missing.tolist(),
        )
        for column in table.columns
    ]


def read_both(text: bytes, declared: dict[str, Declared], order: list[str] | None) -> list[Any]:
    """What comes of a body by way of `parse`, and of what orjson reads: tables, or the faults."""
    results = []
    for value in (parse(text), orjson.loads(text)):
        try:
            results.append(show(read_table(value["data"], declared=declared, order=order, limits=LIMITS)))
        except InvalidData as error:
            results.append([(fault.place, fault.message) for fault in error.faults])
    return results


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400, deadline=None)
@given(st.dictionaries(st.sampled_from([*NAMES, "["]), ANY, max_size=4), KINDS, st.booleans(), st.booleans())
def test_columns(columns: dict[str, list[Any]], declared: dict[str, Declared], predicting: bool, blanks: bool) -> None:
    """By column: the same kinds, types, values to the bit, categories and faults."""
    text = json.dumps({"data": {"columns": columns}}, separators=None if blanks else (",", ":")).encode()
    got, expected = read_both(text, declared, NAMES if predicting else None)
    assert got == expected


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=400, deadline=None)
@given(st.data(), KINDS, st.booleans(), st.sampled_from([None, NAMES, NAMES[:2]]))
def test_rows(data: st.DataObject, declared: dict[str, Declared], blanks: bool, order: list[str] | None) -> None:
    """By row: the same, also where rows are ragged, empty or nested; in prediction 1 may be read as 1.0."""
    mixed = REAL | st.sampled_from([[], [1], None, "a"])
    cell = data.draw(st.sampled_from([REAL, WHOLE, REAL | WHOLE, REAL | st.none(), WHOLE | st.none(), mixed]))
    width = data.draw(st.integers(1, 3))
    wide = st.lists(cell, min_size=width, max_size=width)
    ragged = st.lists(cell, max_size=4)
    rows = data.draw(st.lists(wide, min_size=1, max_size=5) | st.lists(wide | ragged, min_size=1, max_size=5))
    table: dict[str, Any] = {"rows": rows}
    if order is None or data.draw(st.booleans()):
        table["header"] = NAMES[:width]
    text = json.dumps({"data": table}, separators=None if blanks else (",", ":")).encode()
    got, expected = read_both(text, declared, order)
    if order is not None:
        got, expected = ([_as_float(column) for column in one] for one in (got, expected))
    assert got == expected


def _as_float(column: tuple[Any, ...]) -> tuple[Any, ...]:
    """A shown column of whole numbers that float64 holds, as if they had been floats."""
    if len(column) != 6 or column[2] != "<i8":
        return column
    values = np.frombuffer(column[3], np.int64).astype(float)
    if (np.abs(values) >= 2.0**53).any():
        return column
    if column[5] is not None:
        values[column[5]] = np.nan
    return (*column[:2], "<f8", values.tobytes(), column[4], None)


def test_what_is_cut() -> None:
    """The rows, or each column of numbers, become arrays, whatever stands around them; other lists stay."""
    data = parse(b'{"name": "x", "data": {"columns": {"a": [1, 2], "b": [0.5], "c": ["x", "y"], "d": [1, null]}}}')[
        "data"
    ]["columns"]
    assert [type(cells) for cells in data.values()] == [Numbers, Numbers, list, Numbers]
    assert data["a"].values.dtype == np.int64
    assert data["d"].array().tolist() == data["d"].cells() == [1, None]
    rows = parse(b'{"data":{"rows":[[1,2.5],[3,4]],"header":["a","b"]},"target":"a"}')["data"]["rows"]
    assert (rows.values.tolist(), rows.cells()) == ([[1, 2.5], [3, 4]], [[1, 2.5], [3, 4]])
    spaced = parse(b'{"data": {"rows": [[1, 2.5], [3, 4], [5, 6]]}}')["data"]["rows"]
    assert spaced.values.tolist() == [[1, 2.5], [3, 4], [5, 6]]


@pytest.mark.parametrize("separators", [(",", ":"), (", ", ": ")])
@pytest.mark.parametrize("width", [1, 2, 40])
@pytest.mark.parametrize("at", [0, 1, 150, 298])
def test_one_uneven_row(separators: tuple[str, str], width: int, at: int) -> None:
    """Of many rows one that hands a number to the next, or holds one in a list, is noticed wherever it stands."""
    even = [[row + column / 4 for column in range(width)] for row in range(300)]
    handed, nested = [list(row) for row in even], [list[Any](row) for row in even]
    handed[at + 1].append(handed[at].pop())
    nested[at][-1] = [nested[at][-1]]
    for rows, kind in ((even, Numbers), (handed, list), (nested, list)):
        got = parse(json.dumps({"data": {"rows": rows}}, separators=separators).encode())["data"]["rows"]
        assert type(got) is kind
        assert (got.cells() if isinstance(got, Numbers) else got) == rows


@pytest.mark.parametrize(
    "text",
    [
        b'{"data": [1, 2]}', b"[[1, 2], [3]]", b"[1]", b'{"rows": [[1]]}', b'{"data": {"header": [1, 2]}}',
        b'{"data": {"rows": {"a": [1]}}}', b'{"x": "[1, 2]", "data": {"columns": {"a": [1]}}}',
        b'{"tags": {"a": [1]}, "data": {"columns": {"a": [1]}}}', b'{"data": {"columns": {"[1]": "[2]"}}}',
    ],
)  # fmt: skip
def test_arrays_elsewhere(text: bytes) -> None:
    """A text whose arrays of numbers stand elsewhere, or inside of strings, is read as ever."""
    assert plain(parse(text)) == orjson.loads(text)


def plain(value: Any) -> Any:  # noqa: ANN401 - any JSON value
    """The value with lists for arrays."""
    if isinstance(value, Numbers):
        return value.cells()
    return {key: plain(item) for key, item in value.items()} if isinstance(value, dict) else value


@pytest.mark.parametrize(
    "text", [b'{"data": {"columns": {"a": [1, 02]}}}', b'{"data": {"columns": {"a": [1,]}}}',
             b'{"data": {"rows": [[1,2],[3,NaN]]}}', b'{"data": {"rows": [[1,2],[3,1e999]]}}',
             *(b'{"data": {"columns": {"a": [1, %s]}}}' % wrong for wrong in
               (b"nul", b"1null", b"null1", b"-null", b"null.5", b"nulle5", b"nullnull", b"null null", b"nnull")),
             b'{"data": {"columns": {"a": [1, 2]}', b'{"data": {"rows": [[1,2],[3,4]}}', b'{"a": [1] "b": [2]}'],
)  # fmt: skip
def test_what_is_not_json(text: bytes) -> None:
    """Malformed text is refused in the same words, with the place in the whole text."""
    with pytest.raises(MalformedBody) as refused:
        parse(text)
    with pytest.raises(orjson.JSONDecodeError) as error:
        orjson.loads(text)
    assert str(error.value) in str(refused.value)


def test_repeated_keys() -> None:
    """A key that stands twice is named, whether or not its column was cut out."""
    with pytest.raises(InvalidData) as refused:
        parse(b'{"data": {"columns": {"a": [1, 2], "a": [3, 4]}}}')
    assert refused.value.faults[0].place == "/data/columns/a"


def test_without_simdjson(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where it is not installed, everything is read by orjson."""
    monkeypatch.setattr(numbers, "_Parser", None)
    assert parse(b'{"data": {"rows": [[1, 2]]}}') == {"data": {"rows": [[1, 2]]}}
