"""Candidates of a listing as NDJSON, CSV and Arrow, a chunk at a time."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from importlib.util import find_spec
from typing import Any

import orjson

from service.errors import NotAcceptable
from service.formats.arrow import write_arrow
from service.formats.layout import Chunk, Layout, flatten, list_columns
from service.formats.text import write_csv_parts, write_fields, write_json_parts

NDJSON, CSV, ARROW = "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"


def write_ndjson(chunks: Iterable[Chunk], _: Layout) -> Iterator[bytes]:
    """A line of JSON for each candidate, as pages show it."""
    for chunk in chunks:
        if isinstance(chunk, tuple):
            yield write_json_parts(chunk)
        else:
            yield b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in chunk)


def write_csv(chunks: Iterable[Chunk], layout: Layout) -> Iterator[bytes]:
    """A line for each candidate below a line of names; numbers are written as in JSON, lists are JSON in their cell."""
    yield write_fields(*(name for name, _ in list_columns(layout))) + b"\r\n"
    for chunk in chunks:
        if isinstance(chunk, tuple):
            yield write_csv_parts(chunk)
        else:
            yield b"".join(write_fields(*map(_write_cell, flatten(row, layout))) + b"\r\n" for row in chunk)


def _write_cell(cell: Any) -> str:  # noqa: ANN401 - whatever JSON knows
    if cell is None or isinstance(cell, str):
        return cell or ""
    return orjson.dumps(cell).decode()


WRITERS: Mapping[str, Callable[[Iterable[Chunk], Layout], Iterator[bytes]]] = {
    NDJSON: write_ndjson,
    CSV: write_csv,
    ARROW: write_arrow,
}


def check_format(media_type: str) -> None:
    """Raise `NotAcceptable` where this installation cannot write that format."""
    if media_type == ARROW and find_spec("pyarrow") is None:
        raise NotAcceptable(f"{ARROW} needs pyarrow: install treewright[arrow], or accept {NDJSON} or {CSV}")
