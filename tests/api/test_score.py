"""Scores of a split that the caller describes."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect


def test_worked_example(client: FlaskClient) -> None:
    """Three T and one F, split into TTF and T: the costs, gains and contents of the textbook."""
    scores = client.post("/splits/score", json={"branches": [{"T": 2, "F": 1}, {"T": 1}]}).json
    assert scores["gini_cost"] == pytest.approx(1 / 3)
    assert scores["gini_gain"] == pytest.approx(1 / 24)
    assert scores["information_content"] == pytest.approx(0.8112781244591328)
    assert scores["positive_correctness"] is None


def test_positive_class(client: FlaskClient) -> None:
    """With a positive class its measures are there too."""
    body = {"branches": [{"P": 8, "N": 2}, {"P": 3, "N": 5}], "positive_class": "P"}
    scores = client.post("/splits/score", json=body).json
    assert scores["positive_correctness"] == 6
    assert scores["true_positive_rate"] == pytest.approx(8 / 11)


def test_multiway(client: FlaskClient) -> None:
    """What is defined for two branches only is null for more."""
    scores = client.post("/splits/score", json={"branches": [{"a": 1}, {"b": 1}, {"a": 1}]}).json
    assert scores["goodness"] is None
    assert scores["gini_cost"] == 0


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({}, "/branches"),
        ({"branches": []}, "/branches"),
        ({"branches": {}}, "/branches"),
        ({"branches": None}, "/branches"),
        ({"branches": [{}]}, "/branches"),
        ({"branches": [{"a": 0}, {}]}, "/branches"),
        ({"branches": [{"a": 1}, 2]}, "/branches/1"),
        ({"branches": [{"a": 1}, {"a": -1, "b": "2"}]}, "/branches/1/a"),
        ({"branches": [{"a": 1}, {"a/b": "2"}]}, "/branches/1/a~1b"),
        ({"branches": [{"a": True}]}, "/branches/0/a"),
        ({"branches": [{"a": 1e-320, "b": 1}]}, "/branches/0/a"),
        ({"branches": [{"a": 1e308}, {"a": 1e308}]}, "/branches"),
        ({"branches": [{"a": None}]}, "/branches/0/a"),
        ({"branches": [{"a": 1}, {"b": 1}], "positive_class": "c"}, "/positive_class"),
        ({"branches": [{"a": 1}, {"b": 1}], "positive_class": 1}, "/positive_class"),
        ({"branches": [{"a": 1}, {"b": 1}], "positive_class": {}}, "/positive_class"),
        ({"branches": [{"a": 1}, {"b": 1, "c": 1}], "positive_class": "a"}, "/positive_class"),
        ({"branches": [{"a": 1}, {"b": 1}], "criterion": "gini"}, "/criterion"),
    ],
)
def test_faults(client: FlaskClient, places_of: Expect, body: dict[str, Any], place: str) -> None:
    """Branches that cannot be scored are a 422 that points at what is wrong."""
    assert place in places_of(client.post("/splits/score", json=body), 422)
