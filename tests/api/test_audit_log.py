"""`/audit-log` over HTTP: what was done, page by page, and whether the account is whole."""

from __future__ import annotations

import hashlib
import json
import sqlite3
from typing import TYPE_CHECKING, Any

from service.jobs.runner import Runner
from service.store.models import ModelStore

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from service.settings import Settings
    from tests.api.conftest import Expect

REQUEST = {"X-Request-Id": "mine-1"}


def test_a_life(client: FlaskClient, model: dict[str, Any]) -> None:
    """Training, change, alias, pruning and deletion over HTTP are told with the ids of their requests."""
    client.patch("/models/golf", json={"tags": {"a": "b"}}, headers=REQUEST)
    client.put("/models/golf/aliases/champion", json={"version": 1})
    client.post("/models/golf/prune", json={"leaves": 1})
    client.post("/models/golf/aliases/champion/rollback")  # a 409
    client.delete("/models/golf@2")
    client.delete("/models/golf/aliases/champion")
    listed = client.get("/audit-log?model=golf").json
    told = [(entry["action"], entry["version"], entry["alias"]) for entry in listed["entries"]]
    assert told == [
        ("delete_alias", 1, "champion"),
        ("delete", 2, None),
        ("prune", 2, None),
        ("move_alias", 1, "champion"),
        ("change", 1, None),
        ("train", 1, None),
    ]
    entries = {entry["action"]: entry for entry in listed["entries"]}
    assert entries["change"]["request"] == "mine-1"
    assert entries["train"]["actor"] is None
    assert entries["train"]["model"] == entries["prune"]["details"]["parent"] == model["id"]
    assert entries["train"]["details"]["data_sha256"] == model["training"]["data_sha256"]
    assert client.get("/audit-log/verify").json["intact"] is True


def test_recomputed_from_the_answer(client: FlaskClient, model: dict[str, Any]) -> None:
    """What is listed is enough to work out every hash, page by page."""
    for version in range(2):
        client.put(f"/models/golf/aliases/a{version}", json={"version": 1})
    url, entries = "/audit-log?limit=1", []
    while url:
        page = client.get(url).json
        entries += page["entries"]
        url = page["next"]
    assert [entry["number"] for entry in entries] == [3, 2, 1]
    previous = "0" * 64
    for entry in reversed(entries):
        own = entry.pop("sha256")
        assert entry["previous"] == previous
        text = json.dumps(entry, sort_keys=True, separators=(",", ":"))
        previous = hashlib.sha256(text.encode()).hexdigest()
        assert previous == own
    assert client.get("/audit-log/verify").json["last"] == {"number": 3, "sha256": previous}


def test_the_record_recomputed(client: FlaskClient, model: dict[str, Any]) -> None:
    """The hash of a record is that of what `GET` shows of its making, whatever is said of the model later."""
    client.patch("/models/golf", json={"tags": {"stage": "old"}, "description": "a game"})
    record = client.get("/models/golf").json
    later = {"id", "name", "version", "created", "description", "tags", "retention", "links"}
    text = json.dumps({k: v for k, v in record.items() if k not in later}, sort_keys=True, separators=(",", ":"))
    made = client.get(f"/audit-log?model={model['id']}&action=train").json["entries"][0]
    assert made["details"]["record_sha256"] == hashlib.sha256(text.encode()).hexdigest()


def test_a_job_is_told(client: FlaskClient, settings: Settings, tennis: dict[str, list[Any]]) -> None:
    """A training that was a job is one entry, which names the job."""
    body = {"data": {"columns": tennis}, "target": "play"}
    job = client.post("/train", json=body, headers={"Prefer": "respond-async"}).json["id"]
    assert client.get("/audit-log").json["entries"] == []
    store = ModelStore.open(settings)
    Runner(store, settings, "w").run(job)
    store.close()
    (entry,) = client.get("/audit-log").json["entries"]
    assert (entry["action"], entry["details"]["job"], entry["model"]) == (
        "train",
        job,
        client.get(f"/jobs/{job}").json["model"],
    )


def test_a_change_by_hand(client: FlaskClient, model: dict[str, Any], settings: Settings) -> None:
    """Someone who changes the database is found out, and so is who cuts off the end, by what was kept."""
    client.delete("/models/golf")
    kept = client.get("/audit-log/verify").json["last"]
    path = f"/audit-log/verify?number={kept['number']}&sha256={kept['sha256']}"
    assert client.get(path).json == {"intact": True, "entries": 2, "last": kept, "broken": None}
    with sqlite3.connect(settings.models_directory() / "treewright.db") as connection:
        connection.execute("UPDATE audit_log SET action = 'train' WHERE number = 2")
    connection.close()
    found = client.get("/audit-log/verify").json
    assert (found["intact"], found["entries"], found["broken"]["number"]) == (False, 1, 2)
    assert client.get(path.replace("number=2", "number=1")).json["broken"]["number"] == 1


def test_problems(client: FlaskClient, places_of: Expect) -> None:
    """Filters that cannot be, and half of what was kept."""
    assert "?action" in places_of(client.get("/audit-log?action=steal"), 422)
    assert "?since" in places_of(client.get("/audit-log?since=now"), 422)
    assert "?number" in places_of(client.get(f"/audit-log/verify?sha256={'0' * 64}"), 422)
    assert "?sha256" in places_of(client.get("/audit-log/verify?number=1"), 422)
    assert "?sha256" in places_of(client.get("/audit-log/verify?number=1&sha256=x"), 422)
    assert "?number" in places_of(client.get(f"/audit-log/verify?number=0&sha256={'0' * 64}"), 422)
    assert "/cursor" in places_of(client.get("/audit-log?cursor=x"), 422)
    assert client.get("/audit-log?model=../x").json == {"entries": [], "next": None}
