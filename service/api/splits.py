"""`/models/<reference>/splits`: every candidate split that the learner weighed."""

from __future__ import annotations

from typing import Any

from flask import Response, request, stream_with_context
from marshmallow import Schema, fields, validate

from service import auditing, streaming
from service.api.blueprint import Resource
from service.api.fields import CELL, COUNTS, NUMBERS, SCALAR, Anything, Envelope, PageLimit, Whole, choice, text
from service.api.json import MEDIA_TYPE, answer
from service.api.models import REFERENCE, SummarySchema, next_url, summarize_model
from service.api.state import followers, recent, settings, store
from service.core.errors import Fault
from service.errors import InvalidRequest, QueueFull
from service.formats.writers import WRITERS
from service.listing.query import SplitQuery
from service.store.records import ModelRecord

blueprint = Resource("splits", __name__, description="The audit of a model's splits")

_TYPES = ("threshold", "subset", "multiway", "missing", "constant")

_EDGE = {"type": ["number", "string"]}  # a string is an infinity, which JSON cannot write as a number
SPLIT: dict[str, Any] = {
    "type": "object",
    "required": ["type"],
    "properties": {
        "type": {"type": "string", "enum": list(_TYPES)},
        "threshold": {**_EDGE, "description": "Values up to it go to the first branch"},
        "below": {**_EDGE, "description": "The largest training value that goes there"},
        "above": {**_EDGE, "description": "The smallest that does not"},
        "categories": {
            "type": "array",
            "items": {"type": "array", "items": CELL},
            "description": "Those of each branch; null stands for missing, where that is a category",
        },
        "missing": {
            "type": ["string", "integer"],
            "description": "Where rows without a value go: `left`, `right`, `branch` (the third), or the index of one; "
            "where no surrogate knows, perhaps `stays`; `parts`: to all branches, by their `shares`",
        },
        "shares": {"type": "array", "items": {"type": "number"}, "description": "What of such a row comes to each"},
        "below_to": {"type": "string", "description": "Surrogates only: where values up to the threshold go"},
    },
}
_MEASURED = {
    "n": {"type": "integer", "description": "Rows"},
    "weight": {"type": "number"},
    "counts": {**COUNTS, "description": "The weight of each class; classification only"},
    "mean": {**NUMBERS, "description": "Regression only; of several targets a list"},
    "variance": {**NUMBERS, "description": "Regression by variance only; of several targets a list"},
    "impurity": {"type": "number"},
}
_BRANCH = {
    "type": "object",
    "required": ["known", "routed"],
    "properties": {
        "known": {"type": "object", "properties": _MEASURED, "description": "Rows with a value: these are scored"},
        "routed": {
            "type": ["object", "null"],
            "properties": _MEASURED,
            "description": "All rows that go this way; null where surrogates would say: only the chosen split has any",
        },
    },
}
SURROGATES: dict[str, Any] = {
    "type": "array",
    "description": "Splits that stand in where a value is missing, best first; only where `missing` is `surrogate`",
    "items": {
        "type": "object",
        "properties": {
            "rank": {"type": "integer"},
            "feature": {"type": "string"},
            "split": SPLIT,
            "agree": {"type": "number", "description": "The share of the rows that it sends the same way"},
            "adj": {"type": "number", "description": "How much better that is than the majority: 1 is all of it"},
            "n": {"type": "integer", "description": "The training rows that it sent"},
        },
    },
}


MARGIN = {
    name: {"type": ["number", "null"]} for name in ("any", "other_feature", "any_relative", "other_feature_relative")
}


class SplitsQuery(Envelope):
    """Which candidates to list."""

    node = Whole(validate=validate.Range(0), metadata={"description": "Only this node; all, breadth first, if absent"})
    feature = text("Only splits on this feature")
    type = choice("Only splits of this type", *_TYPES)
    chosen = fields.Boolean(metadata={"description": "Only splits that are, or are not, in the tree"})
    admissible = fields.Boolean(metadata={"description": "Only splits that could, or could not, have been chosen"})
    top = Whole(validate=validate.Range(1), metadata={"description": "Only the best so many of each node"})
    measure = text("Rank by this measure instead of the model's own criterion")
    sort = choice("`rank`, or `position`: by feature and cut", "rank", "position", load_default="rank")
    limit = PageLimit()
    cursor = text("Where the page begins: taken from the `next` of the page before")


