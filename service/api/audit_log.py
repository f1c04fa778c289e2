"""`/audit-log`: what was done to models, and whether that account is whole."""

from __future__ import annotations

from dataclasses import asdict
from typing import Any, get_args

from flask import Response
from marshmallow import Schema, ValidationError, fields, validate, validates_schema

from service.api.blueprint import Resource
from service.api.fields import Anything, Envelope, Moment, PageLimit, Whole, choice, text
from service.api.json import answer
from service.api.models import next_url
from service.api.state import store
from service.store.records import LogAction

blueprint = Resource("audit_log", __name__, description="What was done to models")

_HASH = {"type": "string", "pattern": "^[0-9a-f]{64}$"}


def _sometimes(kind: str, description: str = "") -> Anything:
    return Anything({"type": [kind, "null"], **({"description": description} if description else {})}, required=True)


class EntrySchema(Schema):
    """What was done; `sha256` is that of everything else here as JSON with sorted keys, without spaces, in ASCII."""

    number = fields.Integer(required=True, metadata={"description": "1, 2, 3 and so on without a gap"})
    time = fields.String(required=True, metadata={"format": "date-time"})
    action = fields.String(required=True, metadata={"enum": [*get_args(LogAction)]})
    model = _sometimes("string", "The model's id; null for aliases")
    name = _sometimes("string")
    version = _sometimes("integer")
    alias = _sometimes("string")
    actor = _sometimes("string", "The key that asked; null while there are no keys")
    request = _sometimes("string", "Its `X-Request-Id`; null in jobs")
    details = Anything({"type": "object", "description": "Hashes of what was made, and the like"}, required=True)
    previous = Anything({**_HASH, "description": "The hash of the entry before; zeros in the first"}, required=True)
    sha256 = Anything(_HASH, required=True)


class EntryPageSchema(Schema):
    """One page of entries, newest first."""

    entries = fields.List(fields.Nested(EntrySchema), required=True)
    next = fields.String(
        required=True, allow_none=True, metadata={"description": "The URL of the next page; null on the last"}
    )


class EntryQuery(Envelope):
    """Which entries to list."""

    model = text("Only those on this id, name, `name@version` or `name@alias`, also of what was deleted")
    action = choice("Only those that tell of this", *get_args(LogAction))
    since = Moment("Only what was done then or later (ISO 8601)")
    until = Moment("Only what was done before")
    limit = PageLimit()
    cursor = text("Where the page begins: taken from the `next` of the page before")


class CheckQuery(Envelope):
    """An entry that was kept elsewhere."""

    number = Whole(validate=validate.Range(1), metadata={"description": "The number of an entry that you kept"})
    sha256 = fields.String(
        validate=validate.Regexp("^[0-9a-f]{64}$", error="Give 64 hexadecimal digits."),
        metadata={"description": "The hash that it had then"},
    )

    @validates_schema
    def check_both(self, data: dict[str, Any], **_: object) -> None:
        """Refuse one without the other."""
        if ("number" in data) != ("sha256" in data):
            raise ValidationError('Give "number" and "sha256" together.', "number" if "sha256" in data else "sha256")


class LastSchema(Schema):
    """The end of the chain."""

    number = fields.Integer(required=True)
    sha256 = fields.String(required=True)


class BreakSchema(Schema):
    """Where the chain breaks first."""

    number = fields.Integer(required=True)
    reason = fields.String(required=True)


class CheckSchema(Schema):
    """Whether the chain is whole."""

    intact = fields.Boolean(required=True)
    entries = fields.Integer(required=True, metadata={"description": "How many are whole, from the first on"})
    last = fields.Nested(LastSchema, required=True, metadata={"description": "To be kept elsewhere"})
    broken = fields.Nested(BreakSchema, required=True, allow_none=True)


@blueprint.route("/audit-log", methods=["GET"])
@blueprint.arguments(EntryQuery, location="query")
@blueprint.response(200, EntryPageSchema)
@blueprint.problems(422)
def list_entries(query: dict[str, Any]) -> Response:
    """List what was done to models and aliases, newest first; entries that are added do not shift the pages.

    Each entry was written by the transaction that did what it tells of.
    """
    asked = {name: query.get(name) for name in ("model", "action", "since", "until", "cursor")}
    entries, cursor = store().log.list(limit=query["limit"], **asked)
    return answer({"entries": [asdict(entry) for entry in entries], "next": next_url(cursor)})


@blueprint.route("/audit-log/verify", methods=["GET"])
@blueprint.arguments(CheckQuery, location="query")
@blueprint.response(200, CheckSchema)
@blueprint.problems(422)
def check_entries(query: dict[str, Any]) -> Response:
    """Work out the hash of every entry anew, and tell where the chain breaks first, if it does.

    Keep `last` elsewhere: with its `number` and `sha256` a later check tells whether all up to there is what it was.
    """
    found = store().log.check(query.get("number"), query.get("sha256"))
    broken = None if found.broken is None else {"number": found.broken, "reason": found.reason}
    last = {"number": found.last_number, "sha256": found.last_sha256}
    return answer({"intact": broken is None, "entries": found.entries, "last": last, "broken": broken})
