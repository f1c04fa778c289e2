"""Candidates of a listing as lines of JSON or CSV, column by column.

A number takes a twentieth of a microsecond where one call writes its whole column, and ten times as long in a row of
its own. So columns are written first, and then cut into cells that are put between what all lines have in common.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import orjson
from numpy.typing import NDArray

from service.core.listing import find_distinct
from service.rendering.branches import Branches, Population
from service.rendering.columns import REASONS, Column, Part, list_shown

Piece: TypeAlias = bytes | list[bytes]
"""What all lines have, or what each has."""


@dataclass(frozen=True)
class Style:
    """How a format writes text, what is null, flags, and quotation marks within a cell."""

    write_text: Callable[[str], bytes]
    null: bytes
    mark: bytes


def write_fields(*fields: str) -> bytes:
    """Some cells of a line of CSV, without its end."""
    text = io.StringIO()
    csv.writer(text, lineterminator="").writerow([*fields, ""])  # a field that stands alone is written otherwise
    return text.getvalue()[:-1].encode()


JSON = Style(orjson.dumps, b"null", b'"')
CSV = Style(write_fields, b"", b'""')


def write_json_parts(parts: Sequence[Part]) -> bytes:
    """A line of JSON for each candidate, as `rendering.candidates.show_candidates` has them."""
    return _join_parts(parts, _write_json)


def write_csv_parts(parts: Sequence[Part]) -> bytes:
    """A line of CSV for each candidate."""
    return _join_parts(parts, _write_csv)


def _join_parts(parts: Sequence[Part], write: Callable[[Part], Iterable[Piece]]) -> bytes:
    """The lines of all parts in the order of their places."""
    if len(parts) == 1:
        return _join(write(parts[0]), len(parts[0]))
    lines = [b""] * sum(map(len, parts))
    for part in parts:
        for i, line in zip(part.place.tolist(), _list_cells(write(part), len(part)), strict=True):
            lines[i] = line
    return b"".join(lines)


def _join(pieces: Iterable[Piece], size: int) -> bytes:
    """So many lines, one after the other."""
    merged: list[Piece] = []
    for piece in pieces:
        if merged and isinstance(piece, bytes) and isinstance(last := merged[-1], bytes):
            merged[-1] = last + piece
        else:
            merged.append(piece)
    cells = [b""] * (size * len(merged))
    for i, piece in enumerate(merged):
        cells[i :: len(merged)] = piece if isinstance(piece, list) else [piece] * size
    return b"".join(cells)


def _list_cells(pieces: Iterable[Piece], size: int) -> list[bytes]:
    """What is joined for each candidate; no text of a format holds a zero byte."""
    return _join([*pieces, b"\0"], size).split(b"\0")[:-1]


def _write_json(part: Part) -> Iterable[Piece]:
    cells = _write_shared(part, JSON)
    for name in ("node", "rank", "chosen", "feature"):
        yield b"{" if name == "node" else b","
        yield b'"' + name.encode() + b'":'
        yield cells[name]
    yield b',"split":{"type":"' + part.type.encode() + b'"'
    for name, column in part.split.items():
        yield b',"' + name.encode() + b'":'
        yield _write_shown(column, JSON)
    if part.lack is not None:
        yield [b"," + orjson.dumps(side)[1:-1] if side else b"" for side in part.lack]
    yield b'},"branches":'
    yield from _write_branches(part, JSON)
    yield b',"score":'
    yield cells["score"]
    for i, name in enumerate(part.scores):
        yield (b"," if i else b',"scores":{') + orjson.dumps(name) + b":"
        yield cells[name]
    yield b'},"admissible":'
    yield cells["admissible"]
    yield b',"reason":'
    yield cells["reason"]
    yield b"}\n"


def _write_csv(part: Part) -> Iterable[Piece]:
    cells = _write_shared(part, CSV)
    lack = part.lack or [{}] * len(part)
    split = {name: _write_shown(column, CSV) for name, column in part.split.items()}
    columns = [cells[name] for name in ("node", "rank", "chosen", "feature")]
    columns += [part.type.encode(), *(split.get(name, b"") for name in ("threshold", "below", "above", "categories"))]
    for name in ("missing", "shares"):
        columns.append(b"" if part.lack is None else _write_shown([side.get(name) for side in lack], CSV))
    columns += [cells[name] for name in ("score", *part.scores, "admissible", "reason")]
    for column in columns:
        yield column
        yield b","
    yield b'"'
    yield from _write_branches(part, CSV)
    yield b'"\r\n'


def _write_shared(part: Part, style: Style) -> dict[str, Piece]:
    """The columns that both formats have, by name."""
    rank = _write_numbers(part.rank)
    for i in np.flatnonzero(part.rank == 0).tolist():
        rank[i] = style.null
    reasons = {code: style.null if name is None else style.write_text(name) for code, name in REASONS.items()}
    names = {f: style.write_text(part.names[f]) for f in find_distinct(part.feature)}
    score = _write_shown(part.score, style)
    return {
        "node": _write_numbers(part.node),
        "rank": rank,
        "chosen": _pick((b"false", b"true"), part.chosen),
        "feature": _pick(names, part.feature),
        "score": score,
        **{
            name: score if column is part.score else _write_shown(column, style) for name, column in part.scores.items()
        },
        "admissible": _pick((b"false", b"true"), part.reason == 0),
        "reason": _pick(reasons, part.reason),
    }


def _pick(texts: Any, codes: NDArray[Any]) -> Piece:  # noqa: ANN401 - by code
    """The text of each code."""
    if (codes == codes[0]).all():
        return bytes(texts[codes[0].item()])
    return [texts[code] for code in codes.tolist()]


def _write_numbers(column: NDArray[Any]) -> list[bytes]:
    """Each number; what is not finite is null."""
    values = column.tolist() if column.dtype == object else np.ascontiguousarray(column)
    return orjson.dumps(values, option=orjson.OPT_SERIALIZE_NUMPY)[1:-1].split(b",")


def _write_shown(column: Column, style: Style) -> list[bytes]:
    """Each number, text or list of a column."""
    if isinstance(column, list):
        if style is JSON:
            return list(map(orjson.dumps, column))
        texts = [cell if isinstance(cell, str) else orjson.dumps(cell).decode() for cell in column]
        return [b"" if text == "null" else write_fields(text) for text in texts]
    if column.dtype.kind == "f" and np.isinf(column).any():
        text = orjson.dumps(list_shown(column))[1:-1]
        return (text if style is JSON else text.replace(b"null", b"").replace(b'"', b"")).split(b",")
    cells = _write_numbers(column)
    for i in np.flatnonzero(np.isnan(column)).tolist() if column.dtype.kind == "f" else ():
        cells[i] = style.null
    return cells


def _write_branches(part: Part, style: Style) -> Iterable[Piece]:
    """A list of the branches."""
    branches = part.branches
    if isinstance(branches, list):
        yield [orjson.dumps(shown).replace(b'"', style.mark) for shown in branches]
        return
    for b in range(len(branches.known["n"])):
        known = _write_population(branches.known, b, style)
        yield b",{" if b else b"[{"
        yield _quote("known", style) + b"{"
        yield from known
        yield b"," + _quote("impurity", style)
        yield _write_numbers(branches.known["impurity"][b])
        yield b"}," + _quote("routed", style)
        routed = known if branches.routed is branches.known else _write_population(branches.routed, b, style)
        routed = [b"{", *routed, b"}"]
        yield from routed if branches.hidden is None else [_hide(routed, branches, b, style)]
        yield b"}"
    yield b"]"


def _hide(routed: list[Piece], branches: Branches, b: int, style: Style) -> list[bytes]:
    """What is routed to a branch, null where that is not known."""
    hidden = np.zeros(0, bool) if branches.hidden is None else branches.hidden
    cells = _list_cells(routed, len(hidden))
    for i in np.flatnonzero(hidden).tolist():
        cells[i] = b"null"
    for i, told in branches.told.items():
        cells[i] = orjson.dumps(told[b]).replace(b'"', style.mark)
    return cells


def _write_population(population: Population, b: int, style: Style) -> list[Piece]:
    """What is in one branch, but its impurity."""
    pieces: list[Piece] = []
    for name, values in population.items():
        if name == "impurity":
            continue
        pieces.append((b"," if pieces else b"") + _quote(name, style))
        if values.ndim == 2:
            pieces.append(_write_numbers(values[b]))
            continue
        for i, numbers in enumerate(values[:, b]):
            pieces += [b"," if i else b"[", _write_numbers(numbers)]
        pieces.append(b"]")
    return pieces


def _quote(name: str, style: Style) -> bytes:
    """The key of a cell."""
    return style.mark + name.encode() + style.mark + b":"
