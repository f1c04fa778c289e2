"""Faults point at the cell that the caller wrote."""

from __future__ import annotations

from typing import Any

import pytest

from service.core.errors import Fault, InvalidData, InvalidParameters
from service.readers.places import placed_as_posted

COLUMNS: dict[str, Any] = {"columns": {}}
RECORDS: dict[str, Any] = {"records": []}
HEADER: dict[str, Any] = {"header": ["b", "a/~"], "rows": []}
ROWS: dict[str, Any] = {"rows": []}


@pytest.mark.parametrize(
    ("data", "order", "place", "expected"),
    [
        (COLUMNS, [], "/data/columns/a/17", "/data/columns/a/17"),
        (RECORDS, [], "/data/columns/a~1~0/17", "/data/records/17/a~1~0"),
        (RECORDS, [], "/data/columns/a", "/data/records"),
        (HEADER, [], "/data/columns/a~1~0/17", "/data/rows/17/1"),
        (HEADER, [], "/data/columns/c", "/data/header"),
        (ROWS, ["x", "a"], "/data/columns/a/0", "/data/rows/0/1"),
        (ROWS, ["x", "a"], "/data/columns/c", "/data/rows"),
        (ROWS, [], "/data", "/data"),
        (RECORDS, [], "/target", "/target"),
    ],
)
def test_places(data: dict[str, Any], order: list[str], place: str, expected: str) -> None:
    """A place by column and row becomes one of the posted form; any other place stays."""
    with pytest.raises(InvalidData) as caught, placed_as_posted(data, order):
        raise InvalidData(Fault(place, "is wrong"))
    assert caught.value.faults == (Fault(expected, "is wrong"),)


def test_other_errors_pass() -> None:
    """What is not about the data goes through as it is."""
    with pytest.raises(InvalidParameters), placed_as_posted(RECORDS):
        raise InvalidParameters(Fault("/parameters/max_depth", "is wrong"))
