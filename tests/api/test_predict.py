"""Prediction over HTTP: rows by name or in order, typed cells, answers in the order of the rows."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

ROW = {"outlook": "sunny", "temperature": 70, "windy": False}


def predict(client: FlaskClient, data: dict[str, Any]) -> dict[str, Any]:
    """The answer of the model golf."""
    response = client.post("/models/golf/predict", json={"data": data})
    assert response.status_code == 200, response.json
    body: dict[str, Any] = response.json
    return body


def test_answer(client: FlaskClient, model: dict[str, Any], tennis: dict[str, list[Any]]) -> None:
    """The answer names the model and has, for each row, the class, the probability of each class and the leaf."""
    del tennis["play"]
    body = predict(client, {"columns": tennis})
    assert body["model"] == {"id": model["id"], "name": "golf", "version": 1}
    assert (body["classes"], body["warnings"]) == (["no", "yes"], [])
    assert len(body["predictions"]) == len(body["probabilities"]) == len(body["leaves"]) == 14
    for label, shares in zip(body["predictions"], body["probabilities"], strict=True):
        assert sum(shares) == pytest.approx(1)
        assert shares[body["classes"].index(label)] == max(shares)
    leaves = {node["node"] for node in client.get("/models/golf/tree").json["nodes"] if node["leaf"]}
    assert set(body["leaves"]) <= leaves


@pytest.mark.usefixtures("model")
def test_forms_agree(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """Columns, records, a header with rows, and rows alone in the training order give the same answer (S18)."""
    del tennis["play"]
    rows = [list(row) for row in zip(*tennis.values(), strict=True)]
    records = [dict(zip(tennis, row, strict=True)) for row in rows]
    backwards = [dict(reversed(record.items())) for record in records]
    answers = [
        predict(client, data)
        for data in (
            {"columns": tennis},
            {"columns": dict(reversed(tennis.items()))},
            {"records": records},
            {"records": backwards},
            {"header": list(tennis), "rows": rows},
            {"rows": rows},
        )
    ]
    assert all(body == answers[0] for body in answers)


@pytest.mark.usefixtures("model")
def test_order_of_a_large_batch(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """10,000 records, keys in any order, are answered in the order of the rows (S18)."""
    del tennis["play"]
    single = predict(client, {"columns": tennis})["leaves"]
    source = random.Random(1)  # noqa: S311 - an order, not a secret
    picks = [source.randrange(14) for _ in range(10_000)]
    names = list(tennis)
    records = [{name: tennis[name][pick] for name in source.sample(names, 3)} for pick in picks]
    assert predict(client, {"records": records})["leaves"] == [single[pick] for pick in picks]


@pytest.mark.usefixtures("model")
def test_columns_are_matched_by_name(client: FlaskClient, places_of: Expect) -> None:
    """An extra column is reported, whatever it holds; each missing one is a 422 that names it (S5)."""
    body = predict(
        client, {"columns": {"extra": [["not", "a", "cell"]], **{name: [cell] for name, cell in ROW.items()}}}
    )
    (warning,) = body["warnings"]
    assert "extra" in warning
    response = client.post("/models/golf/predict", json={"data": {"columns": {"temperature": [70], "extra": [1]}}})
    assert set(places_of(response, 422)) == {"/data/columns/outlook", "/data/columns/windy"}
    response = client.post("/models/golf/predict", json={"data": {"records": [{"temperature": 70}]}})
    assert set(places_of(response, 422)) == {"/data/records"}
    assert "outlook" in response.get_data(as_text=True)


@pytest.mark.usefixtures("model")
def test_missing_cells(client: FlaskClient) -> None:
    """Null, and a key that a record lacks, are missing; every row still has an answer (S1, S7)."""
    rows = [{**ROW, "windy": None}, {"temperature": 70, "outlook": "sunny"}, dict.fromkeys(ROW)]
    body = predict(client, {"records": rows})
    assert body["predictions"][0] == body["predictions"][1]
    assert set(body["predictions"]) <= {"no", "yes"}


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("column", "cell"),
    [("windy", "abc"), ("windy", 1), ("windy", 0.0), ("temperature", "abc"), ("temperature", True),
     ("outlook", ["sunny"]), ("outlook", {"is": "sunny"})],
)  # fmt: skip
def test_cells_of_another_type(client: FlaskClient, places_of: Expect, column: str, cell: object) -> None:
    """A cell that cannot be the feature's is a 422 that names the column and the row, in every form (S7)."""
    rows = [ROW, {**ROW, column: None}, {**ROW, column: cell}]
    index = list(ROW).index(column)
    for data, place in (
        ({"records": rows}, f"/data/records/2/{column}"),
        ({"columns": {name: [row[name] for row in rows] for name in ROW}}, f"/data/columns/{column}/2"),
        ({"rows": [list(row.values()) for row in rows]}, f"/data/rows/2/{index}"),
    ):
        faults = places_of(client.post("/models/golf/predict", json={"data": data}), 422)
        assert list(faults) == [place]
        assert "row 2" in faults[place]


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("data", "place"),
    [
        ({"rows": [["sunny", 70]]}, "/data/rows/0"),
        ({"rows": [["sunny", 70, False], ["sunny", 70, False, 1]]}, "/data/rows/1"),
        ({"rows": ["sunny", 70, False]}, "/data/rows/0"),
        ({"rows": []}, "/data"),
        ({"records": []}, "/data"),
        ({"columns": {"outlook": [], "temperature": [], "windy": []}}, "/data"),
        ({"columns": {"outlook": ["sunny"], "temperature": [70, 71], "windy": [True]}}, "/data/columns/temperature"),
        ({"header": ["windy", "windy"], "rows": [[True, True]]}, "/data/header/1"),
        ({}, "/data"),
    ],
)
def test_misshapen_data(client: FlaskClient, places_of: Expect, data: dict[str, Any], place: str) -> None:
    """Ragged, one-dimensional, doubled and empty data are a 422 that names the row, then it serves on (S12, S13)."""
    assert place in places_of(client.post("/models/golf/predict", json={"data": data}), 422)
    assert predict(client, {"records": [ROW]})["warnings"] == []


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("body", [{}, {"data": [1]}, {"data": {"rows": []}, "parameters": {}}, {"instances": []}])
def test_envelope(client: FlaskClient, problem_of: Expect, body: dict[str, Any]) -> None:
    """The envelope has data and nothing else."""
    problem_of(client.post("/models/golf/predict", json=body), 422)


