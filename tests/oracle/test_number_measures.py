"""Every measure of numbers, whatever the model's criterion, recomputed from the rows of each listed branch."""

from __future__ import annotations

import math
import random
from typing import Any

import pytest

from tests.oracle import naive_tree as naive
from tests.oracle.contract import Service
from tests.oracle.naive_tree import Problem
from tests.oracle.test_naive_twin import part


def make_problem(seed: int, criterion: str, more: dict[str, Any]) -> Problem:
    """A number with ties, nine categories and levels, all with gaps; targets are counts, and halves."""
    draw = random.Random(seed)  # noqa: S311 - a fixed sequence, not a secret
    rows = 36
    columns: dict[str, list[Any]] = {
        "number": [draw.choice([None, *range(20)]) for _ in range(rows)],
        "town": [draw.choice([None, *"abcdefghi"]) for _ in range(rows)],
        "size": [draw.choice([None, "XS", "S", "M", "L", "XL"]) for _ in range(rows)],
    }
    targets = [
        (draw.randrange(6) + ("abcdefghi".find(town or "e") * draw.random() > 3)) / 2 for town in columns["town"]
    ]
    weights = [draw.choice([1, 1, 2]) for _ in range(rows)]
    return Problem(
        columns, targets, weights, criterion=criterion, ordinals={"size": ["XS", "S", "M", "L", "XL"]}, **more
    )


@pytest.mark.parametrize("criterion", ["variance", "poisson", "absolute_error"])
@pytest.mark.parametrize(
    ("nominal", "missing"), [("subset", "direction"), ("one_vs_rest", "branch"), ("multiway", "direction")]
)
def test_all_measures(service: Service, criterion: str, nominal: str, missing: str) -> None:
    """Of candidates of every form, more categories than are tried exhaustively among them, all measures agree."""
    problem = make_problem(len(criterion), criterion, {"nominal": nominal, "missing": missing})
    data = {**problem.columns, "y": problem.targets, "w": problem.weights}
    parameters = {"criterion": criterion, "nominal": nominal, "missing": missing, "max_depth": 2}
    schema = {"size": {"kind": "ordinal", "categories": problem.ordinals["size"]}}
    model = service.train(data, "y", {"weight": "w", "task": "regression", "parameters": parameters, "schema": schema})
    listed = service.splits(model, {"node": 0})
    assert {split["split"]["type"] for split in listed} >= {"threshold"}
    for split in listed:
        branches = part(problem, split["feature"], split["split"], problem.rows())
        for measure, value in naive.measure(problem, branches).items():
            given = split["scores"][measure]
            assert (given is None) == (value is None), (measure, split)
            assert value is None or math.isclose(given, float(value), rel_tol=1e-9, abs_tol=1e-12), (measure, split)
    for measure in ("absolute_error_reduction", "variance_reduction", "poisson_deviance_reduction"):
        ranked = service.splits(model, {"node": 0, "measure": measure, "admissible": "true"})
        scores = [split["scores"][measure] for split in ranked if split["scores"][measure] is not None]
        assert scores == sorted(scores, reverse=True)
