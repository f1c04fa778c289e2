"""`/splits/score`: every measure of a split that the caller describes, with no model."""

from __future__ import annotations

from typing import Any

from flask import Response

from service import auditing
from service.api.blueprint import Resource
from service.api.fields import Anything, ClassLabel, Envelope
from service.api.json import answer
from service.core.errors import Fault, pointer
from service.errors import InvalidRequest
from service.targets import LEAST_WEIGHT

blueprint = Resource("score", __name__, description="Scores of any split")


class BranchesSchema(Envelope):
    """A split, by the class weights of its branches."""

    branches = Anything(
        {
            "type": "array",
            "minItems": 1,
            "items": {"type": "object", "additionalProperties": {"type": "number", "minimum": 0}},
            "description": "For each branch the weight of each class; a class that is not named has none",
            "example": [{"T": 2, "F": 1}, {"T": 1}],
        },
        required=True,
    )
    positive_class = ClassLabel("The class that counts as positive, of two", allow_none=True)


SCORES = {
    "type": "object",
    "description": "The split's score under every measure; null where it is undefined",
    "additionalProperties": {"type": ["number", "null"]},
}


@blueprint.route("/splits/score", methods=["POST"])
@blueprint.arguments(BranchesSchema)
@blueprint.response(200, SCORES)
@blueprint.problems(400, 413, 415, 422)
def score_split(envelope: dict[str, Any]) -> Response:
    """Score a split by every measure; no model is needed."""
    check_branches(envelope["branches"])
    return answer(auditing.score_branches(envelope["branches"], envelope.get("positive_class")))


def check_branches(branches: object) -> None:
    """Raise `InvalidRequest` with each place where the branches are not lists of class weights."""
    if not isinstance(branches, list) or not branches:
        raise InvalidRequest("There are no branches.", Fault("/branches", "Send a list of at least one branch."))
    faults = []
    for index, branch in enumerate(branches):
        if not isinstance(branch, dict):
            faults.append(Fault(pointer("branches", index), "A branch is an object of classes and their weights."))
            continue
        faults += [
            Fault(pointer("branches", index, label), f"A weight is 0, or a number from {LEAST_WEIGHT:g} on.")
            for label, weight in branch.items()
            if not _is_weight(weight)
        ]
    if faults:
        raise InvalidRequest("The branches cannot be scored.", faults)


def _is_weight(weight: object) -> bool:
    """As in training: what is less than that is lost where weights are multiplied."""
    return isinstance(weight, int | float) and type(weight) is not bool and (weight == 0 or weight >= LEAST_WEIGHT)
