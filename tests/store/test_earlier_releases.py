"""An installation that an earlier state left behind is taken over: models load, answer and are audited as ever."""

from __future__ import annotations

import json
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from flask.testing import FlaskClient

from service.settings import Settings
from tests.making import open_app

LEFT = Path(__file__).parent / "data" / "tree_layout_1"
SAID: dict[str, Any] = json.loads((LEFT / "said.json").read_text())
EACH = pytest.mark.parametrize("name", list(SAID["models"]))


@pytest.fixture
def client(tmp_path: Path) -> Iterator[FlaskClient]:
    """A client of this release, over a copy of what was left."""
    models = tmp_path / "models"
    shutil.copytree(LEFT, models, ignore=shutil.ignore_patterns("*.sql", "*.json"))
    with closing(sqlite3.connect(models / "treewright.db")) as database:
        database.executescript((LEFT / "treewright.sql").read_text())
    with open_app(Settings(models_url=str(models))) as app:
        yield app.test_client()


def find_differences(before: object, now: object, place: str = "") -> list[str]:
    """The places where something said before is now gone or different; what is new beside it does not count."""
    if isinstance(before, dict) and isinstance(now, dict):
        gone = [f"{place}/{key}" for key in before.keys() - now.keys()]
        return gone + [
            found
            for key in before.keys() & now.keys()
            for found in find_differences(before[key], now[key], f"{place}/{key}")
        ]
    if isinstance(before, list) and isinstance(now, list) and len(before) == len(now):
        pairs = enumerate(zip(before, now, strict=True))
        return [found for i, (one, other) in pairs for found in find_differences(one, other, f"{place}/{i}")]
    return [] if before == now else [place]


@EACH
@pytest.mark.parametrize(("page", "url"), [("record", ""), ("tree", "/tree"), ("splits", "/splits?top=2&limit=1000")])
def test_pages(client: FlaskClient, name: str, page: str, url: str) -> None:
    """Record, tree and listing, from kept data or a summary, say all that they said, to the last digit."""
    answer = client.get(f"/models/{name}{url}")
    assert answer.status_code == 200
    assert find_differences(SAID["models"][name][page], answer.get_json()) == []


@EACH
def test_answers(client: FlaskClient, name: str) -> None:
    """All rows, a missing cell and an unseen category among them, are answered as before, together and one by one."""
    asked, said = SAID["models"][name]["asked"], SAID["models"][name]["predict"]
    answer = client.post(f"/models/{name}/predict", json={"data": {"columns": asked}}).get_json()
    kept = said.keys() - {"warnings"}  # their words may change
    assert {key: answer[key] for key in kept} == {key: said[key] for key in kept}
    assert len(answer["warnings"]) == len(said["warnings"])
    for row, leaf in enumerate(said["leaves"]):
        one = {"records": [{column: cells[row] for column, cells in asked.items()}]}
        assert client.post(f"/models/{name}/predict", json={"data": one}).get_json()["leaves"] == [leaf]


@EACH
def test_what_came_later(client: FlaskClient, name: str) -> None:
    """What that state could not do can be done to its models: evaluated, explained, pruned, and the version asked."""
    model, columns = f"/models/{name}", SAID["columns"]
    metrics = client.post(f"{model}/evaluate", json={"data": {"columns": columns}}).get_json()["metrics"]
    fit = client.get(model).get_json()["metrics"]
    assert {metric: metrics[metric] for metric in fit} == pytest.approx(fit)
    rows = client.post(f"{model}/explain", json={"data": {"columns": columns}, "shapley": True}).get_json()["rows"]
    assert len(rows) == len(columns["play"])
    gains = client.get(f"{model}/importance").get_json()["features"]
    assert sum(feature["share"] for feature in gains) == pytest.approx(1)
    path = client.get(f"{model}/pruning").get_json()["path"]
    pruned = client.post(f"{model}/prune", json={"leaves": path[1]["leaves"]})
    assert pruned.status_code == 201
    assert pruned.get_json()["tree"]["leaves"] == path[1]["leaves"]
    assert client.get(f"/models/{name}@2/splits").status_code == 200
