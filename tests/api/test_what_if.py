"""`/models/<reference>/splits/score`: described splits score what listed ones do, and wrong ones say why."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect

ROWS = 60
DESCRIBED = ("type", "threshold", "categories", "missing")


def make_data(*, gaps: bool) -> dict[str, list[Any]]:
    """Columns of every kind, with two targets."""
    random = np.random.default_rng(11)
    size, real = random.integers(0, 6, ROWS), random.integers(0, 8, ROWS) / 4
    kind, grade = random.integers(0, 3, ROWS), random.integers(0, 4, ROWS)
    signal = size + 2 * (kind == 1) + grade + random.integers(0, 4, ROWS)
    columns: dict[str, list[Any]] = {
        "size": size.tolist(),
        "real": real.tolist(),
        "kind": [["a", "b", "c"][code] for code in kind],
        "grade": [["S", "M", "L", "XL"][code] for code in grade],
        "flag": (random.random(ROWS) < 0.5).tolist(),
    }
    if gaps:
        for cells in columns.values():
            for row in np.flatnonzero(random.random(ROWS) < 0.15).tolist():
                cells[row] = None
    return columns | {"cost": signal.astype(float).tolist(), "risk": np.where(signal > 7, "high", "low").tolist()}


SCHEMA = {"grade": {"kind": "ordinal", "categories": ["S", "M", "L", "XL"]}}


def train(client: FlaskClient, target: str, *, gaps: bool, **more: Any) -> None:  # noqa: ANN401 - fields of every kind
    """Train a model named m."""
    data = make_data(gaps=gaps)
    features = ["size", "real", "kind", "grade", "flag"]
    body = {"data": {"columns": data}, "target": target, "features": features, "schema": SCHEMA, "name": "m", **more}
    answer = client.post("/train", json=body)
    assert answer.status_code == 201, answer.json


@pytest.mark.parametrize(
    ("target", "gaps", "more"),
    [
        ("risk", False, {}),
        ("risk", True, {}),
        ("cost", True, {}),
        ("risk", True, {"parameters": {"missing": "branch", "nominal": "multiway"}}),
        ("risk", True, {"parameters": {"missing": "surrogate"}}),
        ("risk", True, {"algorithm": "c45", "parameters": {"pruning": None}}),
        ("cost", False, {"parameters": {"criterion": "absolute_error", "min_samples_leaf": 5}}),
        ("risk", False, {"parameters": {"criterion": "goodness", "min_samples_leaf": 8}, "positive_class": "high"}),
        ("cost", False, {"parameters": {"monotonic": {"size": "down"}}}),
    ],
)
def test_what_is_listed_scores_the_same(client: FlaskClient, target: str, gaps: bool, more: dict[str, Any]) -> None:
    """Every candidate of the root and of its first child, described as it is listed, has the listing's numbers."""
    train(client, target, gaps=gaps, **more)
    for node in (0, 1):
        listed = client.get(f"/models/m/splits?node={node}&limit=1000").json["splits"]
        assert len(listed) > 5
        for split in listed:
            if split["split"]["type"] == "constant":
                continue
            described = {name: split["split"][name] for name in DESCRIBED if name in split["split"]}
            if described.get("missing") not in ("left", "right") or more:
                described.pop("missing", None)
            if None in [label for group in described.get("categories", []) for label in group]:
                continue  # where missing is a category, rows without one go by themselves
            body = {"node": node, "feature": split["feature"], "split": described}
            answer = client.post("/models/m/splits/score", json=body)
            assert answer.status_code == 200, (body, answer.json)
            scored = answer.json["split"]
            for name in ("feature", "branches", "scores", "score", "admissible", "reason"):
                if name == "branches" and split["chosen"]:
                    continue  # of a chosen split the surrogates say who is routed
                assert scored[name] == split[name], (name, body)
            if split["rank"] == 1:
                assert answer.json["gap"] == 0
                assert answer.json["best"] == split


def test_a_split_of_ones_own(client: FlaskClient) -> None:
    """A threshold between no two training values is scored by the rows that it parts, and ranks among the listed."""
    train(client, "risk", gaps=False)
    data = make_data(gaps=False)
    body = {"feature": "size", "split": {"type": "threshold", "threshold": 2.9}}
    answer = client.post("/models/m/splits/score", json=body).json
    left = [risk for size, risk in zip(data["size"], data["risk"], strict=True) if size <= 2]
    counts = answer["split"]["branches"][0]["known"]["counts"]
    assert counts == [left.count("high"), left.count("low")]
    listed = client.get("/models/m/splits?node=0&feature=size&limit=1000").json["splits"]
    twin = next(split for split in listed if split["split"]["threshold"] == 2.5)
    assert answer["split"]["score"] == twin["score"]
    assert answer["gap"] == pytest.approx(answer["best"]["score"] - twin["score"])
    better = client.get("/models/m/splits?node=0&limit=1000").json["splits"]
    assert answer["split"]["rank"] == 1 + sum(split["score"] > twin["score"] for split in better if split["rank"])


