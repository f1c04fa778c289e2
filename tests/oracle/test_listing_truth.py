"""What a listing says can be checked with nothing but what it says."""

from __future__ import annotations

import itertools
from collections.abc import Mapping
from dataclasses import replace
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from tests.oracle import strategies
from tests.oracle.contract import Service, way
from tests.oracle.naive_tree import Problem
from tests.oracle.test_naive_twin import ask

ABSOLUTE = ("gain_ratio", "gini_gain_ratio", "goodness", "true_positive_rate")
"""Criteria whose scores are compared as they are."""
SLOWLY = settings(max_examples=40, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@given(strategies.classification())
@SLOWLY
def test_scores_follow_from_the_listed_counts(service: Service, problem: Problem) -> None:
    """Every score of every candidate is that of its `known` counts alone, scored without any model."""
    listing = service.listing(ask(service, problem))
    classes = listing["classes"]
    for split in listing["splits"]:
        counts = [branch["known"]["counts"] for branch in split["branches"]]
        given_scores = service.score([dict(zip(map(str, classes), branch, strict=True)) for branch in counts])
        for name, score in split["scores"].items():
            expected = given_scores[name]
            assert score == (None if expected is None else pytest.approx(expected, rel=1e-12, abs=1e-12)), name


def set_apart(problem: Problem, missing: str) -> Problem:
    """The problem with what is missing in no branch; surrogates have no multiway splits."""
    nominal = "subset" if missing == "surrogate" and problem.nominal == "multiway" else problem.nominal
    return replace(problem, missing=missing, nominal=nominal)


@given(strategies.classification(), st.sampled_from(["surrogate", "fractional"]))
@SLOWLY
def test_gains_count_by_what_is_known(service: Service, problem: Problem, missing: str) -> None:
    """Where what is missing is in no branch, a gain is that of the `known` counts by their share of the weight."""
    listing = service.listing(ask(service, set_apart(problem, missing)))
    nodes = {node["node"]: node for node in listing["nodes"]}
    for split in listing["splits"]:
        counts = [branch["known"]["counts"] for branch in split["branches"]]
        known = service.score([dict(zip(map(str, listing["classes"]), branch, strict=True)) for branch in counts])
        share = sum(branch["known"]["weight"] for branch in split["branches"]) / nodes[split["node"]]["weight"]
        for name in ("gini_gain", "information_gain", "goodness", "twoing"):
            expected = None if known[name] is None else pytest.approx(known[name] * share, rel=1e-12, abs=1e-12)
            assert split["scores"][name] == expected, name


@given(strategies.classification(), st.sampled_from(["surrogate", "fractional"]))
@SLOWLY
def test_the_tree_s_own_branches_add_up(service: Service, problem: Problem, missing: str) -> None:
    """So do the `routed` weights of a chosen split where surrogates or parts take care of what is missing.

    Unless no surrogate knows and the split has no heavier side: then rows stay.
    """
    listing = service.listing(ask(service, set_apart(problem, missing)), {"chosen": "true"})
    nodes = {node["node"]: node for node in listing["nodes"]}
    for split in listing["splits"]:
        node, routed = nodes[split["node"]], [branch["routed"] for branch in split["branches"]]
        if split["split"].get("missing") == "stays":
            assert sum(branch["weight"] for branch in routed) <= node["weight"]
            continue
        assert sum(branch["weight"] for branch in routed) == pytest.approx(node["weight"])
        for place, total in enumerate(node["counts"]):
            assert sum(branch["counts"][place] for branch in routed) == pytest.approx(total)


@given(strategies.classification())
@SLOWLY
def test_branches_add_up_to_their_node(service: Service, problem: Problem) -> None:
    """`routed` rows, weights and class weights of the branches are those of the node, for every candidate."""
    listing = service.listing(ask(service, problem))
    nodes = {node["node"]: node for node in listing["nodes"]}
    for split in listing["splits"]:
        node = nodes[split["node"]]
        routed = [branch["routed"] for branch in split["branches"]]
        assert sum(branch["n"] for branch in routed) == node["n"]
        assert sum(branch["weight"] for branch in routed) == pytest.approx(node["weight"])
        for place, count in enumerate(node["counts"]):
            assert sum(branch["counts"][place] for branch in routed) == pytest.approx(count)


@given(strategies.classification() | strategies.regression())
@SLOWLY
def test_every_training_row_descends_to_its_leaf(service: Service, problem: Problem) -> None:
    """By the chosen splits alone every training row comes to a leaf, each node to its `n`, and the answer names it."""
    model = ask(service, problem)
    heads = {node["node"]: node for node in service.listing(model)["nodes"]}
    number, children = itertools.count(1), {}
    for split in service.splits(model, {"chosen": "true"}):
        # nodes are numbered breadth first, and so is the listing
        children[split["node"]] = split, [next(number) for _ in split["branches"]]
    rows = problem.rows()
    seen = dict.fromkeys(range(next(number)), 0)
    leaves = []
    for row in rows:
        node = 0
        seen[0] += 1
        while node in children:
            split, below = children[node]
            node = below[way(split["split"], problem.columns[split["feature"]][row])]
            seen[node] += 1
        leaves.append(node)
    assert all(heads[node]["leaf"] for node in leaves)
    assert seen == {node: head["n"] for node, head in heads.items()}
    asked = {name: [cells[row] for row in rows] for name, cells in problem.columns.items()}
    assert service.predict(model, asked)["leaves"] == leaves


@given(strategies.classification() | strategies.with_a_positive_class() | strategies.regression() | strategies.counts())
@SLOWLY
def test_the_chosen_is_the_first_of_the_best(service: Service, problem: Problem) -> None:
    """In feature and cut order, the chosen candidate is the first that is tied with the best admissible score."""
    model = ask(service, problem)
    listing = service.listing(model, {"sort": "position"})
    for node in listing["nodes"]:
        mine = [split for split in listing["splits"] if split["node"] == node["node"]]
        chosen = [split for split in mine if split["chosen"]]
        assert len(chosen) == (0 if node["leaf"] else 1)
        rivals = [split for split in mine if split["admissible"]]
        if not rivals:
            continue
        assert [split for split in mine if split["rank"] == 1] == [_find_first(rivals, node, listing["criterion"])]
        assert chosen in ([], [split for split in mine if split["rank"] == 1])


TIED = Problem(
    {"x": [0, 0, None, 0, None, 0, 0], "z": [0, 0, 1, 0, 0, 1, 1]}, list("npnppnn"), [1] * 7, ("n", "p"), "n"
)
"""Several cuts tell every positive."""
BY_MEASURE = {"entropy": "information_gain", "goodness": "goodness", "true_positive_rate": "true_positive_rate"}


@given(strategies.with_a_positive_class(), st.sampled_from(sorted(BY_MEASURE)))
@example(replace(TIED, min_weight_leaf=1.5), "true_positive_rate")
@SLOWLY
def test_another_measure_takes_what_its_criterion_takes(service: Service, problem: Problem, criterion: str) -> None:
    """The first by a measure is what training by it splits on, if the model's own criterion admits that at all."""
    problem = replace(problem, criterion="gini", max_depth=1, min_gain=0)
    mine, other = (service.listing(ask(service, replace(problem, criterion=name))) for name in ("gini", criterion))
    (first,) = [split for split in other["splits"] if split["node"] == 0 and split["rank"] == 1] or [None]
    ranked = service.listing(str(mine["model"]["id"]), {"node": 0, "measure": BY_MEASURE[criterion]})
    named = {(split["feature"], str(split["split"])): split["rank"] for split in ranked["splits"]}
    if first is not None and named[first["feature"], str(first["split"])] is not None:
        assert named[first["feature"], str(first["split"])] == 1


@given(strategies.classification() | strategies.regression())
@SLOWLY
def test_margins_follow_from_the_listed_scores(service: Service, problem: Problem) -> None:
    """A node's lead is that of its first candidate over the second, and over the best of another feature."""
    listing = service.listing(ask(service, problem))
    for node in listing["nodes"]:
        ranked = [split for split in listing["splits"] if split["node"] == node["node"] and split["rank"]]
        ranked.sort(key=lambda split: split["rank"])
        leads: dict[str, float | None] = dict.fromkeys(node["margin"])
        if ranked:
            best, others = ranked[0], [split for split in ranked if split["feature"] != ranked[0]["feature"]]
            for name, rivals in (("any", ranked[1:2]), ("other_feature", others)):
                if rivals:
                    leads[name] = best["score"] - max(split["score"] for split in rivals)
                    leads[f"{name}_relative"] = leads[name] / best["score"]
        assert node["margin"] == leads


def _find_first(rivals: list[dict[str, Any]], node: Mapping[str, Any], criterion: str) -> dict[str, Any]:
    """The first of those within the tolerance of the best score, a trillionth of the criterion's scale.

    By the true positive rate that is the first of those among them with the best positive correctness.
    """
    scale = {"positive_correctness": node["weight"]}.get(criterion, 1.0 if criterion in ABSOLUTE else node["impurity"])
    best = max(split["score"] for split in rivals)
    tied = [split for split in rivals if split["score"] >= best - 1e-12 * scale]
    if criterion == "true_positive_rate":
        return max(tied, key=lambda split: split["scores"]["positive_correctness"])
    return tied[0]
