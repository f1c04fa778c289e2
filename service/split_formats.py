"""Candidates of a listing as NDJSON, CSV and Arrow, a chunk at a time."""

from __future__ import annotations

import csv
import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any, TypeAlias

import orjson

from service.core.tree import Tree
from service.errors import NotAcceptable

if TYPE_CHECKING:
    import pyarrow as pa

Chunks: TypeAlias = Iterable[list[dict[str, Any]]]

NDJSON, CSV, ARROW = "application/x-ndjson", "text/csv", "application/vnd.apache.arrow.stream"
EXACT = 2**53
"""Whole numbers from here on are not exact as floats."""
_INFINITE = {"Infinity": float("inf"), "-Infinity": float("-inf")}
_NUMBERS = ("threshold", "below", "above")


@dataclass(frozen=True)
class Layout:
    """What differs from model to model: the names of the measures, and how many numbers are predicted."""

    measures: Sequence[str]
    classes: int
    outputs: int
    notes: Mapping[str, str]


def lay_out(tree: Tree, measures: Sequence[str], notes: Mapping[str, str]) -> Layout:
    """The layout of a tree's candidates; ``notes`` are what a file says of itself."""
    outputs = tree.prediction.shape[1] if tree.prediction.ndim > 1 else 1
    return Layout(measures, len(tree.classes), outputs, notes)


def write_ndjson(chunks: Chunks, _: Layout) -> Iterator[bytes]:
    """A line of JSON for each candidate, as pages show it."""
    for rows in chunks:
        yield b"".join(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE) for row in rows)


def write_csv(chunks: Chunks, layout: Layout) -> Iterator[bytes]:
    """A line for each candidate below a line of names; lists are JSON inside their cell."""
    names = [name for name, _ in _list_columns(layout)]
    yield _write_lines([names])
    for rows in chunks:
        yield _write_lines([[_write_cell(cell) for cell in _flatten(row, layout)] for row in rows])


def _write_lines(lines: Iterable[Sequence[Any]]) -> bytes:
    text = io.StringIO()
    csv.writer(text).writerows(lines)
    return text.getvalue().encode()


def _write_cell(cell: Any) -> Any:  # noqa: ANN401 - whatever JSON knows
    if isinstance(cell, bool):
        return "true" if cell else "false"
    return orjson.dumps(cell).decode() if isinstance(cell, list) else cell


def write_arrow(chunks: Chunks, layout: Layout) -> Iterator[bytes]:
    """An Arrow IPC stream; a record batch for each chunk."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    schema = _build_schema(layout)
    sink = io.BytesIO()
    names = [name for name, _ in _list_columns(layout)]
    with pa.ipc.new_stream(sink, schema) as writer:
        for rows in chunks:
            cells = zip(*(_flatten(row, layout) for row in rows), strict=True)
            columns = {
                name: list(map(_ADAPT.get(name, _keep), column)) for name, column in zip(names, cells, strict=True)
            }
            columns["whole"] = [_find_whole(row["split"]) for row in rows]
            writer.write_batch(pa.RecordBatch.from_pydict(columns, schema=schema))
            yield _take(sink)
    yield _take(sink)


def _take(sink: io.BytesIO) -> bytes:
    """What was written since the last time."""
    written = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return written


def _keep(cell: Any) -> Any:  # noqa: ANN401
    return cell


def _read_number(cell: Any) -> float | None:  # noqa: ANN401
    return _INFINITE[cell] if isinstance(cell, str) else cell if cell is None else float(cell)


def _name_labels(groups: Any) -> Any:  # noqa: ANN401
    """Categories as text: what is no string as JSON writes it; what is missing stays null."""
    if groups is None:
        return None
    return [
        [label if label is None or isinstance(label, str) else orjson.dumps(label).decode() for label in group]
        for group in groups
    ]


def _name_missing(cell: Any) -> str | None:  # noqa: ANN401
    return None if cell is None else str(cell)


_ADAPT: Mapping[str, Callable[[Any], Any]] = {
    **dict.fromkeys(_NUMBERS, _read_number),
    "categories": _name_labels,
    "missing": _name_missing,
}


def _find_whole(split: Mapping[str, Any]) -> dict[str, int] | None:
    """The numbers of a split that float64 cannot hold."""
    found = {name: split[name] for name in _NUMBERS if isinstance(split.get(name), int) and abs(split[name]) >= EXACT}
    return found or None


def _flatten(row: Mapping[str, Any], layout: Layout) -> list[Any]:
    """The cells of `_list_columns`."""
    split, scores = row["split"], row["scores"]
    return [
        row["node"], row["rank"], row["chosen"], row["feature"], split["type"],
        *(split.get(name) for name in (*_NUMBERS, "categories", "missing", "shares")),
        row["score"], *(scores[name] for name in layout.measures), row["admissible"], row["reason"], row["branches"],
    ]  # fmt: skip


def _list_columns(layout: Layout) -> list[tuple[str, str]]:
    """The columns of CSV and Arrow with what they hold."""
    return [
        ("node", "whole"), ("rank", "whole"), ("chosen", "flag"), ("feature", "name"), ("type", "name"),
        *((name, "number") for name in _NUMBERS), ("categories", "labels"), ("missing", "text"), ("shares", "numbers"),
        ("score", "number"), *((name, "number") for name in layout.measures), ("admissible", "flag"),
        ("reason", "name"), ("branches", "branches"),
    ]  # fmt: skip


def _build_schema(layout: Layout) -> pa.Schema:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    number, whole = pa.float64(), pa.int64()
    per_output = number if layout.outputs == 1 else pa.list_(number)
    fields: list[tuple[str, Any]] = [("n", whole), ("weight", number)]
    fields += [("counts", pa.list_(number))] if layout.classes else [("mean", per_output), ("variance", per_output)]
    routed, known = pa.struct(fields), pa.struct([*fields, ("impurity", number)])
    kinds = {
        "whole": whole, "flag": pa.bool_(), "number": number, "numbers": pa.list_(number), "text": pa.string(),
        "name": pa.string(), "labels": pa.list_(pa.list_(pa.string())),
        "branches": pa.list_(pa.struct([("known", known), ("routed", routed)])),
    }  # fmt: skip
    columns = [(name, kinds[kind]) for name, kind in _list_columns(layout)]
    columns.append(("whole", pa.struct([(name, whole) for name in _NUMBERS])))
    return pa.schema(columns, metadata=dict(layout.notes))


WRITERS: Mapping[str, Callable[[Chunks, Layout], Iterator[bytes]]] = {
    NDJSON: write_ndjson,
    CSV: write_csv,
    ARROW: write_arrow,
}


def check_format(media_type: str) -> None:
    """Raise `NotAcceptable` where this installation cannot write that format."""
    if media_type == ARROW and find_spec("pyarrow") is None:
        raise NotAcceptable(f"{ARROW} needs pyarrow: install treewright[arrow], or accept {NDJSON} or {CSV}")
