"""`/train`: a posted table becomes a model."""

from __future__ import annotations

from typing import Any

from flask import Response
from marshmallow import fields, validate

from service import training
from service.api.blueprint import Resource
from service.api.fields import (
    Anything,
    ClassLabel,
    Dissimilarity,
    Envelope,
    JsonObject,
    TargetNames,
    TrainingData,
    Whole,
    choice,
    text,
)
from service.api.idempotency import PARAMETER, answer_once
from service.api.jobs import A_JOB, JobSchema, answer_job, queue_for
from service.api.json import answer
from service.api.models import ModelSchema, link_model, show_model
from service.api.state import settings, store
from service.core.errors import Fault, pointer
from service.core.parameters import DEFAULTS, PRESETS
from service.core.schema import Table
from service.cross_validation import read_plan
from service.errors import InvalidRequest
from service.jobs.requests import pack
from service.readers.declarations import CATEGORIES, read_declarations
from service.readers.json_table import Limits, read_table
from service.readers.places import placed_as_posted
from service.store.naming import NAME, check_description, check_name, check_tags
from service.store.records import KeyClaim
from service.targets import TrainingRequest

blueprint = Resource("train", __name__, description="Training")

_FOLDS = {"type": "integer", "minimum": 2}
CROSS_VALIDATION = {
    "description": "The number of folds to validate in, or an object that has the seed and the repeats as well",
    "oneOf": [
        _FOLDS,
        {
            "type": "object",
            "required": ["folds"],
            "additionalProperties": False,
            "properties": {
                "folds": _FOLDS,
                "seed": {"type": ["integer", "null"], "minimum": 0, "description": "The parameter `seed` if absent"},
                "repeats": {"type": ["integer", "null"], "minimum": 1, "default": 1},
            },
        },
    ],
}


class TrainingSchema(Envelope):
    """What to learn from which data; null counts as absent where it is allowed."""

    data = TrainingData()
    target = TargetNames(required=True)
    features = fields.List(
        fields.String(), allow_none=True, metadata={"description": "The columns to learn from; all others if absent"}
    )
    weight = text("A numeric column with the weight of each row", allow_none=True)
    kinds = JsonObject(
        {
            "type": "object",
            "description": "The kind of columns that do not say it themselves",
            "additionalProperties": CATEGORIES,
        },
        data_key="schema",
        allow_none=True,
    )
    dissimilarity = Dissimilarity(allow_none=True)
    task = choice("What the target is; found from it if absent", *DEFAULTS, allow_none=True)
    algorithm = choice("The preset of parameters", *PRESETS, allow_none=True, load_default="cart")
    parameters = JsonObject(
        {"type": "object", "description": "What differs from the preset, such as `criterion` or `max_depth`"},
        allow_none=True,
    )
    positive_class = ClassLabel("The class that counts as positive, of two", allow_none=True)
    missing_target = choice(
        "What becomes of rows without a target", "refuse", "drop", allow_none=True, load_default="refuse"
    )
    cross_validation = Anything(CROSS_VALIDATION, allow_none=True)
    name = fields.String(
        allow_none=True,
        metadata={
            "description": "Not an id; training again under a name makes its next version",
            "pattern": f"^{NAME.pattern}$",
        },
    )
    description = fields.String(load_default="")
    tags = fields.Dict(keys=fields.String(), values=fields.String(), load_default=dict)
    retain = choice(
        "What is kept for the audit; else as the service is set", "data", "summary", "none", allow_none=True
    )
    summary_splits = Whole(
        strict=True,
        validate=validate.Range(1, 1000),
        allow_none=True,
        metadata={"description": "How many splits of each feature in each node a `summary` keeps; else as it is set"},
    )


@blueprint.route("/train", methods=["POST"], parameters=[PARAMETER])
@blueprint.arguments(TrainingSchema)
@blueprint.response(
    201, ModelSchema, headers={"Location": {"description": "The model's URL", "schema": {"type": "string"}}}
)
@blueprint.alt_response(202, schema=JobSchema, description=A_JOB)
@blueprint.problems(400, 409, 413, 415, 422, 429, 507)
def train_model(envelope: dict[str, Any]) -> Response:
    """Train a decision tree and store it.

    Numbers are numeric, strings nominal, booleans boolean, null is missing; `schema` says otherwise. The answer is the
    model's record, with every parameter resolved.
    """
    return answer_once(lambda key: _train(envelope, key))


def _train(envelope: dict[str, Any], key: KeyClaim | None) -> Response:
    training_request = read_request(envelope)
    jobs = queue_for(_count_cells(training_request))
    if jobs is not None:
        with placed_as_posted(envelope["data"]):
            training.prepare(training_request, settings())
        return answer_job(jobs.submit("train", pack(training_request), _describe(training_request), key))
    with placed_as_posted(envelope["data"]):
        record = training.train(training_request, store(), settings(), key=key)
    return answer(show_model(record), 201, {"Location": link_model(record)["self"]})


def _count_cells(training_request: TrainingRequest) -> int:
    """About how much work it is: the cells, as often as a tree is grown of them."""
    plan = read_plan(training_request.cross_validation, None)
    return training_request.table.cells * (1 if plan is None else 1 + plan.trials)


def _describe(training_request: TrainingRequest) -> dict[str, Any]:
    """What listings say of the job."""
    table, target = training_request.table, training_request.target
    return {
        "name": training_request.name,
        "target": target if isinstance(target, str) else ", ".join(target),
        "algorithm": training_request.algorithm,
        "rows": table.rows,
        "columns": len(table.columns),
    }


def read_request(envelope: dict[str, Any]) -> TrainingRequest:
    """The request of the use case. Raises `InvalidRequest` and `InvalidData`, before anything is learnt."""
    check_name(envelope.get("name"))
    check_description(envelope["description"])
    check_tags(envelope["tags"])
    features, target = envelope.get("features"), envelope["target"]
    return TrainingRequest(
        table=_read_data(envelope),
        target=target if isinstance(target, str) else tuple(target),
        features=None if features is None else tuple(features),
        weight=envelope.get("weight"),
        task=envelope.get("task"),
        algorithm=envelope["algorithm"] or "cart",
        parameters=envelope.get("parameters") or {},
        positive_class=envelope.get("positive_class"),
        dissimilarity=envelope.get("dissimilarity"),
        missing_target=envelope["missing_target"] or "refuse",
        cross_validation=envelope.get("cross_validation"),
        name=envelope.get("name"),
        description=envelope["description"],
        tags=envelope["tags"],
        retain=envelope.get("retain"),
        summary_splits=envelope.get("summary_splits"),
    )


def _read_data(envelope: dict[str, Any]) -> Table:
    declared = read_declarations(envelope.get("kinds") or {})
    limits = Limits(settings().max_rows, settings().max_columns)
    table = read_table(envelope["data"], declared=declared, order=None, limits=limits)
    unknown = [name for name in declared if name not in table.names()]
    if unknown:
        faults = [Fault(pointer("schema", name), "The data have no column of this name.") for name in unknown]
        raise InvalidRequest("The schema names columns that the data do not have.", faults)
    return table
