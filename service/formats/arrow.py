"""Candidates of a listing as an Arrow stream: record batches made of their columns."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import orjson

from service.formats.layout import NUMBERS, Chunk, Layout, flatten, list_columns
from service.rendering.branches import Branches, Population, list_branches
from service.rendering.columns import REASONS, Part

if TYPE_CHECKING:
    import pyarrow as pa

EXACT = 2**53
"""Whole numbers from here on are not exact as floats."""
_INFINITE = {"Infinity": float("inf"), "-Infinity": float("-inf")}


def write_arrow(chunks: Iterable[Chunk], layout: Layout) -> Iterator[bytes]:
    """An Arrow IPC stream; a record batch for each chunk, or for each part of it that is written by itself."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    schema = _build_schema(layout)
    sink = io.BytesIO()
    with pa.ipc.new_stream(sink, schema) as writer:
        for chunk in chunks:
            if isinstance(chunk, tuple):
                writer.write_table(_join_parts([_write_part(part, schema, layout) for part in chunk], chunk))
            else:
                writer.write_batch(_write_rows(chunk, schema, layout))
            yield _take(sink)
    yield _take(sink)


def _take(sink: io.BytesIO) -> bytes:
    """What was written since the last time."""
    written = sink.getvalue()
    sink.seek(0)
    sink.truncate()
    return written


def _join_parts(batches: Sequence[pa.RecordBatch], parts: Sequence[Part]) -> pa.Table:
    """All candidates in the order of their places."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    table = pa.Table.from_batches(batches)
    return table if len(parts) == 1 else table.take(np.argsort(np.concatenate([part.place for part in parts])))


def _write_part(part: Part, schema: pa.Schema, layout: Layout) -> pa.RecordBatch:
    import pyarrow as pa  # noqa: PLC0415 - an extra

    size = len(part)
    lack = part.lack or [{}] * size
    columns: dict[str, Any] = {
        "node": part.node,
        "rank": pa.array(part.rank, mask=part.rank == 0),
        "chosen": part.chosen,
        "feature": pa.array(part.names).take(pa.array(part.feature)),
        "type": [part.type] * size,
        **{name: _read_numbers(part.split[name]) for name in NUMBERS if name in part.split},
        "categories": [_name_labels(groups) for groups in part.split.get("categories", [None] * size)],
        "missing": [_name_missing(side.get("missing")) for side in lack],
        "shares": [side.get("shares") for side in lack],
        **{name: _leave_out_nan(part.scores[name]) for name in layout.measures},
        "score": _leave_out_nan(part.score),
        "admissible": part.reason == 0,
        "reason": [REASONS[code] for code in part.reason.tolist()],
        "branches": _write_branches(part.branches, size, schema.field("branches").type),
        "whole": _find_wholes(part),
    }
    arrays = [_as_array(columns.get(field.name), field.type, size) for field in schema]
    return pa.RecordBatch.from_arrays(arrays, schema=schema)


def _as_array(values: Any, kind: pa.DataType, size: int) -> pa.Array:  # noqa: ANN401 - an array or what makes one
    import pyarrow as pa  # noqa: PLC0415 - an extra

    if isinstance(values, pa.Array):
        return values if values.type == kind else values.cast(kind)
    return pa.nulls(size, kind) if values is None else pa.array(values, kind)


def _leave_out_nan(values: Any) -> pa.Array:  # noqa: ANN401 - an array
    import pyarrow as pa  # noqa: PLC0415 - an extra

    return pa.array(values, mask=np.isnan(values))


def _read_numbers(column: Any) -> pa.Array:  # noqa: ANN401 - an array
    return _leave_out_nan(column.astype(np.float64))


def _find_wholes(part: Part) -> list[dict[str, int] | None] | None:
    """The numbers of each split that float64 cannot hold; None where there are none."""
    columns = {name: part.split[name] for name in NUMBERS if name in part.split}
    if all(np.asarray(column).dtype.kind == "f" or (np.abs(column) < EXACT).all() for column in columns.values()):
        return None
    lists = [np.asarray(column).tolist() for column in columns.values()]
    return [find_whole(dict(zip(columns, numbers, strict=True))) for numbers in zip(*lists, strict=True)]


def _write_branches(branches: Branches | list[Any], size: int, kind: pa.DataType) -> Any:  # noqa: ANN401 - an array
    """A list of the branches of each candidate."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    if isinstance(branches, list) or branches.hidden is not None:
        return list_branches(branches, size)
    fields = {field.name: field.type for field in kind.value_type}
    known = _write_population(branches.known, fields["known"])
    routed = _write_population(branches.routed, fields["routed"])
    both = pa.StructArray.from_arrays([known, routed], fields=list(kind.value_type))
    width = len(branches.known["n"])
    return pa.ListArray.from_arrays(np.arange(size + 1, dtype=np.int32) * width, both, type=kind)


def _write_population(population: Population, kind: pa.DataType) -> pa.Array:
    """A struct for each branch of each candidate."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    arrays = []
    size = population["n"].size
    for field in kind:
        values = population.get(field.name)
        if values is None:
            arrays.append(pa.nulls(size, field.type))
        elif values.ndim == 2:
            arrays.append(_leave_out_nan(values.T.ravel().astype(field.type.to_pandas_dtype())))
        else:
            numbers = pa.array(values.transpose(2, 1, 0).ravel().astype(np.float64))
            offsets = np.arange(size + 1, dtype=np.int32) * len(values)
            arrays.append(pa.ListArray.from_arrays(offsets, numbers, type=field.type))
    return pa.StructArray.from_arrays(arrays, fields=list(kind))


def _write_rows(rows: Sequence[Mapping[str, Any]], schema: pa.Schema, layout: Layout) -> pa.RecordBatch:
    """What is rendered already: of a summary."""
    import pyarrow as pa  # noqa: PLC0415 - an extra

    names = [name for name, _ in list_columns(layout)]
    cells = zip(*(flatten(row, layout) for row in rows), strict=True)
    columns = {name: list(map(_ADAPT.get(name, _keep), column)) for name, column in zip(names, cells, strict=True)}
    columns["whole"] = [find_whole(row["split"]) for row in rows]
    return pa.RecordBatch.from_pydict(columns, schema=schema)


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
    **dict.fromkeys(NUMBERS, _read_number),
    "categories": _name_labels,
    "missing": _name_missing,
}


def find_whole(split: Mapping[str, Any]) -> dict[str, int] | None:
    """The numbers of a split that float64 cannot hold."""
    found = {name: split[name] for name in NUMBERS if isinstance(split.get(name), int) and abs(split[name]) >= EXACT}
    return found or None


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
    columns = [(name, kinds[kind]) for name, kind in list_columns(layout)]
    columns.append(("whole", pa.struct([(name, whole) for name in NUMBERS])))
    return pa.schema(columns, metadata=dict(layout.notes))
