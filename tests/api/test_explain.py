"""Explanations over HTTP, beside the answers, the tree and what a caller would find by trying."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.test_evaluate import train
from tests.oracle.contract import read_columns

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

Columns = dict[str, list[Any]]


def explain(client: FlaskClient, columns: Columns, **more: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of the request
    """The explanation of columns by the model m."""
    response = client.post("/models/m/explain", json={"data": {"columns": columns}, **more})
    assert response.status_code == 200, response.json
    body: dict[str, Any] = response.json
    return body


def predict(client: FlaskClient, columns: Columns) -> dict[str, Any]:
    """The answers of the model m."""
    body: dict[str, Any] = client.post("/models/m/predict", json={"data": {"columns": columns}}).json
    return body


def gap(columns: Columns, target: str | list[str]) -> Columns:
    """The columns without the target, here and there without a value."""
    left = {name: cells for name, cells in columns.items() if name != target and name not in target}
    return {
        name: [None if (row + place) % 7 == 3 else cell for row, cell in enumerate(cells)]
        for place, (name, cells) in enumerate(left.items())
    }


RUNS: list[tuple[str, str | list[str], dict[str, Any]]] = [
    ("rpart_iris.csv", "Species", {"parameters": {"max_depth": 4}}),
    ("rpart_iris.csv", "Petal.Width", {"parameters": {"missing": "surrogate", "max_depth": 3}}),
    ("rpart_iris.csv", ["Petal.Width", "Petal.Length"], {"parameters": {"max_depth": 3}}),
    ("rpart_stagec.csv", "pgstat", {"algorithm": "rpart"}),
    ("rpart_cartestframe.csv", "Price", {"parameters": {"criterion": "absolute_error", "min_samples_leaf": 4}}),
    ("golf.csv", "play", {"algorithm": "c45"}),
    ("golf.csv", "play", {"parameters": {"nominal": "multiway", "missing": "branch"}}),
    ("weka_vote.csv", "Class", {"algorithm": "j48"}),
]


def train_gapped(client: FlaskClient, file: str, target: str | list[str], more: dict[str, Any]) -> Columns:
    """Train m on a file with gaps; gives the rows without targets, at most 60 of them."""
    columns = read_columns(file)
    names = [target] if isinstance(target, str) else target
    gapped = gap(columns, target)
    train(client, {**gapped, **{name: columns[name] for name in names}}, target, **more)
    return {name: cells[:60] for name, cells in gapped.items()}


@pytest.mark.parametrize(("file", "target", "more"), RUNS)
def test_beside_answers_and_tree(client: FlaskClient, file: str, target: Any, more: dict[str, Any]) -> None:  # noqa: ANN401
    """Predictions and leaves are those of /predict, steps and ends those of /tree, one after the other."""
    asked = train_gapped(client, file, target, more)
    told, answers = explain(client, asked), predict(client, asked)
    nodes = client.get("/models/m/tree").json["nodes"]
    assert [row["prediction"] for row in told["rows"]] == answers["predictions"]
    assert [row["leaf"] for row in told["rows"]] == answers["leaves"]
    assert [row.get("probabilities") for row in told["rows"]] == answers.get("probabilities", [None] * 60)[:60]
    for index, row in enumerate(told["rows"]):
        come = {0}
        for step in row["path"]:
            node = nodes[step["node"]]
            assert step["node"] in come
            assert not node["leaf"]
            assert step["feature"] == node["feature"]
            assert step["value"] == asked[step["feature"]][index]
            assert {name: step[name] for name in ("n", "weight", "impurity")} == {
                name: node[name] for name in ("n", "weight", "impurity")
            }
            if step["how"] != "stopped":
                come |= set(node["children"]) if step["how"] == "parts" else {node["children"][step["branch"]]}
            assert step["to"] == (None if step["branch"] is None else node["children"][step["branch"]])
            assert (step["how"] == "surrogate") == ("surrogate" in step)
        assert {end["node"] for end in row["ends"]} <= come
        assert row["leaf"] in {end["node"] for end in row["ends"]}
        assert sum(end.get("share", 1) for end in row["ends"]) == pytest.approx(1)
        for end in row["ends"]:
            assert (end["n"], end["impurity"]) == (nodes[end["node"]]["n"], nodes[end["node"]]["impurity"])


@pytest.mark.parametrize(("file", "target", "more"), RUNS)
def test_counterfactuals_are_true(client: FlaskClient, file: str, target: Any, more: dict[str, Any]) -> None:  # noqa: ANN401
    """A row with only that cell changed is answered what was told, which is something else; the nearest comes first."""
    asked = train_gapped(client, file, target, more)
    told = explain(client, asked)
    changed: Columns = {name: [] for name in asked}
    expected = []
    for index, row in enumerate(told["rows"]):
        distances = [change["distance"] for change in row["counterfactuals"]]
        assert distances == sorted(distances)
        for change in row["counterfactuals"]:
            assert change["from"] == asked[change["feature"]][index]
            assert change["prediction"] != row["prediction"]
            for name, cells in asked.items():
                changed[name].append(change["to"] if name == change["feature"] else cells[index])
            expected.append((change["prediction"], change["leaf"]))
    assert expected
    answers = predict(client, changed)
    assert list(zip(answers["predictions"], answers["leaves"], strict=True)) == expected


@pytest.mark.parametrize(("file", "target", "more"), RUNS)
def test_shapley_values_add_up(client: FlaskClient, file: str, target: Any, more: dict[str, Any]) -> None:  # noqa: ANN401
    """What is expected and the values of all features make up the probabilities or the number, row by row."""
    asked = train_gapped(client, file, target, more)
    told = explain(client, asked, shapley=True, counterfactuals=False)
    expected = told["shapley"]["expected"]
    for row in told["rows"]:
        assert "counterfactuals" not in row
        assert list(row["shapley"]) == list(asked)
        answer = row["probabilities"] if "classes" in told else row["prediction"]
        assert told["shapley"]["explains"] == ("probabilities" if "classes" in told else "predictions")
        if isinstance(answer, list):
            sums = [e + sum(v[i] for v in row["shapley"].values()) for i, e in enumerate(expected)]
            assert sums == pytest.approx(answer)
        else:
            assert expected + sum(row["shapley"].values()) == pytest.approx(answer)


def test_ranges_outlive_pruning(client: FlaskClient) -> None:
    """A distance is by the range of the training values, also in the version that pruning made."""
    train(client, {"x": [0, 1, 2, 3, 10], "y": ["a", "a", "b", "b", "b"]}, "y")
    client.post("/models/m/prune", json={"leaves": 2})
    for model in ("m@1", "m@2"):
        body = client.post(f"/models/{model}/explain", json={"data": {"columns": {"x": [1]}}}).json
        assert [change["distance"] for change in body["rows"][0]["counterfactuals"]] == [0.1]


@pytest.mark.parametrize(
    ("more", "place"),
    [({"shapley": "perhaps"}, "/shapley"), ({"counterfactuals": 7}, "/counterfactuals"), ({"rows": []}, "/rows")],
)
def test_what_cannot_be_asked(
    client: FlaskClient, places_of: Expect, tennis: Columns, more: dict[str, Any], place: str
) -> None:
    """Each is a 422 that names the place."""
    train(client, tennis, "play")
    response = client.post("/models/m/explain", json={"data": {"columns": tennis}, **more})
    assert list(places_of(response, 422)) == [place]


def test_too_many_rows(make_app: MakeApp, places_of: Expect, tennis: Columns) -> None:
    """More than the setting allows are a 422 that names it."""
    client = make_app(max_explained_rows=13).test_client()
    train(client, tennis, "play")
    faults = places_of(client.post("/models/m/explain", json={"data": {"columns": tennis}}), 422)
    assert "TREEWRIGHT_MAX_EXPLAINED_ROWS" in faults["/data"]
    fewer = {name: cells[:13] for name, cells in tennis.items()}
    assert len(explain(client, fewer)["rows"]) == 13


def test_limits_of_one_answer(
    client: FlaskClient, places_of: Expect, tennis: Columns, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Too many steps, values to try or factors are a 422 that says what to do."""
    train(client, tennis, "play")
    url, body = "/models/m/explain", {"data": {"columns": tennis}, "shapley": True}
    for name, place in (("explaining.MOST_STEPS", "/data"), ("core.counterfactual.MOST_TRIED", "/data"),
                        ("explaining.MOST_FACTORS", "/shapley"), ("explaining.MOST_NUMBERS", "/shapley")):  # fmt: skip
        with monkeypatch.context() as patch:
            patch.setattr(f"service.{name}", 3)
            assert list(places_of(client.post(url, json=body), 422)) == [place]
    with monkeypatch.context() as patch:
        patch.setattr("service.core.counterfactual.MOST_TRIED", 3)
        # one row may be too many, so there is more than one way out, and both lead there
        said = places_of(client.post(url, json={"data": {"columns": tennis}}), 422)["/data"]
        assert 'fewer rows, or say "counterfactuals": false' in said
        assert client.post(url, json={"data": {"columns": tennis}, "counterfactuals": False}).status_code == 200
    monkeypatch.setattr("service.explaining.MOST_NUMBERS", 100)
    assert list(places_of(client.post(url, json={"data": {"columns": tennis}}), 422)) == ["/data"]
    one = {"data": {"columns": {name: cells[:1] for name, cells in tennis.items()}}}
    assert client.post(url, json=one).status_code == 200


