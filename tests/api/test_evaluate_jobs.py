"""Evaluation and permutation as jobs: what a caller who waits would have got, and refused as he would have been."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service.jobs.runner import Runner
from service.store.models import ModelStore
from tests.oracle.contract import read_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask.testing import FlaskClient

    from service.settings import Settings
    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

LATER = {"Prefer": "respond-async"}
ROUTES = ("evaluate", "importance")
TABLES = [
    ("rpart_iris.csv", "Species", {}),
    ("rpart_iris.csv", "Petal.Width", {}),
    ("rpart_iris.csv", ["Petal.Width", "Petal.Length"], {}),
    ("rpart_kyphosis.csv", "Kyphosis", {"missing": "surrogate"}),
]


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.parametrize(("file", "target", "parameters"), TABLES)
def test_the_same_body(
    client: FlaskClient,
    run: Callable[[str], None],
    route: str,
    file: str,
    target: str | list[str],
    parameters: dict[str, Any],
) -> None:
    """The job's result is the body of the answer that is waited for, to the last digit, warnings and nulls included."""
    columns = read_columns(file)
    training = {"data": {"columns": columns}, "target": target, "name": "m", "parameters": parameters}
    assert client.post("/train", json=training).status_code == 201
    posted = {name: [*cells[:40], None, cells[0]] for name, cells in columns.items()}
    posted |= {"w": [1.5] * 41 + [0], "further": ["x"] * 42}
    request = {"data": {"columns": posted}, "weight": "w", "missing_target": "drop"}
    waited = client.post(f"/models/m/{route}", json=request)
    assert waited.status_code == 200, waited.json
    assert waited.json["warnings"]
    accepted = client.post(f"/models/m/{route}", json=request, headers=LATER)
    assert (accepted.status_code, accepted.headers["Preference-Applied"]) == (202, "respond-async")
    model = waited.json["model"]["id"]
    assert accepted.json["subject"] == {"model": model, "rows": 42, "columns": len(posted)}
    run(accepted.json["id"])
    ended = client.get(accepted.headers["Location"]).json
    assert (ended["state"], ended["kind"], ended["model"]) == ("succeeded", route, None)
    assert ended["result"] == waited.json


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.usefixtures("model")
def test_refused_at_once(client: FlaskClient, tennis: dict[str, list[Any]], places_of: Expect, route: str) -> None:
    """Faults are said before there is a job, in each form of a table where the caller who waits would be told."""
    broken = {**tennis, "play": [*tennis["play"][:13], None], "temperature": [*tennis["temperature"][:13], 1]}
    rows = [list(row) for row in zip(*broken.values(), strict=True)]
    lacking = {name: cells for name, cells in tennis.items() if name != "outlook"}
    for body in (
        {"data": {"columns": broken}},
        {"data": {"header": list(broken), "rows": rows}},
        {"data": {"rows": rows}},
        {"data": {"records": [dict(zip(broken, row, strict=True)) for row in rows]}},
        {"data": {"columns": lacking}},
        {"data": {"columns": tennis}, "target": "nothing"},
        {"data": {"columns": tennis}, "weight": "windy"},
    ):
        waiting = places_of(client.post(f"/models/golf/{route}", json=body), 422)
        assert places_of(client.post(f"/models/golf/{route}", json=body, headers=LATER), 422) == waiting
    assert client.get("/jobs").json["jobs"] == []


@pytest.mark.usefixtures("model")
def test_problems_of_the_work(
    client: FlaskClient, tennis: dict[str, list[Any]], problem_of: Expect, run: Callable[[str], None]
) -> None:
    """What only the work can find, and a model deleted meanwhile, end the job with the problem of one who waits."""
    body = {"data": {"columns": tennis}, "metric": "beauty"}
    expected = problem_of(client.post("/models/golf/importance", json=body), 422)
    first, second = (client.post("/models/golf/importance", json=body, headers=LATER).json for _ in range(2))
    run(first["id"])
    ended = client.get(first["links"]["self"]).json
    assert (ended["state"], ended["problem"]) == ("failed", expected)
    assert client.delete("/models/golf").status_code == 204
    run(second["id"])
    ended = client.get(second["links"]["self"]).json
    assert (ended["state"], ended["problem"]["status"]) == ("failed", 404)


@pytest.mark.usefixtures("model")
def test_large_tables_become_jobs(make_app: MakeApp, tennis: dict[str, list[Any]]) -> None:
    """More cells than the setting, times the repeats of a permutation, are not waited for, unasked."""
    body = {"data": {"columns": tennis}}
    cells = 14 * 4
    for setting, status in ((cells, 200), (cells - 1, 202)):
        client = make_app(job_cells=setting).test_client()
        assert client.post("/models/golf/evaluate", json=body).status_code == status
    for setting, status in ((cells * 3, 200), (cells * 3 - 1, 202)):
        client = make_app(job_cells=setting).test_client()
        assert client.post("/models/golf/importance", json=body | {"repeats": 3}).status_code == status


@pytest.mark.parametrize("route", ROUTES)
@pytest.mark.usefixtures("model")
def test_cancelled(
    client: FlaskClient,
    settings: Settings,
    tennis: dict[str, list[Any]],
    route: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A job that is cancelled while it runs ends as cancelled, without a result."""
    job = client.post(f"/models/golf/{route}", json={"data": {"columns": tennis}}, headers=LATER).json
    store = ModelStore.open(settings)
    begun = store.jobs.begin

    def begin_and_cancel(job_id: str, worker: str, most_lost: int) -> Any:  # noqa: ANN401 - a Claim
        claim = begun(job_id, worker, most_lost)
        store.jobs.cancel(job_id)
        return claim

    monkeypatch.setattr(store.jobs, "begin", begin_and_cancel)
    Runner(store, settings, "w").run(job["id"])
    store.close()
    ended = client.get(job["links"]["self"]).json
    assert (ended["state"], ended["result"]) == ("cancelled", None)
