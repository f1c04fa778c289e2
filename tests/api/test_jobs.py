"""`/jobs` over HTTP: accepted, shown, followed, cancelled; the work itself is done by the test."""

from __future__ import annotations

import json
from datetime import UTC, datetime, timedelta
from typing import TYPE_CHECKING, Any

import pytest

from service.api.jobs import estimate_seconds
from service.settings import Settings
from service.store.models import ModelStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask.testing import FlaskClient

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

LATER = {"Prefer": "respond-async"}


@pytest.fixture
def body(tennis: dict[str, list[Any]]) -> dict[str, Any]:
    """A training."""
    return {"data": {"columns": tennis}, "target": "play", "name": "golf"}


def test_accepted_and_done(client: FlaskClient, body: dict[str, Any], run: Callable[[str], None]) -> None:
    """A preferred job is answered by 202 with its address; when it is done, it leads to the model."""
    accepted = client.post("/train", json=body, headers=LATER)
    assert accepted.status_code == 202
    assert accepted.headers["Preference-Applied"] == "respond-async"
    job = accepted.json
    assert accepted.headers["Location"] == f"/jobs/{job['id']}" == job["links"]["self"]
    assert (job["state"], job["progress"], job["seconds_left"], job["model"]) == ("queued", 0, None, None)
    assert job["subject"] == {"name": "golf", "target": "play", "algorithm": "cart", "rows": 14, "columns": 4}
    assert client.get("/models").json["models"] == []
    run(job["id"])
    done = client.get(accepted.headers["Location"]).json
    assert (done["state"], done["progress"]) == ("succeeded", 1)
    assert client.get(done["links"]["model"]).json["id"] == done["model"] == client.get("/models/golf").json["id"]


@pytest.mark.parametrize(
    ("prefer", "status"),
    [
        ("respond-async", 202),
        ("return=minimal, Respond-Async; wait=10", 202),
        ("respond-asynchronously", 201),
        ("wait=5", 201),
    ],
)
def test_preferences(client: FlaskClient, body: dict[str, Any], prefer: str, status: int) -> None:
    """The preference is found among others, whatever its case, and nothing else is taken for it."""
    assert client.post("/train", json=body, headers={"Prefer": prefer}).status_code == status


def test_large_trainings_become_jobs(make_app: MakeApp, body: dict[str, Any]) -> None:
    """A table of more cells than the setting is not waited for, unasked."""
    assert make_app(job_cells=14 * 4).test_client().post("/train", json=body).status_code == 201
    answer = make_app(job_cells=14 * 4 - 1).test_client().post("/train", json=body)
    assert answer.status_code == 202
    assert "Preference-Applied" not in answer.headers


@pytest.mark.parametrize(
    "changes",
    [
        {"target": "nothing"},
        {"parameters": {"max_depth": -1}},
        {"data": {"columns": {"a": [1, "x"], "play": ["y", "n"]}}},
        {"name": "NOT A NAME"},
        {"positive_class": 7, "parameters": {"criterion": "variance"}},
    ],
)
def test_refused_at_once(client: FlaskClient, body: dict[str, Any], places_of: Expect, changes: dict[str, Any]) -> None:
    """What is wrong with a request is said before there is a job, with the places that the waiting caller gets."""
    waiting = places_of(client.post("/train", json=body | changes), 422)
    assert places_of(client.post("/train", json=body | changes, headers=LATER), 422) == waiting
    assert client.get("/jobs").json["jobs"] == []


def test_a_problem(client: FlaskClient, body: dict[str, Any], problem_of: Expect, run: Callable[[str], None]) -> None:
    """What only the learner can find ends the job with the problem that a waiting caller gets."""
    body["parameters"] = {"loss": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}
    expected = problem_of(client.post("/train", json=body), 422)
    job = client.post("/train", json=body, headers=LATER).json
    run(job["id"])
    ended = client.get(job["links"]["self"]).json
    assert (ended["state"], ended["problem"]) == ("failed", expected)


