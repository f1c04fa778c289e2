"""`/models/<reference>/explain`: rows in, why they are answered what they are out."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import Schema, fields

from service import explaining
from service.api.blueprint import Resource
from service.api.evaluate import describe_rows
from service.api.fields import CELL, COUNTS, NUMBERS, PREDICTION, SCALAR, Anything, Envelope, PredictionData
from service.api.jobs import A_JOB, JobSchema, answer_job, queue_for
from service.api.json import answer
from service.api.models import REFERENCE, SummarySchema, summarize_model
from service.api.state import settings, store
from service.core.errors import Fault
from service.core.explain import How
from service.errors import InvalidRequest
from service.jobs.requests import pack
from service.readers.declarations import declare_features
from service.readers.json_table import Limits, read_table
from service.readers.places import placed_as_posted

blueprint = Resource("explain", __name__, description="Why rows are answered what they are")

_EDGE = {"type": ["number", "string"]}
_STATISTICS = {
    "n": {"type": "integer", "description": "Training rows"},
    "weight": {"type": "number"},
    "counts": {**COUNTS, "description": "The weight of each class; classification only"},
    "mean": {**NUMBERS, "description": "Regression only; of several targets a list"},
    "variance": {**NUMBERS, "description": "Regression by variance only; of several targets a list"},
    "median": {"type": "number", "description": "Regression by absolute error only"},
    "impurity": {"type": "number"},
    "share": {"type": "number", "description": "How much of the row comes here; only where rows are parted"},
}
_SURROGATE = {
    "type": "object",
    "required": ["rank", "feature", "test", "value"],
    "properties": {
        "rank": {"type": "integer", "description": "Among those of the node"},
        "feature": {"type": "string"},
        "test": {"type": "string"},
        "value": CELL,
    },
}
_STEP = {
    "type": "object",
    "required": ["node", "feature", "test", "value", "how", "passed", "branch", "to", "n", "weight", "impurity"],
    "properties": {
        "node": {"type": "integer"},
        "feature": {"type": "string"},
        "test": {"type": "string", "description": "Rows for which it holds go to the first branch"},
        "value": {**CELL, "description": "The row's; null where it has none"},
        "how": {
            "type": "string",
            "enum": [how.name.lower() for how in How if how != How.ENDED],
            "description": "What decided: the `value`; of rows without one (or with a category new to the node) the "
            "`direction` learnt for them, their `own_branch`, a `surrogate`, the `majority`; `parts`: to all branches, "
            "by their shares; `stopped`: the row ends here",
        },
        "passed": {
            "type": ["boolean", "null"],
            "description": "Null of other ways, and of multiway splits",
        },
        "branch": {"type": ["integer", "null"], "description": "Null where the row is parted or stopped"},
        "to": {"type": ["integer", "null"], "description": "The node that follows"},
        "surrogate": _SURROGATE,
        **_STATISTICS,
    },
}
_END = {
    "type": "object",
    "required": ["node", "leaf", "n", "weight", "impurity"],
    "properties": {"node": {"type": "integer"}, "leaf": {"type": "boolean"}, **_STATISTICS},
}
_CONDITION = {
    "type": "object",
    "required": ["feature", "text"],
    "properties": {
        "feature": {"type": "string"},
        "text": {"type": "string"},
        "above": {**_EDGE, "description": "Values are greater than this"},
        "up_to": {**_EDGE, "description": "Values are not greater than this"},
        "one_of": {"type": "array", "items": SCALAR},
        "none_of": {"type": "array", "items": SCALAR},
        "has_value": {"type": "boolean", "description": "There is any value, or there is none"},
    },
}
_CHANGE = {
    "type": "object",
    "required": ["feature", "from", "to", "distance", "prediction", "leaf"],
    "properties": {
        "feature": {"type": "string"},
        "from": CELL,
        "to": CELL,
        "distance": {
            **_EDGE,
            "description": "Of numbers by their range in training, of ordinal categories by the number of levels; 1 "
            "for other categories, and where there was no value",
        },
        "prediction": PREDICTION,
        "leaf": {"type": "integer"},
    },
}
_SHAPLEY = {"type": ["number", "array"], "items": {"type": "number"}}
_ROW = {
    "type": "object",
    "required": ["prediction", "leaf", "rule", "conditions", "path", "ends"],
    "properties": {
        "prediction": PREDICTION,
        "probabilities": {**COUNTS, "description": "Classification only"},
        "leaf": {"type": "integer", "description": "The node that the row, or most of it, ended in"},
        "rule": {
            "type": "string",
            "description": "All tests, joined by feature: rows that fit go the same way",
        },
        "conditions": {"type": "array", "items": _CONDITION, "description": "The same, one by one"},
        "path": {"type": "array", "items": _STEP, "description": "The inner nodes from the root on"},
        "ends": {"type": "array", "items": _END, "description": "Where the row ends; several nodes if it was parted"},
        "counterfactuals": {
            "type": "array",
            "items": _CHANGE,
            "description": "For each feature that can alter the answer alone the least change that does, nearest first",
        },
        "shapley": {
            "type": "object",
            "additionalProperties": _SHAPLEY,
            "description": "What each feature adds to what is expected; of classes and several targets a list",
        },
    },
}


class ExplainedRowsSchema(Envelope):
    """The rows to explain."""

    data = PredictionData()
    counterfactuals = fields.Boolean(
        load_default=True, allow_none=True, metadata={"description": "Look for the least changes of a single feature"}
    )
    shapley = fields.Boolean(
        load_default=False, allow_none=True, metadata={"description": "Work out exact Shapley values"}
    )


class ExplanationSchema(Schema):
    """Explanations, in the order of the rows."""

    model = fields.Nested(SummarySchema, required=True)
    classes = Anything({"type": "array", "items": SCALAR, "description": "Classification only"})
    shapley = Anything(
        {
            "type": "object",
            "required": ["explains", "expected"],
            "description": "What Shapley values add up from: `expected` and those of a row make up what it is answered",
            "properties": {
                "explains": {"type": "string", "enum": ["probabilities", "predictions"]},
                "expected": _SHAPLEY,
            },
        }
    )
    rows = Anything({"type": "array", "items": _ROW}, required=True)
    warnings = fields.List(fields.String(), required=True)


@blueprint.route("/models/<reference>/explain", methods=["POST"], parameters=[REFERENCE])
@blueprint.arguments(ExplainedRowsSchema)
@blueprint.response(200, ExplanationSchema)
@blueprint.alt_response(202, schema=JobSchema, description=A_JOB)
@blueprint.problems(400, 404, 413, 415, 422, 429, 503, 507)
def explain_rows(envelope: dict[str, Any], reference: str) -> Response:
    """Explain why rows are answered what they are, and what would have to be otherwise.

    Columns are matched by name as in `/predict`. Of training rows it tells how many there are and what they sum up to.
    """
    record = store().find(reference)
    data = envelope["data"]
    declared = declare_features(record.body["schema"]["features"])
    order = list(declared)
    limits = Limits(settings().max_rows, settings().max_columns)
    table = read_table(data, declared=declared, order=order, limits=limits)
    most = settings().max_explained_rows
    if table.rows > most:
        message = f"{table.rows} rows are more than are explained at once"
        raise InvalidRequest(message, Fault("/data", f"send at most {most} (TREEWRIGHT_MAX_EXPLAINED_ROWS)"))
    asked = explaining.ExplanationRequest(table, envelope["counterfactuals"] is not False, bool(envelope["shapley"]))
    with placed_as_posted(data, order):
        jobs = queue_for(explaining.count_cells(record, asked, store()))
        if jobs is None:
            return answer({"model": summarize_model(record), **explaining.explain(record, asked, store())})
        explaining.check(record, asked, store())
    content = {"model": record.id, "request": pack(asked)}
    return answer_job(jobs.submit("explain", content, describe_rows(record, table)))
