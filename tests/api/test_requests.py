"""Request ids: in every answer, and in the log."""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient


@pytest.mark.parametrize(("path", "status"), [("/health/live", 200), ("/nothing", 404), ("/models?x=1", 422)])
def test_id_is_echoed(client: FlaskClient, path: str, status: int) -> None:
    """The caller's id comes back, whatever became of the request."""
    response = client.get(path, headers={"X-Request-Id": "caller-7"})
    assert (response.status_code, response.headers["X-Request-Id"]) == (status, "caller-7")


def test_id_is_made(client: FlaskClient) -> None:
    """Without an id of the caller's, or with a harmful one, each request gets its own."""
    ids = [client.get("/health/live").headers["X-Request-Id"] for _ in range(2)]
    ids.append(client.get("/health/live", headers={"X-Request-Id": "a b<script>"}).headers["X-Request-Id"])
    assert len(set(ids)) == 3
    assert all(ids)
    assert "script" not in ids[2]


def test_request_is_logged(client: FlaskClient, caplog: pytest.LogCaptureFixture) -> None:
    """A line of the log has the method, path, status and duration of each request."""
    with caplog.at_level(logging.INFO, "service.api.requests"):
        client.get("/nothing")
    (record,) = [record for record in caplog.records if record.name == "service.api.requests"]
    facts = vars(record)
    assert (facts["method"], facts["path"], facts["status"]) == ("GET", "/nothing", 404)
    assert facts["seconds"] >= 0
