"""`/models`: the records of trained models, listed, shown, changed and deleted."""

from __future__ import annotations

from typing import Any

from flask import Response, request, url_for
from marshmallow import Schema, fields

from service.api.blueprint import Resource
from service.api.conditions import check_conditions, tag_of, tagged
from service.api.fields import SCALAR, Anything, Envelope, Moment, PageLimit, text
from service.api.json import answer
from service.api.state import recent, store
from service.core.parameters import DEFAULTS
from service.listing.source import forget_model
from service.store.records import ModelRecord

blueprint = Resource("models", __name__, description="The records of trained models")

REFERENCE = {
    "name": "reference",
    "in": "path",
    "required": True,
    "description": "An id, a name (its newest version), `name@version` or `name@alias`",
    "schema": {"type": "string"},
}

_KIND = {"type": "string", "enum": ["numeric", "boolean", "nominal", "ordinal"]}
_FEATURE = {
    "type": "object",
    "required": ["name", "kind"],
    "properties": {
        "name": {"type": "string"},
        "kind": _KIND,
        "categories": {"type": "array", "items": SCALAR},
    },
}
_TARGET = {
    "type": "object",
    "required": ["name", "kind"],
    "properties": {
        "name": {"type": "string"},
        "kind": _KIND,
        "names": {"type": "array", "items": {"type": "string"}, "description": "Of several targets"},
        "dissimilarity": {"type": "string", "description": "The metric, or `matrix`, of models of dissimilarities"},
        "classes": {"type": "array", "items": SCALAR, "description": "Classification only"},
        "positive_class": {"type": ["string", "number", "boolean", "null"], "description": "Classification only"},
    },
}
_LINKS = (
    "self",
    "splits",
    "tree",
    "predict",
    "explain",
    "evaluate",
    "importance",
    "stability",
    "pruning",
    "card",
    "verify",
    "parent",
)


def _whole(*names: str) -> dict[str, Any]:
    return {name: {"type": "integer"} for name in names}


class SummarySchema(Schema):
    """Which model an answer is about."""

    id = fields.String(required=True)
    name = fields.String(required=True, allow_none=True)
    version = fields.Integer(required=True, allow_none=True)


class ModelSchema(SummarySchema):
    """A model's record."""

    created = fields.DateTime(required=True)
    algorithm = fields.String(required=True)
    task = fields.String(required=True, metadata={"enum": [*DEFAULTS]})
    parameters = Anything({"type": "object", "description": "Every parameter, resolved"}, required=True)
    schema = Anything(
        {
            "type": "object",
            "description": "What the model was trained on: the order of its features is that of `rows` in `/predict`",
            "required": ["features", "target"],
            "properties": {"features": {"type": "array", "items": _FEATURE}, "target": _TARGET},
        },
        required=True,
    )
    training = Anything(
        {
            "type": "object",
            "properties": {
                **_whole("rows", "columns"),
                "seconds": {"type": "number"},
                "data_sha256": {"type": "string", "description": "Of the data in their canonical form"},
                "weight": {"type": ["string", "null"], "description": "The column of row weights"},
                "missing_target": {"type": "string", "description": "What became of rows without a target"},
            },
        },
        required=True,
    )
    provenance = Anything(
        {
            "type": "object",
            "description": "What made the model, and for whom",
            "properties": {
                "versions": {"type": "object", "additionalProperties": {"type": "string"}},
                "tie_rule": {"type": "integer", "description": "The version of the rule that breaks ties"},
                "asked_by": {"type": ["string", "null"], "description": "The key's id; null while there are no keys"},
            },
        }
    )
    tree = Anything({"type": "object", "properties": _whole("nodes", "leaves", "depth")}, required=True)
    metrics = Anything(
        {
            "type": "object",
            "description": "On the training rows; `cross_validation`, where it was asked for, on rows held out",
        },
        required=True,
    )
    pruning = Anything(
        {
            "type": ["object", "null"],
            "description": "How the tree was cut back: by which method and choice, from which size, from which parent",
        }
    )
    description = fields.String(required=True)
    tags = fields.Dict(keys=fields.String(), values=fields.String(), required=True)
    retention = fields.String(
        required=True, metadata={"description": "What is kept for the audit", "enum": ["data", "summary", "none"]}
    )
    links = Anything(
        {"type": "object", "properties": {name: {"type": "string", "format": "uri-reference"} for name in _LINKS}},
        required=True,
    )
    warnings = fields.List(fields.String(), required=True)


class ModelPageSchema(Schema):
    """One page of models, newest first."""

    models = fields.List(fields.Nested(ModelSchema), required=True)
    next = fields.String(
        required=True, allow_none=True, metadata={"description": "The URL of the next page; null on the last"}
    )


class ModelQuery(Envelope):
    """Which models to list."""

    name = text("Only the versions of this name")
    tag = text("Only models with this tag: `key`, or `key:value`")
    since = Moment("Only models made then or later (ISO 8601; UTC unless it says)")
    until = Moment("Only models made before")
    limit = PageLimit()
    cursor = text("Where the page begins: taken from the `next` of the page before")


