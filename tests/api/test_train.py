"""Training over HTTP: what is accepted, what is refused and where, and what a record has."""

from __future__ import annotations

import random
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

Columns = dict[str, list[Any]]


def request_of(columns: Columns, target: str = "play", **more: object) -> dict[str, Any]:
    """The body of a request."""
    return {"data": {"columns": columns}, "target": target, **more}


def train(client: FlaskClient, columns: Columns, target: str = "play", **more: object) -> dict[str, Any]:
    """The record of a new model."""
    response = client.post("/train", json=request_of(columns, target, **more))
    assert response.status_code == 201, response.json
    record: dict[str, Any] = response.json
    return record


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


def test_a_category_that_is_not_declared(client: FlaskClient, places_of: Expect) -> None:
    """A declaration of categories is complete: another one is a fault at its cell."""
    schema = {"wind": {"kind": "nominal", "categories": ["a", "b"]}}
    body = {"data": {"columns": {"wind": ["a", "d"], "y": [1, 2]}}, "target": "y", "schema": schema}
    assert list(places_of(client.post("/train", json=body), 422)) == ["/data/columns/wind/1"]


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


@pytest.mark.parametrize(
    "data",
    [{"columns": {"x": [], "y": []}}, {"columns": {}}, {"records": []}, {"records": [{}, {}]},
     {"header": ["x", "y"], "rows": []}, {"header": [], "rows": []}],
)  # fmt: skip
def test_no_rows(client: FlaskClient, places_of: Expect, data: dict[str, Any]) -> None:
    """Data without a row or a column is a 422 in every form (S11)."""
    assert set(places_of(client.post("/train", json={"data": data, "target": "y"}), 422)) == {"/data"}


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "/data"),
        ({"data": {}}, "/data"),
        ({"data": []}, "/data"),
        ({"target": None}, "/target"),
        ({"target": 1}, "/target"),
        ({"target": "none"}, "/target"),
        ({"features": "x"}, "/features"),
        ({"features": ["x", 1]}, "/features/1"),
        ({"features": ["x", "none"]}, "/features/1"),
        ({"features": ["x", "y"]}, "/features/1"),
        ({"features": ["x", "x"]}, "/features/1"),
        ({"weight": "none"}, "/weight"),
        ({"weight": "y"}, "/weight"),
        ({"schema": []}, "/schema"),
        ({"schema": {"x": "numeral"}}, "/schema/x"),
        ({"schema": {"none": "numeric"}}, "/schema/none"),
        ({"schema": {"x": {"kind": "ordinal"}}}, "/schema/x"),
        ({"schema": {"x": {"kind": "ordinal", "categories": [1]}}}, "/data/columns/x/1"),
        ({"schema": {"x": "boolean"}}, "/data/columns/x/0"),
        ({"task": "clustering"}, "/task"),
        ({"task": "regression"}, "/target"),
        ({"algorithm": "c5"}, "/algorithm"),
        ({"parameters": []}, "/parameters"),
        ({"parameters": {"depth": 3}}, "/parameters/depth"),
        ({"parameters": {"max_depth": -1}}, "/parameters/max_depth"),
        ({"parameters": {"max_depth": 1.5}}, "/parameters/max_depth"),
        ({"parameters": {"max_depth": True}}, "/parameters/max_depth"),
        ({"parameters": {"max_depth": "3"}}, "/parameters/max_depth"),
        ({"parameters": {"criterion": "magic"}}, "/parameters/criterion"),
        ({"positive_class": ["a"]}, "/positive_class"),
        ({"positive_class": "c"}, "/positive_class"),
        ({"missing_target": "ignore"}, "/missing_target"),
        ({"description": 1}, "/description"),
        ({"tags": ["a"]}, "/tags"),
        ({"tags": {"a": 1}}, "/tags/a"),
        ({"tags": {"a\0": "b"}}, "/tags/a\0"),
        ({"retain": "all"}, "/retain"),
        ({"retrain": "data"}, "/retrain"),
    ],
)
def test_faults(client: FlaskClient, places_of: Expect, body: dict[str, Any], place: str) -> None:
    """Each part of a request that is wrong is a 422 that points at it, and nothing is stored."""
    fine = request_of({"x": [1, 2], "y": ["a", "b"]}, "y")
    faults = places_of(client.post("/train", json={**fine, **body} if body else {}), 422)
    assert place in faults
    assert client.get("/models").json["models"] == []


