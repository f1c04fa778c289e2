"""Faults that the learner places by column and row, placed where the caller wrote the cell."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from service.core.errors import Fault, InvalidData, pointer

_COLUMNS = "/data/columns/"


@contextmanager
def placed_as_posted(data: Mapping[str, Any], order: Sequence[str] = ()) -> Iterator[None]:
    """Inside of it, `InvalidData` that says ``/data/columns/age/17`` says the place in the form that was posted.

    ``order`` has the columns of rows without a header.
    """
    try:
        yield
    except InvalidData as error:
        header = data.get("header", order)
        indices = {name: index for index, name in enumerate(header)}
        raise InvalidData([_place(fault, data, indices) for fault in error.faults]) from None


def _place(fault: Fault, data: Mapping[str, Any], indices: Mapping[str, int]) -> Fault:
    if "columns" in data or not fault.place.startswith(_COLUMNS):
        return fault
    parts = fault.place.removeprefix(_COLUMNS).split("/")
    name = parts[0].replace("~1", "/").replace("~0", "~")
    row = parts[1] if len(parts) > 1 else None
    if "records" in data:
        return Fault(pointer("data", "records", *([] if row is None else [row, name])), fault.message)
    if row is None or name not in indices:
        return Fault(pointer("data", "header" if "header" in data else "rows"), fault.message)
    return Fault(pointer("data", "rows", row, indices[name]), fault.message)
