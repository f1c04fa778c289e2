"""The cells of a posted table that has one row, without making a table of it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from service.core.read_row import Unusual


def take_row(data: Mapping[str, Any], names: Mapping[str, int]) -> Sequence[Any]:
    """The cells under ``names``, in their order, of a table in any form (`json_table`).

    Raises `Unusual` unless there is exactly one row, with exactly these columns, and nothing else.
    """
    form = data.keys()
    if form == {"rows"}:
        return _check_width(_take_only(data["rows"], list), names)
    if form == {"records"}:
        return _take_named(_take_only(data["records"], dict), names)
    if form == {"columns"}:
        columns = data["columns"]
        if type(columns) is not dict:
            raise Unusual
        return _take_named({name: _take_only(cells) for name, cells in columns.items()}, names)
    if form == {"header", "rows"}:
        header, row = data["header"], _check_width(_take_only(data["rows"], list), names)
        if type(header) is not list or not all(type(name) is str for name in header):
            raise Unusual
        return _take_named(dict(zip(_check_width(header, names), row, strict=True)), names)
    raise Unusual


def _take_only(listed: object, kind: type | None = None) -> Any:  # noqa: ANN401 - a row, or a cell
    """The only item of a list, which is of that kind."""
    if type(listed) is not list or len(listed) != 1 or (kind and type(listed[0]) is not kind):
        raise Unusual
    return listed[0]


def _check_width(row: list[Any], names: Mapping[str, int]) -> list[Any]:
    if len(row) != len(names):
        raise Unusual
    return row


def _take_named(cells: Mapping[str, Any], names: Mapping[str, int]) -> Sequence[Any]:
    if cells.keys() != names.keys():
        raise Unusual
    return [cells[name] for name in names]