def test_answers_that_are_no_numbers(client: FlaskClient, places_of: Expect) -> None:
    """Medoids are explained by their way and their counterfactuals; Shapley values of them there are none."""
    train(client, {"x": [1, 2, 3, 4], "y": ["p", "p", "q", "q"]}, "y", parameters={"criterion": "dissimilarity"})
    (row,) = explain(client, {"x": [1]})["rows"]
    assert (row["prediction"], row["rule"]) == ("p", "x <= 2.5")
    assert [(change["to"], change["prediction"]) for change in row["counterfactuals"]] == [(3, "q")]
    response = client.post("/models/m/explain", json={"data": {"columns": {"x": [1]}}, "shapley": True})
    assert list(places_of(response, 422)) == ["/shapley"]


def test_no_such_model(client: FlaskClient, problem_of: Expect) -> None:
    """It is a 404 before anything is read."""
    problem_of(client.post("/models/none/explain", json={"data": {"rows": []}}), 404)


def test_numbers_as_levels(client: FlaskClient) -> None:
    """Where distinct numbers are ordered levels, the change goes to a number that training had."""
    train(client, {"x": [10, 20, 30, 40], "y": ["a", "a", "b", "b"]}, "y", algorithm="id3",
          parameters={"numeric": "ordinal", "nominal": "subset"})  # fmt: skip
    (row,) = explain(client, {"x": [10]}, shapley=True)["rows"]
    (change,) = row["counterfactuals"]
    assert (row["prediction"], change["to"], change["prediction"]) == ("a", 30, "b")
    assert change["distance"] == pytest.approx(2 / 3)


