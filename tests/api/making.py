"""Requests for trainings, and the records of what they made."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from flask.testing import FlaskClient

Columns = dict[str, list[Any]]


def request_of(columns: Columns, target: str = "play", **more: object) -> dict[str, Any]:
    """The body of a request."""
    return {"data": {"columns": columns}, "target": target, **more}


def train(client: FlaskClient, columns: Columns, target: str = "play", **more: object) -> dict[str, Any]:
    """The record of a new model."""
    response = client.post("/train", json=request_of(columns, target, **more))
    assert response.status_code == 201, response.json
    record: dict[str, Any] = response.json
    return record