@pytest.mark.parametrize(
    ("columns", "more", "says"),
    [
        ({"x": [1, 2], "y": [True, False]}, {"positive_class": "true"}, "the classes are false, true"),
        ({"x": [1, None], "y": ["a", "b"]}, {"parameters": {"missing": "refuse"}}, '"surrogate", "fractional"'),
        ({"x": [1, 2], "y": ["a", "b"], "z": [1, 2]}, {"target": ["y", "z"]}, '"dissimilarity": {"metric": "hamming"}'),
    ],
)
def test_remedies(client: FlaskClient, columns: Columns, more: dict[str, Any], says: str) -> None:
    """Refusals name what would do instead: labels as JSON has them, all choices for missing values, other targets."""
    answer = client.post("/train", json={"data": {"columns": columns}, "target": "y"} | more)
    assert answer.status_code == 422
    assert says in answer.json["errors"][0]["message"]


@pytest.mark.parametrize(
    "name",
    ["a/b", "../a", "..", ".", "%6f", "a%2fb", "a ", " a", "a\0", "a\n", "", "A", "é", "a@1", "-a", "_a", "x" * 129,
     "x" * 300, "0" * 32, "0123456789abcdef0123456789abcdef"],
)  # fmt: skip
def test_bad_names(client: FlaskClient, places_of: Expect, tennis: Columns, name: str) -> None:
    """A name with a slash, an escape, dots alone, spaces, NUL, too long, or of an id's form is refused (S8)."""
    assert set(places_of(client.post("/train", json=request_of(tennis, name=name)), 422)) == {"/name"}


@pytest.mark.parametrize("name", ["a", "0", "a..b", "a.b-c_d", "x" * 128, "0" * 31])
def test_good_names(client: FlaskClient, tennis: Columns, name: str) -> None:
    """Other names are kept, and versions count up from 1."""
    assert [train(client, tennis, name=name)["version"] for _ in range(2)] == [1, 2]
    assert client.get(f"/models/{name}@2").json["name"] == name


@pytest.mark.parametrize(
    ("data", "place", "says"),
    [
        ({"columns": {"x": [1, 2, "abc", 4], "y": ["a"] * 4}}, "/data/columns/x/2", '"abc"'),
        ({"columns": {"x": [True, None, "abc"], "y": ["a"] * 3}}, "/data/columns/x/2", "row 2"),
        ({"columns": {"x": [1, 2], "y": ["a"]}}, "/data/columns/y", "'y' has 1 rows"),
        ({"records": [{"x": 1, "y": "a"}, {"x": "b", "y": "a"}]}, "/data/records/1/x", "row 1"),
        ({"records": [{"x": 1, "y": "a"}, 3]}, "/data/records/1", "object"),
        ({"header": ["x", "y", "x"], "rows": [[1, "a", 2]]}, "/data/header/2", "'x' is named twice"),
        ({"header": ["x", "y"], "rows": [[1, "a"], [1]]}, "/data/rows/1", "Row 1 has 1 cells"),
        ({"header": ["x", "y"], "rows": [1, "a"]}, "/data/rows/0", "list"),
        ({"rows": [[1, "a"]]}, "/data", "header"),
        ({"columns": {"x": [{"a": 1}], "y": ["a"]}}, "/data/columns/x/0", "an object"),
    ],
)
def test_faults_of_data(client: FlaskClient, places_of: Expect, data: dict[str, Any], place: str, says: str) -> None:
    """Mixed, ragged, doubled and misshapen data are a 422 that names the place; then it serves on (S7, S12, S13)."""
    faults = places_of(client.post("/train", json={"data": data, "target": "y"}), 422)
    assert says in faults[place]
    assert client.get("/health/ready").status_code == 200


