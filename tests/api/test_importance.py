"""Importance over HTTP: gains of the audit added up, and permutations beside posting permuted rows."""

from __future__ import annotations

import statistics
from typing import TYPE_CHECKING, Any

import numpy as np
import pytest
from sklearn.inspection import permutation_importance
from sklearn.tree import DecisionTreeClassifier

from tests.api.test_evaluate import evaluate, train
from tests.oracle.contract import read_columns

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect


def permute(client: FlaskClient, columns: dict[str, list[Any]], **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the request
    """The importance by permutation of the model m."""
    response = client.post("/models/m/importance", json={"data": {"columns": columns}, **more})
    assert response.status_code == 200, response.json
    body: dict[str, Any] = response.json
    return body


def test_gains_of_the_audit(client: FlaskClient) -> None:
    """A feature's gain is the sum over its splits of the node's weight times the score, as the audit lists them."""
    train(client, read_columns("rpart_iris.csv"), "Species", parameters={"max_depth": 4})
    body = client.get("/models/m/importance").json
    listing = client.get("/models/m/splits?chosen=true&limit=1000").json
    weight = {node["node"]: node["weight"] for node in listing["nodes"]}
    expected: dict[str, float] = {}
    for split in listing["splits"]:
        gained = weight[split["node"]] * split["scores"]["gini_gain"]
        expected[split["feature"]] = expected.get(split["feature"], 0.0) + gained
    shown = {one["feature"]: one["gain"] for one in body["features"]}
    assert {name: gain for name, gain in shown.items() if gain} == pytest.approx(expected)
    assert set(shown) == {"Sepal.Length", "Sepal.Width", "Petal.Length", "Petal.Width"}
    shares = [one["share"] for one in body["features"]]
    assert shares == sorted(shares, reverse=True)
    assert sum(shares) == pytest.approx(1)
    assert (body["method"], body["criterion"], body["model"]["name"]) == ("gain", "gini", "m")
    assert client.get("/models/m").json["links"]["importance"] == f"/models/{body['model']['id']}/importance"


def test_surrogates_that_there_are_not(client: FlaskClient, places_of: Expect, tennis: dict[str, list[Any]]) -> None:
    """They cannot be credited: a 422 at the argument, as is one that is neither true nor false."""
    train(client, tennis, "play")
    assert client.get("/models/m/importance?surrogates=false").json["surrogates"] is False
    for query in ("surrogates=true", "surrogates=perhaps"):
        assert list(places_of(client.get(f"/models/m/importance?{query}"), 422)) == ["?surrogates"]
    assert list(places_of(client.get("/models/m/importance?surrogate=true"), 422)) == ["?surrogate"]


@pytest.mark.parametrize("missing", ["surrogate", "fractional"])
def test_features_that_stand_in(client: FlaskClient, missing: str) -> None:
    """Where cells are missing, mixing up a column counts as for a caller, also one that is asked for only instead."""
    columns = read_columns("rpart_iris.csv")
    for place, name in enumerate(("Petal.Width", "Petal.Length")):
        columns[name] = [None if row % 3 == place else cell for row, cell in enumerate(columns[name])]
    train(client, columns, "Species", parameters={"missing": missing, "max_depth": 2})
    body = permute(client, columns, repeats=2, metric="brier")
    assert sum(one["mean"] != 0 for one in body["features"]) > 1
    for one in body["features"]:
        place = [*columns].index(one["feature"])
        for repeat, value in enumerate(one["values"]):
            order = np.random.default_rng([0, place, repeat]).permutation(150)
            mixed = {**columns, one["feature"]: [columns[one["feature"]][row] for row in order]}
            worse = evaluate(client, "m", mixed)["metrics"]["brier"] - body["baseline"]
            assert value == pytest.approx(worse, rel=1e-9, abs=1e-15)


def test_nothing_gained(client: FlaskClient) -> None:
    """Of a single leaf no feature has a share, by either method."""
    columns = {"x": [1, 1], "z": ["a", "b"], "y": ["p", "p"]}
    train(client, columns, "y")
    (x, z) = client.get("/models/m/importance").json["features"]
    assert (x, z) == ({"feature": "x", "gain": 0.0, "share": 0.0}, {"feature": "z", "gain": 0.0, "share": 0.0})
    body = permute(client, columns, repeats=1)
    assert body["features"][0] == {"feature": "x", "mean": 0.0, "standard_deviation": None, "values": [0.0]}


@pytest.mark.parametrize(
    ("file", "target", "metric", "lower"),
    [("rpart_iris.csv", "Species", None, False), ("rpart_iris.csv", "Species", "log_loss", True),
     ("rpart_iris.csv", "Petal.Width", None, False), ("rpart_iris.csv", "Petal.Width", "rmse", True),
     ("rpart_kyphosis.csv", "Kyphosis", "roc_auc", False)],
)  # fmt: skip
def test_beside_posting_permuted_rows(
    client: FlaskClient, file: str, target: str, metric: str | None, lower: bool
) -> None:
    """Each value is by how much an evaluation gets worse when the caller permutes the cells of the column."""
    columns = read_columns(file)
    train(client, columns, target, parameters={"max_depth": 3})
    weighed = {**columns, "w": [1.0 + row % 3 for row in range(len(columns[target]))]}
    body = permute(client, weighed, weight="w", repeats=3, seed=8, metric=metric)
    name = body["metric"]
    plain = evaluate(client, "m", weighed, weight="w")["metrics"][name]
    assert (body["baseline"], body["repeats"], body["seed"]) == (plain, 3, 8)
    features = [one["name"] for one in client.get("/models/m").json["schema"]["features"]]
    used = {node["feature"] for node in client.get("/models/m/tree").json["nodes"] if not node["leaf"]}
    for one in body["features"]:
        expected = []
        for repeat in range(3):
            feature = features.index(one["feature"])
            order = np.random.default_rng([8, feature, repeat]).permutation(len(weighed["w"]))
            mixed = {**weighed, one["feature"]: [weighed[one["feature"]][row] for row in order]}
            worse = evaluate(client, "m", mixed, weight="w")["metrics"][name] - plain
            expected.append(worse if lower else -worse)
        assert one["values"] == pytest.approx(expected, rel=1e-9, abs=1e-15)
        assert one["mean"] == pytest.approx(statistics.mean(expected), rel=1e-9, abs=1e-15)
        assert one["standard_deviation"] == pytest.approx(statistics.stdev(expected), rel=1e-9, abs=1e-15)
        assert (one["feature"] in used) or one["values"] == [0.0] * 3
    means = [one["mean"] for one in body["features"]]
    assert means == sorted(means, reverse=True)


def test_beside_scikit_learn(client: FlaskClient) -> None:
    """Its permutation_importance has other permutations, and the same means within five standard errors."""
    random = np.random.default_rng(1)
    table = random.normal(size=(300, 3)).astype(np.float32).astype(float)
    truth = (table[:, 0] + table[:, 1] / 2 > 0.1).astype(int)
    columns: dict[str, list[Any]] = {f"x{j}": table[:, j].tolist() for j in range(3)}
    columns["y"] = truth.tolist()
    train(client, columns, "y", task="classification", parameters={"max_depth": 3})
    peer = DecisionTreeClassifier(max_depth=3).fit(table, truth)
    told = permutation_importance(peer, table, truth, n_repeats=30, random_state=0)
    body = permute(client, columns, repeats=30)
    for one in body["features"]:
        place = int(one["feature"][1])
        error = (told.importances_std[place] ** 2 / 30 + one["standard_deviation"] ** 2 / 30) ** 0.5
        assert one["mean"] == pytest.approx(told.importances_mean[place], abs=5 * error)


def test_seeds(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """The same seed gives the same answer, 0 being the default, another one another; null is the default too."""
    train(client, tennis, "play")
    first = permute(client, tennis)
    assert (first["seed"], first["repeats"], first["metric"]) == (0, 5, "accuracy")
    assert permute(client, tennis, seed=0, repeats=5, metric="accuracy") == first
    assert permute(client, tennis, seed=None, repeats=None, metric=None) == first
    assert permute(client, tennis, seed=1)["features"] != first["features"]


def test_cells_of_every_kind_are_mixed(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """Missing cells, unseen categories and dropped rows: the answer comes with the warnings of an evaluation."""
    train(client, tennis, "play")
    odd = {**tennis, "outlook": ["hail", None, *tennis["outlook"][2:]], "windy": [None, *tennis["windy"][1:]]}
    odd["play"] = [*tennis["play"][:-1], None]
    body = permute(client, odd, missing_target="drop")
    assert body["rows"] == 13
    assert len(body["warnings"]) == 2


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"metric": "r2"}, "/metric"), ({"metric": ""}, "/metric"), ({"metric": 1}, "/metric"),
        ({"repeats": 0}, "/repeats"), ({"repeats": 101}, "/repeats"), ({"repeats": 2.5}, "/repeats"),
        ({"repeats": "many"}, "/repeats"), ({"seed": -1}, "/seed"), ({"seed": 0.5}, "/seed"),
        ({"target": "none"}, "/target"), ({"features": []}, "/features"),
    ],
)  # fmt: skip
def test_what_cannot_be_asked(
    client: FlaskClient, places_of: Expect, tennis: dict[str, list[Any]], more: dict[str, Any], place: str
) -> None:
    """Each is a 422 that names the place."""
    train(client, tennis, "play")
    response = client.post("/models/m/importance", json={"data": {"columns": tennis}, **more})
    assert list(places_of(response, 422)) == [place]


def test_a_metric_without_a_value(client: FlaskClient, places_of: Expect, tennis: dict[str, list[Any]]) -> None:
    """Rows of one class have no ROC curve, and counts below 0 no deviance: a 422 at the metric."""
    train(client, tennis, "play")
    alike = {"data": {"columns": {name: cells[2:5] for name, cells in tennis.items()}}, "metric": "roc_auc"}
    assert list(places_of(client.post("/models/m/importance", json=alike), 422)) == ["/metric"]
    train(client, {"x": [1, 1, 2, 2], "y": [1, 1, 3, 5]}, "y", parameters={"criterion": "poisson"})
    negative = {"data": {"columns": {"x": [1, 2], "y": [1, -1]}}, "metric": "deviance"}
    assert list(places_of(client.post("/models/m/importance", json=negative), 422)) == ["/metric"]


def test_no_such_model(client: FlaskClient, problem_of: Expect, tennis: dict[str, list[Any]]) -> None:
    """It is a 404 before anything is read."""
    problem_of(client.get("/models/none/importance"), 404)
    problem_of(client.post("/models/none/importance", json={"data": {"columns": tennis}}), 404)
    problem_of(client.post("/models/none/evaluate", json={"data": {"columns": tennis}}), 404)
