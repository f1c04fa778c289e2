"""Long arrays of numbers, read from JSON text without making a Python object of each.

A large body is mostly one of two things: lists of numbers by column, or rows of nothing but numbers, here and there
with a null. These are cut out of the text, simdjson reads them into buffers, with a 0 for each null, and what is left
of the text goes the usual way with a token in place of each. A cut is only a guess where an array ends: simdjson says
whether it was an array of numbers, and the token has to turn up where a column or the rows are expected. Otherwise the
whole text is read the usual way, which also words every error. Without simdjson (it has no wheel for every Python) all
of it is.
"""

from __future__ import annotations

import secrets
import threading
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from service.readers.cells import Declared

_Parser: Callable[[], Any] | None
try:
    from simdjson import Parser as _Parser
except ImportError:
    _Parser = None

SHORTEST = 1 << 10
"""Bytes of an array that is worth cutting out."""
_KEPT = 1 << 22
_LOCAL = threading.local()
_MOST_GUESSES = 64
_EXACT = 2.0**53
_COMMA, _OPEN, _BLANK, _N = b",[ n"
_FIRST = frozenset(b"-0123456789n")
_NULL, _ZERO = b"null", b" 0  "
"""Of the same length, and neither joins what stands beside it, so that text that is not JSON stays so."""


class Numbers:
    """An array of numbers, or of rows of them: ``values`` (row,) int64 or float64, or (row, column) float64.

    ``gaps: (gap,)`` are the places of nulls, counted along the text; 0 stands there.
    """

    def __init__(self, values: NDArray[Any], gaps: NDArray[np.int64], text: memoryview) -> None:
        self.values = values
        self._gaps = gaps
        self._text = text

    def array(self) -> NDArray[Any]:
        """The values with NaN in the gaps; whole numbers as a masked array, unless all are missing."""
        if not len(self._gaps):
            return self.values
        if self.values.dtype.kind == "i" and len(self._gaps) < len(self.values):
            mask = np.zeros(len(self.values), bool)
            mask[self._gaps] = True
            return np.ma.masked_array(self.values, mask)
        values = self.values.astype(np.float64)
        values.ravel()[self._gaps] = np.nan
        return values

    def cells(self) -> list[Any]:
        """The same as lists, with every number of the type that JSON gives it."""
        cells: list[Any] = orjson.loads(self._text)
        return cells


def cut_numbers(text: bytes) -> tuple[bytes, dict[str, Numbers]]:
    """The text with tokens in place of its long arrays of numbers, and the array of each token."""
    found, parts, copied, at, guesses = dict[str, Numbers](), list[bytes](), 0, 0, 0
    key = secrets.token_hex(16)
    while _Parser is not None and guesses < _MOST_GUESSES and (start := text.find(b"[", at)) >= 0:
        at = start + 1
        array = _read_array(text, start)
        guesses += array is None
        if array is not None:
            token = f"{key}{len(found)}"
            found[token], length = array
            parts += [text[copied:start], b'"', token.encode(), b'"']
            copied = at = start + length
    return b"".join([*parts, text[copied:]]), found


def put_numbers(value: Any, found: Mapping[str, Numbers]) -> bool:  # noqa: ANN401 - any JSON value
    """Put the arrays where their tokens stand, if each is a column or the rows of ``data``; whether that is so."""
    data = value.get("data") if isinstance(value, dict) else None
    if not isinstance(data, dict):
        return False
    columns = data.get("columns")
    put = 0
    for place in (data, columns if isinstance(columns, dict) else {}):
        for name, token in place.items():
            if type(token) is str and token in found and (place is not data or name == "rows"):
                place[name] = found[token]
                put += 1
    return put == len(found)


def choose_forms(
    data: Mapping[str, Any], declared: Mapping[str, Declared], order: object, width: int | None
) -> dict[str, Any]:
    """``data`` with each `Numbers` as an array if that says all that its cells do, else as lists.

    Labels need the cells' own types, and so do whole numbers among the rows of a training, whose columns may be int64.
    """
    form = dict(data)
    rows, columns = form.get("rows"), form.get("columns")
    if isinstance(rows, Numbers):
        plain = all(one.kind == "numeric" for one in declared.values()) and rows.values.shape[1:] == (width,)
        form["rows"] = rows.array() if plain and _say_all(rows.values, training=order is None) else rows.cells()
    if isinstance(columns, dict):
        form["columns"] = {name: _choose_form(cells, declared.get(name)) for name, cells in columns.items()}
    return form


