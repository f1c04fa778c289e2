"""Training over HTTP: what is accepted, and what a record has."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.making import Columns, request_of, train

if TYPE_CHECKING:
    from flask.testing import FlaskClient


def without(record: dict[str, Any], *more: str) -> dict[str, Any]:
    """A record without what differs between two trainings on the same data."""
    training = {key: value for key, value in record["training"].items() if key != "seconds"}
    gone = {"id", "created", "version", "name", "links", *more}
    return {key: value for key, value in record.items() if key not in gone} | {"training": training}


def test_record(client: FlaskClient, tennis: Columns) -> None:
    """A new model is a 201 with its URL and its record, every part of the contract in it."""
    body = request_of(tennis, name="golf", description="Quinlan's", tags={"team": "risk"}, parameters={"max_depth": 2})
    response = client.post("/train", json=body)
    record = response.json
    assert response.status_code == 201
    assert response.headers["Location"] == f"/models/{record['id']}" == record["links"]["self"]
    assert (record["name"], record["version"], record["algorithm"], record["retention"]) == ("golf", 1, "cart", "data")
    assert (record["description"], record["tags"], record["warnings"]) == ("Quinlan's", {"team": "risk"}, [])
    assert (record["parameters"]["criterion"], record["parameters"]["max_depth"]) == ("gini", 2)
    assert record["schema"]["features"] == [
        {"name": "outlook", "kind": "nominal", "categories": ["overcast", "rain", "sunny"]},
        {"name": "temperature", "kind": "numeric"},
        {"name": "windy", "kind": "boolean", "categories": [False, True]},
    ]
    target = record["schema"]["target"]
    assert (target["name"], target["kind"], target["classes"]) == ("play", "nominal", ["no", "yes"])
    assert (record["training"]["rows"], record["training"]["columns"]) == (14, 3)
    assert len(record["training"]["data_sha256"]) == 64
    assert record["training"]["seconds"] >= 0
    assert record["tree"]["nodes"] == 2 * record["tree"]["leaves"] - 1
    assert record["created"].endswith("Z")
    for link in record["links"].values():
        assert client.options(link).status_code == 200


def test_forms_train_the_same_model(client: FlaskClient, tennis: Columns) -> None:
    """Columns, records with keys in any order, and rows give the same model of the same data (S18)."""
    rows = [list(row) for row in zip(*tennis.values(), strict=True)]
    records = [dict(zip(tennis, row, strict=True)) for row in rows]
    source = random.Random(0)  # noqa: S311 - an order, not a secret
    shuffled = [records[0], *(dict(source.sample(list(record.items()), len(record))) for record in records[1:])]
    told = [
        without(client.post("/train", json={"data": data, "target": "play"}).json)
        for data in (
            {"columns": tennis},
            {"records": records},
            {"records": shuffled},
            {"header": [*tennis], "rows": rows},
        )
    ]
    assert all(record == told[0] for record in told)


def test_slash_at_the_end(client: FlaskClient, tennis: Columns) -> None:
    """POST /train/ is POST /train: no redirect, which would lose the body (S14)."""
    assert client.post("/train/", json=request_of(tennis)).status_code == 201


@pytest.mark.parametrize(
    "classes",
    [[0, 1], [2**53, 2**53 + 1], [2**63 - 1, -(2**63)], [1.5, 2.5], [True, False], ["1", "0"], ["é", "\u2603"]],
)
def test_labels_keep_their_type(client: FlaskClient, classes: list[Any]) -> None:
    """Class labels come back as the JSON that they were, integers exact at any size (S4)."""
    columns = {"x": [1, 2, 3, 4], "y": [classes[0], classes[0], classes[1], classes[1]]}
    record = train(client, columns, "y", task="classification")
    assert record["schema"]["target"]["classes"] == sorted(classes)
    answer = client.post(f"/models/{record['id']}/predict", json={"data": {"columns": {"x": [4, 1]}}}).json
    assert repr(answer["predictions"]) == repr([classes[1], classes[0]])
    assert repr(answer["classes"]) == repr(sorted(classes))


def test_labels_of_mixed_types_stay_apart(client: FlaskClient) -> None:
    """Declared nominal, 1, true and "1" are three classes."""
    columns = {"x": [1, 2, 3], "y": [True, 1, "1"]}
    record = train(client, columns, "y", schema={"y": "nominal"})
    assert repr(record["schema"]["target"]["classes"]) == repr([True, 1, "1"])
    answer = client.post(f"/models/{record['id']}/predict", json={"data": {"columns": {"x": [3, 2, 1]}}}).json
    assert repr(answer["predictions"]) == repr(["1", 1, True])


def test_declared_kinds(client: FlaskClient) -> None:
    """The schema makes a numeric column nominal and gives an ordinal one its order."""
    columns = {"size": ["L", "S", "M", None], "code": [2, 1, 1, 2], "y": ["a", "b", "b", "a"]}
    schema = {"size": {"kind": "ordinal", "categories": ["S", "M", "L"]}, "code": "nominal"}
    assert train(client, columns, "y", schema=schema)["schema"]["features"] == [
        {"name": "size", "kind": "ordinal", "categories": ["S", "M", "L"]},
        {"name": "code", "kind": "nominal", "categories": [1, 2]},
    ]


@pytest.mark.parametrize(("schema", "kind", "status"), [({}, "numeric", 422), ({"x": "nominal"}, "nominal", 200)])
def test_a_column_without_any_value(client: FlaskClient, schema: dict[str, str], kind: str, status: int) -> None:
    """It counts as numeric, so that a word in it is refused later on, unless the schema says what it is."""
    record = train(client, {"x": [None] * 4, "y": ["a", "a", "b", "b"]}, "y", schema=schema)
    assert record["schema"]["features"][0]["kind"] == kind
    answer = client.post(record["links"]["predict"], json={"data": {"columns": {"x": ["word"]}}})
    assert answer.status_code == status


def test_declared_categories_of_a_nominal_column(client: FlaskClient) -> None:
    """They keep the order given, which breaks ties of classes, and may have branches that no training row takes."""
    columns = {"wind": ["b", "a", "b", "a"], "y": ["no", "yes", "yes", "no"]}
    said = {"wind": ["c", "b", "a"], "y": ["yes", "no", "perhaps"]}
    schema = {name: {"kind": "nominal", "categories": known} for name, known in said.items()}
    parameters = {"nominal": "multiway", "empty_branches": True, "criterion": "entropy"}
    record = train(client, columns, "y", schema=schema, parameters=parameters)
    assert record["schema"]["features"] == [{"name": "wind", "kind": "nominal", "categories": ["c", "b", "a"]}]
    assert record["schema"]["target"]["classes"] == ["yes", "no"]
    assert client.get(f"/models/{record['id']}/tree").json["nodes"][0]["prediction"] == "yes"
    columns["y"] = ["no", "yes", "no", "yes"]
    record = train(client, columns, "y", schema=schema, parameters=parameters)
    nodes = client.get(f"/models/{record['id']}/tree").json["nodes"]
    assert nodes[0]["split"]["categories"] == [["c"], ["b"], ["a"]]
    assert [nodes[child]["n"] for child in nodes[0]["children"]] == [0, 2, 2]
    assert [nodes[child]["prediction"] for child in nodes[0]["children"]] == ["yes", "no", "yes"]


@pytest.mark.parametrize(
    ("columns", "more", "leaf_only"),
    [
        ({"x": [1, 2], "y": ["a", "a"]}, {}, True),
        ({"x": [1], "y": ["a"]}, {}, True),
        ({"y": ["a", "b"]}, {}, True),
        ({"x": [1, 2], "y": ["a", "b"]}, {"features": []}, True),
        ({"x": [3, 3], "y": ["a", "b"]}, {}, True),
        ({"x": [None, None], "y": ["a", "b"]}, {}, True),
        ({"x": [1, 2], "y": [0.5, 0.5]}, {}, True),
        ({"x": [1, 2], "y": [0.5, 1.5]}, {}, False),
    ],
)
def test_one_leaf_models(client: FlaskClient, columns: Columns, more: dict[str, Any], leaf_only: bool) -> None:
    """A constant target, one row and no usable feature give one leaf that predicts, and a warning (S11)."""
    record = train(client, columns, "y", **more)
    assert (record["tree"]["nodes"] == 1) is leaf_only
    assert bool(record["warnings"]) is leaf_only
    rows = {"columns": {name: cells for name, cells in columns.items() if name != "y"} or {"y": ["a"]}}
    answer = client.post(f"/models/{record['id']}/predict", json={"data": rows})
    assert answer.status_code == 200
    assert None not in answer.json["predictions"]


@pytest.mark.parametrize("retain", ["data", "summary"])
@pytest.mark.parametrize("algorithm", ["cart", "id3", "c45", "j48", "rpart"])
@pytest.mark.parametrize(
    "columns", [{"y": ["a", "b", "b"]}, {"x": [None] * 3, "y": ["a", "b", "b"]}, {"x": [3], "y": ["a"]}]
)
def test_nothing_to_choose_from(client: FlaskClient, columns: Columns, algorithm: str, retain: str) -> None:
    """By every preset no feature, one of which nothing is known, and a single row give a leaf that has no split."""
    record = train(client, columns, "y", algorithm=algorithm, retain=retain, parameters={"numeric": "threshold"})
    assert record["tree"]["nodes"] == 1
    page = client.get(f"/models/{record['id']}/splits").json
    assert [split["admissible"] for split in page["splits"]] == [False] * page["total"]


@pytest.mark.parametrize("name", ["a", "0", "a..b", "a.b-c_d", "x" * 128, "0" * 31])
def test_good_names(client: FlaskClient, tennis: Columns, name: str) -> None:
    """Other names are kept, and versions count up from 1."""
    assert [train(client, tennis, name=name)["version"] for _ in range(2)] == [1, 2]
    assert client.get(f"/models/{name}@2").json["name"] == name


def test_missing_target_can_be_dropped(client: FlaskClient) -> None:
    """Rows without a target are left out when the request says so."""
    columns = {"x": [1, 2, 3], "y": ["a", None, "b"]}
    assert train(client, columns, "y", missing_target="drop")["training"]["rows"] == 2


def test_null_counts_as_absent(client: FlaskClient, tennis: Columns) -> None:
    """Clients that write their optional fields as null get what absence gives."""
    absent = dict.fromkeys(
        [
            "features",
            "weight",
            "schema",
            "task",
            "algorithm",
            "parameters",
            "positive_class",
            "missing_target",
            "name",
            "retain",
        ]
    )
    assert without(train(client, tennis, **absent)) == without(train(client, tennis))


def test_retention(client: FlaskClient, tennis: Columns) -> None:
    """A model keeps for the audit what the request says."""
    for retain in ("data", "summary", "none"):
        assert train(client, tennis, retain=retain)["retention"] == retain
