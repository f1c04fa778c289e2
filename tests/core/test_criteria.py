"""Measures have the values that the textbooks print, and the properties by which they are defined."""

from __future__ import annotations

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core import criteria, impurities
from service.core.criteria import (
    CLASS_MEASURES,
    CRITERIA,
    LOWER_IS_BETTER,
    MEASURES_OF,
    NUMBER_MEASURES,
    Floats,
)
from service.core.impurities import ENTROPY, GINI

OUTLOOK = [[2, 3], [4, 0], [3, 2]]
"""Play and no play when it is sunny, overcast, rainy (Quinlan 1986)."""
HUMIDITY, WIND = [[3, 4], [6, 1]], [[3, 3], [6, 2]]

BRANCHES = st.integers(2, 4).flatmap(
    lambda classes: st.lists(
        st.lists(st.integers(0, 30), min_size=classes, max_size=classes).filter(any), min_size=2, max_size=4
    )
)
PAIRS = st.tuples(*[st.tuples(st.integers(0, 50), st.integers(0, 50)).filter(any)] * 2)


def stack(branches: Sequence[Sequence[float]]) -> Floats:
    """(class, branch) of the class weights of each branch."""
    return np.array(branches, float).T


def measure(name: str, branches: Sequence[Sequence[float]]) -> float:
    """A measure of classes, by its name in the API."""
    table = stack(branches)
    return float(CLASS_MEASURES[name](table, table.sum(1)))


@pytest.mark.parametrize(
    ("branches", "name", "printed", "digits"),
    [
        (OUTLOOK, "information_gain", 0.2467, 4),
        (HUMIDITY, "information_gain", 0.1518, 4),
        (WIND, "information_gain", 0.0481, 4),
        ([[2, 2], [4, 2], [3, 1]], "information_gain", 0.0292, 4),
        (OUTLOOK, "information_content", 1.577, 3),
        (OUTLOOK, "gain_ratio", 0.156, 3),
        ([[2, 0], [3, 3]], "goodness", 0.375, 12),
        ([[0, 2], [5, 1]], "goodness", 2 * 0.25 * 0.75 * (5 / 3), 12),
        ([[2, 1], [1, 0]], "gini_cost", 1 / 3, 12),
    ],
)
def test_printed_values(branches: list[list[float]], name: str, printed: float, digits: int) -> None:
    """Quinlan's gains and ratio, and splits worked by hand, to the digits printed."""
    assert round(measure(name, branches), digits) == round(printed, digits)


@given(BRANCHES)
def test_gini_is_the_chance_to_disagree(branches: list[list[int]]) -> None:
    """Gini is the probability that two rows drawn with replacement differ in class, exactly computed."""
    for branch in branches:
        whole = sum(branch)
        chance = sum(
            (Fraction(a * b, whole**2) for (i, a), (j, b) in product(enumerate(branch), repeat=2) if i != j),
            Fraction(0),
        )
        assert float(impurities.gini(stack([branch]))[0]) == pytest.approx(float(chance), abs=1e-15)


@given(BRANCHES)
def test_information_gain_is_mutual_information(branches: list[list[int]]) -> None:
    """The gain is the mutual information of class and branch, summed over the cells of their table."""
    whole = sum(map(sum, branches))
    column = [sum(cells) for cells in zip(*branches, strict=True)]
    cells = [
        n / whole * math.log2(n * whole / (sum(branch) * column[c]))
        for branch in branches
        for c, n in enumerate(branch)
        if n
    ]
    assert measure("information_gain", branches) == pytest.approx(math.fsum(cells), abs=1e-12)


@given(BRANCHES, st.randoms(use_true_random=False))
def test_names_and_order_mean_nothing(branches: list[list[int]], source: object) -> None:
    """Neither the order of the classes nor that of the branches changes any measure."""
    order = list(range(len(branches[0])))
    source.shuffle(order)  # type: ignore[attr-defined] # a random.Random
    shuffled = [[branch[c] for c in order] for branch in reversed(branches)]
    for name in CLASS_MEASURES:
        assert measure(name, shuffled) == pytest.approx(measure(name, branches), abs=1e-12, nan_ok=True), name


@given(BRANCHES, st.sampled_from([0.25, 3.0, 1e6]))
def test_only_shares_count(branches: list[list[int]], factor: float) -> None:
    """Multiplying all weights changes no measure of classes."""
    for name in CLASS_MEASURES:
        scaled = [[n * factor for n in branch] for branch in branches]
        assert measure(name, scaled) == pytest.approx(measure(name, branches), abs=1e-12, nan_ok=True), name


@given(BRANCHES)
def test_gain_and_cost_are_the_impurity(branches: list[list[int]]) -> None:
    """Gain and cost add up to the node's impurity, and a gain is never negative but for rounding."""
    node = stack(branches).sum(1)
    for impurity, gain, cost in (
        (impurities.gini, "gini_gain", "gini_cost"),
        (impurities.entropy, "information_gain", "entropy_cost"),
    ):
        assert measure(gain, branches) + measure(cost, branches) == pytest.approx(float(impurity(node)), abs=1e-12)
        assert measure(gain, branches) >= -1e-12


