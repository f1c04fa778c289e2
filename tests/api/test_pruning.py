"""`/models/<reference>/pruning` and `/prune`: the subtrees of a model, and one of them as a new version."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.conftest import Expect

if TYPE_CHECKING:
    from flask.testing import FlaskClient

NOISY = {
    "x": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16],
    "y": list("aabaaaaabbbabbbb"),
}
"""Two halves with an odd one in each."""


def train(client: FlaskClient, parameters: dict[str, Any] | None = None, **more: object) -> dict[str, Any]:
    """The record of a model of the noisy rows."""
    body = {"data": {"columns": NOISY}, "target": "y", "parameters": parameters or {}, **more}
    response = client.post("/train", json=body)
    assert response.status_code == 201, response.json
    return dict(response.json)


def path_of(client: FlaskClient, model: str, query: str = "") -> dict[str, Any]:
    """The listed path."""
    response = client.get(f"/models/{model}/pruning{query}")
    assert response.status_code == 200, response.json
    return dict(response.json)


def test_the_path(client: FlaskClient) -> None:
    """8 of 16 errors at the root, 2 with one split, none with the whole tree; alpha is by row, cp by the root's 8."""
    record = train(client)
    listed = path_of(client, record["id"])
    assert (listed["risk"], listed["sequence"], listed["root_risk"], listed["folds"]) == ("error", "breiman", 0.5, None)
    root, split, whole = listed["path"]
    assert root == {"alpha": 6 / 16, "cp": 6 / 8, "splits": 0, "leaves": 1, "risk": 0.5, "relative_error": 1.0,
                    "current": False}  # fmt: skip
    assert (split["alpha"], split["cp"], split["leaves"], split["relative_error"]) == (1 / 32, 1 / 16, 2, 0.25)
    assert (whole["alpha"], whole["leaves"], whole["relative_error"], whole["current"]) == (0.0, 6, 0.0, True)


def test_impurity_by_request(client: FlaskClient) -> None:
    """The path by impurity starts with the root's gini."""
    listed = path_of(client, train(client)["id"], "?risk=impurity&sequence=rpart")
    assert (listed["risk"], listed["sequence"], listed["root_risk"]) == ("impurity", "rpart", 0.5)


def test_cross_validated(client: FlaskClient) -> None:
    """With folds every subtree has an error and its deviation; one is the least, one within a deviation of it."""
    record = train(client, {"pruning": "cost_complexity", "pruning_folds": 4, "seed": 1})
    listed = path_of(client, record["id"])
    assert (listed["folds"], listed["seed"]) == (4, 1)
    path = listed["path"]
    assert path[0]["xerror"] == pytest.approx(1.0, abs=0.3)
    assert [sum(step[rule] for step in path) for rule in ("min", "one_se", "current")] == [1, 1, 1]
    least = next(step for step in path if step["min"])
    assert least["xerror"] == min(step["xerror"] for step in path)
    allowed = [step["xerror"] <= least["xerror"] + least["xstd"] + 1e-12 for step in path]
    assert [step["one_se"] for step in path].index(True) == allowed.index(True)
    chosen = next(step for step in path if step["current"])
    assert chosen["one_se"]
    assert record["pruning"] == {
        "method": "cost_complexity", "chosen_by": "one_se", "alpha": chosen["alpha"], "cp": chosen["cp"],
        "grown": {"nodes": 11, "leaves": 6}, "parent": None,
    }  # fmt: skip
    assert record["tree"]["leaves"] == chosen["leaves"]


@pytest.mark.parametrize("retain", ["data", "summary", "none"])
def test_a_new_version(client: FlaskClient, retain: str) -> None:
    """Pruning stores the next version of the name, linked to its parent, which stays as it was; all else goes on."""
    parent = train(client, name="noisy", retain=retain, tags={"stage": "trial"})
    before = client.get("/models/noisy@1/tree").json
    response = client.post("/models/noisy/prune", json={"leaves": 3, "description": "shorter"})
    assert response.status_code == 201, response.json
    child = response.json
    assert response.headers["Location"] == child["links"]["self"] == f"/models/{child['id']}"
    assert (child["name"], child["version"], child["tags"], child["description"]) == (
        "noisy", 2, {"stage": "trial"}, "shorter",
    )  # fmt: skip
    assert child["pruning"]["parent"] == {"id": parent["id"], "name": "noisy", "version": 1}
    assert child["links"]["parent"] == parent["links"]["self"]
    assert child["tree"] == {"nodes": 3, "leaves": 2, "depth": 1}
    assert child["metrics"]["accuracy"] == 14 / 16
    assert client.get("/models/noisy@1/tree").json == before
    nodes = client.get("/models/noisy@2/tree").json["nodes"]
    assert [node["reason"] for node in nodes] == [None, "cost_complexity", "cost_complexity"]
    answer = client.post("/models/noisy/predict", json={"data": {"columns": {"x": [3, 12]}}}).json
    assert (answer["predictions"], answer["leaves"]) == (["a", "b"], [1, 2])
    listed = client.get("/models/noisy/splits?node=1")
    if retain == "none":
        assert listed.status_code == 409
        return
    old = client.get("/models/noisy@1/splits?node=1").json
    assert listed.json["nodes"][0]["reason"] == "cost_complexity"
    assert [split["chosen"] for split in listed.json["splits"]] == [False] * len(old["splits"])
    assert [split["score"] for split in listed.json["splits"]] == [split["score"] for split in old["splits"]]
    assert old["splits"][0]["chosen"]