def test_repeated_keys(client: FlaskClient, places_of: Expect) -> None:
    """A column, a cell or a field that is named twice in the JSON is a 422 (S12)."""
    for body, place in (
        ('{"data": {"columns": {"x": [1], "y": ["a"], "x": [2]}}, "target": "y"}', "/data/columns/x"),
        ('{"data": {"records": [{"x": 1, "y": "a:b", "x": 2}]}, "target": "y"}', "/data/records/0/x"),
        ('{"data": {"columns": {"x": [1], "y": ["a"]}}, "target": "x", "target": "y"}', "/target"),
    ):
        assert set(places_of(client.post("/train", data=body, content_type="application/json"), 422)) == {place}


def test_learner_points_at_posted_cells(client: FlaskClient, places_of: Expect) -> None:
    """A fault that only the learner sees points at the cell in the form that was posted."""
    for data, place in (
        ({"columns": {"x": [1, 2], "y": ["a", None]}}, "/data/columns/y/1"),
        ({"records": [{"x": 1, "y": "a"}, {"x": 2}]}, "/data/records/1/y"),
        ({"header": ["x", "y"], "rows": [[1, "a"], [2, None]]}, "/data/rows/1/1"),
    ):
        assert set(places_of(client.post("/train", json={"data": data, "target": "y"}), 422)) == {place}


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


def test_limits(make_app: MakeApp, places_of: Expect) -> None:
    """Rows, columns, classes and depth over the settings are refused with the name of the setting or its value."""
    client = make_app(max_rows=4, max_columns=3, max_classes=2, max_depth=5).test_client()
    fine: Columns = {"x": [1, 2, 3, 4], "z": [1, 1, 2, 2], "y": ["a", "b", "a", "b"]}
    train(client, fine, "y", parameters={"max_depth": 5})
    for columns, more, place, says in (
        ({name: [*cells, cells[0]] for name, cells in fine.items()}, {}, "/data/columns", "TREEWRIGHT_MAX_ROWS"),
        ({**fine, "w": [1] * 4}, {}, "/data/columns", "TREEWRIGHT_MAX_COLUMNS"),
        ({**fine, "y": ["a", "b", "c", "a"]}, {}, "/target", "TREEWRIGHT_MAX_CLASSES"),
        (fine, {"parameters": {"max_depth": 6}}, "/parameters/max_depth", "5"),
    ):
        faults = places_of(client.post("/train", json=request_of(columns, "y", **more)), 422)
        assert says in faults[place]


def test_retention(client: FlaskClient, tennis: Columns) -> None:
    """A model keeps for the audit what the request says."""
    for retain in ("data", "summary", "none"):
        assert train(client, tennis, retain=retain)["retention"] == retain


@pytest.mark.parametrize(
    ("targets", "place"), [([1, 2, -0.5, 3], "/data/columns/y/2"), ([0, 0, 0, 0], "/data/columns/y/0")]
)
def test_poisson_needs_counts(client: FlaskClient, places_of: Expect, targets: list[float], place: str) -> None:
    """Targets below 0, or none above it, are a 422 that names the row where the Poisson deviance is asked for."""
    body = request_of({"x": [1, 2, 3, 4], "y": targets}, "y", parameters={"criterion": "poisson"})
    assert "poisson" in places_of(client.post("/train", json=body), 422)[place]


def test_a_poisson_model(client: FlaskClient) -> None:
    """A model of counts trains, predicts means, shows its tree and lists its splits by the deviance."""
    columns = {"x": [1, 2, 3, 4], "y": [1, 1, 4, 6]}
    record = train(client, columns, "y", task="regression", parameters={"criterion": "poisson", "max_depth": 1})
    links = record["links"]
    answer = client.post(links["predict"], json={"data": {"columns": {"x": [0, 9]}}}).json
    assert answer["predictions"] == [1, 5]
    root = client.get(links["tree"]).json["nodes"][0]
    assert (root["prediction"], root["mean"]) == (3, 3)
    assert "variance" not in root
    best = client.get(f"{links['splits']}?node=0&top=1").json["splits"][0]
    assert best["score"] == best["scores"]["poisson_deviance_reduction"] == pytest.approx(root["score"])
    assert best["branches"][0]["known"]["impurity"] == 0