@given(PAIRS)
def test_twoing_of_two_classes_is_half_the_gini_gain(branches: tuple[tuple[int, int], tuple[int, int]]) -> None:
    """With two classes twoing and gini rank alike: gini's gain is twice the twoing value (Breiman et al. 1984)."""
    assert measure("gini_gain", branches) == pytest.approx(2 * measure("twoing", branches), abs=1e-12)


@given(BRANCHES)
def test_a_branch_without_weight_is_none(branches: list[list[int]]) -> None:
    """An empty branch beside the others changes no measure, and nothing is divided by zero."""
    empty = [[0] * len(branches[0])]
    for name in CLASS_MEASURES:
        assert measure(name, branches + empty) == pytest.approx(measure(name, branches), abs=1e-12, nan_ok=True), name


@given(st.floats(1e-6, 1e6), st.integers(1, 9))
def test_one_class_is_pure_whatever_it_weighs(weight: float, others: int) -> None:
    """The impurity of a single class is exactly 0: rounding must not make a node worth a split."""
    stats = np.array([weight, *[0.0] * others])
    assert GINI.impurity(stats) == ENTROPY.impurity(stats) == 0


def test_what_is_undefined_is_nan() -> None:
    """Goodness and twoing of three branches or of one, and ratios of one branch, have no value."""
    assert math.isnan(measure("goodness", OUTLOOK))
    assert math.isnan(measure("twoing", OUTLOOK))
    for name in ("goodness", "twoing", "gain_ratio", "gini_gain_ratio"):
        assert math.isnan(measure(name, [[3, 2], [0, 0]])), name


@pytest.mark.parametrize(
    ("branches", "correctness", "rate"),
    [([[8, 2], [3, 4]], 6, 8 / 11), ([[6, 2], [2, 3]], 4, 0.75), ([[3, 4], [8, 2]], 6, 8 / 11)],
)
def test_positive_class(branches: list[list[int]], correctness: float, rate: float) -> None:
    """TP - FP and TP / P call that branch positive which has the higher share of positives, wherever it stands."""
    table = stack(branches)
    assert float(criteria.positive_correctness(table, 0)) == correctness
    assert float(criteria.true_positive_rate(table, 0)) == pytest.approx(rate, rel=1e-15)


def numbers(branches: Sequence[Sequence[float]]) -> Floats:
    """(channel, branch) weight, sum and sum of squares of the targets of each branch."""
    return np.array([[len(b), sum(b), sum(y * y for y in b)] for b in branches], float).T


def test_pairwise_variance_squares_the_shares() -> None:
    """Targets 0, 1 | 0, 1 reduce no variance, and by the encyclopaedia's formula .125."""
    table = numbers([[0, 1], [0, 1]])
    assert float(NUMBER_MEASURES["variance_reduction"](table, table.sum(1))) == 0
    assert float(NUMBER_MEASURES["pairwise_variance_reduction"](table, table.sum(1))) == 0.125


@given(st.lists(st.lists(st.integers(-9, 9), min_size=1, max_size=6), min_size=2, max_size=3))
def test_variance_is_half_the_mean_square_of_differences(branches: list[list[int]]) -> None:
    """The variance of a branch is half the mean squared difference over all ordered pairs of its rows."""
    for branch in branches:
        pairs = [Fraction((a - b) ** 2, 2 * len(branch) ** 2) for a, b in product(branch, repeat=2)]
        assert float(impurities.variance(numbers([branch]))[0]) == pytest.approx(float(sum(pairs)), abs=1e-12)


def test_trailing_axes_are_free() -> None:
    """A stack of tables is measured as each table alone: the functions know nothing of what they are asked for."""
    tables = np.stack([stack(HUMIDITY), stack(WIND)], axis=-1)
    for name, function in CLASS_MEASURES.items():
        together = function(tables, tables.sum(1))
        assert together.tolist() == pytest.approx([measure(name, HUMIDITY), measure(name, WIND)], rel=1e-15), name


def test_concentrations_grow_by_the_gain() -> None:
    """What the search adds up per branch differs from the gain times the weight by the node's own share alone."""
    table = stack(OUTLOOK)
    for family, gain in ((GINI, "gini_gain"), (ENTROPY, "information_gain")):
        grown = family.concentrate(table).sum() - family.concentrate(table.sum(1))
        assert float(grown) == pytest.approx(14 * measure(gain, OUTLOOK), rel=1e-12)


def test_every_criterion_is_a_listed_measure() -> None:
    """What a criterion maximizes is listed under its name, and no cost is maximized."""
    for criterion in CRITERIA.values():
        listed = {*CLASS_MEASURES, *criteria.POSITIVE_MEASURES}
        if criterion.task != "classification":
            listed = {*MEASURES_OF[criterion.statistic]}
        assert {criterion.measure, criterion.within or criterion.measure} <= listed
        assert criterion.measure not in LOWER_IS_BETTER