def test_regression(client: FlaskClient) -> None:
    """Numbers have the variance as risk; the pruned version's fit is that of its leaves."""
    columns = {"x": [1, 2, 3, 4], "y": [0.0, 1.0, 10.0, 12.0]}
    record = client.post("/train", json={"data": {"columns": columns}, "target": "y", "task": "regression"}).json
    path = path_of(client, record["id"])["path"]
    assert [(step["leaves"], step["risk"]) for step in path] == [
        (1, pytest.approx(28.1875)), (2, pytest.approx(0.625)), (3, pytest.approx(0.125)), (4, 0.0),
    ]  # fmt: skip
    child = client.post(f"/models/{record['id']}/prune", json={"alpha": 0.4}).json
    assert child["metrics"] == {
        "r2": pytest.approx(1 - 0.125 / 28.1875),
        "mae": 0.25,
        "rmse": pytest.approx(0.125**0.5),
    }
    assert (child["name"], child["pruning"]["chosen_by"]) == (None, "alpha")


def test_a_pruned_model_keeps_the_rest_of_its_table(client: FlaskClient) -> None:
    """What was cross-validated in training is listed for the pruned version from its own size on."""
    record = train(client, {"pruning_folds": 4})
    whole = path_of(client, record["id"])["path"]
    child = client.post(f"/models/{record['id']}/prune", json={"leaves": 2}).json
    listed = path_of(client, child["id"])["path"]
    assert [step | {"current": None} for step in listed] == [step | {"current": None} for step in whole[:2]]
    assert [step["current"] for step in listed] == [False, True]


def test_nothing_to_cut(client: FlaskClient) -> None:
    """Pruning to what the model is already stores a version all the same, and says so."""
    record = train(client)
    child = client.post(f"/models/{record['id']}/prune", json={"alpha": 0}).json
    assert child["tree"] == record["tree"]
    assert child["warnings"] == ["nothing was cut: the tree is that of its parent"]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "/alpha"), ({"alpha": 0.1, "cp": 0.1}, "/alpha"), ({"alpha": -1}, "/alpha"), ({"cp": "0.1"}, "/cp"),
        ({"cp": True}, "/cp"), ({"leaves": 0}, "/leaves"), ({"leaves": 1.5}, "/leaves"),
        ({"leaves": 2, "risk": "gini"}, "/risk"), ({"leaves": 2, "nodes": 3}, "/nodes"),
    ],
)  # fmt: skip
def test_what_is_refused(client: FlaskClient, places_of: Expect, body: dict[str, Any], place: str) -> None:
    """How far to prune is said exactly once, by a number that can be."""
    record = train(client)
    assert place in places_of(client.post(f"/models/{record['id']}/prune", json=body), 422)


def test_more_folds_than_rows(client: FlaskClient, places_of: Expect) -> None:
    """A fold has a row at least."""
    body = {"data": {"columns": NOISY}, "target": "y", "parameters": {"pruning_folds": 17}}
    assert list(places_of(client.post("/train", json=body), 422)) == ["/parameters/pruning_folds"]


def test_unknown_model(client: FlaskClient, problem_of: Expect) -> None:
    """A model that is not there has no path, and no subtree."""
    problem_of(client.get("/models/nobody/pruning"), 404)
    problem_of(client.post("/models/nobody/prune", json={"leaves": 1}), 404)


def test_error_based(client: FlaskClient) -> None:
    """The record says from what the tree was pruned; the leaf that was cut says why, in the tree and in the listing."""
    record = train(client, {"pruning": "error_based", "collapse": True})
    assert record["pruning"] == {
        "method": "error_based", "raised": 0, "grown": {"nodes": 11, "leaves": 6}, "parent": None,
    }  # fmt: skip
    assert record["tree"]["leaves"] == 2
    nodes = client.get(f"/models/{record['id']}/tree").json["nodes"]
    assert [node["reason"] for node in nodes] == [None, "error_based", "error_based"]
    listed = client.get(f"/models/{record['id']}/splits?node=2").json
    assert listed["nodes"][0]["reason"] == "error_based"
    assert listed["splits"]
    assert not any(split["chosen"] for split in listed["splits"])


