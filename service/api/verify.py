"""`/models/<reference>/verify`: the model trained again, and whether it is the same."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import Schema, fields

from service import verifying
from service.api.blueprint import Resource
from service.api.fields import Anything, Dissimilarity, Envelope, TrainingData, text
from service.api.jobs import A_JOB, JobSchema, answer_job, queue_for
from service.api.json import answer
from service.api.models import REFERENCE, SummarySchema, summarize_model
from service.api.state import settings, store
from service.api.tree import NodeSchema
from service.jobs.requests import pack
from service.readers.json_table import Limits, read_table
from service.readers.places import placed_as_posted
from service.store.records import ModelRecord
from service.targets import TrainingRequest
from service.training import prepare

blueprint = Resource("verify", __name__, description="Whether a model can be made again")

_COUNT = {"type": "integer"}
_VERSIONS = {"type": ["object", "null"], "additionalProperties": {"type": "string"}}


class VerificationSchema(Envelope):
    """What to train on: the data that the model kept, or these."""

    data = TrainingData(required=False)
    weight = text("The column of weights; the one that the record names if absent", allow_none=True)
    dissimilarity = Dissimilarity(allow_none=True)


class DifferenceSchema(Schema):
    """A node that is not the same."""

    node = fields.Integer(required=True)
    differs = fields.List(
        fields.String(), required=True, metadata={"description": "What differs: the `split`, its `rows`, and so on"}
    )
    stored = fields.Nested(NodeSchema, required=True)
    retrained = fields.Nested(NodeSchema, required=True)


class VerifiedSchema(Schema):
    """Whether the model can be made again."""

    model = fields.Nested(SummarySchema, required=True)
    verified = fields.Boolean(
        required=True, metadata={"description": "The tree is identical, the data and the record are those of then"}
    )
    identical = fields.Boolean(required=True, metadata={"description": "Every node of the tree is, to the last bit"})
    data = Anything(
        {
            "type": "object",
            "properties": {
                "source": {"type": "string", "enum": ["retained", "posted"]},
                "sha256": {"type": ["string", "null"], "description": "Of the canonical data"},
                "matches": {"type": "boolean", "description": "Whether they are those of the training"},
            },
        },
        required=True,
    )
    record = Anything(
        {
            "type": "object",
            "properties": {
                "logged": {"type": ["integer", "null"], "description": "The entry of the audit log that has its hash"},
                "matches": {"type": ["boolean", "null"], "description": "Null for a model that is older than the log"},
            },
        },
        required=True,
    )
    versions = Anything({"type": "object", "properties": {"trained": _VERSIONS, "now": _VERSIONS}}, required=True)
    tie_rule = Anything(
        {"type": "object", "properties": {"trained": {"type": ["integer", "null"]}, "now": _COUNT}}, required=True
    )
    schema = fields.Boolean(required=True, metadata={"description": "Features and classes are the same"})
    nodes = Anything(
        {"type": "object", "properties": dict.fromkeys(("stored", "retrained", "compared", "different"), _COUNT)},
        required=True,
    )
    differences = fields.List(
        fields.Nested(DifferenceSchema), required=True, metadata={"description": "The first hundred, breadth first"}
    )


@blueprint.route("/models/<reference>/verify", methods=["POST"], parameters=[REFERENCE])
@blueprint.arguments(VerificationSchema)
@blueprint.response(200, VerifiedSchema)
@blueprint.alt_response(202, schema=JobSchema, description=A_JOB)
@blueprint.problems(400, 404, 409, 413, 415, 422, 429, 503, 507)
def verify_model(envelope: dict[str, Any], reference: str) -> Response:
    """Train a model again, from the data that it kept or from posted ones, and compare the trees node by node.

    Below nodes that split differently nothing is compared. The audit log is told what was found.
    """
    record = store().find(reference)
    posted = _read_request(record, envelope)
    jobs = queue_for(_count_cells(record, posted))
    if jobs is not None:
        if posted is not None:
            with placed_as_posted(envelope["data"]):
                prepare(posted, settings())
        content = {"model": record.id, "training": None if posted is None else pack(posted)}
        subject = {"model": record.id, "source": "retained" if posted is None else "posted"}
        return answer_job(jobs.submit("verify", content, subject))
    if posted is None:
        found = verifying.verify(record, None, store(), settings())
    else:
        with placed_as_posted(envelope["data"]):
            found = verifying.verify(record, posted, store(), settings())
    store().log.append(verifying.log_verification(record, found))
    return answer({"model": summarize_model(record), **found})


def _read_request(record: ModelRecord, envelope: dict[str, Any]) -> TrainingRequest | None:
    """The training to be repeated; None for that on the data that were kept."""
    data = envelope.get("data")
    if data is None:
        verifying.check_retained(record)
        return None
    limits = Limits(settings().max_rows, settings().max_columns)
    table = read_table(data, declared=verifying.declare_columns(record), order=None, limits=limits)
    with placed_as_posted(data):
        return verifying.repeat_request(record, table, envelope.get("weight"), envelope.get("dissimilarity"))


def _count_cells(record: ModelRecord, posted: TrainingRequest | None) -> int:
    if posted is not None:
        return posted.table.cells
    return int(record.body["training"]["rows"]) * max(int(record.body["training"]["columns"]), 1)
