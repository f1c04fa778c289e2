"""`/models/<name>/aliases` over HTTP, and the conditions of requests that change something."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect

CHAMPION = "/models/golf/aliases/champion"


@pytest.fixture
def client(client: FlaskClient, tennis: dict[str, list[Any]]) -> FlaskClient:
    """A client of a service with three versions of golf."""
    for depth in (1, 2, 3):
        body = {"data": {"columns": tennis}, "target": "play", "name": "golf", "parameters": {"max_depth": depth}}
        assert client.post("/train", json=body).status_code == 201
    return client


def test_moved_used_and_rolled_back(client: FlaskClient) -> None:
    """An alias is put, serves every request that a model does, is listed, rolled back and deleted."""
    put = client.put(CHAMPION, json={"version": 1})
    assert (put.status_code, put.json["version"], put.json["previous"]) == (200, 1, None)
    client.put(CHAMPION, json={"version": 3})
    row = {"outlook": "rain", "temperature": 70, "windy": False}
    answer = client.post("/models/golf@champion/predict", json={"data": {"records": [row]}})
    assert answer.json["model"]["version"] == 3
    assert client.get("/models/golf@champion/tree").status_code == 200
    listed = client.get("/models/golf/aliases").json["aliases"]
    assert [(alias["alias"], alias["version"], alias["previous"]) for alias in listed] == [("champion", 3, 1)]
    assert client.post(f"{CHAMPION}/rollback").json["version"] == 1
    assert client.get(listed[0]["links"]["model"]).json["version"] == 1
    assert client.delete(CHAMPION).status_code == 204
    assert client.get("/models/golf@champion").status_code == 404


def test_problems(client: FlaskClient, problem_of: Expect, places_of: Expect) -> None:
    """What is not there is a 404, a champion that is deleted a 409, a wrong version or alias a 422."""
    problem_of(client.put(CHAMPION, json={"version": 9}), 404)
    problem_of(client.put("/models/tennis/aliases/champion", json={"version": 1}), 404)
    problem_of(client.get("/models/tennis/aliases"), 404)
    assert "/version" in places_of(client.put(CHAMPION, json={"version": "1"}), 422)
    assert "/version" in places_of(client.put(CHAMPION, json={}), 422)
    assert "/alias" in places_of(client.put("/models/golf/aliases/1", json={"version": 1}), 422)
    client.put(CHAMPION, json={"version": 1})
    problem_of(client.post(f"{CHAMPION}/rollback"), 409)
    problem_of(client.delete("/models/golf@1"), 409)


def test_conditions_on_aliases(client: FlaskClient, problem_of: Expect) -> None:
    """Only who has seen the alias as it is may move it; `If-None-Match: *` only makes it."""
    made = client.put(CHAMPION, json={"version": 1}, headers={"If-None-Match": "*"})
    assert made.status_code == 200
    problem_of(client.put(CHAMPION, json={"version": 2}, headers={"If-None-Match": "*"}), 412)
    seen = made.headers["ETag"]
    assert client.get(CHAMPION).headers["ETag"] == seen
    moved = client.put(CHAMPION, json={"version": 2}, headers={"If-Match": seen})
    assert moved.status_code == 200
    for method, path, body in (
        ("PUT", CHAMPION, {"version": 3}),
        ("POST", f"{CHAMPION}/rollback", None),
        ("DELETE", CHAMPION, None),
    ):
        problem_of(client.open(path, method=method, json=body, headers={"If-Match": seen}), 412)
    problem_of(client.put("/models/golf/aliases/beta", json={"version": 1}, headers={"If-Match": "*"}), 412)
    assert client.delete(CHAMPION, headers={"If-Match": moved.headers["ETag"]}).status_code == 204


def test_conditions_on_models(client: FlaskClient, problem_of: Expect) -> None:
    """The tag of a record changes with it, spares the body to who has it, and keeps others from undoing a change."""
    seen = client.get("/models/golf@1").headers["ETag"]
    assert client.get("/models/golf@1", headers={"If-None-Match": seen}).status_code == 304
    changed = client.patch("/models/golf@1", json={"description": "first"}, headers={"If-Match": seen})
    assert changed.status_code == 200
    assert changed.headers["ETag"] != seen
    assert client.get("/models/golf@1", headers={"If-None-Match": seen}).status_code == 200
    problem_of(client.patch("/models/golf@1", json={"description": "second"}, headers={"If-Match": seen}), 412)
    problem_of(client.delete("/models/golf@1", headers={"If-Match": seen}), 412)
    assert client.get("/models/golf@1").json["description"] == "first"
    assert client.delete("/models/golf@1", headers={"If-Match": changed.headers["ETag"]}).status_code == 204


def test_listed_by_time(client: FlaskClient, places_of: Expect) -> None:
    """Models made at a time or later, and before another."""
    newest, middle, oldest = client.get("/models").json["models"]
    assert [m["id"] for m in client.get(f"/models?since={middle['created']}").json["models"]] == [
        newest["id"],
        middle["id"],
    ]
    until = client.get(f"/models?until={middle['created']}").json["models"]
    assert [m["id"] for m in until] == [oldest["id"]]
    assert client.get(f"/models?since={middle['created']}&until={newest['created']}").json["models"] == [middle]
    assert "?since" in places_of(client.get("/models?since=yesterday"), 422)