def test_a_model_by_absolute_error(client: FlaskClient) -> None:
    """A model by absolute error trains, predicts medians, shows them in its tree and lists its splits by the error."""
    columns = {"x": [1, 2, 3, 4, 5], "y": [1, 2, 30, 9, 90]}
    record = train(client, columns, "y", task="regression", parameters={"criterion": "absolute_error", "max_depth": 1})
    links = record["links"]
    answer = client.post(links["predict"], json={"data": {"columns": {"x": [0, 9]}}}).json
    assert answer["predictions"] == [5.5, 90]
    root = client.get(links["tree"]).json["nodes"][0]
    assert (root["prediction"], root["median"], root["mean"], root["impurity"]) == (9, 9, 26.4, 23.4)
    best = client.get(f"{links['splits']}?node=0&top=1").json["splits"][0]
    assert best["score"] == best["scores"]["absolute_error_reduction"] == pytest.approx(root["score"])
    assert best["scores"]["absolute_error_cost"] == pytest.approx((4.5 + 3.5 + 24.5 + 3.5) / 5)


@pytest.mark.parametrize("criterion", ["absolute_error"])
def test_monotonic_needs_means(client: FlaskClient, places_of: Expect, criterion: str) -> None:
    """Monotonic features are of models that predict means or shares: others refuse them, and say so."""
    body = request_of(
        {"x": [1, 2, 3, 4], "y": [1, 2, 3, 5]},
        "y",
        task="regression",
        parameters={"criterion": criterion, "monotonic": {"x": "up"}},
    )
    assert "mean" in places_of(client.post("/train", json=body), 422)["/parameters/monotonic"]


SEVERAL: Columns = {"x": [1, 2, 3, 4], "town": ["a", "b", "a", "b"], "y": [1, 2, 8, 9], "z": [5, 5, -1, 0.5]}


def test_several_targets(client: FlaskClient) -> None:
    """A model of several numbers answers with lists: to many rows and to one, in its tree and its audit."""
    response = client.post("/train", json=request_of(SEVERAL, ["y", "z"], parameters={"max_depth": 1}))  # type: ignore[arg-type]
    record = response.json
    assert response.status_code == 201, record
    assert record["schema"]["target"] == {"name": "y, z", "kind": "numeric", "names": ["y", "z"]}
    assert record["metrics"]["by_target"].keys() == {"y", "z"}
    assert record["metrics"]["mae"] == pytest.approx((0.5 + 0.375) / 2)
    assert {feature["name"] for feature in record["schema"]["features"]} == {"x", "town"}
    links = record["links"]
    for rows in ([[1, "a"], [4, "b"]], [[1, "a"]]):
        answer = client.post(links["predict"], json={"data": {"rows": rows}}).json
        assert answer["predictions"] == [[1.5, 5], [8.5, -0.25]][: len(rows)]
    root = client.get(links["tree"]).json["nodes"][0]
    assert (root["prediction"], root["mean"]) == ([5, 2.375], [5, 2.375])
    assert root["variance"] == pytest.approx([12.5, 7.171875])
    assert root["impurity"] == pytest.approx((12.5 + 7.171875) / 2)
    best = client.get(f"{links['splits']}?node=0&top=1").json["splits"][0]
    left = best["branches"][0]["known"]
    assert (left["mean"], left["variance"], left["impurity"]) == ([1.5, 5], [0.25, 0], 0.125)
    assert best["score"] == best["scores"]["variance_reduction"] == pytest.approx(root["score"])


