"""A training request as a plain dict of arrays and back: what a job is asked to do lies in a file until its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from service.core.schema import Column, Table
from service.targets import TrainingRequest

LAYOUT = 1
"""Raised when old code could misread what new code packs."""


def pack_training(request: TrainingRequest) -> dict[str, Any]:
    """Arrays, lists, strings and numbers only, so that a later release can read it."""
    plain = {field.name: getattr(request, field.name) for field in fields(request) if field.name != "table"}
    columns = [
        {"name": c.name, "kind": c.kind, "values": c.values, "categories": list(c.categories), "missing": c.missing}
        for c in request.table.columns
    ]
    return {"layout": LAYOUT, "rows": request.table.rows, "columns": columns, "fields": plain}


def unpack_training(plain: Mapping[str, Any]) -> TrainingRequest:
    """The request that `pack_training` packed; its arrays may be maps of a file."""
    columns = tuple(
        Column(c["name"], c["kind"], np.asarray(c["values"]), tuple(c["categories"]), _array(c["missing"]))
        for c in plain["columns"]
    )
    return TrainingRequest(table=Table(columns, plain["rows"]), **plain["fields"])


def _array(values: Any | None) -> Any:  # noqa: ANN401 - an array or None, as it was packed
    return None if values is None else np.asarray(values)