class ModelChanges(Envelope):
    """What can be changed in a record."""

    tags = fields.Dict(
        keys=fields.String(), values=fields.String(), metadata={"description": "Replace all tags of the model"}
    )
    description = fields.String()


@blueprint.route("/models", methods=["GET"])
@blueprint.arguments(ModelQuery, location="query")
@blueprint.response(200, ModelPageSchema)
@blueprint.problems(422)
def list_models(query: dict[str, Any]) -> Response:
    """List models, newest first.

    Follow `next` for the rest; models that are added meanwhile do not shift the pages.
    """
    tag = _split_tag(query["tag"]) if query.get("tag") else None
    asked = {name: query.get(name) for name in ("name", "since", "until", "cursor")}
    records, cursor = store().list(tag=tag, limit=query["limit"], **asked)
    return answer({"models": [show_model(record) for record in records], "next": next_url(cursor)})


@blueprint.route("/models/<reference>", methods=["GET"], parameters=[REFERENCE])
@blueprint.response(200, ModelSchema)
@blueprint.problems(404)
def get_model(reference: str) -> Response:
    """Show a model's record; its `ETag` changes with it."""
    record = store().find(reference)
    return tagged(answer(show_model(record)), record)


@blueprint.route("/models/<reference>", methods=["PATCH"], parameters=[REFERENCE])
@blueprint.arguments(ModelChanges)
@blueprint.response(200, ModelSchema)
@blueprint.problems(400, 404, 412, 413, 415, 422, 507)
def change_model(changes: dict[str, Any], reference: str) -> Response:
    """Change a model's tags or description; nothing else of it can change.

    With `If-Match` only if nobody has changed it since you saw it.
    """
    record = store().update(reference, **changes, condition=check_conditions())
    return tagged(answer(show_model(record)), record)


@blueprint.route("/models/<reference>", methods=["DELETE"], parameters=[REFERENCE])
@blueprint.response(204, description="The model is deleted")
@blueprint.problems(404, 409, 412)
def delete_model(reference: str) -> Response:
    """Delete a model.

    A bare name that has several versions is a conflict: say which, as in `name@2`. So is a version that an alias means.
    """
    store().delete(reference, condition=check_conditions())
    return Response(status=204)


@blueprint.route("/models/<reference>/data", methods=["DELETE"], parameters=[REFERENCE])
@blueprint.response(204, description="Nothing is kept for the audit any more")
@blueprint.problems(404, 409, 412)
def delete_data(reference: str) -> Response:
    """Delete what a model keeps for the audit, training data or a summary of splits; the model and its tree stay.

    Nothing happens where nothing is kept. A bare name that has several versions is a conflict, as in `delete_model`.
    """
    record = store().drop_data(reference, condition=check_conditions())
    forget_model(record, recent())
    return Response(status=204, headers={"ETag": f'"{tag_of(record)}"'})


def summarize_model(record: ModelRecord) -> dict[str, Any]:
    """Which model an answer is about, as in `SummarySchema`."""
    return record.summary()


def show_model(record: ModelRecord) -> dict[str, Any]:
    """A record as `ModelSchema` describes it."""
    return {
        **summarize_model(record),
        "created": record.created,
        **record.body,
        "description": record.description,
        "tags": dict(record.tags),
        "retention": record.retention,
        "links": link_model(record),
    }


def link_model(record: ModelRecord) -> dict[str, str]:
    """The URLs of a model, of what can be asked of it, and of the model that it was pruned from."""
    parent = (record.body.get("pruning") or {}).get("parent")
    origin = {"parent": url_for("models.get_model", reference=parent["id"])} if parent else {}
    return {
        "self": url_for("models.get_model", reference=record.id),
        "splits": url_for("splits.get_splits", reference=record.id),
        "tree": url_for("tree.get_tree", reference=record.id),
        "predict": url_for("predict.predict_rows", reference=record.id),
        "explain": url_for("explain.explain_rows", reference=record.id),
        "evaluate": url_for("evaluate.evaluate_rows", reference=record.id),
        "importance": url_for("importance.get_importance", reference=record.id),
        "stability": url_for("stability.get_stability", reference=record.id),
        "pruning": url_for("pruning.get_path", reference=record.id),
        "card": url_for("card.get_card", reference=record.id),
        "verify": url_for("verify.verify_model", reference=record.id),
        **origin,
    }


def next_url(cursor: str | None) -> str | None:
    """The URL of this request with the cursor of the next page, None after the last."""
    if cursor is None:
        return None
    arguments = {**request.args, **(request.view_args or {}), "cursor": cursor}
    return url_for(str(request.endpoint), **arguments)


def _split_tag(tag: str) -> tuple[str, str | None]:
    key, separator, value = tag.partition(":")
    return key, value if separator else None
