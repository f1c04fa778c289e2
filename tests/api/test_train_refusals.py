"""Trainings that are refused: each fault is a 422 that says where it is and what would do instead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.making import Columns, request_of, train

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp


@pytest.mark.parametrize(
    "data",
    [{"columns": {"x": [], "y": []}}, {"columns": {}}, {"records": []}, {"records": [{}, {}]},
     {"header": ["x", "y"], "rows": []}, {"header": [], "rows": []}],
)  # fmt: skip
def test_no_rows(client: FlaskClient, places_of: Expect, data: dict[str, Any]) -> None:
    """Data without a row or a column is a 422 in every form (S11)."""
    assert set(places_of(client.post("/train", json={"data": data, "target": "y"}), 422)) == {"/data"}


def test_a_category_that_is_not_declared(client: FlaskClient, places_of: Expect) -> None:
    """A declaration of categories is complete: another one is a fault at its cell."""
    schema = {"wind": {"kind": "nominal", "categories": ["a", "b"]}}
    body = {"data": {"columns": {"wind": ["a", "d"], "y": [1, 2]}}, "target": "y", "schema": schema}
    assert list(places_of(client.post("/train", json=body), 422)) == ["/data/columns/wind/1"]


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
