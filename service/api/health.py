"""`/health`: whether the process lives, and whether it can do its work."""

from __future__ import annotations

from flask import Response
from marshmallow import Schema, fields

from service.api.blueprint import Resource
from service.api.errors import problem
from service.api.json import answer
from service.api.rehearsal import rehearse
from service.api.state import store
from service.core.errors import Fault

blueprint = Resource("health", __name__, description="Probes")


class HealthSchema(Schema):
    """How the service is."""

    status = fields.String(required=True, metadata={"enum": ["live", "ready"]})


@blueprint.route("/health/live", methods=["GET"])
@blueprint.response(200, HealthSchema)
@blueprint.problems()
def get_liveness() -> Response:
    """Answer, which is all that liveness means."""
    return answer({"status": "live"})


@blueprint.route("/health/ready", methods=["GET"])
@blueprint.response(200, HealthSchema)
@blueprint.problems(503)
def get_readiness() -> Response:
    """Tell whether requests can be served; the problem lists what is in the way.

    A process has to predict known rows rightly before it is ready.
    """
    faults = [Fault("", message) for message in store().check()]
    if not rehearse():
        faults.append(Fault("", "a prediction of which the answer is known came out wrong"))
    if faults:
        return problem("urn:treewright:not-ready", "Not ready", 503, "The service cannot work now.", faults)
    return answer({"status": "ready"})
