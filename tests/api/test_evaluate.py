"""Evaluation over HTTP: the measures of real answers, and every odd table."""

from __future__ import annotations

import json
import math
from typing import TYPE_CHECKING, Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from sklearn import metrics as peer

from tests.oracle.contract import read_columns

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect


def train(client: FlaskClient, columns: dict[str, list[Any]], target: str | list[str], **more: Any) -> None:  # noqa: ANN401 - fields of the request
    """Train a model named m."""
    response = client.post("/train", json={"data": {"columns": columns}, "target": target, "name": "m", **more})
    assert response.status_code == 201, response.json


def evaluate(client: FlaskClient, model: str, columns: dict[str, list[Any]], **more: Any) -> dict[str, Any]:  # noqa: ANN401
    """The evaluation of a model on columns."""
    response = client.post(f"/models/{model}/evaluate", json={"data": {"columns": columns}, **more})
    assert response.status_code == 200, response.json
    body: dict[str, Any] = response.json
    return body


@pytest.mark.parametrize(("file", "target"), [("rpart_iris.csv", "Species"), ("rpart_kyphosis.csv", "Kyphosis")])
def test_classes_of_real_data(client: FlaskClient, file: str, target: str) -> None:
    """Trained on every other row and measured on the rest, with weights: scikit-learn says the same of the answers."""
    columns = read_columns(file)
    seen, rest = ({name: cells[start::2] for name, cells in columns.items()} for start in (0, 1))
    train(client, seen, target, parameters={"max_depth": 3})
    truth = rest[target]
    weight = [1.0 + row % 4 for row in range(len(truth))]
    body = evaluate(client, "m", {**rest, "w": weight}, weight="w")
    asked = {name: cells for name, cells in rest.items() if name != target}
    answer = client.post("/models/m/predict", json={"data": {"columns": asked}}).json
    called, shares, classes = answer["predictions"], answer["probabilities"], answer["classes"]
    assert (body["rows"], body["weight"], body["classes"]) == (len(truth), sum(weight), classes)
    assert body["warnings"] == []
    given = {"sample_weight": weight}
    expected = {
        "accuracy": peer.accuracy_score(truth, called, **given),
        "balanced_accuracy": peer.balanced_accuracy_score(truth, called, **given),
        "log_loss": peer.log_loss(truth, shares, labels=classes, **given),
    }
    if len(classes) == 2:
        positive = [share for _, share in shares]
        expected["brier"] = peer.brier_score_loss(truth, positive, pos_label=classes[1], **given)
        expected["roc_auc"] = peer.roc_auc_score(truth, positive, **given)
    else:
        expected["brier"] = peer.brier_score_loss(truth, shares, labels=classes, **given)
        for name, average in (("roc_auc", "macro"), ("roc_auc_weighted", "weighted")):
            expected[name] = peer.roc_auc_score(truth, shares, multi_class="ovr", average=average, **given)
    assert body["metrics"] == pytest.approx(expected)
    assert body["confusion"] == peer.confusion_matrix(truth, called, labels=classes, **given).tolist()
    precision, recall, f1, weights = peer.precision_recall_fscore_support(truth, called, labels=classes, **given)
    for place, shown in enumerate(body["by_class"]):
        assert shown["class"] == classes[place]
        told = [shown[name] for name in ("precision", "recall", "f1", "weight")]
        assert told == pytest.approx([precision[place], recall[place], f1[place], weights[place]])


def test_numbers_of_real_data(client: FlaskClient) -> None:
    """The petal's width from the rest of iris, measured on other rows: scikit-learn says the same of the answers."""
    columns = read_columns("rpart_iris.csv")
    seen, rest = ({name: cells[start::2] for name, cells in columns.items()} for start in (0, 1))
    train(client, seen, "Petal.Width")
    body = evaluate(client, "m", rest)
    truth = rest.pop("Petal.Width")
    called = client.post("/models/m/predict", json={"data": {"columns": rest}}).json["predictions"]
    assert body["metrics"] == pytest.approx({
        "r2": peer.r2_score(truth, called),
        "mae": peer.mean_absolute_error(truth, called),
        "rmse": peer.root_mean_squared_error(truth, called),
        "deviance": peer.mean_squared_error(truth, called),
    })  # fmt: skip
    assert set(body) == {"model", "rows", "weight", "metrics", "warnings"}


