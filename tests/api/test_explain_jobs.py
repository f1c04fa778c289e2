"""Explanations as jobs: what a caller who waits would have got, and refused as he would have been."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service.core.shapley import measure_shapley
from service.core.tree import Tree
from service.explaining import FACTORS_OF_A_CELL
from service.store.models import ModelStore
from tests.oracle.contract import read_columns

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask.testing import FlaskClient

    from service.settings import Settings
    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

LATER = {"Prefer": "respond-async"}


@pytest.mark.parametrize(
    ("target", "parameters"),
    [("Species", {}), ("Petal.Width", {"missing": "surrogate"}), (["Petal.Width", "Petal.Length"], {"max_depth": 4})],
)
def test_the_same_body(
    client: FlaskClient, run: Callable[[str], None], target: str | list[str], parameters: dict[str, Any]
) -> None:
    """The job's result is the body of the answer that is waited for, to the last digit."""
    columns = read_columns("rpart_iris.csv")
    training = {"data": {"columns": columns}, "target": target, "name": "m", "parameters": parameters}
    assert client.post("/train", json=training).status_code == 201
    posted = {name: [*cells[::4], None] for name, cells in columns.items()}
    request = {"data": {"columns": posted}, "shapley": True}
    waited = client.post("/models/m/explain", json=request)
    assert waited.status_code == 200, waited.json
    accepted = client.post("/models/m/explain", json=request, headers=LATER)
    assert (accepted.status_code, accepted.headers["Preference-Applied"]) == (202, "respond-async")
    model = waited.json["model"]["id"]
    assert accepted.json["subject"] == {"model": model, "rows": 39, "columns": len(posted)}
    run(accepted.json["id"])
    ended = client.get(accepted.headers["Location"]).json
    assert (ended["state"], ended["kind"]) == ("succeeded", "explain")
    assert ended["result"] == waited.json


def test_refused_at_once(client: FlaskClient, model: dict[str, Any], places_of: Expect) -> None:
    """Faults are said before there is a job."""
    for body in (
        {"data": {"columns": {"outlook": ["sunny"], "temperature": [70]}}},
        {"data": {"rows": [["sunny", "warm", True]]}},
    ):
        waiting = places_of(client.post("/models/golf/explain", json=body), 422)
        assert places_of(client.post("/models/golf/explain", json=body, headers=LATER), 422) == waiting
    data = {"columns": {"x": [1, 2, 3, 4], "y": ["a", "b", "c", "d"]}}
    body = {"data": data, "target": "y", "name": "pairs", "parameters": {"criterion": "dissimilarity"}}
    assert client.post("/train", json=body).status_code == 201
    asked = {"data": {"rows": [[1]]}, "shapley": True}
    assert "/shapley" in places_of(client.post("/models/pairs/explain", json=asked, headers=LATER), 422)
    assert client.get("/jobs").json["jobs"] == []


def test_what_takes_long_becomes_a_job(
    make_app: MakeApp, settings: Settings, model: dict[str, Any], tennis: dict[str, list[Any]]
) -> None:
    """More cells than the setting are not waited for, unasked; Shapley values count as the cells that take as long."""
    store = ModelStore.open(settings)
    tree = Tree.from_arrays(store.load_tree(store.find(model["id"])))
    store.close()
    del tennis["play"]
    cells, values = 14 * 3, 14 * measure_shapley(tree) // FACTORS_OF_A_CELL
    assert values > 0
    for setting, shapley, status in (
        (cells, False, 200), (cells - 1, False, 202), (cells + values, True, 200), (cells + values - 1, True, 202),
    ):  # fmt: skip
        client = make_app(job_cells=setting).test_client()
        answer = client.post("/models/golf/explain", json={"data": {"columns": tennis}, "shapley": shapley})
        assert answer.status_code == status