@pytest.mark.usefixtures("model")
def test_unseen_category(client: FlaskClient) -> None:
    """A category that training did not see gets an answer, and a warning that names it."""
    body = predict(client, {"records": [{**ROW, "outlook": "foggy"}]})
    assert set(body["predictions"]) <= {"no", "yes"}
    assert "foggy" in " ".join(body["warnings"])


def test_unseen_level(client: FlaskClient) -> None:
    """An ordinal level that training did not know gets an answer and a warning too."""
    schema = {"size": {"kind": "ordinal", "categories": ["S", "M", "L"]}}
    body = {
        "data": {"columns": {"size": ["S", "M", "L"], "y": ["a", "b", "b"]}},
        "target": "y",
        "schema": schema,
        "name": "o",
    }
    assert client.post("/train", json=body).status_code == 201
    answer = client.post("/models/o/predict", json={"data": {"rows": [["XL"], ["S"]]}})
    assert answer.status_code == 200
    assert answer.json["predictions"][1] == "a"
    assert "XL" in " ".join(answer.json["warnings"])


def test_regression(client: FlaskClient) -> None:
    """A regression model answers numbers and leaves, without classes."""
    columns = {"x": [1, 2, 3, 4], "y": [0.5, 0.5, 2.25, 2.25]}
    client.post("/train", json={"data": {"columns": columns}, "target": "y", "name": "r"})
    body = client.post("/models/r/predict", json={"data": {"rows": [[4], [1], [None]]}}).json
    assert body["predictions"][:2] == [2.25, 0.5]
    assert isinstance(body["predictions"][2], float)
    assert {"classes", "probabilities"}.isdisjoint(body)


def test_whole_numbers_past_2_53(client: FlaskClient) -> None:
    """Neighbouring integers past 2^53 go to the leaves that they were trained into."""
    columns = {"x": [2**53, 2**53 + 1], "y": ["a", "b"]}
    client.post("/train", json={"data": {"columns": columns}, "target": "y", "name": "big"})
    body = client.post("/models/big/predict", json={"data": {"columns": {"x": columns["x"]}}}).json
    assert body["predictions"] == ["a", "b"]


@pytest.mark.usefixtures("model")
def test_limits(make_app: MakeApp, places_of: Expect) -> None:
    """The limits of a table hold for prediction too."""
    client = make_app(max_rows=2).test_client()
    faults = places_of(client.post("/models/golf/predict", json={"data": {"records": [ROW] * 3}}), 422)
    assert "TREEWRIGHT_MAX_ROWS" in faults["/data/records"]


def test_no_such_model(client: FlaskClient, problem_of: Expect) -> None:
    """A model that is not there is a 404."""
    problem_of(client.post("/models/none/predict", json={"data": {"rows": [[1]]}}), 404)
