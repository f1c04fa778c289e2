"""Requests with tables as plain dicts of arrays and back: what a job is asked to do lies in a file until its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any, TypeVar

import numpy as np

from service.core.schema import Column, Table
from service.evaluation import EvaluationRequest
from service.explaining import ExplanationRequest
from service.importance import PermutationRequest
from service.targets import TrainingRequest

Request = TypeVar("Request", TrainingRequest, EvaluationRequest, ExplanationRequest)
"""A ``table`` and fields that are plain already."""

LAYOUT = 1
"""Raised when old code could misread what new code packs."""


def pack(request: Request) -> dict[str, Any]:
    """Arrays, lists, strings and numbers only, so that a later release can read it."""
    plain = {field.name: getattr(request, field.name) for field in fields(request) if field.name != "table"}
    return {**pack_table(request.table), "fields": plain}


def unpack(plain: Mapping[str, Any], form: type[Request]) -> Request:
    """The request that `pack` packed; its arrays may be maps of a file."""
    return form(table=unpack_table(plain), **plain["fields"])


def pack_permutation(request: PermutationRequest) -> dict[str, Any]:
    """As `pack` does."""
    return {**pack(request.rows), "mixing": [request.metric, request.repeats, request.seed]}


def unpack_permutation(plain: Mapping[str, Any]) -> PermutationRequest:
    """The request that `pack_permutation` packed."""
    return PermutationRequest(unpack(plain, EvaluationRequest), *plain["mixing"])


def pack_table(table: Table) -> dict[str, Any]:
    """A table alone, as `pack` does."""
    columns = [
        {"name": c.name, "kind": c.kind, "values": c.values, "categories": list(c.categories), "missing": c.missing}
        for c in table.columns
    ]
    return {"layout": LAYOUT, "rows": table.rows, "columns": columns}


def unpack_table(plain: Mapping[str, Any]) -> Table:
    """The table that `pack_table` or `pack` packed."""
    columns = tuple(
        Column(c["name"], c["kind"], np.asarray(c["values"]), tuple(c["categories"]), _array(c["missing"]))
        for c in plain["columns"]
    )
    return Table(columns, plain["rows"])


def _array(values: Any | None) -> Any:  # noqa: ANN401 - an array or None, as it was packed
    return None if values is None else np.asarray(values)
