"""`/models/<reference>/tree`: the tree itself, node by node."""

from __future__ import annotations

from flask import Response
from marshmallow import Schema, fields

from service import auditing
from service.api.blueprint import Resource
from service.api.fields import COUNTS, NUMBERS, PREDICTION, SCALAR, Anything
from service.api.json import answer
from service.api.models import REFERENCE
from service.api.splits import SPLIT, SURROGATES
from service.api.state import store

blueprint = Resource("tree", __name__, description="The tree of a model")


class NodeSchema(Schema):
    """A node of the tree."""

    node = fields.Integer(required=True, metadata={"description": "Its number, breadth first; the root is 0"})
    parent = fields.Integer(required=True, allow_none=True)
    depth = fields.Integer(required=True)
    feature = fields.String(required=True, allow_none=True)
    split = Anything({"anyOf": [SPLIT, {"type": "null"}]}, required=True)
    children = fields.List(fields.Integer(), required=True)
    n = fields.Integer(required=True, metadata={"description": "Rows"})
    weight = fields.Float(required=True)
    counts = Anything({**COUNTS, "description": "The weight of each class; classification only"})
    mean = Anything({**NUMBERS, "description": "Regression only; of several targets a list"})
    variance = Anything({**NUMBERS, "description": "Regression by variance only; of several targets a list"})
    median = fields.Float(metadata={"description": "Regression by absolute error only"})
    impurity = fields.Float(required=True)
    score = fields.Float(
        required=True, allow_none=True, metadata={"description": "Of its split, by the model's criterion"}
    )
    prediction = Anything({**PREDICTION, "description": "What a row that ends here is predicted"}, required=True)
    leaf = fields.Boolean(required=True)
    reason = fields.String(required=True, allow_none=True, metadata={"description": "Why it is a leaf, or `raised`"})
    surrogates = Anything(SURROGATES)


class TreeSchema(Schema):
    """A tree, its nodes in breadth-first order."""

    classes = Anything({"type": ["array", "null"], "items": SCALAR})
    nodes = fields.List(fields.Nested(NodeSchema), required=True)


@blueprint.route("/models/<reference>/tree", methods=["GET"], parameters=[REFERENCE])
@blueprint.response(200, TreeSchema)
@blueprint.problems(404, 503)
def get_tree(reference: str) -> Response:
    """Show the tree."""
    return answer(auditing.show_tree(store().find(reference), store()))
