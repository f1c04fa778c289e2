"""Splits and numbers in the words of the API."""

from __future__ import annotations

import json
import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.audit import list_candidates
from service.core.schema import Feature
from service.rendering.candidates import show_candidates, show_listed_head
from service.rendering.nodes import show_counts, show_number, show_threshold, show_tree_node
from tests.core.making import audit, classes, grow, labels, list_root, numbers, values


@pytest.mark.parametrize(
    ("value", "shown"),
    [(0.5, 0.5), (-0.0, 0.0), (math.nan, None), (math.inf, "Infinity"), (-math.inf, "-Infinity")],
)
def test_numbers(value: float, shown: float | str | None) -> None:
    """What JSON cannot write as a number is null or a word."""
    assert show_number(value) == shown


@pytest.mark.parametrize(
    ("whole", "threshold", "shown"),
    [(3, 3.5, 3.5), (2**53 + 1, float(2**53), 2**53 + 1), (-(2**62), float(-(2**62)), -(2**62))],
)
def test_thresholds_of_whole_numbers(whole: int, threshold: float, shown: float) -> None:
    """Halves are shown while float64 has them, whole numbers exactly beyond."""
    assert repr(show_threshold(Feature("x", "numeric", integer=True), threshold, whole)) == repr(shown)


def test_counts() -> None:
    """Whole class weights are shown without a point, others as they are."""
    assert repr(show_counts([3.0, 0.0, 2.5])) == "[3, 0, 2.5]"


COLUMNS = [
    numbers("real", [0.1, None, 0.3, 0.3, 2.5, 7.0, None, 8.0]),
    numbers("whole", [1, 2, 3, 4, 2**53, 2**53 + 1, 7, 8]),
    labels("kind", ["p", "q", "r", None, "p", "q", "r", "p"]),
    labels("size", ["S", "M", "L", "S", "M", "L", None, "S"], ["S", "M", "L"], "ordinal"),
    labels("flag", [True, False, True, False, True, False, True, True], [False, True], "boolean"),
]
MARKS = list("abcabcab")
HANDLING = [
    {},
    {"missing": "branch"},
    {"nominal": "multiway"},
    {"nominal": "multiway", "missing": "branch"},
    {"nominal": "one_vs_rest", "threshold_value": "data"},
]


@pytest.mark.parametrize("parameters", HANDLING)
@pytest.mark.parametrize("regression", [False, True])
def test_the_chosen_candidate_is_the_split_of_the_tree(parameters: dict[str, Any], regression: bool) -> None:
    """In every node the candidate of rank 1 is described as the tree describes its split, with the children's sizes."""
    target = values([1.5, 2.0, 9.0, 1.0, 2.5, 8.0, 1.0, 2.0]) if regression else classes(MARKS)
    learnt = grow(COLUMNS, target, parameters)
    audited = audit(learnt, target)
    checked = 0
    for group in audited.groups:
        listing = list_candidates(audited, group)
        for shown in show_candidates(audited, listing, np.flatnonzero(listing.chosen), listing.rank[listing.chosen]):
            node = show_tree_node(learnt.tree, shown["node"])
            assert (shown["feature"], shown["split"], shown["rank"]) == (node["feature"], node["split"], 1)
            assert shown["score"] == pytest.approx(node["score"], rel=1e-9)
            children = [show_tree_node(learnt.tree, child) for child in node["children"]]
            for branch, child in zip(shown["branches"], children, strict=True):
                assert branch["routed"].keys() <= child.keys()
                for name, value in branch["routed"].items():
                    assert value == pytest.approx(child[name], rel=1e-9), name
                assert branch["known"]["impurity"] == pytest.approx(child["impurity"], abs=1e-12)
            checked += 1
    assert checked == int((~learnt.tree.is_leaf).sum()) > 1


@pytest.mark.parametrize("parameters", HANDLING)
def test_json_can_say_it(parameters: dict[str, Any]) -> None:
    """Candidates, heads and nodes are plain Python all through: the standard library writes them, without NaN."""
    target = classes(MARKS)
    learnt = grow(COLUMNS, target, parameters)
    listing = list_root(learnt, target)
    audited = audit(learnt, target)
    shown = show_candidates(audited, listing, np.arange(len(listing.node)), listing.rank)
    head = show_listed_head(audited, listing, 0)
    nodes = [show_tree_node(learnt.tree, node) for node in range(learnt.tree.nodes)]
    assert json.loads(json.dumps([shown, head, nodes], allow_nan=False)) == [shown, head, nodes]


MANY = st.lists(st.tuples(st.floats(-9, 9), st.integers(0, 11)), min_size=12, max_size=40)


@settings(max_examples=25, deadline=None)
@given(MANY)
def test_a_candidate_is_shown_alike_alone_and_among_others(rows: list[tuple[float, int]]) -> None:
    """With a dozen classes, whose sums could round otherwise, a page of one candidate is a part of the page of all."""
    target = classes([f"{mark:02d}" for _, mark in rows])
    learnt = grow([numbers("x", [x for x, _ in rows])], target, {"max_depth": 1})
    listing = list_root(learnt, target)
    every = np.arange(len(listing.node))
    audited = audit(learnt, target)
    together = show_candidates(audited, listing, every, listing.rank)
    for i in every.tolist():
        assert show_candidates(audited, listing, every[i : i + 1], listing.rank[i : i + 1]) == [together[i]]


def test_the_margin() -> None:
    """The head of a node has how far its best is ahead of the next, and of the best of another feature."""
    target = classes(list("aabb"))
    learnt = grow([numbers("x", [1, 2, 3, 4]), numbers("z", [1, 2, 1, 2])], target)
    listing = list_root(learnt, target)
    gains = sorted((s for s in listing.score.tolist()), reverse=True)
    head = show_listed_head(audit(learnt, target), listing, 0)
    assert head["margin"] == {
        "any": pytest.approx(gains[0] - gains[1]),
        "other_feature": None,
        "any_relative": pytest.approx((gains[0] - gains[1]) / gains[0]),
        "other_feature_relative": None,
    }
    assert gains[0] == pytest.approx(0.5)
    leaf = list_candidates(audit(learnt, target), np.array([1]))
    assert show_listed_head(audit(learnt, target), leaf, 0)["margin"] == dict.fromkeys(head["margin"])
