"""`/models/<reference>/stability` over HTTP, waited for and as a job."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from service.jobs.runner import Runner
from service.store.models import ModelStore

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from service.settings import Settings
    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

LATER = {"Prefer": "respond-async"}


@pytest.fixture
def body() -> dict[str, Any]:
    """A training of which the first split is clear and the second is not."""
    random = np.random.default_rng(2)
    first, second, third = random.random((3, 200))
    risk = np.where(first > 0.5, "high", np.where(second + random.normal(0, 0.3, 200) > 0.5, "middle", "low"))
    columns = {"first": first.tolist(), "second": second.tolist(), "third": third.tolist(), "risk": risk.tolist()}
    return {"data": {"columns": columns}, "target": "risk", "name": "risk", "parameters": {"max_depth": 2}}


def test_shares(client: FlaskClient, body: dict[str, Any]) -> None:
    """The clear split is chosen always and cut in a narrow interval about the truth; shares add up to 1."""
    client.post("/train", json=body)
    answer = client.get("/models/risk/stability?resamples=40&seed=3").json
    assert (answer["resamples"], answer["seed"], answer["model"]["name"]) == (40, 3, "risk")
    root = answer["nodes"][0]
    assert (root["feature"], root["same_feature"], root["draws"]) == ("first", 1, 40)
    assert root["features"] == [{"feature": "first", "share": 1.0}]
    edges = [root["threshold"][name] for name in ("min", "low", "median", "high", "max")]
    assert edges == sorted(edges)
    assert 0.45 < edges[0] <= edges[-1] < 0.55
    for node in answer["nodes"]:
        assert sum(feature["share"] for feature in node["features"]) + node["no_split"] == pytest.approx(1)
    assert client.get("/models/risk/stability?resamples=40&seed=3").json == answer


def test_as_a_job(client: FlaskClient, settings: Settings, body: dict[str, Any], make_app: MakeApp) -> None:
    """A job finds the same; who asks again while it runs gets the same job, and afterwards its answer."""
    client.post("/train", json=body)
    waited = client.get("/models/risk/stability?resamples=7").json
    path = "/models/risk/stability?resamples=7"
    first = client.get(path, headers=LATER)
    assert first.status_code == 202
    assert client.get(path, headers=LATER).json["id"] == first.json["id"]
    store = ModelStore.open(settings)
    Runner(store, settings, "w").run(first.json["id"])
    store.close()
    assert client.get(first.headers["Location"]).json["result"] == waited
    assert client.get(path, headers=LATER).json == waited
    assert make_app(job_cells=1).test_client().get("/models/risk/stability?resamples=8").status_code == 202


def test_problems(client: FlaskClient, body: dict[str, Any], problem_of: Expect, places_of: Expect) -> None:
    """No such model, a model that kept no data, and numbers that cannot be."""
    problem_of(client.get("/models/none/stability"), 404)
    client.post("/train", json=body | {"retain": "summary"})
    problem_of(client.get("/models/risk/stability"), 409)
    problem_of(client.get("/models/risk/stability", headers=LATER), 409)
    assert "?resamples" in places_of(client.get("/models/risk/stability?resamples=0"), 422)
    assert "?seed" in places_of(client.get("/models/risk/stability?seed=-1"), 422)


def test_a_leaf(client: FlaskClient) -> None:
    """A tree that is a single leaf has no split to be steady."""
    client.post("/train", json={"data": {"columns": {"a": [1, 2], "y": ["n", "n"]}}, "target": "y", "name": "leaf"})
    assert client.get("/models/leaf/stability?resamples=2").json["nodes"] == []
