"""One row as a caller wrote it -> what the nodes of a tree compare: `conform` and the readers, for a single row.

Whatever asks for more than that, be it a fault or a warning, is `Unusual` here: the long way knows the words for it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TypeAlias, cast

from service.core.descend_one import Value
from service.core.schema import Feature, Label, keep_apart

Cell: TypeAlias = Label | None
"""What a caller writes; None is missing."""

_LEAST, _MOST = -(2**63), 2**63 - 1
_EXACT = 2.0**64
_ONLY_FLOATS = {float}


class Unusual(Exception):
    """The row has to go the long way: it is wrong, or the answer needs a warning."""


class RowReader:
    """Reads rows for a tree's features; ``refuse_missing`` makes a missing cell unusual."""

    def __init__(self, features: Sequence[Feature], refuse_missing: bool = False) -> None:
        self._readers = [_make_reader(feature) for feature in features]
        self._refuse = refuse_missing
        self._floats = all(feature.kind == "numeric" for feature in features)

    def read(self, cells: Sequence[Cell]) -> Sequence[Value]:
        """The value of each cell, as `OneRow.descend` takes them; raises `Unusual`."""
        if self._floats and set(map(type, cells)) == _ONLY_FLOATS:
            return cast("Sequence[float]", cells)
        if self._refuse and None in cells:
            raise Unusual
        return [None if cell is None else read(cell) for read, cell in zip(self._readers, cells, strict=True)]


def _make_reader(feature: Feature) -> Callable[[Label], Value]:
    if feature.kind == "numeric":
        return _read_whole if feature.integer else _read_float
    codes = {keep_apart(label): code for code, label in enumerate(feature.categories)}
    allowed = {bool} if feature.kind == "boolean" else {str, int, float, bool}

    def read(cell: Label) -> int:
        kind = type(cell)
        if kind not in allowed or (kind is float and abs(cell) >= _EXACT):  # type: ignore[arg-type]
            raise Unusual
        code = codes.get(keep_apart(cell))
        if code is None:
            raise Unusual
        return code

    return read


def _read_float(cell: Label) -> float:
    if type(cell) is float:
        return cell
    if type(cell) is not int:
        raise Unusual
    return float(cell)


def _read_whole(cell: Label) -> float | int:
    """Whole numbers that int64 holds stay whole; a column with others would be float64."""
    if type(cell) is int:
        return cell if _LEAST <= cell <= _MOST else float(cell)
    if type(cell) is not float:
        raise Unusual
    return cell
