"""The limits of C4.5 and of Weka: the published numbers, and what limits must be."""

from __future__ import annotations

import json
import re

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.prune_limits import estimate_errors, find_deviate
from tests.oracle.contract import DATA


def estimate(weight: float, errors: float, confidence: float, limit: str) -> float:
    """The errors of one leaf."""
    return float(estimate_errors(np.array([weight]), np.array([errors]), confidence, limit)[0])


@pytest.mark.parametrize("limit", ["c45", "weka"])
def test_published_limits(limit: str) -> None:
    """U25(e, n) of the book's leaves: C4.5 gives .157 for one error in 16, Weka .1547."""
    found = json.loads((DATA / "worked_examples.json").read_text())["ebp"]
    checked = 0
    for name, limits in found.items():
        if match := re.fullmatch(r"U25\((\d+),(\d+)\)", name):
            errors, weight = map(int, match.groups())
            assert estimate(weight, errors, 0.25, limit) / weight == pytest.approx(limits[limit], rel=1e-12), name
            checked += 1
    assert checked >= 9


def test_the_subtree_of_the_book() -> None:
    """Leaves of 6, 9 and 1 cases without error: 6 x .206 + 9 x .143 + 1 x .750 = 3.273 (Quinlan 1993, page 42)."""
    leaves = estimate_errors(np.array([6.0, 9.0, 1.0]), np.zeros(3), 0.25, "c45")
    assert float(leaves.sum()) == pytest.approx(3.273, abs=5e-4)
    assert estimate(16, 1, 0.25, "c45") == pytest.approx(16 * 0.157, abs=1e-2)


LEAVES = st.tuples(st.floats(0.01, 500), st.floats(0, 1)).map(lambda pair: (pair[0], pair[0] * pair[1]))


@given(LEAVES, st.sampled_from([0.001, 0.05, 0.1, 0.25, 0.5]), st.sampled_from(["c45", "weka"]))
def test_a_limit_is_between_what_was_seen_and_all(leaf: tuple[float, float], confidence: float, limit: str) -> None:
    """A leaf is expected to make no fewer errors than it made, and no more than it has cases, or one."""
    weight, errors = leaf
    found = estimate(weight, errors, confidence, limit)
    assert errors - 1e-9 <= found <= max(weight, 1.0) + 1e-9


@given(LEAVES, st.sampled_from(["c45", "weka"]))
def test_less_confidence_is_more_errors(leaf: tuple[float, float], limit: str) -> None:
    """The smaller the confidence factor, the higher the limit."""
    found = [estimate(*leaf, confidence, limit) for confidence in (0.01, 0.1, 0.25, 0.4)]
    assert found == sorted(found, reverse=True)


def test_an_empty_leaf() -> None:
    """No case, no error."""
    assert estimate(0.0, 0.0, 0.25, "c45") == estimate(0.0, 0.0, 0.25, "weka") == 0.0


def test_deviates() -> None:
    """C4.5 interpolates in its table, at .25 between those of .20 and .40; Weka has the inverse of the normal."""
    assert find_deviate(0.25, "c45") == pytest.approx(0.84 - 0.59 * 0.05 / 0.2)
    assert find_deviate(0.25, "weka") == pytest.approx(0.6744897501960817, rel=1e-12)