def test_a_split_that_parts_nothing(client: FlaskClient) -> None:
    """A threshold beyond all values is a constant: shown, never admissible."""
    train(client, "risk", gaps=False)
    for threshold in (100, "Infinity", 1e30, -1e30, "-Infinity"):
        body = {"feature": "size", "split": {"type": "threshold", "threshold": threshold}}
        scored = client.post("/models/m/splits/score", json=body).json["split"]
        assert (scored["admissible"], scored["reason"], scored["rank"]) == (False, "constant", None)


def test_one_group_is_enough(client: FlaskClient) -> None:
    """With one group of a subset all other categories go right."""
    train(client, "risk", gaps=False)
    answers = [
        client.post(
            "/models/m/splits/score", json={"feature": "kind", "split": {"type": "subset", "categories": groups}}
        ).json["split"]
        for groups in ([["b"]], [["b"], ["a", "c"]])
    ]
    assert answers[0]["scores"] == answers[1]["scores"]


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"feature": "age", "split": {"type": "threshold", "threshold": 1}}, "/feature"),
        ({"feature": "size", "split": {"type": "threshold"}}, "/split/threshold"),
        ({"feature": "size", "split": {"type": "threshold", "threshold": True}}, "/split/threshold"),
        ({"feature": "size", "split": {"type": "threshold", "threshold": "1"}}, "/split/threshold"),
        ({"feature": "size", "split": {"type": "subset", "categories": [["a"]]}}, "/split/type"),
        ({"feature": "kind", "split": {"type": "threshold", "threshold": 1}}, "/split/type"),
        ({"feature": "kind", "split": {"type": "constant"}}, "/split/type"),
        ({"feature": "kind", "split": {}}, "/split/type"),
        ({"feature": "kind", "split": {"type": "subset"}}, "/split/categories"),
        ({"feature": "kind", "split": {"type": "subset", "categories": [[]]}}, "/split/categories"),
        ({"feature": "kind", "split": {"type": "subset", "categories": [["a"], ["b"], ["c"]]}}, "/split/categories"),
        ({"feature": "kind", "split": {"type": "subset", "categories": [["a", "z"]]}}, "/split/categories/0/1"),
        ({"feature": "kind", "split": {"type": "subset", "categories": [["a"], ["a", "b"]]}}, "/split/categories/1/0"),
        ({"feature": "kind", "split": {"type": "multiway", "categories": [["a"], ["b"]]}}, "/split/categories"),
        (
            {"feature": "grade", "split": {"type": "subset", "categories": [["M"], ["S", "L"]]}},
            "/split/categories",
        ),
        ({"feature": "size", "split": {"type": "threshold", "threshold": 1, "missing": "up"}}, "/split/missing"),
        ({"feature": "size", "split": {"type": "threshold", "threshold": 1, "missing": ["left"]}}, "/split/missing"),
        ({"feature": "size", "split": {"type": "threshold", "threshold": 1, "missing": {}}}, "/split/missing"),
        ({"feature": "size", "split": {"type": "threshold", "threshold": 1, "below": 1}}, "/split/below"),
        ({"split": {"type": "missing"}}, "/feature"),
        ({"feature": "size"}, "/split"),
        ({"feature": "size", "split": 5}, "/split"),
        ({"feature": "size", "split": {"type": "missing"}, "node": -1}, "/node"),
    ],
)
def test_what_cannot_be(client: FlaskClient, places_of: Expect, body: dict[str, Any], place: str) -> None:
    """A split that cannot be at this feature is a 422 that names the place."""
    train(client, "risk", gaps=False)
    assert place in places_of(client.post("/models/m/splits/score", json=body), 422)


def test_problems(client: FlaskClient, problem_of: Expect, places_of: Expect) -> None:
    """No such node, no data, a side where the model decides by itself."""
    body = {"feature": "size", "split": {"type": "threshold", "threshold": 1, "missing": "left"}, "node": 10_000}
    train(client, "risk", gaps=True, parameters={"missing": "surrogate"})
    problem_of(client.post("/models/m/splits/score", json=body), 404)
    assert "/split/missing" in places_of(client.post("/models/m/splits/score", json=body | {"node": 0}), 422)
    train(client, "risk", gaps=False, retain="summary")
    problem_of(client.post("/models/m/splits/score", json=body | {"node": 0}), 409)
