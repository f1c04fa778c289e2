"""Class weights, priors and losses as factors of the classes' weights; measures of the known part of a node."""

from __future__ import annotations

import math
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.criteria import CRITERIA
from service.core.objective import Objective, alter_classes
from tests.oracle import naive_tree as naive

POSITIVE = st.lists(st.floats(0.1, 50), min_size=3, max_size=3).map(np.array)


def test_nothing_asked() -> None:
    """Without weights, priors and losses nothing is multiplied."""
    assert alter_classes(np.array([3.0, 5.0]), None, None, None) == (None, None)


@given(POSITIVE, POSITIVE, st.none() | POSITIVE)
def test_priors_are_the_shares(weight: np.ndarray, priors: np.ndarray, class_weight: np.ndarray | None) -> None:
    """With priors the classes weigh in their proportion, whatever the data; the total is unchanged."""
    scored, shown = alter_classes(weight, class_weight, priors, None)
    assert scored is shown is not None
    altered = weight * scored
    assert altered / altered.sum() == pytest.approx(priors / priors.sum(), rel=1e-12)
    total = weight if class_weight is None else weight * class_weight
    assert altered.sum() == pytest.approx(total.sum(), rel=1e-12)


def test_losses_as_rpart_has_them() -> None:
    """With 64 absent and 17 present and losses of 4 and 3, the factors are those of rpart 4.1.19's altered priors."""
    scored, shown = alter_classes(np.array([64.0, 17.0]), None, None, [[0, 4], [3, 0]])
    whole = 64 * 4 + 17 * 3
    assert scored == pytest.approx([4 * 81 / whole, 3 * 81 / whole], rel=1e-15)
    assert shown is None, "probabilities do not see losses"


@given(POSITIVE, POSITIVE)
def test_a_loss_of_one_for_every_mistake_changes_nothing(weight: np.ndarray, priors: np.ndarray) -> None:
    """Equal losses multiply every class alike, with priors as without."""
    equal = (1 - np.eye(3)).tolist()
    assert alter_classes(weight, None, None, equal)[0] == pytest.approx(np.ones(3), rel=1e-12)
    without, _ = alter_classes(weight, None, priors, None)
    assert alter_classes(weight, None, priors, equal)[0] == pytest.approx(without, rel=1e-12)


OUTLOOK = np.array([[[2.0], [3.0], [3.0]], [[3.0], [0.0], [2.0]]])  # (class, branch, candidate): sunny, overcast, rain
UNKNOWN = np.array([[1.0], [0.0]])


def rate(measure: str, criterion: str, branches: np.ndarray, gone: np.ndarray | None, *, parted: bool) -> float:
    """One measure of one candidate."""
    objective = Objective(CRITERIA[criterion], positive=0, unknown_branch=parted)
    return float(objective.rate(measure, branches, branches.sum(1), gone)[0])


def test_unknown_outlook_as_quinlan_has_it() -> None:
    """One of 14 outlooks unknown: gain 0.199, split information 1.809 with the unknown as a branch (C4.5, page 28)."""
    assert round(rate("information_gain", "gain_ratio", OUTLOOK, UNKNOWN, parted=True), 3) == 0.199
    assert round(rate("information_content", "gain_ratio", OUTLOOK, UNKNOWN, parted=True), 3) == 1.809
    assert round(rate("gain_ratio", "gain_ratio", OUTLOOK, UNKNOWN, parted=True), 3) == 0.110


def test_content_without_a_branch_for_the_unknown() -> None:
    """Where rows are not parted, the information content is that of the known branches alone."""
    known = -sum(n / 13 * math.log2(n / 13) for n in (5, 3, 5))
    content = rate("information_content", "gain_ratio", OUTLOOK, UNKNOWN, parted=False)
    assert content == pytest.approx(known, rel=1e-14)
    gain = rate("information_gain", "gain_ratio", OUTLOOK, UNKNOWN, parted=False)
    assert rate("gain_ratio", "gain_ratio", OUTLOOK, UNKNOWN, parted=False) == pytest.approx(gain / known, rel=1e-14)


COUNTS = st.lists(st.integers(0, 20), min_size=2, max_size=2)


@given(
    st.lists(COUNTS, min_size=2, max_size=2).filter(lambda parts: all(map(any, parts))),
    COUNTS,
    st.sampled_from(["gini", "entropy"]),
)
def test_known_population_by_plain_counting(parts: list[list[int]], lost: list[int], criterion: str) -> None:
    """A gain counts by the known share, impurity less cost is the gain, goodness counts by share, correctness as is."""
    branches, gone = np.array(parts, float).T[:, :, None], np.array(lost, float)[:, None]
    impurity = naive.gini if criterion == "gini" else naive.entropy
    gain, cost = ("gini_gain", "gini_cost") if criterion == "gini" else ("information_gain", "entropy_cost")
    exact = naive.class_measures([[Fraction(n) for n in part] for part in parts], 0)
    share = sum(map(sum, parts)) / (sum(map(sum, parts)) + sum(lost))
    whole = [parts[0][c] + parts[1][c] + lost[c] for c in (0, 1)]

    def rated(name: str) -> float:
        return rate(name, criterion, branches, gone, parted=False)

    near = {"rel": 1e-9, "abs": 1e-12}
    assert rated(gain) == pytest.approx(float(exact[gain] or 0) * share, **near)
    assert rated(cost) == pytest.approx(float(impurity([Fraction(n) for n in whole])) - rated(gain), **near)
    for name in ("goodness", "twoing"):
        assert rated(name) == pytest.approx(float(exact[name] or 0) * share, **near)
    assert rated("positive_correctness") == exact["positive_correctness"]


@given(
    st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=4), min_size=2, max_size=2),
    st.lists(st.integers(-9, 9), max_size=3),
)
def test_known_numbers_by_plain_counting(parts: list[list[int]], lost: list[int]) -> None:
    """Node weight times variance reduction is the known rows' sum of squares less the branches' (rpart's anova)."""
    branches = np.stack([moments(part) for part in parts], axis=1)[:, :, None]
    gone = moments(lost)[:, None]
    known = [n for part in parts for n in part]
    between = squares(known) - sum(squares(part) for part in parts)
    reduction = rate("variance_reduction", "variance", branches, gone, parted=False)
    size = len(known) + len(lost)
    assert reduction * size == pytest.approx(float(between), rel=1e-9, abs=1e-9)
    cost = rate("variance_cost", "variance", branches, gone, parted=False)
    assert cost == pytest.approx(float(squares(known + lost)) / size - reduction, rel=1e-9, abs=1e-9)


def moments(numbers: list[int]) -> np.ndarray:
    """Weight, sum and sum of squares."""
    return np.array([len(numbers), sum(numbers), sum(n * n for n in numbers)], float)


def squares(numbers: list[int]) -> Fraction:
    """The sum of squares about the mean."""
    mean = Fraction(sum(numbers), len(numbers))
    return sum(((n - mean) ** 2 for n in numbers), Fraction(0))
