"""The three forms of posted data become one table.

    {"columns": {"age": [..], "job": [..]}}    by column
    {"records": [{"age": .., "job": ..}, ..]}  by row, each with its names; a name that a row lacks is missing there
    {"header": [..], "rows": [[..], ..]}       by row, the names once; without them when the order is known

Columns stand in the order in which their names first appear.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import chain, repeat
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.errors import Fault, InvalidData, pointer
from service.core.schema import Column, Table
from service.readers.cells import Declared, read_column
from service.readers.numbers import choose_forms

_MOST_FAULTS = 100  # a table that is wrong everywhere is told so by examples


@dataclass(frozen=True, slots=True)
class Limits:
    """The largest table that is read."""

    rows: int
    columns: int


@dataclass(frozen=True, slots=True)
class _Cells:
    """A form taken apart: ``cells(j)`` are those of column j, perhaps an array; ``place(j, row)`` points at one."""

    names: Sequence[str]
    rows: int
    cells: Callable[[int], list[Any] | NDArray[Any]]
    place: Callable[[int, int], str]


def read_table(
    data: Mapping[str, Any],
    *,
    declared: Mapping[str, Declared],
    order: Sequence[str] | None,
    limits: Limits,
    place: str = "/data",
) -> Table:
    """Check and convert posted data.

    ``declared`` says the kinds that are known beforehand. ``order`` has the names of a model's inputs: rows may then
    come without a header, and a column outside of ``declared`` is not read, only listed (all its cells missing), since
    what the model does not use cannot be wrong. Raises `InvalidData`, one fault per column or row that is wrong.
    """
    cells = _take_apart(data, declared, order, limits, place)
    if cells.rows == 0 or not cells.names:
        raise InvalidData(Fault(place, f"There are no {'columns' if cells.rows else 'rows'}; send at least one."))
    columns, faults = list[Column](), list[Fault]()
    for index, name in enumerate(cells.names):
        if order is not None and name not in declared:
            columns.append(Column(name, "numeric", np.broadcast_to(np.float64(np.nan), (cells.rows,))))
            continue
        try:
            columns.append(read_column(name, cells.cells(index), declared.get(name), _place_in(cells, index)))
        except InvalidData as error:
            faults.extend(error.faults)
    if faults:
        raise InvalidData(faults[:_MOST_FAULTS])
    return Table(tuple(columns), cells.rows)


def _place_in(cells: _Cells, index: int) -> Callable[[int], str]:
    return lambda row: cells.place(index, row)


def _take_apart(
    data: Mapping[str, Any], declared: Mapping[str, Declared], order: Sequence[str] | None, limits: Limits, place: str
) -> _Cells:
    """The form that the keys of ``data`` tell, checked for its shape and size only."""
    header = data.get("header", order)
    data = choose_forms(data, declared, order, len(header) if isinstance(header, list) else None)
    form = frozenset(data)
    if form == {"columns"}:
        return _take_columns(data["columns"], limits, f"{place}/columns")
    if form == {"records"}:
        return _take_records(data["records"], limits, f"{place}/records")
    if form == {"header", "rows"}:
        return _take_rows(data["rows"], _check_header(data["header"], limits, place), limits, f"{place}/rows")
    if form == {"rows"} and order is not None:
        return _take_rows(data["rows"], order, limits, f"{place}/rows")
    alone = ", or `rows` alone" if order is not None else ""
    raise InvalidData(Fault(place, f"Send exactly one of `columns`, `records`, or `header` with `rows`{alone}."))


def _take_columns(columns: object, limits: Limits, place: str) -> _Cells:
    if not isinstance(columns, dict):
        raise InvalidData(Fault(place, "`columns` is an object of lists, one per column."))
    _check_size(len(columns), limits.columns, "columns", place)
    _check_all(
        columns, columns.values(), {list, np.ndarray, np.ma.MaskedArray}, place, "A column is a list of its cells."
    )
    names, lists = list(columns), list(columns.values())
    rows = len(lists[0]) if lists else 0
    _check_size(rows, limits.rows, "rows", place)
    _raise_any(
        Fault(
            pointer_in(place, name),
            f"Column {name!r} has {len(cells)} rows, {names[0]!r} has {rows}; give all as many.",
        )
        for name, cells in columns.items()
        if len(cells) != rows
    )
    return _Cells(names, rows, lists.__getitem__, lambda index, row: pointer_in(place, names[index], row))


def _take_records(records: object, limits: Limits, place: str) -> _Cells:
    if not isinstance(records, list):
        raise InvalidData(Fault(place, "`records` is a list of objects, one per row."))
    _check_size(len(records), limits.rows, "rows", place)
    _check_all(range(len(records)), records, {dict}, place, "A record is an object of names and cells.")
    keys = list(chain.from_iterable(records))
    names = list(records[0]) if records else []
    # programs write the same names in the same order; many names that few records have are not multiplied
    even = len(keys) == len(names) * len(records) and keys == names * len(records)
    names = names if even else list(dict.fromkeys(keys))
    _check_size(len(names), limits.columns, "columns", place)
    flat = list(chain.from_iterable(map(dict.values, records))) if even else []

    def cells(index: int) -> list[Any]:
        return flat[index :: len(names)] if even else list(map(dict.get, records, repeat(names[index])))

    return _Cells(names, len(records), cells, lambda index, row: pointer_in(place, row, names[index]))


def _take_rows(rows: object, names: Sequence[str], limits: Limits, place: str) -> _Cells:
    if isinstance(rows, np.ndarray):  # numbers of the right width, see `choose_forms`
        _check_size(len(rows), limits.rows, "rows", place)
        columns = np.ascontiguousarray(rows.T)
        return _Cells(names, len(rows), columns.__getitem__, lambda index, row: pointer_in(place, row, index))
    if not isinstance(rows, list):
        raise InvalidData(Fault(place, "`rows` is a list of lists, one per row."))
    _check_size(len(rows), limits.rows, "rows", place)
    _check_all(range(len(rows)), rows, {list}, place, "A row is a list of its cells.")
    width = len(names)
    if set(map(len, rows)) - {width}:
        _raise_any(
            Fault(pointer_in(place, row), f"Row {row} has {len(cells)} cells; there are {width} columns.")
            for row, cells in enumerate(rows)
            if len(cells) != width
        )
    flat = list(chain.from_iterable(rows))
    return _Cells(names, len(rows), lambda index: flat[index::width], lambda index, row: pointer_in(place, row, index))


def _check_header(header: object, limits: Limits, place: str) -> list[str]:
    """The header's names; raises `InvalidData` naming each that is no string or stands twice."""
    place = f"{place}/header"
    if not isinstance(header, list):
        raise InvalidData(Fault(place, "`header` is a list of column names."))
    _check_size(len(header), limits.columns, "columns", place)
    _check_all(range(len(header)), header, {str}, place, "A column name is a string.")
    seen, faults = set[str](), list[Fault]()
    for index, name in enumerate(header):
        if name in seen:
            faults.append(
                Fault(pointer_in(place, index), f"Column {name!r} is named twice; give each column its own name.")
            )
        seen.add(name)
    _raise_any(faults)
    return header


def pointer_in(place: str, *parts: object) -> str:
    """The JSON pointer of something inside of ``place``."""
    return place + pointer(*parts)


def _check_size(size: int, limit: int, what: str, place: str) -> None:
    if size > limit:
        variable = f"TREEWRIGHT_MAX_{what.upper()}"
        raise InvalidData(Fault(place, f"There are {size:,} {what}; at most {limit:,} are read here ({variable})."))


def _check_all(keys: Iterable[object], values: Collection[object], wanted: set[type], place: str, message: str) -> None:
    """Raise `InvalidData` with the key of each of the values whose type is none of the wanted ones."""
    if not set(map(type, values)) <= wanted:
        wrong = (key for key, value in zip(keys, values, strict=True) if type(value) not in wanted)
        _raise_any(Fault(pointer_in(place, key), message) for key in wrong)


def _raise_any(faults: Any) -> None:  # noqa: ANN401 - any iterable, also one that is made as it is read
    found = [fault for fault, _ in zip(faults, range(_MOST_FAULTS), strict=False)]
    if found:
        raise InvalidData(found)
