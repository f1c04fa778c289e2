"""The service's trees and listings against the naive learner, node by node, on small random tables."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from fractions import Fraction
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.oracle import naive_tree as naive
from tests.oracle import strategies
from tests.oracle.contract import OTHERWISE, Service, feature_of, way
from tests.oracle.naive_tree import Branch, Candidate, Problem

SLOWLY = settings(max_examples=100, deadline=None, suppress_health_check=[HealthCheck.too_slow])
IMPURITIES = (
    "gini",
    "entropy",
    "gain_ratio",
    "gini_gain_ratio",
    "variance",
    "poisson",
    "absolute_error",
    "dissimilarity",
)


def ask(service: Service, problem: Problem) -> str:
    """Train on the problem as a service's caller would; the model's id."""
    data = {**problem.columns, "target": problem.targets, "weight": problem.weights}
    names = ("criterion", "nominal", "missing", "min_samples_split", "min_samples_leaf", "min_weight_leaf", "min_gain")
    parameters = {name: getattr(problem, name) for name in (*names, "max_depth")}
    more: dict[str, Any] = {"weight": "weight", "parameters": parameters}
    more["schema"] = {name: {"kind": "ordinal", "categories": order} for name, order in problem.ordinals.items()}
    task = "dissimilarity" if problem.criterion == "dissimilarity" else "regression"
    more["task"] = "classification" if problem.classes else task
    if problem.positive is not None:
        more["positive_class"] = problem.positive
    return service.train(data, "target", more)


def check(service: Service, problem: Problem) -> None:
    """Everything that a model says of its training rows, against what plain counting says."""
    model = ask(service, problem)
    nodes = service.tree(model)
    listing = service.listing(model, {"sort": "position"})
    listed = {node["node"]: [s for s in listing["splits"] if s["node"] == node["node"]] for node in nodes}
    members = route(problem, nodes)
    for node in nodes:
        rows = members[node["node"]]
        check_statistics(problem, node, rows)
        candidates = naive.node_candidates(problem, rows)
        check_candidates(problem, rows, candidates, listed[node["node"]])
        check_order(problem, listed[node["node"]])
        check_choice(problem, node, naive.best_of(problem, rows, candidates), rows, listed[node["node"]])
    check_predictions(service, problem, model, nodes, members)


def route(problem: Problem, nodes: Sequence[Mapping[str, Any]]) -> dict[int, Branch]:
    """The rows at each node, sent down by the descriptions of the splits."""
    members: dict[int, Branch] = {0: problem.rows()}
    for node in nodes:
        if node["leaf"]:
            continue
        branches = part(problem, str(feature_of(node)), node["split"], members[node["node"]])
        assert len(branches) == len(node["children"])
        members |= dict(zip(node["children"], branches, strict=True))
    assert members.keys() == {node["node"] for node in nodes}
    return members


def part(problem: Problem, feature: str, split: Mapping[str, Any], rows: Branch) -> tuple[Branch, ...]:
    """The rows of each branch of a split; every row has a way."""
    ways = {row: way(split, problem.columns[feature][row]) for row in rows}
    assert OTHERWISE not in ways.values(), split
    return tuple(tuple(row for row in rows if ways[row] == place) for place in range(max(ways.values()) + 1))


def check_statistics(problem: Problem, node: Mapping[str, Any], rows: Branch) -> None:
    """A node's counts, impurity and prediction are those of the rows that reach it."""
    assert rows
    predicted = naive.prediction(problem, rows)
    if problem.classes:
        assert node["counts"] == problem.counts(rows)
        assert naive.same(node["prediction"], predicted)  # type: ignore[arg-type]
    else:
        assert node["prediction"] == pytest.approx(float(predicted), rel=1e-9, abs=1e-9)
    if problem.criterion in IMPURITIES:
        assert node["impurity"] == pytest.approx(float(naive.impurity(problem, rows)), rel=1e-9, abs=1e-12)


