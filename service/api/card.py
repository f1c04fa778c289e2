"""`/models/<reference>/card`: all that a reader has to know of a model, as JSON or as a page."""

from __future__ import annotations

from flask import Response, request
from marshmallow import Schema, fields

from service.api.blueprint import Resource
from service.api.fields import Anything
from service.api.json import MEDIA_TYPE, answer
from service.api.models import REFERENCE, SummarySchema, summarize_model
from service.api.splits import SPLIT
from service.api.state import store
from service.card import make_card
from service.card_pages import write_html, write_markdown

blueprint = Resource("card", __name__, description="Model cards")

PAGES = {"text/markdown": write_markdown, "text/html": write_html}
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_NUMBER = {"type": "number"}
_TEXT = {"type": "string"}
_FEATURE = {
    "type": "object",
    "properties": {
        "feature": _TEXT,
        "kind": _TEXT,
        "importance": {**_NUMBER, "description": "Its share of all gains"},
        "categories": {"type": "array"},
        "range": {"type": "array", "description": "The least and the greatest number of training"},
    },
}
_SPLIT = {
    "type": "object",
    "properties": {
        "node": {"type": "integer"},
        "where": {**_TEXT, "description": "The way to the node in words"},
        "test": {**_TEXT, "description": "The split in words"},
        "feature": _TEXT,
        "split": SPLIT,
        "n": {"type": "integer"},
        "gain": _NUMBER,
        "share": {**_NUMBER, "description": "Of all gains"},
        "prediction": {},
    },
}


class CardSchema(Schema):
    """A model card."""

    model = fields.Nested(SummarySchema, required=True)
    name = fields.String(required=True, allow_none=True)
    version = fields.Integer(required=True, allow_none=True)
    created = fields.DateTime(required=True)
    description = fields.String(required=True)
    tags = fields.Dict(keys=fields.String(), values=fields.String(), required=True)
    task = fields.String(required=True)
    algorithm = fields.String(required=True)
    changed_parameters = Anything({"type": "object", "description": "Those unlike the preset's"}, required=True)
    target = Anything({"type": "object", "description": "With the share of each class, or the mean"}, required=True)
    training = Anything({"type": "object", "description": "Rows, features, weights, seconds"}, required=True)
    features = Anything({"type": "array", "items": _FEATURE, "description": "Most important first"}, required=True)
    tree = Anything({"type": "object"}, required=True)
    pruning = Anything({"type": ["object", "null"]}, required=True)
    splits = Anything({"type": "array", "items": _SPLIT, "description": "The ten that gained most"}, required=True)
    metrics = Anything(
        {"type": "object", "description": "Of the training rows, and cross-validated where that was asked for"},
        required=True,
    )
    provenance = Anything(
        {"type": "object", "description": "Versions, hashes, and the entry of the audit log"}, required=True
    )
    limits = fields.List(fields.String(), required=True, metadata={"description": "What its answers do not tell"})
    warnings = fields.List(fields.String(), required=True)


@blueprint.route("/models/<reference>/card", methods=["GET"], parameters=[REFERENCE])
@blueprint.response(200, CardSchema)
@blueprint.also_answers(200, PAGES)
@blueprint.problems(404, 503)
def get_card(reference: str) -> Response:
    """Show the model card: what the model is, what it was made of and by, how good it is and where it ends.

    `Accept: text/html` and `text/markdown` give a page to be read; otherwise it is JSON.
    """
    record = store().find(reference)
    card = make_card(record, store())
    wanted = request.accept_mimetypes.best_match([MEDIA_TYPE, *PAGES], MEDIA_TYPE)
    if wanted in PAGES:
        response = Response(PAGES[wanted](card), content_type=f"{wanted}; charset=utf-8")
        response.headers["Content-Security-Policy"] = _POLICY
        response.headers["X-Content-Type-Options"] = "nosniff"
    else:
        response = answer({"model": summarize_model(record), **card})
    response.vary.add("Accept")
    return response
