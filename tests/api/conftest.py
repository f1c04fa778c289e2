"""What the tests of HTTP share: reading problems, and one trained model."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import pytest

from service.jobs.runner import Runner
from service.store.models import ModelStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask.testing import FlaskClient
    from werkzeug.test import TestResponse

    from service.settings import Settings


class Expect(Protocol):
    """Asserts that a response is a problem of some status."""

    def __call__(self, response: TestResponse, status: int) -> dict[str, Any]:
        """The problem."""


@pytest.fixture
def problem_of() -> Expect:
    """Asserts that a response is a whole RFC 9457 problem with a status, and gives it."""

    def check(response: TestResponse, status: int) -> dict[str, Any]:
        assert (response.status_code, response.content_type) == (status, "application/problem+json")
        body: dict[str, Any] = response.json
        assert {"type", "title", "status", "detail"} <= set(body) <= {"type", "title", "status", "detail", "errors"}
        assert body["status"] == status
        assert body["detail"]
        assert all(set(fault) == {"place", "message"} and fault["message"] for fault in body.get("errors", []))
        return body

    return check


@pytest.fixture
def places_of(problem_of: Expect) -> Expect:
    """Asserts that a response is a problem with a status, and gives its faults by place."""

    def check(response: TestResponse, status: int) -> dict[str, Any]:
        return {fault["place"]: fault["message"] for fault in problem_of(response, status)["errors"]}

    return check


@pytest.fixture
def model(client: FlaskClient, tennis: dict[str, list[Any]]) -> dict[str, Any]:
    """The record of a model of the golf data, named golf."""
    response = client.post("/train", json={"data": {"columns": tennis}, "target": "play", "name": "golf"})
    assert response.status_code == 201, response.json
    record: dict[str, Any] = response.json
    return record


@pytest.fixture
def run(settings: Settings) -> Callable[[str], None]:
    """Does what a worker would."""

    def work(job_id: str) -> None:
        store = ModelStore.open(settings)
        Runner(store, settings, "w").run(job_id)
        store.close()

    return work
