"""`/models/<reference>/compare`: what differs between two models is named, and nothing else is."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

from service.comparing import CELLS_OF_A_NODE

if TYPE_CHECKING:
    from collections.abc import Callable

    from flask.testing import FlaskClient
    from werkzeug.test import TestResponse

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

LATER = {"Prefer": "respond-async"}
ROWS = 150


def make_columns() -> dict[str, list[Any]]:
    """A number, a whole one and a category, of which the last decides the second half of the tree."""
    random = np.random.default_rng(4)
    age, size = random.integers(18, 80, ROWS), random.random(ROWS).round(3)
    job = random.integers(0, 3, ROWS)
    risk = np.where(age < 40, size > 0.5, job == 1)
    noisy = risk ^ (random.random(ROWS) < 0.1)
    return {
        "age": age.tolist(),
        "size": size.tolist(),
        "job": [["clerk", "driver", None][code] for code in job],
        "risk": ["high" if risky else "low" for risky in noisy],
    }


def train(client: FlaskClient, **changes: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of every kind
    """Train another version of credit."""
    body = {"data": {"columns": make_columns()}, "target": "risk", "name": "credit", **changes}
    answer = client.post("/train", json=body)
    assert answer.status_code == 201, answer.json
    record: dict[str, Any] = answer.json
    return record


def compare(client: FlaskClient, a: str, b: str, data: Any = None) -> dict[str, Any]:  # noqa: ANN401 - any table
    """The comparison of two models."""
    answer = client.post(f"/models/{a}/compare", json={"with": b, "data": data})
    assert answer.status_code == 200, answer.json
    found: dict[str, Any] = answer.json
    return found


def test_the_same(client: FlaskClient) -> None:
    """Two trainings on the same data with the same parameters differ in nothing."""
    tree = train(client)["tree"]
    train(client)
    found = compare(client, "credit@1", "credit@2", {"columns": make_columns()})
    assert (found["a"]["version"], found["b"]["version"]) == (1, 2)
    assert found["schema"] == {"only_a": [], "only_b": [], "changed": [], "target": []}
    assert (found["parameters"], found["algorithm"], found["training"]["same_data"]) == ([], None, True)
    assert found["splits"] == {"same": tree["nodes"], "differ": 0, "list": []}
    assert (found["predictions"]["rows"], found["predictions"]["differ"], found["predictions"]["list"]) == (ROWS, 0, [])


def test_a_tree_that_ends_earlier(client: FlaskClient) -> None:
    """Where the shallower tree has a leaf the deeper one has a split; above they are alike, below answers differ."""
    train(client, parameters={"max_depth": 2})
    train(client, parameters={"max_depth": 5})
    rows = {"columns": {name: cells for name, cells in make_columns().items() if name != "risk"}}
    found = compare(client, "credit@1", "credit@2", rows)
    assert found["parameters"] == [{"name": "max_depth", "a": 2, "b": 5}]
    shallow, deep = (client.get(f"/models/credit@{version}/tree").json["nodes"] for version in (1, 2))
    parted = [node for node in deep if node["depth"] == 2 and not node["leaf"]]
    assert found["splits"]["differ"] == len(parted) > 0
    assert found["splits"]["same"] == sum(node["depth"] <= 2 for node in deep) - len(parted)
    for place in found["splits"]["list"]:
        assert len(place["path"]) == 2
        assert place["a"]["split"] is None
        assert place["b"]["split"]["feature"] == deep[place["b"]["node"]]["feature"]
        assert place["a"]["n"] == place["b"]["n"] == shallow[place["a"]["node"]]["n"]
    given = [client.post(f"/models/credit@{v}/predict", json={"data": rows}).json["predictions"] for v in (1, 2)]
    differing = [row for row in range(ROWS) if given[0][row] != given[1][row]]
    assert [found["predictions"]["list"][i]["row"] for i in range(len(differing))] == differing
    assert found["predictions"]["differ"] == len(differing) > 0
    pairs = {(pair["a"], pair["b"]): pair["rows"] for pair in found["predictions"]["pairs"]}
    assert pairs == {pair: list(zip(*given, strict=True)).count(pair) for pair in set(zip(*given, strict=True))}


def test_schemas(client: FlaskClient) -> None:
    """Features that only one has, and one whose categories differ, are named; each model reads the rows its way."""
    train(client, features=["age", "job"])
    columns = make_columns()
    columns["job"] = [job and job.upper() for job in columns["job"]]
    train(client, features=["size", "job"], data={"columns": columns})
    found = compare(client, "credit@1", "credit@2", {"columns": make_columns()})
    assert (found["schema"]["only_a"], found["schema"]["only_b"]) == (["age"], ["size"])
    assert [change["name"] for change in found["schema"]["changed"]] == ["job"]
    assert found["schema"]["changed"][0]["b"]["categories"] == ["CLERK", "DRIVER"]
    assert found["training"]["same_data"] is False
    assert any("did not see" in warning for warning in found["predictions"]["warnings"])


def test_numbers(client: FlaskClient) -> None:
    """Of numbers it tells how far the answers are apart."""
    for depth in (1, 3):
        train(client, target="size", parameters={"max_depth": depth})
    found = compare(client, "credit@1", "credit@2", {"columns": make_columns()})["predictions"]
    rows = {"data": {"columns": make_columns()}}
    given = [np.array(client.post(f"/models/credit@{v}/predict", json=rows).json["predictions"]) for v in (1, 2)]
    assert found["mean_distance"] == pytest.approx(np.abs(given[0] - given[1]).mean())
    assert found["largest_distance"] == np.abs(given[0] - given[1]).max()
    assert "pairs" not in found


def test_one_is_not_true(client: FlaskClient) -> None:
    """Categories 1 and true are two, as classes and as answers: schemas, splits and rows that differ by it do."""
    for label in (1, True):
        columns = {"code": [label, 2, label, 2, 3, 3], "risk": [label, 0, label, 0, 0, label]}
        kinds = {"code": "nominal", "risk": "nominal"}
        train(client, data={"columns": columns}, schema=kinds)
    found = compare(client, "credit@1", "credit@2", {"columns": {"code": [3, 2]}})
    assert [each["name"] for each in found["schema"]["changed"]] == ["code"]
    assert "classes" in [each["name"] for each in found["schema"]["target"]]
    assert (found["splits"]["same"], found["splits"]["differ"]) == (0, 1)
    # true comes first among the categories of the one, and 1 among those of the other
    assert found["predictions"]["differ"] > 0
    again = compare(client, "credit@1", "credit@1", {"columns": {"code": [3, 2]}})
    assert (again["splits"]["differ"], again["predictions"]["differ"], again["schema"]["changed"]) == (0, 0, [])


def test_as_many_targets(client: FlaskClient, places_of: Expect) -> None:
    """How far answers are apart needs as many numbers in both: one target and two cannot be compared."""
    columns = {"x": [1, 2, 3, 4], "y": [1, 2, 3, 4], "z": [2, 1, 4, 3]}
    for target in ("y", ["y", "z"]):
        train(client, data={"columns": columns}, features=["x"], target=target)
    data = {"columns": {"x": [1, 2, 3]}}
    answer = client.post("/models/credit@1/compare", json={"with": "credit@2", "data": data})
    assert list(places_of(answer, 422)) == ["/with"]


def test_without_data(client: FlaskClient) -> None:
    """Without rows nothing is said of answers."""
    train(client)
    assert compare(client, "credit", "credit@1")["predictions"] is None


@pytest.mark.parametrize("target", ["risk", "size", ["age", "size"]])
@pytest.mark.parametrize("rows", [True, False], ids=["rows", "no rows"])
def test_the_same_body(client: FlaskClient, run: Callable[[str], None], target: str | list[str], rows: bool) -> None:
    """The job's result is the body of the answer that is waited for, whatever is predicted, with and without rows."""
    for depth in (2, 4):
        train(client, target=target, parameters={"max_depth": depth})
    request = {"with": "credit@1", "data": {"columns": make_columns()} if rows else None}
    waited = client.post("/models/credit@2/compare", json=request)
    assert waited.status_code == 200, waited.json
    assert waited.json["splits"]["differ"] > 0
    accepted = client.post("/models/credit@2/compare", json=request, headers=LATER)
    assert (accepted.status_code, accepted.headers["Preference-Applied"]) == (202, "respond-async")
    ids = {"model": waited.json["a"]["id"], "with": waited.json["b"]["id"]}
    assert accepted.json["subject"] == {**ids, "rows": ROWS if rows else None}
    run(accepted.json["id"])
    ended = client.get(accepted.headers["Location"]).json
    assert (ended["state"], ended["kind"], ended["model"]) == ("succeeded", "compare", None)
    assert ended["result"] == waited.json


