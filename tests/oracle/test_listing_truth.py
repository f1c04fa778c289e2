"""What a listing says can be checked with nothing but what it says."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

from tests.oracle import strategies
from tests.oracle.contract import Service
from tests.oracle.naive_tree import Problem
from tests.oracle.test_naive_twin import ask

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


@given(strategies.classification() | strategies.regression() | strategies.counts())
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


def _find_first(rivals: list[dict[str, Any]], node: Mapping[str, Any], criterion: str) -> dict[str, Any]:
    """The first whose score is within a trillionth of the node's impurity (of ratios and goodness: absolute)."""
    scale = 1.0 if criterion in ("gain_ratio", "gini_gain_ratio", "goodness") else node["impurity"]
    best = max(split["score"] for split in rivals)
    return next(split for split in rivals if split["score"] >= best - 1e-12 * scale)