def test_listing(client: FlaskClient, body: dict[str, Any]) -> None:
    """Jobs are listed newest first, page by page, and by state."""
    ids = [client.post("/train", json=body, headers=LATER).json["id"] for _ in range(3)]
    client.delete(f"/jobs/{ids[0]}")
    first = client.get("/jobs?limit=2").json
    second = client.get(first["next"]).json
    assert [job["id"] for job in first["jobs"] + second["jobs"]] == ids[::-1]
    assert second["next"] is None
    assert [job["id"] for job in client.get("/jobs?state=cancelled").json["jobs"]] == ids[:1]
    assert client.get("/jobs?state=lost").status_code == 422


def test_cancelling(
    client: FlaskClient, body: dict[str, Any], problem_of: Expect, run: Callable[[str], None], settings: Settings
) -> None:
    """A waiting job is cancelled at once, a running one soon; one that has succeeded is a conflict."""
    waiting, running, done = (client.post("/train", json=body, headers=LATER).json["id"] for _ in range(3))
    assert client.delete(f"/jobs/{waiting}").json["state"] == "cancelled"
    run(waiting)
    assert client.get("/models").json["models"] == []
    store = ModelStore.open(settings)
    store.jobs.begin(running, "w", 3)
    store.close()
    answer = client.delete(f"/jobs/{running}")
    assert (answer.status_code, answer.json["state"], answer.json["cancelling"]) == (202, "running", True)
    run(done)
    problem_of(client.delete(f"/jobs/{done}"), 409)
    problem_of(client.delete(f"/jobs/{'0' * 32}"), 404)


def test_too_many(make_app: MakeApp, body: dict[str, Any], problem_of: Expect) -> None:
    """Beyond the bound the caller is told to come back later."""
    client = make_app(max_jobs=1).test_client()
    assert client.post("/train", json=body, headers=LATER).status_code == 202
    answer = client.post("/train", json=body, headers=LATER)
    problem_of(answer, 429)
    assert int(answer.headers["Retry-After"]) > 0


def test_events(client: FlaskClient, body: dict[str, Any], run: Callable[[str], None]) -> None:
    """The stream of a job begins with its state and ends with how it ended, as `GET` would tell it."""
    job = client.post("/train", json=body, headers=LATER).json
    answer = client.get(job["links"]["events"], buffered=False)
    assert answer.mimetype == "text/event-stream"
    stream = iter(answer.iter_encoded())
    first = next(stream).decode()
    assert first.startswith("event: queued\ndata: {")
    assert first.endswith("\n\n")
    run(job["id"])
    last = b"".join(stream).decode().rstrip("\n").rpartition("\n\n")[2]
    event, data = last.split("\n")
    assert event == "event: succeeded"
    assert json.loads(data.removeprefix("data: ")) == client.get(job["links"]["self"]).json
    answer.close()


def test_followers_have_seats(make_app: MakeApp, body: dict[str, Any], problem_of: Expect) -> None:
    """Half of the threads may follow jobs; the next follower is told so, until one leaves."""
    client = make_app(threads=2).test_client()
    events = client.post("/train", json=body, headers=LATER).json["links"]["events"]
    follower = client.get(events, buffered=False)
    problem_of(client.get(events), 429)
    follower.close()
    client.get(events, buffered=False).close()


def test_an_estimate(settings: Settings, client: FlaskClient, body: dict[str, Any]) -> None:
    """After a quarter of the work the rest takes three times what was spent; before the start nobody knows."""
    job_id = client.post("/train", json=body, headers=LATER).json["id"]
    store = ModelStore.open(settings)
    claim = store.jobs.begin(job_id, "w", 3)
    assert claim is not None
    assert estimate_seconds(store.jobs.find(job_id), datetime.now(UTC)) is None
    store.jobs.report(claim, 0.25)
    job = store.jobs.find(job_id)
    assert job.started is not None
    assert estimate_seconds(job, job.started + timedelta(seconds=10)) == 30
    store.close()
