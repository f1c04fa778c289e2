"""Probes: live is about the process, ready about its work."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import pytest

from service.api import rehearsal
from service.store.models import ModelStore

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from service.settings import Settings
    from tests.api.conftest import Expect
    from tests.conftest import MakeApp


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


def fail(*_: object) -> NoReturn:
    """Stands for a learner that is broken."""
    raise RuntimeError("secret")


@pytest.mark.parametrize(("name", "broken"), [("learn", fail), ("_ANSWERS", ["y"] * 4)])
def test_ready_after_a_known_prediction(
    client: FlaskClient, problem_of: Expect, monkeypatch: pytest.MonkeyPatch, name: str, broken: object
) -> None:
    """A process that cannot learn and predict known rows, or gets them wrong, is not ready and says no more (S17)."""
    rehearsal.rehearse.cache_clear()
    monkeypatch.setattr(rehearsal, name, broken)
    response = client.get("/health/ready")
    rehearsal.rehearse.cache_clear()
    assert "known came out wrong" in problem_of(response, 503)["errors"][0]["message"]
    assert "secret" not in response.get_data(as_text=True)


def test_a_model_that_cannot_be_loaded(
    client: FlaskClient, make_app: MakeApp, settings: Settings, tennis: dict[str, list[Any]], problem_of: Expect
) -> None:
    """Readiness is a 503 that names the model until it is deleted; the others serve, and it alone does not (S2)."""
    body = {"data": {"columns": tennis}, "target": "play"}
    for name in ("whole", "broken"):
        assert client.post("/train", json=body | {"name": name}).status_code == 201
    broken = client.get("/models/broken").json["id"]
    path = next(settings.models_directory().glob(f"*/{broken}/model.joblib"))
    path.write_bytes(path.read_bytes()[:100])
    client = make_app().test_client()
    (fault,) = problem_of(client.get("/health/ready"), 503)["errors"]
    assert f"broken@1 ({broken})" in fault["message"]
    assert client.get("/health/live").status_code == 200
    rows = {"data": {"columns": tennis}}
    assert client.post("/models/whole/predict", json=rows).status_code == 200
    assert client.post("/train", json=body | {"name": "another"}).status_code == 201
    assert client.get("/models/broken").status_code == 200
    for route in ("predict", "evaluate"):
        assert broken in problem_of(client.post(f"/models/broken/{route}", json=rows), 503)["detail"]
    assert client.delete("/models/broken").status_code == 204
    assert client.get("/health/ready").status_code == 200
