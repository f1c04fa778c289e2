"""`/models/<reference>/verify` over HTTP, waited for and as a job, and what the audit log is told of it."""

from __future__ import annotations

import sqlite3
from typing import TYPE_CHECKING, Any

from service.jobs.runner import Runner
from service.store.models import ModelStore

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from service.settings import Settings
    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

LATER = {"Prefer": "respond-async"}


def run(settings: Settings, job: str) -> None:
    """Do the work of a job."""
    store = ModelStore.open(settings)
    Runner(store, settings, "w").run(job)
    store.close()


def test_retained_and_posted(client: FlaskClient, model: dict[str, Any], tennis: dict[str, list[Any]]) -> None:
    """From the data that were kept, and from the same data in another form, the tree is the same."""
    kept = client.post("/models/golf/verify", json={}).json
    assert (kept["verified"], kept["data"]["source"], kept["model"]["id"]) == (True, "retained", model["id"])
    assert kept["versions"]["now"] == kept["versions"]["trained"] == model["provenance"]["versions"]
    records = [dict(zip(tennis, row, strict=True)) for row in zip(*tennis.values(), strict=True)]
    posted = client.post("/models/golf/verify", json={"data": {"records": records}}).json
    assert (posted["verified"], posted["data"]["source"]) == (True, "posted")
    assert posted["data"]["sha256"] == model["training"]["data_sha256"]
    log = client.get("/audit-log?action=verify").json["entries"]
    assert [(e["model"], e["details"]["verified"], e["details"]["source"]) for e in log] == [
        (model["id"], True, "posted"),
        (model["id"], True, "retained"),
    ]


def test_other_data(client: FlaskClient, model: dict[str, Any], tennis: dict[str, list[Any]]) -> None:
    """Other data make another tree: the nodes that differ are shown, and the log knows."""
    tennis["play"][0] = "yes"
    found = client.post("/models/golf/verify", json={"data": {"columns": tennis}}).json
    assert (found["verified"], found["identical"], found["data"]["matches"]) == (False, False, False)
    root = found["differences"][0]
    assert root["stored"]["counts"] == [5, 9]
    assert root["retrained"]["counts"] == [4, 10]
    assert client.get("/audit-log?action=verify").json["entries"][0]["details"]["identical"] is False


def test_as_a_job(
    client: FlaskClient, model: dict[str, Any], tennis: dict[str, list[Any]], settings: Settings, make_app: MakeApp
) -> None:
    """A job finds what a caller who waits does; the log is told at its end, once."""
    for body in ({}, {"data": {"columns": tennis}}):
        answer = client.post("/models/golf/verify", json=body, headers=LATER)
        assert answer.status_code == 202
        job = answer.json["id"]
        run(settings, job)
        ended = client.get(f"/jobs/{job}").json
        assert ended["state"] == "succeeded", ended
        assert ended["result"] == client.post("/models/golf/verify", json=body).json
        told = [entry["details"].get("job") for entry in client.get("/audit-log?action=verify").json["entries"]]
        assert told.count(job) == 1
    large = make_app(job_cells=1).test_client().post("/models/golf/verify", json={})
    assert (large.status_code, large.json["kind"]) == (202, "verify")
    assert client.get("/audit-log/verify").json["intact"]


def test_a_forged_record(client: FlaskClient, model: dict[str, Any], settings: Settings) -> None:
    """Figures that someone wrote into the database are not those that the log vouches for."""
    with sqlite3.connect(settings.models_directory() / "treewright.db") as connection:
        connection.execute('UPDATE models SET body = replace(body, \'"algorithm": "cart"\', \'"algorithm": "c45"\')')
    connection.close()
    found = client.post("/models/golf/verify", json={}).json
    assert (found["identical"], found["record"]["matches"], found["verified"]) == (True, False, False)


def test_forged_data(client: FlaskClient, settings: Settings) -> None:
    """Other data in the place of what was kept, of which the same tree grows, is not what the log vouches for."""
    ids = [
        client.post("/train", json={"data": {"columns": {"x": [1, 2], "k": [k, k], "y": ["a", "b"]}}, "target": "y"})
        for k in (3, 4)
    ]
    mine, other = (answer.json["id"] for answer in ids)
    kept = {path.parent.name: path for path in settings.models_directory().rglob("data.joblib")}
    kept[mine].write_bytes(kept[other].read_bytes())
    with sqlite3.connect(settings.models_directory() / "treewright.db") as connection:
        forge = "UPDATE models SET data_sha256 = (SELECT data_sha256 FROM models WHERE id = ?) WHERE id = ?"
        connection.execute(forge, (other, mine))
    connection.close()
    found = client.post(f"/models/{mine}/verify", json={}).json
    assert (found["identical"], found["record"]["matches"], found["verified"]) == (True, False, False)


def test_problems(
    client: FlaskClient, model: dict[str, Any], tennis: dict[str, list[Any]], problem_of: Expect, places_of: Expect
) -> None:
    """No such model, nothing kept, data that cannot be what it was trained on."""
    problem_of(client.post("/models/none/verify", json={}), 404)
    body = {"data": {"columns": tennis}, "target": "play", "name": "bare", "retain": "none"}
    client.post("/train", json=body)
    for headers in ({}, LATER):
        assert "post" in problem_of(client.post("/models/bare/verify", json={}, headers=headers), 409)["detail"]
    assert client.post("/models/bare/verify", json={"data": {"columns": tennis}}).json["verified"]
    wrong = tennis | {"temperature": ["warm", *tennis["temperature"][1:]]}
    assert "/data/columns/temperature/0" in places_of(
        client.post("/models/golf/verify", json={"data": {"columns": wrong}}), 422
    )
    del tennis["windy"]
    answer = client.post("/models/golf/verify", json={"data": {"columns": tennis}}, headers=LATER)
    assert "/data/columns/windy" in places_of(answer, 422)
    assert "/date" in places_of(client.post("/models/golf/verify", json={"date": 1}), 422)
