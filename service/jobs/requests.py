"""Requests with tables as plain dicts of arrays and back: what a job is asked to do lies in a file until its end."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import fields
from typing import Any

import numpy as np

from service.core.schema import Column, Table
from service.evaluation import EvaluationRequest
from service.explaining import ExplanationRequest
from service.importance import PermutationRequest
from service.targets import TrainingRequest

LAYOUT = 1
"""Raised when old code could misread what new code packs."""


def pack_training(request: TrainingRequest) -> dict[str, Any]:
    """Arrays, lists, strings and numbers only, so that a later release can read it."""
    return _pack(request)


def unpack_training(plain: Mapping[str, Any]) -> TrainingRequest:
    """The request that `pack_training` packed; its arrays may be maps of a file."""
    return TrainingRequest(table=_unpack_table(plain), **plain["fields"])


def pack_evaluation(request: EvaluationRequest) -> dict[str, Any]:
    """As `pack_training` does."""
    return _pack(request)


def unpack_evaluation(plain: Mapping[str, Any]) -> EvaluationRequest:
    """The request that `pack_evaluation` packed."""
    return EvaluationRequest(table=_unpack_table(plain), **plain["fields"])


def pack_permutation(request: PermutationRequest) -> dict[str, Any]:
    """As `pack_training` does."""
    return {**pack_evaluation(request.rows), "mixing": [request.metric, request.repeats, request.seed]}


def unpack_permutation(plain: Mapping[str, Any]) -> PermutationRequest:
    """The request that `pack_permutation` packed."""
    return PermutationRequest(unpack_evaluation(plain), *plain["mixing"])


def pack_explanation(request: ExplanationRequest) -> dict[str, Any]:
    """As `pack_training` does."""
    return _pack(request)


def unpack_explanation(plain: Mapping[str, Any]) -> ExplanationRequest:
    """The request that `pack_explanation` packed."""
    return ExplanationRequest(table=_unpack_table(plain), **plain["fields"])


def _pack(request: TrainingRequest | EvaluationRequest | ExplanationRequest) -> dict[str, Any]:
    plain = {field.name: getattr(request, field.name) for field in fields(request) if field.name != "table"}
    columns = [
        {"name": c.name, "kind": c.kind, "values": c.values, "categories": list(c.categories), "missing": c.missing}
        for c in request.table.columns
    ]
    return {"layout": LAYOUT, "rows": request.table.rows, "columns": columns, "fields": plain}


def _unpack_table(plain: Mapping[str, Any]) -> Table:
    columns = tuple(
        Column(c["name"], c["kind"], np.asarray(c["values"]), tuple(c["categories"]), _array(c["missing"]))
        for c in plain["columns"]
    )
    return Table(columns, plain["rows"])


def _array(values: Any | None) -> Any:  # noqa: ANN401 - an array or None, as it was packed
    return None if values is None else np.asarray(values)
