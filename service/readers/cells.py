"""The cells of one column, as JSON gave them, become a `Column`: its kind is told or found, its values are checked.

Nothing here loops over single cells in Python but where a fault is being located: types are collected, looked up and
converted by C functions (`set(map(type, cells))`, `np.array`, `map(table.__getitem__, cells)`).
"""

from __future__ import annotations

import operator
from collections import defaultdict
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from itertools import count, repeat
from types import NoneType
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.errors import Fault, InvalidData
from service.core.schema import MISSING, Column, Kind, Label, keep_apart

Place = Callable[[int], str]
"""Gives the JSON pointer of a column's cell in a row."""

_FAMILIES: dict[type, str] = {bool: "boolean", int: "number", float: "number", str: "string"}
_KIND_OF_FAMILY: dict[str, Kind] = {"boolean": "boolean", "number": "numeric", "string": "nominal"}
_ALLOWED: dict[Kind, frozenset[type]] = {
    "numeric": frozenset({int, float, NoneType}),
    "boolean": frozenset({bool, NoneType}),
    "nominal": frozenset({*_FAMILIES, NoneType}),
    "ordinal": frozenset({*_FAMILIES, NoneType}),
}
_WANTED: dict[Kind, str] = {
    "numeric": "a number",
    "boolean": "true or false",
    "nominal": "a string, a number, true or false",
    "ordinal": "a string, a number, true or false",
}
_EXACT = 2.0**64  # the JSON parser reads larger whole numbers as floats


@dataclass(frozen=True, slots=True)
class Declared:
    """What is known of a column before its cells are seen.

    ``categories`` are an ordinal column's, lowest first. With ``extend`` a value outside of them joins them at the end
    (a model is asked about a level that its training did not see) instead of being a fault.
    """

    kind: Kind
    categories: tuple[Label, ...] = ()
    extend: bool = False


def read_column(name: str, cells: list[Any] | NDArray[Any], declared: Declared | None, place: Place) -> Column:
    """Check and convert one column; ``None`` cells are missing, a column of nothing else is numeric, so is an array.

    Masked cells of an array are missing too.
    Raises `InvalidData` that names the first cell which is not of the declared kind, or, where none is declared, of
    the kind of the first cell that has a value.
    """
    if isinstance(cells, np.ndarray):
        missing = np.ma.getmaskarray(cells) if isinstance(cells, np.ma.MaskedArray) else None
        return Column(name, "numeric", np.asarray(cells), missing=missing)
    numbered = _number_strings(cells, declared)
    types = set(map(type, numbered[0] if numbered else cells))
    kind = declared.kind if declared else _find_kind(name, cells, types, place)
    if not types <= _ALLOWED[kind]:
        row = next(row for row, cell in enumerate(cells) if type(cell) not in _ALLOWED[kind])
        raise InvalidData(
            Fault(
                place(row),
                f"Column {name!r} is {kind}, row {row} has {_show(cells[row])}; "
                f"give {_WANTED[kind]}, or null where it is missing.",
            )
        )
    if kind == "numeric":
        return _read_numbers(name, cells, types)
    if kind == "boolean":
        return Column(name, kind, _look_up(cells, {False: 0, True: 1, None: MISSING}), (False, True))
    return _read_labels(name, cells, types, declared or Declared(kind), place, numbered)


def order_labels(labels: Iterable[Label]) -> tuple[Label, ...]:
    """Labels in their written order: false, true, numbers ascending, strings by code point."""
    return tuple(sorted(labels, key=_rank))


def _rank(label: Label) -> tuple[int, Label]:
    return (("boolean", "number", "string").index(_FAMILIES[type(label)]), label)


def _find_kind(name: str, cells: list[Any], types: set[type], place: Place) -> Kind:
    """The kind that the cells' own types say; raises `InvalidData` at the first cell that is of another one."""
    families = {_FAMILIES.get(kind) for kind in types - {NoneType}}
    if len(families) == 1 and None not in families:
        return _KIND_OF_FAMILY[str(families.pop())]
    if not families:
        return "numeric"
    filled = [row for row, cell in enumerate(cells) if cell is not None]
    first = _FAMILIES.get(type(cells[filled[0]]))
    row = next((row for row in filled if _FAMILIES.get(type(cells[row])) != first), filled[0])
    if type(cells[row]) not in _FAMILIES:
        raise InvalidData(
            Fault(
                place(row),
                f"Column {name!r} has {_show(cells[row])} in row {row}; "
                "a cell is a number, a string, true, false or null.",
            )
        )
    raise InvalidData(
        Fault(
            place(row),
            f"Column {name!r} mixes kinds: row {filled[0]} has {_show(cells[filled[0]])}, "
            f"row {row} has {_show(cells[row])}; send one kind or declare the column in `schema`.",
        )
    )


