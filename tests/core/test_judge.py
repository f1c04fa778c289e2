"""Each reason against a candidate arises where it should, and monotonic growth keeps its promise."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.core.audit import list_candidates
from service.core.judge import Reason
from tests.core.making import audit, classes, grow, labels, list_root, numbers


@pytest.mark.parametrize(
    ("cells", "marks", "parameters", "reasons"),
    [
        ([1, 2, 3, 4], "aabb", {}, ["ADMISSIBLE"] * 3),
        ([7, 7, 7, 7], "aabb", {}, ["CONSTANT"]),
        ([1, 1, 2, 2], "abab", {}, ["NO_IMPROVEMENT"]),
        ([1, 2, 3, 4], "aabb", {"min_gain": 0.3}, ["MIN_GAIN", "ADMISSIBLE", "MIN_GAIN"]),
        ([1, 2, 3, 4], "aabb", {"min_samples_leaf": 2}, ["MIN_SAMPLES_LEAF", "ADMISSIBLE", "MIN_SAMPLES_LEAF"]),
        ([1, 2, 3, 4], "aabb", {"min_weight_leaf": 1.5}, ["MIN_WEIGHT_LEAF", "ADMISSIBLE", "MIN_WEIGHT_LEAF"]),
        ([1, 2, 3, 4], "abbb", {"monotonic": {"x": "down"}}, ["MONOTONIC"] * 3),
        ([1, 2, 3, 4], "abbb", {"monotonic": {"x": "up"}}, ["ADMISSIBLE"] * 3),
        (
            [1, 2, 3, None],
            "aabb",
            {"min_samples_leaf": 2},
            ["NO_IMPROVEMENT", "MIN_SAMPLES_LEAF", "MIN_SAMPLES_LEAF", "ADMISSIBLE", "MIN_SAMPLES_LEAF"],
        ),
    ],
)
def test_reasons(cells: list[Any], marks: str, parameters: dict[str, Any], reasons: list[str]) -> None:
    """Cuts in ascending order, missing values left then right, are refused for the reason that holds."""
    target = classes(list(marks))
    listing = list_root(grow([numbers("x", cells)], target, {"max_depth": 1} | parameters), target)
    assert [Reason(int(reason)).name for reason in listing.reason] == reasons


def test_limits_outrank_what_a_score_says() -> None:
    """A candidate that is both too small and no improvement is refused for its size: the limit would hold anyhow."""
    target = classes(list("abababab"))
    cells = [1, 1, 1, 1, 2, 2, 2, 2]
    listing = list_root(grow([numbers("x", cells)], target, {"min_samples_leaf": 5, "max_depth": 1}), target)
    assert [Reason(int(reason)).name for reason in listing.reason] == ["MIN_SAMPLES_LEAF"]


def test_used_on_path() -> None:
    """A feature that the path has split by categories is listed below as used, not as a candidate."""
    target = classes(list("abcabc"))
    columns = [labels("x", list("ppqqrr")), labels("z", list("stustu"))]
    learnt = grow(columns, target, {"nominal": "multiway", "reuse_features": False})
    inner = np.flatnonzero(~learnt.tree.is_leaf[1:]) + 1
    root_feature = int(learnt.tree.feature[0])
    nodes = inner if len(inner) else np.array([1])
    listing = list_candidates(audit(learnt, target), nodes[learnt.tree.depth[nodes] == 1])
    used = listing.reason[listing.feature == root_feature]
    assert len(used)
    assert {Reason(int(reason)).name for reason in used} <= {"USED_ON_PATH", "CONSTANT"}


def test_two_branches_meet_the_limit() -> None:
    """With leaf_limit = two a multiway split may have small branches, if two are large enough."""
    cells, marks = list("ppqqr"), list("aabbb")
    target = classes(marks)
    for limit, admissible in (("all", False), ("two", True)):
        parameters = {"nominal": "multiway", "min_samples_leaf": 2, "leaf_limit": limit, "max_depth": 1}
        listing = list_root(grow([labels("x", cells)], target, parameters), target)
        assert [bool(reason == Reason.ADMISSIBLE) for reason in listing.reason] == [admissible]
