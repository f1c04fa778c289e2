"""`/models/<reference>/compare`: two models, or two versions of one, side by side."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response
from marshmallow import Schema, fields

from service import comparing
from service.api.blueprint import Resource
from service.api.fields import PREDICTION, Anything, Envelope, PredictionData, text
from service.api.jobs import A_JOB, JobSchema, answer_job, queue_for
from service.api.json import answer
from service.api.models import REFERENCE, SummarySchema, summarize_model
from service.api.state import settings, store
from service.core.schema import Table
from service.jobs.requests import pack_table
from service.readers.declarations import declare_features
from service.readers.json_table import Limits, read_table
from service.readers.places import placed_as_posted
from service.store.records import ModelRecord

blueprint = Resource("compare", __name__, description="Two models side by side")

_DIFFERENCES = {
    "type": "array",
    "items": {
        "type": "object",
        "required": ["name", "a", "b"],
        "properties": {"name": {"type": "string"}, "a": {}, "b": {}},
    },
}
_NAMES = {"type": "array", "items": {"type": "string"}}
_SIDE = {
    "type": "object",
    "properties": {
        "node": {"type": "integer"},
        "split": {"type": ["object", "null"], "description": "Null for a leaf"},
        "n": {"type": "integer"},
        "prediction": {},
    },
}
_COUNT = {"type": "integer"}


class ComparisonSchema(Envelope):
    """What to compare with, and perhaps on which rows."""

    other = text("The other model, b: an id, a name, `name@version` or `name@alias`", required=True, data_key="with")
    data = PredictionData(required=False)


class ComparedSchema(Schema):
    """How two models differ: a is that of the path, b the other."""

    a = fields.Nested(SummarySchema, required=True)
    b = fields.Nested(SummarySchema, required=True)
    schema = Anything(
        {
            "type": "object",
            "description": "Features that one of the two lacks or has otherwise, and what differs in the target",
            "properties": {"only_a": _NAMES, "only_b": _NAMES, "changed": _DIFFERENCES, "target": _DIFFERENCES},
        },
        required=True,
    )
    parameters = Anything({**_DIFFERENCES, "description": "Those whose values differ"}, required=True)
    algorithm = Anything({"type": ["object", "null"], "description": "Both presets where they differ"}, required=True)
    training = Anything(
        {"type": "object", "description": "Whether the data were the same, and how many"}, required=True
    )
    tree = Anything({"type": "object", "description": "The shape of both trees"}, required=True)
    splits = Anything(
        {
            "type": "object",
            "properties": {
                "same": {
                    **_COUNT,
                    "description": "Places that both trees split alike, or not at all",
                },
                "differ": {**_COUNT, "description": "Places where they part; what is below has no counterpart"},
                "list": {
                    "type": "array",
                    "description": "The first thousand of these, breadth first",
                    "items": {
                        "type": "object",
                        "properties": {"path": {"type": "array", "items": {"type": "object"}}, "a": _SIDE, "b": _SIDE},
                    },
                },
            },
        },
        required=True,
    )
    predictions = Anything(
        {
            "type": ["object", "null"],
            "description": "On the posted rows; null without any",
            "properties": {
                "rows": _COUNT,
                "differ": _COUNT,
                "list": {
                    "type": "array",
                    "description": "The first thousand rows with different answers",
                    "items": {"type": "object", "properties": {"row": _COUNT, "a": {}, "b": {}}},
                },
                "pairs": {
                    "type": "array",
                    "description": "How often a said one and b the other; not of numbers",
                    "items": {"type": "object", "properties": {"a": PREDICTION, "b": PREDICTION, "rows": _COUNT}},
                },
                "mean_distance": {"type": ["number", "null"]},
                "largest_distance": {"type": ["number", "null"]},
                "warnings": _NAMES,
            },
        },
        required=True,
    )


@blueprint.route("/models/<reference>/compare", methods=["POST"], parameters=[REFERENCE])
@blueprint.arguments(ComparisonSchema)
@blueprint.response(200, ComparedSchema)
@blueprint.alt_response(202, schema=JobSchema, description=A_JOB)
@blueprint.problems(400, 404, 413, 415, 422, 429, 503, 507)
def compare_models(envelope: dict[str, Any], reference: str) -> Response:
    """Compare two models, or two versions: schema, parameters, tree, and with `data` their answers.

    The trees are walked from the root on for as long as both split alike.
    """
    records = store().find(reference), store().find(envelope["other"])
    data = envelope.get("data")
    tables = None if data is None else [_read_rows(record, data) for record in records]
    with placed_as_posted(data or {}, [feature["name"] for feature in records[0].body["schema"]["features"]]):
        jobs = queue_for(comparing.count_cells(*records, tables))
        if jobs is None:
            compared = comparing.compare(*records, tables, store())
            return answer({"a": summarize_model(records[0]), "b": summarize_model(records[1]), **compared})
        comparing.check(*records, tables, store())
    subject = {"model": records[0].id, "with": records[1].id, "rows": None if tables is None else tables[0].rows}
    packed = None if tables is None else [pack_table(table) for table in tables]
    return answer_job(jobs.submit("compare", {**subject, "tables": packed}, subject))


def _read_rows(record: ModelRecord, data: Mapping[str, Any]) -> Table:
    """The rows as the model reads them; rows without a header are in the order of its features."""
    declared = declare_features(record.body["schema"]["features"])
    limits = Limits(settings().max_rows, settings().max_columns)
    return read_table(data, declared=declared, order=list(declared), limits=limits)
