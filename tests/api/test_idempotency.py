"""`Idempotency-Key` on `/train`: sent again, answered again, done once."""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, Any

import pytest

from service import training

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

KEY = {"Idempotency-Key": '"8e03978e-40d5-43dd-bc93-6894a57f9324"'}


@pytest.fixture
def body(tennis: dict[str, list[Any]]) -> dict[str, Any]:
    """A training."""
    return {"data": {"columns": tennis}, "target": "play", "name": "golf"}


def test_answered_again(make_app: MakeApp, body: dict[str, Any]) -> None:
    """The same request under its key gets the same answer, to the byte, from another process too; one model is made."""
    first = make_app().test_client().post("/train", json=body, headers=KEY)
    assert first.status_code == 201
    client = make_app().test_client()
    again = client.post("/train", json=body, headers=KEY)
    assert (again.status_code, again.data) == (201, first.data)
    assert again.headers["Location"] == first.headers["Location"]
    assert (again.headers.get("Idempotent-Replayed"), first.headers.get("Idempotent-Replayed")) == ("true", None)
    client.patch("/models/golf", json={"description": "changed"})
    assert client.post("/train", json=body, headers=KEY).data == first.data
    assert len(client.get("/models").json["models"]) == 1


def test_jobs_too(client: FlaskClient, body: dict[str, Any]) -> None:
    """A request that has become a job leads to the same job."""
    headers = {**KEY, "Prefer": "respond-async"}
    first = client.post("/train", json=body, headers=headers)
    again = client.post("/train", json=body, headers=headers)
    assert (again.status_code, again.data) == (202, first.data)
    assert again.headers["Preference-Applied"] == "respond-async"
    assert len(client.get("/jobs").json["jobs"]) == 1


def test_another_body(client: FlaskClient, body: dict[str, Any], places_of: Expect) -> None:
    """The key with another body is a 422, and with another key it is another training."""
    client.post("/train", json=body, headers=KEY)
    assert "Idempotency-Key" in places_of(client.post("/train", json=body | {"name": "other"}, headers=KEY), 422)
    assert client.post("/train", json=body, headers={"Idempotency-Key": "other"}).json["version"] == 2


def test_a_mended_request(client: FlaskClient, body: dict[str, Any], problem_of: Expect) -> None:
    """An error keeps nothing: the request can be mended and sent under the same key."""
    problem_of(client.post("/train", json=body | {"target": "nothing"}, headers=KEY), 422)
    assert client.post("/train", json=body, headers=KEY).status_code == 201


def test_at_the_same_time(
    client: FlaskClient, make_app: MakeApp, body: dict[str, Any], problem_of: Expect, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the first is at work the second is told so by a 409; afterwards it gets the answer."""
    begun, go_on = threading.Event(), threading.Event()
    train = training.train

    def wait_and_train(*values: Any, **named: Any) -> Any:  # noqa: ANN401 - as it is called
        begun.set()
        assert go_on.wait(30)
        return train(*values, **named)

    monkeypatch.setattr(training, "train", wait_and_train)
    other = make_app().test_client()
    answers: list[Any] = []
    thread = threading.Thread(target=lambda: answers.append(other.post("/train", json=body, headers=KEY)))
    thread.start()
    assert begun.wait(30)
    problem_of(client.post("/train", json=body, headers=KEY), 409)
    go_on.set()
    thread.join()
    assert client.post("/train", json=body, headers=KEY).data == answers[0].data


@pytest.mark.parametrize("key", ["", '""', "é", "a" * 256, "a\tb"])
def test_what_cannot_be_a_key(client: FlaskClient, body: dict[str, Any], places_of: Expect, key: str) -> None:
    """Nothing, too much, and what is not ASCII are refused."""
    assert "Idempotency-Key" in places_of(client.post("/train", json=body, headers={"Idempotency-Key": key}), 422)
