"""`/models/<reference>/splits/score`: a split that the caller describes, scored at a node of a model."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import Schema, fields, validate

from service import what_if
from service.api.blueprint import Resource
from service.api.fields import Envelope, JsonObject, Whole, text
from service.api.json import answer
from service.api.models import REFERENCE, SummarySchema, summarize_model
from service.api.splits import SplitSchema
from service.api.state import recent, store
from service.core.errors import Fault, pointer
from service.errors import InvalidRequest

blueprint = Resource("what_if", __name__, description="Splits that you describe, at a node of a model")

_DESCRIBED: dict[str, Any] = {
    "type": "object",
    "required": ["type"],
    "description": "As listings show splits: a number's `threshold`, a `subset` or `multiway` of categories, `missing`",
    "properties": {
        "type": {"type": "string", "enum": ["threshold", "subset", "multiway", "missing"]},
        "threshold": {"type": ["number", "string"], "description": "Values up to it go left"},
        "categories": {
            "type": "array",
            "items": {"type": "array", "items": {"type": ["string", "number", "boolean"]}},
            "description": "Those of each branch; of a subset the first group is enough",
        },
        "missing": {
            "type": "string",
            "enum": ["left", "right"],
            "description": "Where missing values go, if the model learns that; the better side if absent",
        },
    },
    "additionalProperties": False,
}
_NAMES = set(_DESCRIBED["properties"])


class DescribedSplitSchema(Envelope):
    """A split and where it is to be scored."""

    node = Whole(load_default=0, strict=True, validate=validate.Range(0), metadata={"default": 0})
    feature = text("The feature that is split", required=True)
    split = JsonObject(_DESCRIBED, required=True)


class ScoredSplitSchema(Schema):
    """A described split with its scores, and the node's best split."""

    model = fields.Nested(SummarySchema, required=True)
    split = fields.Nested(
        SplitSchema, required=True, metadata={"description": "Its `rank` is where it would stand among all weighed"}
    )
    best = fields.Nested(SplitSchema, required=True, allow_none=True)
    gap = fields.Float(required=True, allow_none=True, metadata={"description": "By how much the best scores higher"})


@blueprint.route("/models/<reference>/splits/score", methods=["POST"], parameters=[REFERENCE])
@blueprint.arguments(DescribedSplitSchema)
@blueprint.response(200, ScoredSplitSchema)
@blueprint.problems(400, 404, 409, 413, 415, 422, 503)
def score_described_split(envelope: dict[str, Any], reference: str) -> Response:
    """Score a split of your own at a node: every measure, both populations of its branches, whether it is admissible.

    Rules that depend on how many cuts a number has (C4.5's penalty) are left out: this is a cut by itself.
    """
    record = store().find(reference)
    described = envelope["split"]
    unknown = sorted(set(described) - _NAMES)
    if unknown:
        raise InvalidRequest(
            "the split says more than a split can say",
            [Fault(pointer("split", name), "Unknown field.") for name in unknown],
        )
    scored = what_if.score_described(record, envelope["node"], envelope["feature"], described, store(), recent())
    return answer({"model": summarize_model(record), **scored})
