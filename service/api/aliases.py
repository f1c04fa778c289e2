"""`/models/<name>/aliases`: words for versions, moved in one step and back."""

from __future__ import annotations

from typing import Any

from flask import Response, url_for
from marshmallow import Schema, fields

from service.api.blueprint import Resource
from service.api.conditions import check_conditions, tagged
from service.api.fields import Anything, Envelope, Whole
from service.api.json import answer
from service.api.state import store
from service.store.records import AliasRecord

blueprint = Resource("aliases", __name__, description="Words for versions of a name")

_NAME = {"name": "name", "in": "path", "required": True, "description": "A name", "schema": {"type": "string"}}
_ALIAS = {
    "name": "alias",
    "in": "path",
    "required": True,
    "description": "Letters, digits, `_` and `-`, a letter first: `champion`",
    "schema": {"type": "string"},
}


class AliasSchema(Schema):
    """A word for one version of a name."""

    name = fields.String(required=True)
    alias = fields.String(required=True)
    version = fields.Integer(required=True)
    previous = fields.Integer(required=True, allow_none=True, metadata={"description": "What a rollback leads to"})
    moved = fields.DateTime(required=True)
    links = Anything({"type": "object"}, required=True)


class AliasListSchema(Schema):
    """The aliases of a name."""

    aliases = fields.List(fields.Nested(AliasSchema), required=True)


class TargetSchema(Envelope):
    """What an alias is to mean."""

    version = Whole(required=True, strict=True, metadata={"minimum": 1})


@blueprint.route("/models/<name>/aliases", methods=["GET"], parameters=[_NAME])
@blueprint.response(200, AliasListSchema)
@blueprint.problems(404)
def list_aliases(name: str) -> Response:
    """List the aliases of a name."""
    return answer({"aliases": [show_alias(alias) for alias in store().aliases.list(name)]})


@blueprint.route("/models/<name>/aliases/<alias>", methods=["GET"], parameters=[_NAME, _ALIAS])
@blueprint.response(200, AliasSchema)
@blueprint.problems(404)
def get_alias(name: str, alias: str) -> Response:
    """Show which version an alias means, and which it meant before."""
    record = store().aliases.find(name, alias)
    return tagged(answer(show_alias(record)), record)


@blueprint.route("/models/<name>/aliases/<alias>", methods=["PUT"], parameters=[_NAME, _ALIAS])
@blueprint.arguments(TargetSchema)
@blueprint.response(200, AliasSchema)
@blueprint.problems(400, 404, 412, 413, 415, 422, 507)
def move_alias(target: dict[str, Any], name: str, alias: str) -> Response:
    """Let an alias mean a version from now on.

    Nobody sees a moment between the two. `If-Match` moves it only if it is as you saw it, `If-None-Match: *` only if it
    is new.
    """
    record = store().aliases.move(name, alias, target["version"], condition=check_conditions())
    return tagged(answer(show_alias(record)), record)


@blueprint.route("/models/<name>/aliases/<alias>/rollback", methods=["POST"], parameters=[_NAME, _ALIAS])
@blueprint.response(200, AliasSchema)
@blueprint.problems(404, 409, 412, 507)
def roll_back_alias(name: str, alias: str) -> Response:
    """Let an alias mean again what it meant before its last move."""
    record = store().aliases.roll_back(name, alias, condition=check_conditions())
    return tagged(answer(show_alias(record)), record)


@blueprint.route("/models/<name>/aliases/<alias>", methods=["DELETE"], parameters=[_NAME, _ALIAS])
@blueprint.response(204, description="The alias is forgotten; the version that it meant stays")
@blueprint.problems(404, 412)
def delete_alias(name: str, alias: str) -> Response:
    """Forget an alias."""
    store().aliases.delete(name, alias, condition=check_conditions())
    return Response(status=204)


def show_alias(record: AliasRecord) -> dict[str, Any]:
    """An alias as `AliasSchema` describes it."""
    return {
        "name": record.name,
        "alias": record.alias,
        "version": record.version,
        "previous": record.previous,
        "moved": record.moved,
        "links": {
            "self": url_for("aliases.get_alias", name=record.name, alias=record.alias),
            "model": url_for("models.get_model", reference=f"{record.name}@{record.alias}"),
        },
    }
