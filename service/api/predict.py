"""`/models/<reference>/predict`: rows in, predictions out."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from flask import Response
from marshmallow import Schema, fields

from service import prediction
from service.api.blueprint import Resource
from service.api.fields import COUNTS, PREDICTION, SCALAR, Anything, Envelope, PredictionData
from service.api.json import answer
from service.api.models import REFERENCE, SummarySchema, summarize_model
from service.api.state import settings, store
from service.readers.declarations import declare_features
from service.readers.json_table import Limits, read_table
from service.readers.places import placed_as_posted
from service.settings import Settings
from service.store.models import ModelStore
from service.store.records import ModelRecord

blueprint = Resource("predict", __name__, description="Prediction")


class RowsSchema(Envelope):
    """The rows to predict."""

    data = PredictionData()


class PredictionSchema(Schema):
    """Predictions, in the order of the rows."""

    model = fields.Nested(SummarySchema, required=True)
    predictions = Anything(
        {"type": "array", "items": {**PREDICTION, "description": "Of several targets a list"}}, required=True
    )
    classes = Anything({"type": "array", "items": SCALAR, "description": "Classification only"})
    probabilities = Anything(
        {"type": "array", "items": COUNTS, "description": "For each row, of each class; classification only"}
    )
    leaves = Anything(
        {"type": "array", "items": {"type": "integer"}, "description": "The node that each row ended in"}, required=True
    )
    warnings = fields.List(fields.String(), required=True)


@blueprint.route("/models/<reference>/predict", methods=["POST"], parameters=[REFERENCE])
@blueprint.arguments(RowsSchema)
@blueprint.response(200, PredictionSchema)
@blueprint.problems(400, 404, 413, 415, 422, 503)
def predict_rows(envelope: dict[str, Any], reference: str) -> Response:
    """Predict rows.

    Columns are matched by name, in any order; `rows` alone are in the order of the model's features. Columns that the
    model does not know are named in a warning, missing ones are refused.
    """
    return answer(predict_posted(store().find(reference), envelope["data"], settings(), store()))


def predict_posted(
    record: ModelRecord, data: Mapping[str, Any], settings: Settings, store: ModelStore
) -> dict[str, Any]:
    """The answer to posted rows; raises `InvalidData` with the places where the caller wrote them."""
    declared = declare_features(record.body["schema"]["features"])
    order = list(declared)
    limits = Limits(settings.max_rows, settings.max_columns)
    table = read_table(data, declared=declared, order=order, limits=limits)
    with placed_as_posted(data, order):
        return {"model": summarize_model(record), **prediction.predict(record, table, store)}