def _choose_form(cells: Any, declared: Declared | None) -> Any:  # noqa: ANN401 - what was posted
    if not isinstance(cells, Numbers):
        return cells
    plain = cells.values.ndim == 1 and (declared is None or declared.kind == "numeric")
    return cells.array() if plain else cells.cells()


def _say_all(matrix: NDArray[np.float64], training: bool) -> bool:
    if training:
        return bool((matrix != np.floor(matrix)).any(axis=0).all())
    return bool(matrix.min(initial=0.0) > -_EXACT and matrix.max(initial=0.0) < _EXACT)


def _read_array(text: bytes, start: int) -> tuple[Numbers, int] | None:
    """The array that begins at ``start``, with its length in bytes; None if it is short, or not one of numbers."""
    first = text[start + 1] if start + 1 < len(text) else 0
    if first == _OPEN:
        quote = text.find(b'"', start)
        end = text.rfind(b"]", start, quote if quote >= 0 else len(text)) + 1
    elif first in _FIRST:
        end = text.find(b"]", start) + 1
    else:
        return None
    if end - start < SHORTEST:
        return None
    part = memoryview(text)[start:end]
    gaps = _find_nulls(part) if text.find(_N, start, end) >= 0 else np.empty(0, np.int64)
    plain = text[start:end].replace(_NULL, _ZERO) if len(gaps) else part
    values = _parse_rows(plain) if first == _OPEN else _parse_numbers(plain, "i", "d")
    return None if values is None else (Numbers(values, gaps, part), len(part))


def _find_nulls(part: memoryview) -> NDArray[np.int64]:
    """(gap,) How many numbers stand before each null: as many as commas, and a null alone has the letter n."""
    letters = np.frombuffer(part, np.uint8)
    return _count_before(letters == _COMMA, np.flatnonzero(letters == _N))


def _parse_numbers(part: memoryview | bytes, *kinds: str) -> NDArray[Any] | None:
    """(number,) All numbers in the order of the text, of the first kind that holds them."""
    try:
        array = _find_parser(len(part)).parse(part)
    except (ValueError, RuntimeError):
        return None
    for kind in kinds:
        try:
            return np.frombuffer(array.as_buffer(of_type=kind), np.int64 if kind == "i" else np.float64)
        except (TypeError, ValueError, RuntimeError):
            continue
    return None


def _find_parser(size: int) -> Any:  # noqa: ANN401 - simdjson's
    """A parser: this thread's own, whose memory is warm, unless what it would keep of it is large."""
    if size > _KEPT:
        return _Parser()  # type: ignore[misc] # called only where there is one
    if not hasattr(_LOCAL, "parser"):
        _LOCAL.parser = _Parser()  # type: ignore[misc]
    return _LOCAL.parser


def _parse_rows(part: memoryview | bytes) -> NDArray[Any] | None:
    """(row, column) Rows of equal length, written as most write them: ``],[`` or ``], [`` stands between; else None.

    Where all the text is valid, every row but the first opens behind a closed one, and as many commas stand between
    two openings as a row has numbers, no row is longer, shorter or nested.
    """
    letters = np.frombuffer(part, np.uint8)
    opens = np.flatnonzero(letters == _OPEN)[1:]
    commas = np.diff(_count_before(letters == _COMMA, np.append(opens, len(letters))))
    rows, width = len(opens), int(commas[-1]) + 1
    between = b"], " if letters[opens[-1] - 1] == _BLANK else b"],"
    even = (commas[:-1] == width).all()
    if not even or any((letters[opens[1:] - back] != byte).any() for back, byte in enumerate(between[::-1], 1)):
        return None
    values = _parse_numbers(part, "d")
    return values.reshape(rows, width) if values is not None and len(values) == rows * width else None


def _count_before(which: NDArray[np.bool_], places: NDArray[np.int64]) -> NDArray[np.int64]:
    """(place,) how many are True before each place: bits are counted by 64, which is several times as fast."""
    packed = np.packbits(which, bitorder="little")
    words = np.zeros(len(packed) // 8 + 1, "<u8")
    words.view(np.uint8)[: len(packed)] = packed
    counts = np.bitwise_count(words)
    word, bit = places >> 6, (places & 63).astype(np.uint64)
    before = words[word] & ((np.uint64(1) << bit) - np.uint64(1))
    total: NDArray[np.int64] = np.cumsum(counts, dtype=np.int64)[word] - counts[word] + np.bitwise_count(before)
    return total
