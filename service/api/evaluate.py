"""`/models/<reference>/evaluate`: rows with their targets in, how good the answers are out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response
from marshmallow import Schema, fields

from service import evaluation
from service.api.blueprint import Resource
from service.api.fields import COUNTS, SCALAR, Anything, Envelope, PredictionData, TargetNames, choice, text
from service.api.jobs import A_JOB, JobSchema, answer_job, queue_for
from service.api.json import answer
from service.api.models import REFERENCE, SummarySchema, summarize_model
from service.api.state import settings, store
from service.core.schema import Kind, Table
from service.jobs.requests import pack
from service.readers.cells import Declared
from service.readers.declarations import declare_features
from service.readers.json_table import Limits, read_table
from service.readers.places import placed_as_posted
from service.store.records import ModelRecord

blueprint = Resource("evaluate", __name__, description="How good a model's answers are")

_VALUE = {"type": ["number", "null"]}
_CLASSES = ("accuracy", "balanced_accuracy", "log_loss", "brier", "roc_auc", "roc_auc_weighted")
_NUMBERS = ("r2", "mae", "rmse", "deviance")
METRICS = {
    "type": "object",
    "description": "Null where undefined; roc_auc_weighted is of more than two classes",
    "properties": {
        **{name: {**_VALUE, "description": "Classification only"} for name in _CLASSES},
        **{name: {**_VALUE, "description": "Regression only"} for name in _NUMBERS},
        "by_target": {
            "type": "object",
            "description": "Of several targets: the metrics of each, of which the others are the means",
            "additionalProperties": {"type": "object", "properties": dict.fromkeys(_NUMBERS, _VALUE)},
        },
    },
}
_BY_CLASS = {
    "type": "object",
    "required": ["class", "weight", "precision", "recall", "f1", "roc_auc"],
    "properties": {
        "class": SCALAR,
        "weight": {"type": "number", "description": "Of the rows that are of this class"},
        "precision": {**_VALUE, "description": "Null where nothing was called so"},
        "recall": {**_VALUE, "description": "Null where nothing was so"},
        "f1": _VALUE,
        "roc_auc": {**_VALUE, "description": "Of this class against the rest"},
    },
}


class KnownRowsSchema(Envelope):
    """Rows whose target is known."""

    data = PredictionData()
    target = TargetNames(
        "The column of the true answers, or a list of columns; as in training if absent", allow_none=True
    )
    weight = text("A numeric column with the weight of each row", allow_none=True)
    missing_target = choice(
        "What becomes of rows without a target", "refuse", "drop", allow_none=True, load_default="refuse"
    )


class EvaluationSchema(Schema):
    """How good the answers are."""

    model = fields.Nested(SummarySchema, required=True)
    rows = fields.Integer(required=True, metadata={"description": "Rows with a target and a weight above 0"})
    weight = fields.Float(required=True, metadata={"description": "Their weight"})
    metrics = Anything(METRICS, required=True)
    classes = Anything({"type": "array", "items": SCALAR, "description": "Classification only"})
    confusion = Anything(
        {
            "type": "array",
            "items": COUNTS,
            "description": "Weight by true class (rows) and predicted class (columns); classification only",
        }
    )
    unseen = Anything(
        {
            "type": ["array", "null"],
            "items": {"type": "number"},
            "description": "Weight, by predicted class, of labels that training did not have; classification only",
        }
    )
    by_class = Anything({"type": "array", "items": _BY_CLASS, "description": "Classification only"})
    warnings = fields.List(fields.String(), required=True)


@blueprint.route("/models/<reference>/evaluate", methods=["POST"], parameters=[REFERENCE])
@blueprint.arguments(KnownRowsSchema)
@blueprint.response(200, EvaluationSchema)
@blueprint.alt_response(202, schema=JobSchema, description=A_JOB)
@blueprint.problems(400, 404, 413, 415, 422, 429, 503, 507)
def evaluate_rows(envelope: dict[str, Any], reference: str) -> Response:
    """Measure a model's answers to rows whose target is known.

    Columns are matched by name; `rows` alone are in the order of the model's features, then the target, then the
    weight. A label that training did not have counts as wrong.
    """
    record = store().find(reference)
    request, order = read_known_rows(record, envelope)
    with placed_as_posted(envelope["data"], order):
        jobs = queue_for(request.table.cells)
        if jobs is None:
            return answer({"model": summarize_model(record), **evaluation.evaluate(record, request, store())})
        evaluation.check(record, request, store())
    content = {"model": record.id, "request": pack(request)}
    return answer_job(jobs.submit("evaluate", content, describe_rows(record, request.table)))


def describe_rows(record: ModelRecord, table: Table) -> dict[str, Any]:
    """What listings say of a job on posted rows."""
    return {"model": record.id, "rows": table.rows, "columns": len(table.columns)}


def read_known_rows(record: ModelRecord, envelope: Mapping[str, Any]) -> tuple[evaluation.EvaluationRequest, list[str]]:
    """The rows of a request, and the order of columns without a header."""
    told = record.body["schema"]["target"]
    posted, weight = envelope.get("target"), envelope.get("weight")
    targets = [posted] if isinstance(posted, str) else posted
    # a posted label may be one that training did not have, of any type that its column could hold
    kind: Kind = told["kind"] if told["kind"] in ("numeric", "boolean") else "nominal"
    declared = declare_features(record.body["schema"]["features"])
    for name in told.get("names") or [told["name"]] if targets is None else targets:
        declared.setdefault(name, Declared(kind))
    if weight is not None:
        declared.setdefault(weight, Declared("numeric"))
    limits = Limits(settings().max_rows, settings().max_columns)
    order = list(declared)
    table = read_table(envelope["data"], declared=declared, order=order, limits=limits)
    return evaluation.EvaluationRequest(table, targets, weight, envelope["missing_target"] or "refuse"), order