@pytest.mark.parametrize(
    ("target", "more", "place"),
    [
        (["y", "y"], {}, "/target/1"),
        (["y", "q"], {}, "/target/1"),
        ([], {}, "/target"),
        (["y", "town"], {}, "/target"),
        (["y", "z"], {"parameters": {"criterion": "poisson"}}, "/target"),
        (["y", "z"], {"task": "classification"}, "/target"),
        (["y", "z"], {"parameters": {"monotonic": {"x": "up"}}}, "/parameters/monotonic"),
        (["y", "z"], {"features": ["x", "z"]}, "/features/1"),
    ],
)
def test_what_several_targets_do_not_have(
    client: FlaskClient, places_of: Expect, target: list[str], more: dict[str, Any], place: str
) -> None:
    """Several targets are distinct numbers by variance; what is for one target is refused, at its place."""
    assert place in places_of(client.post("/train", json={"data": {"columns": SEVERAL}, "target": target, **more}), 422)


WORDS: Columns = {"x": [1, 2, 3, 4, 5], "word": ["red", "red", "blue", "blue", "green"]}


@pytest.mark.parametrize("retain", ["data", "summary"])
def test_a_model_of_dissimilarities(client: FlaskClient, retain: str) -> None:
    """Words by Hamming: medoids are predicted, to many rows and to one; record, tree and audit say what was learnt."""
    record = train(
        client, WORDS, "word", dissimilarity={"metric": "hamming"}, retain=retain, parameters={"max_depth": 1}
    )
    assert (record["task"], record["parameters"]["criterion"]) == ("dissimilarity", "dissimilarity")
    assert record["schema"]["target"] == {"name": "word", "kind": "nominal", "dissimilarity": "hamming"}
    links = record["links"]
    for rows in ([[0], [9]], [[0]]):
        answer = client.post(links["predict"], json={"data": {"rows": rows}}).json
        assert answer["predictions"] == ["red", "blue"][: len(rows)]
    root = client.get(links["tree"]).json["nodes"][0]
    assert root["prediction"] == "blue"
    assert root["impurity"] == pytest.approx(16 / 50)
    best = client.get(f"{links['splits']}?node=0&top=1").json["splits"][0]
    assert best["scores"].keys() == {"dissimilarity_cost", "dissimilarity_reduction", "information_content"}
    assert best["score"] == pytest.approx(16 / 50 - 3 / 5 * 4 / 18)
    assert best["branches"][0]["known"] == {"n": 2, "weight": 2, "impurity": 0}


def test_a_posted_matrix(client: FlaskClient) -> None:
    """With a matrix targets may be anything: rows that are near one another end together, whatever their labels."""
    matrix = [[0, 9, 1], [9, 0, 9], [1, 9, 0]]
    columns = {"x": [1, 3, 2], "name": ["Ann", "Bob", "Cid"]}
    record = train(client, columns, "name", dissimilarity={"matrix": matrix})
    nodes = client.get(record["links"]["tree"]).json["nodes"]
    assert nodes[0]["impurity"] == pytest.approx(38 / 18)
    assert (nodes[1]["n"], nodes[1]["prediction"], nodes[2]["prediction"]) == (2, "Ann", "Bob")
    assert record["schema"]["target"]["dissimilarity"] == "matrix"