def test_refused_gaps(client: FlaskClient, places_of: Expect, tennis: Columns) -> None:
    """A model that refuses missing values explains none either; nor does it take columns of another kind."""
    train(client, tennis, "play", parameters={"missing": "refuse"})
    gapped = {**tennis, "outlook": [None, *tennis["outlook"][1:]]}
    response = client.post("/models/m/explain", json={"data": {"columns": gapped}})
    assert list(places_of(response, 422)) == ["/data/columns/outlook/0"]
    wrong = {**tennis, "temperature": ["warm"] * 14}
    response = client.post("/models/m/explain", json={"data": {"columns": wrong}})
    assert list(places_of(response, 422)) == ["/data/columns/temperature/0"]


def test_new_categories_are_shown_as_posted(client: FlaskClient, tennis: Columns) -> None:
    """The step at which a row stops has its category, and the rule says which ones would not have stopped it."""
    train(client, tennis, "play")
    asked = {"outlook": ["hail"], "temperature": [70], "windy": [False]}
    told = explain(client, asked)
    (row,) = told["rows"]
    stopped = row["path"][-1]
    assert (stopped["feature"], stopped["value"], stopped["how"], stopped["passed"]) == (
        "outlook",
        "hail",
        "stopped",
        None,
    )
    (end,) = row["ends"]
    assert list(end) == ["node", "leaf", "n", "weight", "counts", "impurity"]
    assert not end["leaf"]
    assert "outlook is none of" in row["rule"]
    assert row["probabilities"] == predict(client, asked)["probabilities"][0]
    assert len(told["warnings"]) == 1