@pytest.mark.parametrize("retain", ["data", "summary"])
def test_reduced_error(client: FlaskClient, retain: str) -> None:
    """Rows held out are no training rows: the tree, the fit and the audit are of the others."""
    parameters = {"pruning": "reduced_error", "pruning_folds": 4, "seed": 0}
    record = train(client, parameters, retain=retain)
    assert record["training"]["rows"] == 12
    assert (record["pruning"]["method"], record["pruning"]["held_out"]) == ("reduced_error", 4)
    listed = client.get(f"/models/{record['id']}/splits?node=0").json
    assert listed["nodes"][0]["n"] == 12
    assert sum(branch["routed"]["n"] for branch in listed["splits"][0]["branches"]) == 12


SEVERAL: dict[str, list[Any]] = {
    "x": [1, 2, 3, 4, 5, 6, 7, 8, 9, 10],
    "y": [0.0, 0.1, 0.2, 0.1, 5.0, 5.1, 5.2, 5.0, 9.0, 9.1],
    "z": [1, 1, 1, 1, 2, 2, 2, 2, 3, 3],
}


@pytest.mark.parametrize("criterion", ["variance", "dissimilarity"])
def test_several_targets(client: FlaskClient, criterion: str) -> None:
    """Vectors have a path by their impurity, and a subtree answers by its leaves: means, or medoids."""
    body = {"data": {"columns": SEVERAL}, "target": ["y", "z"], "parameters": {"criterion": criterion}}
    record = client.post("/train", json=body).json
    path = path_of(client, record["id"])["path"]
    assert path[-1]["leaves"] == 10
    alpha = path[2]["alpha"]
    asked = {"pruning": "cost_complexity", "alpha": alpha, "criterion": criterion}
    trained = client.post("/train", json={**body, "parameters": asked}).json
    pruned = client.post(f"/models/{record['id']}/prune", json={"alpha": alpha}).json
    assert trained["tree"] == pruned["tree"] == {"nodes": 5, "leaves": 3, "depth": 2}
    rows = {"data": {"columns": {"x": [2, 6, 10]}}}
    answers = [client.post(f"/models/{model['id']}/predict", json=rows).json for model in (trained, pruned)]
    assert answers[0]["predictions"] == answers[1]["predictions"]
    assert [round(cells[1]) for cells in map(list, answers[0]["predictions"])] == [1, 2, 3]


def test_vectors_are_cross_validated(client: FlaskClient) -> None:
    """The error of a vector is the mean of its squares; three groups are found and kept."""
    parameters = {"pruning": "cost_complexity", "pruning_folds": 5, "pruning_choice": "min"}
    body = {"data": {"columns": SEVERAL}, "target": ["y", "z"], "parameters": parameters}
    record = client.post("/train", json=body).json
    path = path_of(client, record["id"])["path"]
    assert path[2]["xerror"] < path[1]["xerror"] < 1 < 2 * path[0]["xerror"]
    assert record["tree"]["leaves"] >= 3


@pytest.mark.parametrize("pruning", ["cost_complexity", "reduced_error", "error_based"])
@pytest.mark.parametrize("cells", [["a"], ["a"] * 12, ["a", "b"]])
@pytest.mark.parametrize("weight", [1, 1e90, 1e-90])
def test_nothing_to_learn(client: FlaskClient, pruning: str, cells: list[str], weight: float) -> None:
    """One row, or one class, or two rows, of any weight, are a leaf under any pruning, with a path of one step."""
    columns = {"x": list(range(len(cells))), "y": cells, "w": [weight] * len(cells)}
    parameters = {"pruning": pruning, "min_samples_leaf": 2}
    body = {"data": {"columns": columns}, "target": "y", "weight": "w", "parameters": parameters}
    response = client.post("/train", json=body)
    assert response.status_code == 201, response.json
    assert response.json["tree"]["leaves"] == 1
    path = path_of(client, response.json["id"])["path"]
    assert [(step["leaves"], step["current"]) for step in path] == [(1, True)]
    if len(set(cells)) == 1:
        assert (path[0]["cp"], path[0]["relative_error"], path[0].get("xerror")) == (None, None, None)
    assert client.post(f"/models/{response.json['id']}/prune", json={"cp": 0.1}).status_code == 201