def check_candidates(
    problem: Problem, rows: Branch, candidates: Sequence[Candidate], listed: Sequence[Mapping[str, Any]]
) -> None:
    """The listing has each of the naive candidates once and no other; branches, scores and admission are equal."""
    expected = {each.key: each for each in candidates}
    found: dict[Any, Mapping[str, Any]] = {}
    for entry in listed:
        branches = part(problem, entry["feature"], entry["split"], rows)
        key = Candidate(entry["feature"], "", branches).key
        assert key not in found, f"listed twice: {entry}"
        assert key in expected, f"not a candidate: {entry}"
        found[key] = entry
        check_branches(problem, entry, branches)
        check_scores(problem, entry, expected[key], rows)
    assert found.keys() == expected.keys(), f"not listed: {[expected[key] for key in expected.keys() - found.keys()]}"


def check_branches(problem: Problem, entry: Mapping[str, Any], branches: Sequence[Branch]) -> None:
    """Each branch lists its rows, weight and counts; what is known is what is routed, and nothing is empty."""
    assert len(entry["branches"]) == len(branches)
    for branch, rows in zip(entry["branches"], branches, strict=True):
        assert rows
        for population in (branch["known"], branch["routed"]):
            assert population["n"] == len(rows)
            assert population["weight"] == problem.weight(rows)
            if problem.classes:
                assert population["counts"] == problem.counts(rows)
            elif problem.criterion != "dissimilarity":
                mean = sum((w * y for w, y in problem.moments(rows)), Fraction(0)) / problem.weight(rows)
                assert population["mean"] == pytest.approx(float(mean), rel=1e-9, abs=1e-9)
            if problem.criterion == "variance":
                spread = naive.variance(problem.moments(rows))
                assert population["variance"] == pytest.approx(float(spread), rel=1e-9, abs=1e-9)


def check_scores(problem: Problem, entry: Mapping[str, Any], expected: Candidate, rows: Branch) -> None:
    """Every measure equals the naive one, the score is the criterion's own, and admission is the same."""
    scale = max(1.0, float(naive.impurity(problem, rows)))
    for measure, value in expected.scores.items():
        given = entry["scores"].get(measure)
        if value is not None:
            assert given is not None, (measure, entry)
            assert math.isclose(given, float(value), rel_tol=1e-9, abs_tol=1e-11 * scale), (measure, value, entry)
        elif entry["split"]["type"] != "constant" or "ratio" in measure:
            assert given is None, (measure, entry)
    assert entry["score"] == entry["scores"][naive.CRITERIA[problem.criterion].measure]
    assert entry["admissible"] == expected.admissible, (entry, expected)
    assert (entry["reason"] is None) == entry["admissible"]


def check_order(problem: Problem, listed: Sequence[Mapping[str, Any]]) -> None:
    """Features in order; within one its cuts ascend, missing left before missing right, and `missing` is last."""
    order = list(problem.columns)
    places = [order.index(entry["feature"]) for entry in listed]
    assert places == sorted(places)
    for feature in order:
        splits = [entry["split"] for entry in listed if entry["feature"] == feature]
        cuts = [(split["threshold"], split.get("missing", "")) for split in splits if split["type"] == "threshold"]
        assert cuts == sorted(cuts)
        kinds = [split["type"] == "missing" for split in splits]
        assert kinds == sorted(kinds)
        for split in splits:
            if split["type"] == "threshold":
                check_threshold(split)


def check_threshold(split: Mapping[str, Any]) -> None:
    """A threshold is the midpoint of its neighbours, rounded once, and separates them."""
    below, above = split["below"], split["above"]
    middle = float((Fraction(below) + Fraction(above)) / 2)
    assert split["threshold"] == (middle if below <= middle < above else below)
    assert below <= split["threshold"] < above


