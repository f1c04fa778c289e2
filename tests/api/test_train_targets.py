"""Trainings on other targets than classes: counts, absolute errors, several numbers, dissimilarities, any size."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.api.making import Columns, request_of, train

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp


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