def _read_numbers(name: str, cells: list[Any], types: set[type]) -> Column:
    """int64 when every value is a whole number that it holds, else float64."""
    if int not in types or float in types:
        return Column(name, "numeric", np.array(cells, np.float64))
    missing: NDArray[np.bool_] | None = None
    whole = cells
    if NoneType in types:
        missing = np.fromiter(map(operator.is_, cells, repeat(None)), np.bool_, len(cells))
        whole = [0 if cell is None else cell for cell in cells]
    try:
        return Column(name, "numeric", np.array(whole, np.int64), missing=missing)
    except OverflowError:
        return Column(name, "numeric", np.array(cells, np.float64))


def _number_strings(cells: list[Any], declared: Declared | None) -> tuple[list[Any], NDArray[np.int32]] | None:
    """`_number` of a column of labels all of which are strings or None, so that no look at the types has to precede."""
    if (declared and declared.kind not in {"nominal", "ordinal"}) or type(next(filter(None, cells), None)) is not str:
        return None
    try:
        seen, which = _number(cells)
    except TypeError:  # a list or an object
        return None
    return (seen, which) if set(map(type, seen)) <= {str, NoneType} else None


def _number(keys: Sequence[Any]) -> tuple[list[Any], NDArray[np.int32]]:
    """The distinct keys, as they first come, and which of them each is: ``(row,)``."""
    found: defaultdict[Any, int] = defaultdict(count().__next__)
    which = np.fromiter(map(found.__getitem__, keys), np.int32, len(keys))
    return list(found), which


def _read_labels(
    name: str,
    cells: list[Any],
    types: set[type],
    declared: Declared,
    place: Place,
    numbered: tuple[list[Any], NDArray[np.int32]] | None,
) -> Column:
    """Code labels by the declared categories, or by those found, in their written order."""
    _refuse_inexact(name, cells, types, place)
    involved = types | set(map(type, declared.categories))
    apart = bool in involved and bool(involved & {int, float})
    keys = list(map(keep_apart, cells)) if apart else cells
    seen, which = numbered or _number(keys)
    labels = dict(zip(keys, cells, strict=True)) if apart else dict(zip(seen, seen, strict=True))
    if float in types and int in types:  # 1 and 1.0 are one number, shown as a whole one whichever row comes first
        labels.update({key: cell for key, cell in zip(keys, cells, strict=True) if type(cell) is int})
    labels.pop(None, None)
    known = {keep_apart(label) if apart else label: label for label in declared.categories}
    new = order_labels(
        label + 0.0 if type(label) is float else label for key, label in labels.items() if key not in known
    )
    if new and declared.categories and not declared.extend:
        outside = {keep_apart(label) for label in new}
        row = next(row for row, cell in enumerate(cells) if keep_apart(cell) in outside)
        raise InvalidData(
            Fault(
                place(row),
                f"Column {name!r} has {_show(cells[row])} in row {row}, which is not one of its "
                "declared categories; add it to them in order, or send null.",
            )
        )
    categories = (*declared.categories, *new)
    codes: dict[object, int] = {keep_apart(label) if apart else label: code for code, label in enumerate(categories)}
    return Column(name, declared.kind, _look_up(seen, {**codes, None: MISSING})[which], categories)


def _refuse_inexact(name: str, cells: list[Any], types: set[type], place: Place) -> None:
    """A whole number past 64 bits has lost digits by now: as a category it would be another one."""
    if float not in types:
        return
    row = next((row for row, cell in enumerate(cells) if type(cell) is float and abs(cell) >= _EXACT), None)
    if row is not None:
        raise InvalidData(
            Fault(
                place(row),
                f"Column {name!r} has a number past 64 bits in row {row}, which cannot be kept "
                "exactly as a category; send it as a string.",
            )
        )


def _look_up(keys: Sequence[Any], codes: dict[Any, int]) -> NDArray[np.int32]:
    """(row,) The code of every key."""
    return np.fromiter(map(codes.__getitem__, keys), np.int32, len(keys))


def _show(cell: object) -> str:
    """A cell as JSON writes it, or what it is when it is no scalar; long ones are cut."""
    if isinstance(cell, dict | list):
        return "an object" if isinstance(cell, dict) else "a list"
    if cell is None or isinstance(cell, bool):
        return {None: "null", True: "true", False: "false"}[cell]
    text = f'"{cell}"' if isinstance(cell, str) else repr(cell)
    return text if len(text) <= 60 else text[:56] + '..."'