def check_choice(
    problem: Problem, node: Mapping[str, Any], best: Sequence[Candidate], rows: Branch,
    listed: Sequence[Mapping[str, Any]],
) -> None:  # fmt: skip
    """Split by the first of the best, or a leaf because nothing admissible improves, it is pure, or a limit says so."""
    tied = {each.key for each in best}
    limited = node["depth"] == problem.max_depth or len(rows) < problem.min_samples_split
    assert node["leaf"] == (not tied or limited or naive.pure(problem, rows)), (node, tied)
    assert (node["reason"] is None) != node["leaf"]
    chosen = [entry for entry in listed if entry["chosen"]]
    ranked = sorted((entry for entry in listed if entry["rank"]), key=lambda entry: int(entry["rank"]))
    assert [entry["rank"] for entry in ranked] == list(range(1, 1 + sum(entry["admissible"] for entry in listed)))
    assert all(entry["admissible"] for entry in ranked)
    if tied:
        first = next(entry for entry in listed if key_of(problem, entry, rows) in tied)
        assert first is ranked[0]
        assert math.isclose(first["score"], max(entry["score"] for entry in ranked), rel_tol=1e-9, abs_tol=1e-11)
    assert chosen == ([] if node["leaf"] else ranked[:1])
    if chosen:
        assert feature_of(node) == chosen[0]["feature"]
        assert {**node["split"], "feature": None} == {**chosen[0]["split"], "feature": None}


def key_of(problem: Problem, entry: Mapping[str, Any], rows: Branch) -> Any:  # noqa: ANN401 - as Candidate.key
    """The entry's feature and partition."""
    return Candidate(entry["feature"], "", part(problem, entry["feature"], entry["split"], rows)).key


def check_predictions(
    service: Service, problem: Problem, model: str, nodes: Sequence[Mapping[str, Any]], members: Mapping[int, Branch]
) -> None:
    """Every training row is predicted by the one leaf it reached: its majority and its distribution."""
    leaves = {row: node for node in nodes if node["leaf"] for row in members[node["node"]]}
    rows = problem.rows()
    assert sorted(leaves) == list(rows)
    asked = {name: [cells[row] for row in rows] for name, cells in problem.columns.items()}
    answer = service.predict(model, asked)
    assert answer["leaves"] == [leaves[row]["node"] for row in rows]
    assert answer["predictions"] == [leaves[row]["prediction"] for row in rows]
    if problem.classes:
        assert answer["classes"] == list(problem.classes)
        shares = [[count / sum(leaves[row]["counts"]) for count in leaves[row]["counts"]] for row in rows]
        assert [pytest.approx(row, rel=1e-12) for row in shares] == answer["probabilities"]


@given(strategies.classification())
@SLOWLY
def test_classification(service: Service, problem: Problem) -> None:
    """For gini, entropy, both gain ratios and goodness, every node is as plain counting finds it."""
    check(service, problem)


@given(strategies.with_a_positive_class())
@SLOWLY
def test_positive_class(service: Service, problem: Problem) -> None:
    """For positive correctness and true positive rate, every node is as plain counting finds it."""
    check(service, problem)


@given(strategies.regression())
@SLOWLY
def test_regression(service: Service, problem: Problem) -> None:
    """For variance reduction, every node is as plain counting finds it."""
    check(service, problem)


@given(strategies.counts())
@SLOWLY
def test_counts(service: Service, problem: Problem) -> None:
    """For the reduction of the Poisson deviance, every node is as plain counting finds it."""
    check(service, problem)


@given(strategies.regression("absolute_error"))
@SLOWLY
def test_absolute_error(service: Service, problem: Problem) -> None:
    """For the reduction of the absolute error, every node is as plain counting finds it."""
    check(service, problem)


@given(strategies.regression("dissimilarity"))
@SLOWLY
def test_dissimilarity(service: Service, problem: Problem) -> None:
    """For the reduction of the dissimilarity of pairs, here of numbers, every node is as plain counting finds it."""
    check(service, problem)
