"""Probes: live is about the process, ready about its work."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.store.models import ModelStore

if TYPE_CHECKING:
    import pytest
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect


def test_healthy(client: FlaskClient) -> None:
    """A service that works is live and ready."""
    assert client.get("/health/live").json == {"status": "live"}
    assert client.get("/health/ready").json == {"status": "ready"}


def test_not_ready(client: FlaskClient, problem_of: Expect, monkeypatch: pytest.MonkeyPatch) -> None:
    """What keeps the store from working makes the service not ready, and leaves it live."""
    monkeypatch.setattr(ModelStore, "check", lambda _: ["the database does not answer"])
    response = client.get("/health/ready")
    body = problem_of(response, 503)
    assert body["errors"] == [{"place": "", "message": "the database does not answer"}]
    assert "Retry-After" in response.headers
    assert client.get("/health/live").status_code == 200
