"""Cross-validation over HTTP: beside trainings and evaluations that a caller could do, and its faults."""

from __future__ import annotations

import math
import statistics
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from service.core.folds import assign_folds
from service.core.schema import Target
from tests.oracle.contract import read_columns

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect

FILES = {"iris": ("rpart_iris.csv", "Species"), "kyphosis": ("rpart_kyphosis.csv", "Kyphosis"),
         "width": ("rpart_iris.csv", "Petal.Width"), "stages": ("rpart_stagec.csv", "progstat"),
         "cars": ("rpart_cartestframe.csv", "Mileage")}  # fmt: skip


def train(client: FlaskClient, columns: dict[str, list[Any]], target: str, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the request
    """The record of a new model."""
    response = client.post("/train", json={"data": {"columns": columns}, "target": target, **more})
    assert response.status_code == 201, response.json
    record: dict[str, Any] = response.json
    return record


def make_target(cells: list[Any]) -> Target:
    """The target of a column."""
    if isinstance(cells[0], str):
        return Target("y", codes=np.unique(cells, return_inverse=True)[1].astype(np.int32))
    return Target("y", values=np.array(cells))


@pytest.mark.parametrize(
    ("name", "more"),
    [("iris", {}), ("kyphosis", {"parameters": {"criterion": "entropy", "min_samples_leaf": 5}}), ("width", {}),
     ("iris", {"algorithm": "id3", "parameters": {"numeric": "ordinal"}}),
     ("kyphosis", {"parameters": {"pruning": "cost_complexity", "pruning_folds": 4, "seed": 2}}),
     ("kyphosis", {"algorithm": "j48"}),
     ("iris", {"algorithm": "j48", "parameters": {"pruning": "reduced_error", "seed": 1}}),
     ("stages", {"parameters": {"missing": "surrogate", "cp": 0.01}}), ("stages", {"algorithm": "c45"}),
     ("stages", {"parameters": {"missing": "branch"}}), ("cars", {"parameters": {"missing": "surrogate"}}),
     ("cars", {"parameters": {"missing": "fractional", "criterion": "absolute_error"}})],
)  # fmt: skip
def test_beside_trainings(client: FlaskClient, name: str, more: dict[str, Any]) -> None:
    """Each fold's measures are those of a model that is trained on the other rows and evaluated on the fold's."""
    file, target = FILES[name]
    columns = read_columns(file)
    record = train(client, columns, target, cross_validation={"folds": 5, "seed": 11}, **more)
    validated = record["metrics"]["cross_validation"]
    assert (validated["folds"], validated["repeats"], validated["seed"]) == (5, 1, 11)
    fold = assign_folds(make_target(columns[target]), 5, 11)
    found = []
    for k in range(5):
        others = {column: [c for c, f in zip(cells, fold, strict=True) if f != k] for column, cells in columns.items()}
        held = {column: [c for c, f in zip(cells, fold, strict=True) if f == k] for column, cells in columns.items()}
        model = train(client, others, target, **more)
        answer = client.post(model["links"]["evaluate"], json={"data": {"columns": held}}).json
        found.append(answer["metrics"])
        assert validated["rows"][k] == answer["rows"]
        assert validated["leaves"][k] == model["tree"]["leaves"]
    for measure, summary in validated["metrics"].items():
        worth = [metrics[measure] for metrics in found]
        assert summary["values"] == worth
        assert summary["mean"] == pytest.approx(statistics.mean(worth))
        assert summary["standard_deviation"] == pytest.approx(statistics.stdev(worth))
    assert set(validated["metrics"]) == set(found[0])


def test_several_targets(client: FlaskClient) -> None:
    """Rows are dealt without regard to the targets; each fold's measures are the means over these."""
    columns, names = read_columns("rpart_iris.csv"), ["Petal.Width", "Petal.Length"]
    request = {"data": {"columns": columns}, "target": names, "cross_validation": 3}
    validated = client.post("/train", json=request).json["metrics"]["cross_validation"]
    fold = assign_folds(Target("y", values=np.zeros((150, 2))), 3, 0)
    others, held = ({name: [c for c, f in zip(cells, fold, strict=True) if (f == 0) == mine]
                     for name, cells in columns.items()} for mine in (False, True))  # fmt: skip
    client.post("/train", json={"data": {"columns": others}, "target": names, "name": "m"})
    metrics = client.post("/models/m/evaluate", json={"data": {"columns": held}}).json["metrics"]
    del metrics["by_target"]
    assert {name: summary["values"][0] for name, summary in validated["metrics"].items()} == metrics


def test_the_whole_tree_is_the_same(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """Cross-validation adds to the record; the model and its own metrics stay what they are."""
    plain = train(client, tennis, "play")
    record = train(client, tennis, "play", cross_validation=2)
    validated = record["metrics"].pop("cross_validation")
    assert record["metrics"] == plain["metrics"]
    assert record["tree"] == plain["tree"]
    assert (validated["folds"], validated["repeats"], validated["seed"], sum(validated["rows"])) == (2, 1, 0, 14)
    assert train(client, tennis, "play", cross_validation=None)["metrics"] == plain["metrics"]


def test_the_same_seed(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """The same request gives the same numbers; the seed is the one posted, else the parameter's; repeats add folds."""
    asked = {"cross_validation": {"folds": 3, "repeats": 2}, "parameters": {"seed": 5}}
    first, again = (train(client, tennis, "play", **asked)["metrics"] for _ in range(2))
    assert first == again
    assert first["cross_validation"]["seed"] == 5
    named = train(client, tennis, "play", cross_validation={"folds": 3, "seed": 5, "repeats": 2})["metrics"]
    assert named == first
    assert len(first["cross_validation"]["metrics"]["accuracy"]["values"]) == 6


def test_what_is_undefined_in_a_fold(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """It is null there, and the mean is that of the other folds; rare classes are warned of."""
    record = train(client, tennis, "play", cross_validation=7)
    areas = record["metrics"]["cross_validation"]["metrics"]["roc_auc"]
    known = [value for value in areas["values"] if value is not None]
    assert 0 < len(known) < 7
    assert areas["mean"] == pytest.approx(math.fsum(known) / len(known))
    (warning,) = record["warnings"]
    assert "'no'" in warning
    assert "'yes'" not in warning
    alone = train(client, tennis, "play", cross_validation=14)["metrics"]["cross_validation"]["metrics"]
    assert alone["roc_auc"] == {"mean": None, "standard_deviation": None, "values": [None] * 14}
    assert set(alone["accuracy"]["values"]) <= {0.0, 1.0}


@pytest.mark.parametrize(
    ("asked", "places"),
    [
        (1, {""}), (0, {""}), (-3, {""}), (2.5, {""}), (True, {""}), ("10", {""}), ([10], {""}), (15, {""}),
        (10**18, {""}),
        ({}, {"/folds"}), ({"folds": None}, {"/folds"}), ({"folds": 5, "fold": 3}, {"/fold"}), ({"folds": 15}, {""}),
        ({"folds": 5, "seed": -1, "repeats": 0}, {"/seed", "/repeats"}), ({"folds": 5, "seed": 1.5}, {"/seed"}),
        ({"folds": 10, "repeats": 101}, {"/folds"}),
    ],
)  # fmt: skip
def test_plans_that_cannot_be(
    client: FlaskClient, places_of: Expect, tennis: dict[str, list[Any]], asked: object, places: set[str]
) -> None:
    """Each is a 422 that names the part, and no model is stored; more folds than rows is one."""
    request = {"data": {"columns": tennis}, "target": "play", "cross_validation": asked}
    faults = places_of(client.post("/train", json=request), 422)
    assert set(faults) == {f"/cross_validation{place}" for place in places}
    assert client.get("/models").json["models"] == []


def test_rows_that_do_not_count(client: FlaskClient, places_of: Expect, tennis: dict[str, list[Any]]) -> None:
    """Rows without a target or a weight are in no fold."""
    gaps = {**tennis, "play": [None, *tennis["play"][1:]], "w": [1] * 12 + [0, 0]}
    asked = {"weight": "w", "missing_target": "drop"}
    record = train(client, gaps, "play", cross_validation=11, **asked)
    assert record["metrics"]["cross_validation"]["rows"] == [1] * 11
    request = {"data": {"columns": gaps}, "target": "play", "cross_validation": 12, **asked}
    assert set(places_of(client.post("/train", json=request), 422)) == {"/cross_validation"}