def test_what_takes_long_becomes_a_job(client: FlaskClient, make_app: MakeApp) -> None:
    """Unasked too: cells count once for each model, nodes of the smaller tree as the cells that take as long."""
    nodes = [train(client, parameters={"max_depth": depth})["tree"]["nodes"] for depth in (2, 4)]
    rows = {"columns": make_columns()}
    cells = ROWS * len(rows["columns"])
    for data, count in ((None, 0), (rows, 2 * cells)):
        most = count + CELLS_OF_A_NODE * min(nodes)
        for setting, status in ((most, 200), (most - 1, 202)):
            other = make_app(job_cells=setting).test_client()
            answer = other.post("/models/credit@1/compare", json={"with": "credit@2", "data": data})
            assert answer.status_code == status


def test_a_model_deleted_meanwhile(client: FlaskClient, run: Callable[[str], None]) -> None:
    """The job ends with the problem of one who asks now."""
    for _ in range(2):
        train(client)
    job = client.post("/models/credit@1/compare", json={"with": "credit@2"}, headers=LATER).json
    assert client.delete("/models/credit@2").status_code == 204
    run(job["id"])
    ended = client.get(job["links"]["self"]).json
    assert (ended["state"], ended["problem"]["status"]) == ("failed", 404)


@pytest.mark.parametrize("headers", [{}, LATER], ids=["waited for", "as a job"])
def test_problems(client: FlaskClient, problem_of: Expect, places_of: Expect, headers: dict[str, str]) -> None:
    """No such model, models of different tasks, rows that one of the two cannot read: said before there is a job."""

    def ask(model: str, body: dict[str, Any]) -> TestResponse:
        return client.post(f"/models/{model}/compare", json=body, headers=headers)

    train(client)
    problem_of(ask("credit", {"with": "debit"}), 404)
    problem_of(ask("debit", {"with": "credit"}), 404)
    assert "/with" in places_of(ask("credit", {}), 422)
    train(client, target="size")
    assert "/with" in places_of(ask("credit@1", {"with": "credit@2"}), 422)
    train(client, features=["size"])
    body = {"with": "credit@3", "data": {"columns": {"age": [1], "job": ["clerk"]}}}
    assert "/data/columns/size" in places_of(ask("credit@1", body), 422)
    body["data"] = {"columns": {"age": ["x"], "job": ["clerk"], "size": [1]}}
    assert "/data/columns/age/0" in places_of(ask("credit@1", body), 422)
    train(client, parameters={"missing": "refuse"}, features=["age", "size"])
    body = {"with": "credit@4", "data": {"rows": [[1, 0.5], [2, None]]}}
    assert "/data/rows/1/1" in places_of(ask("credit@4", body), 422)
    assert client.get("/jobs").json["jobs"] == []
