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


@pytest.mark.parametrize("criterion", ["variance", "absolute_error"])
@pytest.mark.parametrize("missing", ["surrogate", "fractional"])
def test_measures_of_what_is_known(service: Service, criterion: str, missing: str) -> None:
    """Where known values alone are scored, reductions count by their share of the node's weight, and costs follow."""
    problem = make_problem(len(criterion), criterion, {})
    data = {**problem.columns, "y": problem.targets, "w": problem.weights}
    parameters = {"criterion": criterion, "missing": missing, "max_depth": 2}
    schema = {"size": {"kind": "ordinal", "categories": problem.ordinals["size"]}}
    body = {"weight": "w", "task": "regression", "parameters": parameters, "schema": schema}
    model = service.train(data, "y", body)
    node = problem.moments(problem.rows())
    gained = {
        "variance": ("variance_reduction", "variance_cost", naive.variance(node)),
        "absolute": ("absolute_error_reduction", "absolute_error_cost", naive.absolute(node)),
    }
    for split in service.splits(model, {"node": 0}):
        if split["split"]["type"] == "constant":
            continue
        known = tuple(row for row in problem.rows() if problem.columns[split["feature"]][row] is not None)
        share = problem.weight(known) / problem.weight(problem.rows())
        exact = naive.measure(problem, part(problem, split["feature"], split["split"], known))
        for reduction, cost, impurity in gained.values():
            gain = exact[reduction] * share
            assert split["scores"][reduction] == pytest.approx(float(gain), rel=1e-9, abs=1e-12)
            assert split["scores"][cost] == pytest.approx(float(impurity - gain), rel=1e-9, abs=1e-12)
    answer = service.predict(model, problem.columns)
    assert len(answer["predictions"]) == len(problem.targets)
    assert all(min(problem.targets) <= given <= max(problem.targets) for given in answer["predictions"])


@pytest.mark.parametrize("missing", ["surrogate", "fractional"])
def test_several_targets_with_gaps(service: Service, missing: str) -> None:
    """Several targets are parted and stood in for like one: with the same target twice all answers are that one's."""
    problem = make_problem(3, "variance", {})
    body = {"parameters": {"missing": missing, "max_leaf_nodes": 9}, "task": "regression"}
    single = service.train({**problem.columns, "y": problem.targets}, "y", body)
    data = {**problem.columns, "y": problem.targets, "z": problem.targets}
    double = service.record({"data": {"columns": data}, "target": ["y", "z"], **body})["id"]
    one, two = (service.predict(model, problem.columns)["predictions"] for model in (single, double))
    assert [pytest.approx([answer, answer]) for answer in one] == two