def test_several_targets(client: FlaskClient, places_of: Expect) -> None:
    """Each measure is the mean over the targets, which are listed too: scikit-learn says the same of the answers."""
    columns = read_columns("rpart_iris.csv")
    seen, rest = ({name: cells[start::2] for name, cells in columns.items()} for start in (0, 1))
    names = ["Petal.Width", "Petal.Length"]
    train(client, seen, names, parameters={"max_depth": 3})
    weight = [1.0 + row % 4 for row in range(75)]
    body = evaluate(client, "m", {**rest, "w": weight}, weight="w")
    asked = {name: cells for name, cells in rest.items() if name not in names}
    called = client.post("/models/m/predict", json={"data": {"columns": asked}}).json["predictions"]
    truth = list(zip(*(rest[name] for name in names), strict=True))
    measures = {"r2": peer.r2_score, "mae": peer.mean_absolute_error, "rmse": peer.root_mean_squared_error,
                "deviance": peer.mean_squared_error}  # fmt: skip
    each = body["metrics"].pop("by_target")
    for name, score in measures.items():
        assert body["metrics"][name] == pytest.approx(score(truth, called, sample_weight=weight))
        raw = score(truth, called, sample_weight=weight, multioutput="raw_values")
        assert [each[target][name] for target in names] == pytest.approx(raw)
    renamed = {f"{name}!" if name in names else name: cells for name, cells in rest.items()}
    again = evaluate(client, "m", renamed, target=["Petal.Width!", "Petal.Length!"])
    assert again["metrics"] == evaluate(client, "m", rest)["metrics"]
    for target in ("Petal.Width", [], ["Petal.Width"] * 2, [*names, "Sepal.Width"], ["Petal.Width", "no"], [1, 2]):
        response = client.post("/models/m/evaluate", json={"data": {"columns": rest}, "target": target})
        assert set(places_of(response, 422)) == {"/target"}
    del rest["Petal.Width"]
    response = client.post("/models/m/evaluate", json={"data": {"columns": rest}})
    assert set(places_of(response, 422)) == {"/data/columns/Petal.Width"}
    gaps = {
        **columns,
        "Petal.Width": [None, *columns["Petal.Width"][1:]],
        "Petal.Length": [*columns["Petal.Length"][:-1], None],
    }
    assert evaluate(client, "m", gaps, missing_target="drop")["rows"] == 148


def test_the_training_rows(client: FlaskClient, model: dict[str, Any], tennis: dict[str, list[Any]]) -> None:
    """On these the accuracy is that of the record, whichever form the table has; a model is named in the answer."""
    first = evaluate(client, "golf", tennis)
    assert first["metrics"]["accuracy"] == model["metrics"]["accuracy"]
    assert first["model"] == {"id": model["id"], "name": "golf", "version": 1}
    rows = [list(row) for row in zip(*tennis.values(), strict=True)]
    for data in (
        {"records": [dict(zip(tennis, row, strict=True)) for row in rows]},
        {"header": list(tennis), "rows": rows},
        {"rows": rows},
    ):
        assert client.post("/models/golf/evaluate", json={"data": data}).json == first
    assert client.get(f"/models/{model['id']}").json["links"]["evaluate"] == f"/models/{model['id']}/evaluate"


