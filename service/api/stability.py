"""`/models/<reference>/stability`: how steady the splits are when the training rows are drawn anew."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import Schema, fields, validate

from service.api.blueprint import Resource
from service.api.fields import Anything, Envelope, Whole
from service.api.jobs import A_JOB, JobSchema, answer_job, queue_for
from service.api.json import answer
from service.api.models import REFERENCE, SummarySchema, summarize_model
from service.api.splits import SPLIT
from service.api.state import store
from service.stability import MOST_RESAMPLES, StabilityRequest, check_retained, count_cells, measure_stability

blueprint = Resource("stability", __name__, description="How steady a model's splits are")

_SHARE = {"type": ["number", "null"]}
_EDGE = {"type": ["number", "string"]}
_NODE = {
    "type": "object",
    "properties": {
        "node": {"type": "integer"},
        "feature": {"type": "string", "description": "That of the tree's split"},
        "split": SPLIT,
        "draws": {"type": "integer", "description": "Resamples of which rows came to the node; shares are of these"},
        "same_feature": {**_SHARE, "description": "Those that chose the tree's feature"},
        "same_split": {**_SHARE, "description": "That part its categories alike; null for cuts of numbers"},
        "no_split": {**_SHARE, "description": "That had nothing admissible"},
        "features": {
            "type": "array",
            "description": "What was chosen, the most frequent first",
            "items": {"type": "object", "properties": {"feature": {"type": "string"}, "share": _SHARE}},
        },
        "threshold": {
            "type": ["object", "null"],
            "description": "Where those that chose the tree's feature cut it; nine of ten between `low` and `high`",
            "properties": dict.fromkeys(("min", "low", "median", "high", "max"), _EDGE),
        },
    },
}


class StabilityQuery(Envelope):
    """How to draw."""

    resamples = Whole(
        load_default=100,
        validate=validate.Range(1, MOST_RESAMPLES),
        metadata={"description": "How often all training rows are drawn, with replacement"},
    )
    seed = Whole(load_default=0, validate=validate.Range(0), metadata={"description": "Of chance"})


class StabilitySchema(Schema):
    """What resamples of the training rows choose at each inner node."""

    model = fields.Nested(SummarySchema, required=True)
    resamples = fields.Integer(required=True)
    seed = fields.Integer(required=True)
    nodes = Anything({"type": "array", "items": _NODE}, required=True)


@blueprint.route("/models/<reference>/stability", methods=["GET"], parameters=[REFERENCE])
@blueprint.arguments(StabilityQuery, location="query")
@blueprint.response(200, StabilitySchema)
@blueprint.alt_response(202, schema=JobSchema, description=A_JOB)
@blueprint.problems(404, 409, 422, 429, 503, 507)
def get_stability(query: dict[str, Any], reference: str) -> Response:
    """Tell how often bootstrap resamples of the training rows choose the same feature, and where they cut it.

    The tree stays as it is, and each of its nodes is searched anew. The same seed gives the same answer; what a job
    found is answered again as long as the job is known.
    """
    record = store().find(reference)
    check_retained(record)
    asked = StabilityRequest(query["resamples"], query["seed"])
    jobs = queue_for(count_cells(record, asked))
    if jobs is not None:
        content = {"model": record.id, "resamples": asked.resamples, "seed": asked.seed}
        job = jobs.submit_once("stability", content, content)
        if job.state == "succeeded":
            return answer(job.result)
        return answer_job(job)
    return answer({"model": summarize_model(record), **measure_stability(record, asked, store())})