class AuditedNodeSchema(Schema):
    """A node of which splits are listed."""

    node = fields.Integer(required=True)
    depth = fields.Integer(required=True)
    n = fields.Integer(required=True, metadata={"description": "Rows"})
    weight = fields.Float(required=True)
    counts = Anything({**COUNTS, "description": "The weight of each class; classification only"})
    mean = Anything({**NUMBERS, "description": "Regression only; of several targets a list"})
    variance = Anything({**NUMBERS, "description": "Regression by variance only; of several targets a list"})
    median = fields.Float(metadata={"description": "Regression by absolute error only"})
    impurity = fields.Float(required=True)
    leaf = fields.Boolean(required=True)
    reason = fields.String(required=True, allow_none=True, metadata={"description": "Why it is a leaf, or `raised`"})
    margin = Anything(
        {
            "type": ["object", "null"],
            "description": "By how much the chosen split is better than the next one",
            "properties": MARGIN,
        }
    )
    by_measure = Anything(
        {
            "type": "object",
            "description": "With `measure` only: which split it would have taken, and how far apart the two are",
            "properties": {
                "measure": {"type": "string"},
                "split": {"type": ["object", "null"], "description": "The split that is best by the measure"},
                "same": {"type": ["boolean", "null"], "description": "Whether the tree took it; null in a leaf"},
                "score": {"type": ["number", "string", "null"], "description": "Its score by the measure"},
                "chosen_score": {"type": ["number", "string", "null"], "description": "That of the tree's split"},
                "gap": {"type": ["number", "string", "null"], "description": "By how much it is better"},
                "margin": {"type": "object", "properties": MARGIN},
            },
        }
    )
    surrogates = Anything(SURROGATES)


class SplitSchema(Schema):
    """A candidate split with its scores."""

    node = fields.Integer(required=True)
    rank = fields.Integer(required=True, allow_none=True, metadata={"description": "Null when it is inadmissible"})
    chosen = fields.Boolean(required=True)
    feature = fields.String(required=True)
    split = Anything(SPLIT, required=True)
    branches = Anything({"type": "array", "items": _BRANCH}, required=True)
    score = fields.Float(required=True, allow_none=True, metadata={"description": "By the model's own criterion"})
    scores = Anything(
        {
            "type": "object",
            "description": "By every measure that applies; null where undefined",
            "additionalProperties": {"type": ["number", "null"]},
        },
        required=True,
    )
    admissible = fields.Boolean(required=True)
    reason = fields.String(required=True, allow_none=True, metadata={"description": "Why it is inadmissible"})


class SplitsPageSchema(Schema):
    """One page of candidate splits."""

    model = fields.Nested(SummarySchema, required=True)
    criterion = fields.String(required=True)
    measure = fields.String(required=True)
    classes = Anything({"type": ["array", "null"], "items": SCALAR})
    retention = fields.String(required=True)
    total = fields.Integer(required=True, allow_none=True)
    next = fields.String(
        required=True, allow_none=True, metadata={"description": "The URL of the next page; null on the last"}
    )
    nodes = fields.List(fields.Nested(AuditedNodeSchema), required=True)
    splits = fields.List(fields.Nested(SplitSchema), required=True)
    warnings = fields.List(fields.String(), required=True)


@blueprint.route("/models/<reference>/splits", methods=["GET"], parameters=[REFERENCE])
@blueprint.arguments(SplitsQuery, location="query")
@blueprint.response(200, SplitsPageSchema)
@blueprint.also_answers(200, WRITERS)
@blueprint.problems(404, 406, 409, 422, 429, 503)
def get_splits(query: dict[str, Any], reference: str) -> Response:
    """List every candidate split of a node, or of all nodes, with its score under every measure.

    Best first within a node; what could not be chosen comes last, with the reason. Models that keep no data for the
    audit answer 409. Accepted as NDJSON, CSV or an Arrow stream the whole listing comes at once, by feature and cut.
    """
    record = store().find(reference)
    media_type = request.accept_mimetypes.best_match([MEDIA_TYPE, *WRITERS])
    if media_type is not None and media_type in WRITERS:
        return _stream(record, query, media_type)
    page = auditing.list_splits(record, read_query(query), store(), settings(), recent())
    response = answer({"model": summarize_model(record), **page, "next": next_url(page["next"])})
    response.vary.add("Accept")
    return response


def _stream(record: ModelRecord, query: dict[str, Any], media_type: str) -> Response:
    """The whole listing. Streams share the seats of those who follow jobs: each keeps a thread."""
    faults = [
        Fault(f"?{name}", f"streams {what}; leave it out")
        for name, what, wrong in (
            ("sort", "go by position", request.args.get("sort", "position") != "position"),
            ("limit", "have no pages", "limit" in request.args),
        )
        if wrong
    ]
    if faults:
        raise InvalidRequest(f"{faults[0].place}: {faults[0].message}", faults)
    seats = followers()
    if not seats.acquire(blocking=False):
        raise QueueFull("as many callers follow jobs or read streams as this process has room for; come back later")
    try:
        parts = streaming.stream_splits(record, read_query(query), store(), recent(), media_type)
    except BaseException:
        seats.release()
        raise
    response = Response(stream_with_context(parts), content_type=media_type)
    response.call_on_close(seats.release)  # whatever becomes of the caller, the server closes the response
    response.vary.add("Accept")
    response.headers["Cache-Control"] = "no-store"
    response.headers["X-Accel-Buffering"] = "no"
    response.headers["Treewright-Retention"] = record.retention
    return response


def read_query(query: dict[str, Any]) -> SplitQuery:
    """The query of the use case."""
    return SplitQuery(
        node=query.get("node"),
        feature=query.get("feature"),
        type=query.get("type"),
        chosen=query.get("chosen"),
        admissible=query.get("admissible"),
        top=query.get("top"),
        measure=query.get("measure"),
        sort=query["sort"],
        limit=query["limit"],
        cursor=query.get("cursor"),
    )