@pytest.mark.usefixtures("model")
def test_another_name_of_the_target(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """The true answers may stand in a column of any name; the one of training is then a column like others."""
    first = evaluate(client, "golf", tennis)
    renamed = {"truth" if name == "play" else name: cells for name, cells in tennis.items()}
    assert evaluate(client, "golf", renamed, target="truth") == first
    both = evaluate(client, "golf", {**tennis, "truth": ["no"] * 14}, target="truth")
    assert sum(both["confusion"][1]) == 0
    (warning,) = both["warnings"]
    assert "play" in warning


@pytest.mark.usefixtures("model")
def test_rows_without_a_target(client: FlaskClient, places_of: Expect, tennis: dict[str, list[Any]]) -> None:
    """They are refused with the first one's place, or dropped with a warning, and so are rows of weight 0."""
    whole = evaluate(client, "golf", {name: cells[2:] for name, cells in tennis.items()})
    gaps = {**tennis, "play": [None, None, *tennis["play"][2:]]}
    response = client.post("/models/golf/evaluate", json={"data": {"columns": gaps}})
    assert list(places_of(response, 422)) == ["/data/columns/play/0"]
    dropped = evaluate(client, "golf", gaps, missing_target="drop")
    weightless = evaluate(client, "golf", {**tennis, "w": [0, 0] + [1] * 12}, weight="w")
    for body in (dropped, weightless):
        (warning,) = body["warnings"]
        assert "2 rows" in warning
        assert body | {"warnings": []} == whole


@pytest.mark.usefixtures("model")
def test_labels_that_training_did_not_have(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """They count as wrong, are named in a warning and listed apart, other JSON types too."""
    plain = evaluate(client, "golf", tennis)
    assert plain["unseen"] is None
    strange = [*tennis["play"][:11], "perhaps", 1, True]
    body = evaluate(client, "golf", {**tennis, "play": strange})
    assert sum(body["unseen"]) == 3
    (warning,) = body["warnings"]
    assert all(label in warning for label in ("3 rows", "'perhaps'", "1", "True"))
    assert body["metrics"]["accuracy"] <= 11 / 14
    assert sum(map(sum, body["confusion"])) + sum(body["unseen"]) == 14
    assert "the classes are 'no', 'yes'" in warning
    none = evaluate(client, "golf", {**tennis, "play": ["NO"] * 14})
    assert none["metrics"]["accuracy"] == none["metrics"]["balanced_accuracy"] == 0
    assert none["metrics"]["roc_auc"] is None


@pytest.mark.usefixtures("model")
def test_one_row_and_one_class(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """What cannot be said of a single row, or of rows that are all alike, is null."""
    for rows in (slice(2, 3), slice(2, 5)):
        body = evaluate(client, "golf", {name: cells[rows] for name, cells in tennis.items()})
        assert body["metrics"]["roc_auc"] is None
        assert 0 <= body["metrics"]["balanced_accuracy"] == body["metrics"]["accuracy"] <= 1
        no, yes = body["by_class"]
        assert (no["weight"], no["recall"], no["roc_auc"]) == (0, None, None)
        assert yes["weight"] == body["rows"]


@pytest.mark.usefixtures("model")
def test_predictors_that_training_did_not_see(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """Unseen categories and missing cells are answered as by `predict`, with its warnings."""
    tennis["outlook"][0], tennis["windy"][1] = "hail", None
    tennis["extra"] = [[]] * 14
    body = evaluate(client, "golf", tennis)
    assert len(body["warnings"]) == 2
    assert "extra" in body["warnings"][0]
    assert "hail" in body["warnings"][1]
    assert body["rows"] == 14


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("changes", "more", "place"),
    [
        ({"play": None}, {}, "/data/columns/play"),
        ({}, {"target": "plays"}, "/target"),
        ({}, {"target": "outlook"}, "/target"),
        ({}, {"target": ""}, "/target"),
        ({}, {"target": 1}, "/target"),
        ({}, {"weight": "w"}, "/weight"),
        ({}, {"weight": ""}, "/weight"),
        ({}, {"weight": "temperature"}, "/weight"),
        ({}, {"weight": "play"}, "/weight"),
        ({"w": ["heavy"] * 14}, {"weight": "w"}, "/data/columns/w/0"),
        ({"w": [1] * 13 + [-1]}, {"weight": "w"}, "/data/columns/w/13"),
        ({"w": [1] * 13 + [None]}, {"weight": "w"}, "/data/columns/w/13"),
        ({"w": [0] * 14}, {"weight": "w"}, "/data"),
        ({"w": [1e308] * 14}, {"weight": "w"}, "/weight"),
        ({"w": [0.0] * 14, "play": [None] * 14}, {"weight": "w", "missing_target": "drop"}, "/data"),
        ({"play": [["no"]] * 14}, {}, "/data/columns/play/0"),
        ({"windy": None}, {}, "/data/columns/windy"),
        ({"windy": ["yes"] * 14}, {}, "/data/columns/windy/0"),
        ({}, {"missing_target": "guess"}, "/missing_target"),
        ({}, {"metric": "accuracy"}, "/metric"),
    ],
)
def test_what_cannot_be_evaluated(
    client: FlaskClient, places_of: Expect, tennis: dict[str, list[Any]], changes: dict[str, Any], more: dict[str, Any],
    place: str,
) -> None:  # fmt: skip
    """Each is a 422 that names the place."""
    columns = {name: cells for name, cells in (tennis | changes).items() if cells is not None}
    response = client.post("/models/golf/evaluate", json={"data": {"columns": columns}, **more})
    assert list(places_of(response, 422)) == [place]


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("data", [{}, {"columns": {}}, {"records": []}, {"rows": []}, {"rows": [["sunny", 70, True]]}])
def test_empty_and_short_tables(client: FlaskClient, places_of: Expect, data: dict[str, Any]) -> None:
    """A table without rows or without the target is refused, in every form."""
    assert places_of(client.post("/models/golf/evaluate", json={"data": data}), 422)


@pytest.mark.usefixtures("model")
def test_rows_alone(client: FlaskClient, places_of: Expect, tennis: dict[str, list[Any]]) -> None:
    """They are in the order of the features, then the target, then the weight; one cell more or less is a 422."""
    weighed = {**tennis, "w": [1, 2] * 7}
    rows = [list(row) for row in zip(*weighed.values(), strict=True)]
    response = client.post("/models/golf/evaluate", json={"data": {"rows": rows}, "weight": "w"})
    assert response.json == evaluate(client, "golf", weighed, weight="w")
    response = client.post("/models/golf/evaluate", json={"data": {"rows": rows}})
    assert "/data/rows/0" in places_of(response, 422)
    gap = [*rows[:3], [*rows[3][:3], None, 1]]
    response = client.post("/models/golf/evaluate", json={"data": {"rows": gap}, "weight": "w"})
    assert list(places_of(response, 422)) == ["/data/rows/3/3"]


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("cell", ["NaN", "Infinity", "1e400"])
def test_numbers_that_json_has_not(client: FlaskClient, problem_of: Expect, cell: str) -> None:
    """They are a 400, as everywhere."""
    for row in (f'["sunny", {cell}, true, "no"]', f'["sunny", 70, true, {cell}]'):
        body = f'{{"data": {{"rows": [{row}]}}}}'
        problem_of(client.post("/models/golf/evaluate", data=body, content_type="application/json"), 400)


ODD = st.sampled_from([None, 0, 1, -1, 2**53 + 1, 2**64, 0.5, -0.0, 1e300, -1e-320, True, "", "yes", "no", "1", [], {}])
TARGETS = {"strings": ["no", "yes", "no", "so"], "numbers": [0.5, 2, 2, 7], "booleans": [True, False, True, True],
           "alike": ["no"] * 4, "whole": [1, 0, 1, 2**53 + 1]}  # fmt: skip


@settings(deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=40)
@given(data=st.data())
def test_no_table_is_a_fault_of_ours(client: FlaskClient, data: st.DataObject) -> None:
    """Whatever cells stand in targets, weights and features: the answer is finite numbers and nulls, or a 422."""
    name = data.draw(st.sampled_from(sorted(TARGETS)))
    missing = data.draw(st.sampled_from(["direction", "branch", "surrogate", "fractional"]))
    regression = data.draw(st.sampled_from(["variance", "absolute_error", "poisson"]))
    criterion = {"criterion": regression} if name in ("numbers", "whole") else {}
    training = {"x": [1, 2, 3, None], "z": [0, 4, None, 9], "k": ["a", "b", "a", None], "y": TARGETS[name]}
    train(client, training, "y", parameters={"missing": missing, **criterion})
    rows = data.draw(st.integers(0, 4))
    usual = {"x": [1, None], "z": [1, 5], "k": ["a", "c"], "y": TARGETS[name], "w": [1, 2, 0.5]}
    cells = {
        column: st.lists(st.one_of(st.sampled_from(some), ODD) if data.draw(st.booleans()) else st.sampled_from(some),
                         min_size=rows, max_size=rows)
        for column, some in usual.items()
    }  # fmt: skip
    body = {
        "data": {"columns": {column: data.draw(some) for column, some in cells.items()}},
        "weight": data.draw(st.sampled_from([None, "w"])),
        "missing_target": data.draw(st.sampled_from(["refuse", "drop"])),
    }
    for resource in ("evaluate", "importance"):
        response = client.post(f"/models/m/{resource}", data=json.dumps(body), content_type="application/json")
        assert response.status_code in (200, 400, 422), response.json
        if response.status_code == 200 and resource == "evaluate":
            assert all(value is None or math.isfinite(value) for value in response.json["metrics"].values())


def test_classes_that_are_numbers_or_booleans(
    client: FlaskClient, places_of: Expect, tennis: dict[str, list[Any]]
) -> None:
    """1 and 1.0 are one class; a label of another type than the target's kind is refused with its place."""
    numbers = {**tennis, "play": [int(label == "yes") for label in tennis["play"]]}
    train(client, numbers, "play", task="classification")
    plain = evaluate(client, "m", numbers)
    assert evaluate(client, "m", {**numbers, "play": [float(label) for label in numbers["play"]]}) == plain
    body = evaluate(client, "m", {**numbers, "play": [0.5, 2, *numbers["play"][2:]]})
    assert sum(body["unseen"]) == 2
    assert "0.5, 2.0" in body["warnings"][0]
    booleans = {**tennis, "play": [label == "yes" for label in tennis["play"]]}
    response = client.post("/models/m/evaluate", json={"data": {"columns": booleans}})
    assert list(places_of(response, 422)) == ["/data/columns/play/0"]
    train(client, booleans, "play", positive_class=True)
    assert evaluate(client, "m", booleans)["confusion"] == plain["confusion"]
    response = client.post("/models/m/evaluate", json={"data": {"columns": numbers}})
    assert list(places_of(response, 422)) == ["/data/columns/play/0"]


def test_numbers_at_their_edges(client: FlaskClient, places_of: Expect) -> None:
    """Equal targets have no R2; one that is too large to be squared is refused; weights may be of any size."""
    train(client, {"x": [1, 2, 3, 4], "y": [1.5, 1.5, 4.0, 4.0]}, "y")
    equal = evaluate(client, "m", {"x": [1, 2], "y": [1.5, 1.5]})
    assert equal["metrics"] == {"r2": None, "mae": 0.0, "rmse": 0.0, "deviance": 0.0}
    heavy = evaluate(client, "m", {"x": [1, 3], "y": [2.5, 4], "w": [8e307, 8e307]}, weight="w")
    light = evaluate(client, "m", {"x": [1, 3], "y": [2.5, 4], "w": [5e-324, 5e-324]}, weight="w")
    assert heavy["metrics"]["mae"] == light["metrics"]["mae"] == 0.5
    response = client.post("/models/m/evaluate", json={"data": {"columns": {"x": [1], "y": [1e200]}}})
    assert list(places_of(response, 422)) == ["/data/columns/y/0"]
    response = client.post("/models/m/evaluate", json={"data": {"columns": {"x": [1], "y": ["a"]}}})
    assert list(places_of(response, 422)) == ["/data/columns/y/0"]
