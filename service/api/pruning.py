"""`/models/<reference>/pruning`: the subtrees of a model; `/prune`: one of them as a new version."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from service import pruning
from service.api.blueprint import Resource
from service.api.fields import Envelope, Whole, choice
from service.api.json import answer
from service.api.models import REFERENCE, ModelSchema, SummarySchema, link_model, show_model, summarize_model
from service.api.state import store
from service.store.naming import check_description, check_tags

blueprint = Resource("pruning", __name__, description="Cost-complexity pruning")

_RISK = "What subtrees are rated by; as the model was trained if absent"
_SEQUENCE = "Which nested subtrees; as the model was trained if absent"


class PathQuery(Envelope):
    """By which risk, and in which sequence."""

    risk = choice(_RISK, "error", "impurity")
    sequence = choice(_SEQUENCE, "breiman", "rpart")


class StepSchema(Schema):
    """A subtree."""

    alpha = fields.Float(required=True, metadata={"description": "The least alpha for which it is the best one"})
    cp = fields.Float(required=True, allow_none=True, metadata={"description": "The same by the root's risk"})
    splits = fields.Integer(required=True)
    leaves = fields.Integer(required=True)
    risk = fields.Float(required=True, metadata={"description": "On the training rows, per unit of weight"})
    relative_error = fields.Float(
        required=True, allow_none=True, metadata={"description": "The risk by the root's; null where that is 0"}
    )
    current = fields.Boolean(required=True, metadata={"description": "Whether the model is this subtree"})
    xerror = fields.Float(allow_none=True, metadata={"description": "Cross-validated error by the root's"})
    xstd = fields.Float(allow_none=True, metadata={"description": "Its standard deviation"})
    min = fields.Boolean(metadata={"description": "Whether it is the smallest of least xerror"})
    one_se = fields.Boolean(metadata={"description": "Whether it is the smallest within one xstd of the least xerror"})


class PathSchema(Schema):
    """The nested subtrees of a model, from the root alone on."""

    model = fields.Nested(SummarySchema, required=True)
    risk = fields.String(required=True)
    sequence = fields.String(required=True)
    root_risk = fields.Float(required=True, metadata={"description": "The root's risk, per unit of weight"})
    folds = fields.Integer(required=True, allow_none=True, metadata={"description": "Null: not cross-validated"})
    seed = fields.Integer(required=True, allow_none=True, metadata={"description": "What the folds were dealt by"})
    path = fields.List(fields.Nested(StepSchema), required=True)


class Amount(fields.Float):
    """A number of 0 or more; a text that reads as one is none."""

    def __init__(self, description: str) -> None:
        super().__init__(validate=validate.Range(0), metadata={"description": description})

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - marshmallow's signature
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValidationError("Give a number, 0 or more.")
        return float(value)


class PruneSchema(Envelope):
    """How far to prune: one of `alpha`, `cp` and `leaves`."""

    alpha = Amount("The risk per unit of weight that a leaf must be worth")
    cp = Amount("The same as a share of the root's risk")
    leaves = Whole(
        strict=True,
        validate=validate.Range(1),
        metadata={"description": "The largest subtree of at most so many leaves"},
    )
    risk = choice(_RISK, "error", "impurity")
    sequence = choice(_SEQUENCE, "breiman", "rpart")
    description = fields.String(load_default="")
    tags = fields.Dict(keys=fields.String(), values=fields.String(), metadata={"description": "The parent's if absent"})

    @validates_schema
    def check_one(self, data: dict[str, Any], **_: object) -> None:
        """Refuse none and several."""
        if sum(name in data for name in ("alpha", "cp", "leaves")) != 1:
            raise ValidationError('Give one of "alpha", "cp" and "leaves".', "alpha")


@blueprint.route("/models/<reference>/pruning", methods=["GET"], parameters=[REFERENCE])
@blueprint.arguments(PathQuery, location="query")
@blueprint.response(200, PathSchema)
@blueprint.problems(404, 422, 503)
def get_path(query: dict[str, Any], reference: str) -> Response:
    """List the subtrees that cost-complexity pruning leads through.

    From the root alone to the tree as it grew, each with its alpha and its error; where training cross-validated them
    also with that error, and which of them to choose by it.
    """
    record = store().find(reference)
    path = pruning.list_path(record, store(), query.get("risk"), query.get("sequence"))
    return answer({"model": summarize_model(record), **path})


@blueprint.route("/models/<reference>/prune", methods=["POST"], parameters=[REFERENCE])
@blueprint.arguments(PruneSchema)
@blueprint.response(
    201, ModelSchema, headers={"Location": {"description": "The new model's URL", "schema": {"type": "string"}}}
)
@blueprint.problems(400, 404, 413, 415, 422, 503, 507)
def prune_model(envelope: dict[str, Any], reference: str) -> Response:
    """Store a subtree of a model as the next version of its name.

    The model itself stays as it is; the record of the new one names it as its parent.
    """
    check_description(envelope["description"])
    check_tags(envelope.get("tags", {}))
    record = pruning.prune_model(store().find(reference), pruning.PruningRequest(**envelope), store())
    return answer(show_model(record), 201, {"Location": link_model(record)["self"]})
