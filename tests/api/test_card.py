"""`/models/<reference>/card` as JSON, as Markdown and as a page."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect


@pytest.mark.parametrize(
    ("accept", "kind"),
    [
        (None, "application/json"),
        ("*/*", "application/json"),
        ("application/json", "application/json"),
        ("image/png", "application/json"),
        ("text/markdown", "text/markdown; charset=utf-8"),
        ("text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8", "text/html; charset=utf-8"),
        ("text/html;q=0.5, text/markdown;q=0.9", "text/markdown; charset=utf-8"),
    ],
)
def test_forms(client: FlaskClient, model: dict[str, Any], accept: str | None, kind: str) -> None:
    """The caller's preference decides the form; without one that is known it is JSON."""
    answer = client.get("/models/golf/card", headers={} if accept is None else {"Accept": accept})
    assert (answer.status_code, answer.content_type) == (200, kind)
    assert "Accept" in answer.headers["Vary"]
    if kind == "application/json":
        assert answer.json["model"]["id"] == model["id"]
    else:
        assert "golf, version 1" in answer.text
        assert answer.headers["Content-Security-Policy"].startswith("default-src 'none'")


def test_a_deleted_model(client: FlaskClient, model: dict[str, Any], problem_of: Expect) -> None:
    """What is not there has no card."""
    assert client.get(model["links"]["card"]).status_code == 200
    client.delete("/models/golf")
    problem_of(client.get("/models/golf/card"), 404)
