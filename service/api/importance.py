"""`/models/<reference>/importance`: what a model owes to each feature, by gain or by permutation."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import Schema, fields, validate

from service import evaluation, importance
from service.api.blueprint import Resource
from service.api.evaluate import KnownRowsSchema, describe_rows, read_known_rows
from service.api.fields import Anything, Envelope, Whole, text
from service.api.jobs import A_JOB, JobSchema, answer_job, queue_for
from service.api.json import answer
from service.api.models import REFERENCE, SummarySchema, summarize_model
from service.api.state import store
from service.jobs.requests import pack_permutation
from service.readers.places import placed_as_posted

blueprint = Resource("importance", __name__, description="What a model owes to each feature")

_GAIN = {
    "type": "object",
    "required": ["feature", "gain", "share"],
    "properties": {
        "feature": {"type": "string"},
        "gain": {"type": "number", "description": "The sum over its splits of weight times gain"},
        "share": {"type": "number", "description": "Of the gain of all features; 0 where nothing gained"},
    },
}
_LOSS = {
    "type": "object",
    "required": ["feature", "mean", "standard_deviation", "values"],
    "properties": {
        "feature": {"type": "string"},
        "mean": {"type": ["number", "null"]},
        "standard_deviation": {"type": ["number", "null"], "description": "Of a sample; null of one repeat"},
        "values": {
            "type": "array",
            "items": {"type": ["number", "null"]},
            "description": "For each repeat, by how much the metric got worse; null where it was undefined",
        },
    },
}


class GainsQuery(Envelope):
    """What shares in the gains."""

    surrogates = fields.Boolean(
        load_default=False,
        metadata={"description": "Surrogates share in the gain of the split that they stand in for, as in rpart"},
    )


class GainsSchema(Schema):
    """What the splits on each feature gained."""

    model = fields.Nested(SummarySchema, required=True)
    method = fields.String(required=True, metadata={"enum": ["gain"]})
    criterion = fields.String(required=True)
    surrogates = fields.Boolean(required=True, metadata={"description": "Whether surrogates share in the gains"})
    features = Anything({"type": "array", "items": _GAIN, "description": "The largest gain first"}, required=True)


class PermutationSchema(KnownRowsSchema):
    """Rows whose target is known, and how to mix them up."""

    metric = text("What gets worse: a metric of `/evaluate`; accuracy or r2 if absent", allow_none=True)
    repeats = Whole(
        strict=True,
        allow_none=True,
        load_default=importance.REPEATS,
        validate=validate.Range(1, importance.MOST_REPEATS),
        metadata={"description": "How often each feature is mixed up"},
    )
    seed = Whole(
        strict=True, allow_none=True, load_default=0, validate=validate.Range(0), metadata={"description": "Of chance"}
    )


class LossesSchema(Schema):
    """By how much the metric gets worse without each feature."""

    model = fields.Nested(SummarySchema, required=True)
    method = fields.String(required=True, metadata={"enum": ["permutation"]})
    metric = fields.String(required=True)
    baseline = fields.Float(required=True, metadata={"description": "The metric of the rows as they are"})
    rows = fields.Integer(required=True)
    repeats = fields.Integer(required=True)
    seed = fields.Integer(required=True)
    features = Anything({"type": "array", "items": _LOSS, "description": "The largest mean first"}, required=True)
    warnings = fields.List(fields.String(), required=True)


@blueprint.route("/models/<reference>/importance", methods=["GET"], parameters=[REFERENCE])
@blueprint.arguments(GainsQuery, location="query")
@blueprint.response(200, GainsSchema)
@blueprint.problems(404, 422, 503)
def get_importance(query: dict[str, Any], reference: str) -> Response:
    """Weigh a model's features by what their splits gained in training."""
    record = store().find(reference)
    gains = importance.weigh_gains(record, store(), query["surrogates"])
    return answer({"model": summarize_model(record), **gains})


@blueprint.route("/models/<reference>/importance", methods=["POST"], parameters=[REFERENCE])
@blueprint.arguments(PermutationSchema)
@blueprint.response(200, LossesSchema)
@blueprint.alt_response(202, schema=JobSchema, description=A_JOB)
@blueprint.problems(400, 404, 413, 415, 422, 429, 503, 507)
def permute_features(envelope: dict[str, Any], reference: str) -> Response:
    """Weigh a model's features by how much worse it answers rows in which their cells are mixed up."""
    record = store().find(reference)
    rows, order = read_known_rows(record, envelope)
    request = importance.PermutationRequest(
        rows, envelope.get("metric"), envelope["repeats"] or importance.REPEATS, envelope["seed"] or 0
    )
    with placed_as_posted(envelope["data"], order):
        jobs = queue_for(rows.table.cells * request.repeats)
        if jobs is None:
            return answer({"model": summarize_model(record), **importance.permute(record, request, store())})
        evaluation.check(record, rows, store())
    content = {"model": record.id, "request": pack_permutation(request)}
    return answer_job(jobs.submit("importance", content, describe_rows(record, rows.table)))