@pytest.mark.parametrize(
    ("asked", "place"),
    [
        ({"matrix": [[0, 1], [1, 0]]}, "/dissimilarity/matrix"),
        ({"matrix": [[0, 1, 2], [1, 0], [2, 1, 0]]}, "/dissimilarity/matrix/1"),
        ({"matrix": [[0, 1, 2], [1, 0, -1], [2, -1, 0]]}, "/dissimilarity/matrix/1/2"),
        ({"matrix": [[0, 1, 2], [1, 0, 3], [2, 4, 0]]}, "/dissimilarity/matrix/1/2"),
        ({"matrix": [[0, 1, 2], [1, 5, 3], [2, 3, 0]]}, "/dissimilarity/matrix/1/1"),
        ({"matrix": [[0, 1, 2], [1, 0, 3], [2, 3, None]]}, "/dissimilarity/matrix/2"),
        ({"matrix": [[0, 1, "2"], [1, 0, 3], ["2", 3, 0]]}, "/dissimilarity/matrix/0"),
        ({"matrix": [[0, 1, [2]], [1, 0, 3], [2, 3, 0]]}, "/dissimilarity/matrix/0"),
        ({"matrix": [1, 2, 3]}, "/dissimilarity"),
        ({"metric": "taxi"}, "/dissimilarity"),
        ({"metric": "euclidean"}, "/dissimilarity/metric"),
        ({}, "/dissimilarity"),
    ],
)
def test_what_is_no_dissimilarity(client: FlaskClient, places_of: Expect, asked: dict[str, Any], place: str) -> None:
    """A matrix is square, symmetric, 0 on the diagonal and never below; metrics of numbers need numbers."""
    body = request_of({"x": [1, 2, 3], "word": ["a", "b", "c"]}, "word", dissimilarity=asked)
    assert place in places_of(client.post("/train", json=body), 422)


@pytest.mark.parametrize(
    ("more", "place"),
    [
        ({"parameters": {"monotonic": {"x": "up"}}}, "/parameters/monotonic"),
        ({"parameters": {"missing": "fractional"}}, "/parameters/missing"),
        ({"parameters": {"criterion": "gini"}}, "/parameters/criterion"),
        ({"task": "classification"}, "/dissimilarity"),
        ({"parameters": {"pruning": "cost_complexity"}}, "/parameters/pruning"),
        ({"parameters": {"pruning": "reduced_error"}}, "/parameters/pruning"),
        ({"cross_validation": 2}, "/cross_validation"),
    ],
)
def test_what_dissimilarities_do_not_have(
    client: FlaskClient, places_of: Expect, more: dict[str, Any], place: str
) -> None:
    """What needs means, classes or one number is refused at its place."""
    body = request_of(WORDS, "word", dissimilarity={"metric": "hamming"}, **more)
    assert place in places_of(client.post("/train", json=body), 422)


def test_dissimilarities_of_too_many_rows(make_app: MakeApp, places_of: Expect) -> None:
    """All pairs of many rows are too many: the limit is told, with the setting that moves it."""
    client = make_app(max_dissimilarity_rows=4).test_client()
    body = request_of(WORDS, "word", dissimilarity={"metric": "hamming"})
    assert "TREEWRIGHT_MAX_DISSIMILARITY_ROWS" in places_of(client.post("/train", json=body), 422)["/target"]


@pytest.mark.parametrize("criterion", ["variance", "poisson", "absolute_error", "dissimilarity", "gini"])
@pytest.mark.parametrize(
    ("targets", "weights", "status"),
    [
        ([1.0, 0.0, 2.5, 1.0], [1e300, 1, 1e300, 2], 422),
        ([1.0, 0.0, 2.5, 1.0], [1e-300, 2e-300, 1e-300, 1e-300], 422),
        ([1.0, 0.0, 2.5, 1.0], [1e50, 1e42, 1e45, 1e44], 201),
        ([1e-300, 2e-300, 0.0, 5e-324], [1, 2, 1, 1], 201),
        ([1e120, 1e-120, 0.0, 1.0], [1, 2, 1, 1], 201),
    ],
)
def test_sizes_of_numbers(
    client: FlaskClient, criterion: str, targets: list[float], weights: list[float], status: int
) -> None:
    """Weights that cannot be squared are refused; whatever is accepted is learnt, listed, shown and predicted."""
    columns = {"x": [1, 2, 3, None], "y": targets, "w": weights}
    body = request_of(columns, "y", weight="w", parameters={"criterion": criterion})
    response = client.post("/train", json=body)
    assert response.status_code == status, response.json
    if status == 201:
        links = response.json["links"]
        assert client.get(links["tree"]).status_code == client.get(links["splits"]).status_code == 200
        assert client.post(links["predict"], json={"data": {"rows": [[1], [None]]}}).status_code == 200
