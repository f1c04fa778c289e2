"""No cut inside a bin scores more than the bin's bound: all subsets of a few rows are tried."""

from __future__ import annotations

from itertools import product

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from service.core.bounds import BOUNDS, Spread
from service.core.criteria import CRITERIA, Floats
from service.core.deviations import rise_above
from service.core.objective import Objective
from tests.core.growing import CLASS_CRITERIA

SLACK = 1e-12
"""Rounding, of scores of the order of one."""
WEIGHT = st.integers(0, 9).map(float) | st.floats(0.01, 3)
HEAVY = st.sampled_from([1.0, 1.0, 2.0, 0.1, 0.37, 5.5])


def bound_bin(criterion: str, below: Floats, upto: Floats, node: Floats, spread: Spread | None = None) -> float:
    """The bound of one bin of one node, (channel,) statistics given."""
    parts = (part.copy().reshape(-1, 1, 1) for part in (below, upto, node))
    with np.errstate(all="ignore"):
        return float(BOUNDS[criterion](Objective(CRITERIA[criterion]), *parts, spread)[0, 0])


def score_subsets(criterion: str, below: Floats, rows: Floats, node: Floats) -> Floats:
    """(subset,) the scores of all left branches of ``below`` and some of the bin's ``rows: (row, channel)``."""
    chosen = np.array(list(product([0.0, 1.0], repeat=len(rows))))
    left = below[:, None] + (chosen @ rows).T
    right = node[:, None] - left
    weight = left.sum(0) if criterion in CLASS_CRITERIA else left[0]
    whole = node.sum() if criterion in CLASS_CRITERIA else node[0]
    proper = (weight > 1e-9) & (weight < whole - 1e-9)
    with np.errstate(all="ignore"):
        scores = Objective(CRITERIA[criterion]).score(np.stack([left, right], axis=1), node[:, None])
    return scores[proper & ~np.isnan(scores)]


@st.composite
def class_bins(draw: st.DrawFn, most: int = 5) -> tuple[Floats, Floats, Floats]:
    """What lies below a bin, the bin's rows, what lies above: (class,), (row, class), (class,)."""
    classes = draw(st.integers(2, most))
    below, above = (np.array(draw(st.lists(WEIGHT, min_size=classes, max_size=classes))) for _ in range(2))
    members = draw(st.lists(st.tuples(st.integers(0, classes - 1), HEAVY), min_size=1, max_size=7))
    rows = np.zeros((len(members), classes))
    for row, (label, weight) in enumerate(members):
        rows[row, label] = weight
    return below, rows, above


@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
@settings(max_examples=150, deadline=None)
@given(class_bins())
@example((np.zeros(2), np.eye(2), np.zeros(2)))
@example((np.zeros(3), np.eye(3)[[0, 1, 2, 0, 1, 2]], np.zeros(3)))
@example((np.array([50.0, 0]), np.eye(2)[[1, 1, 0, 0]], np.array([0.0, 50])))
def test_no_branch_of_classes_beats_its_bin(criterion: str, case: tuple[Floats, Floats, Floats]) -> None:
    """Whichever of a bin's rows go left, the score is not above the bin's bound."""
    below, rows, above = case
    upto = below + rows.sum(0)
    node = upto + above
    scores = score_subsets(criterion, below, rows, node)
    bound = bound_bin(criterion, below, upto, node)
    assert not np.isnan(bound)
    assert len(scores) == 0 or bound >= scores.max() - SLACK


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@settings(max_examples=100, deadline=None)
@given(class_bins(most=2))
def test_two_classes_are_bounded_by_what_is_reached(criterion: str, case: tuple[Floats, Floats, Floats]) -> None:
    """With two classes the bound is no more than the better of all of one class first and all of the other first."""
    below, rows, above = case
    node = below + rows.sum(0) + above
    corners = score_subsets(criterion, below, np.diag(rows.sum(0)), node)
    bound = bound_bin(criterion, below, below + rows.sum(0), node)
    assert len(corners) < 4 or bound <= corners.max() + SLACK


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize("classes", [2, 3, 5])
def test_a_bin_of_one_class_is_worth_its_edges(criterion: str, classes: int) -> None:
    """Where a bin holds one class, of which the rest is on one side, its bound is the better of its edges."""
    below, above = np.full(classes, 5.0), np.full(classes, 20.0)
    below[0], above[0] = 30.0, 0.0
    rows = np.zeros((4, classes))
    rows[:, 0] = [1, 2, 0.5, 1]
    node = below + rows.sum(0) + above
    edges = score_subsets(criterion, below, rows.sum(0)[None], node)
    assert bound_bin(criterion, below, below + rows.sum(0), node) == pytest.approx(edges.max(), rel=1e-9)


@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
@pytest.mark.parametrize("classes", [2, 3, 10])
def test_a_small_bin_is_bounded_closely(criterion: str, classes: int) -> None:
    """A bin with a hundredth of a large node can gain little on its edges: the bound excludes it beside a good cut."""
    source = np.random.default_rng(classes)
    below, above = source.uniform(30, 60, (2, classes)) * 10
    inside = source.uniform(0.5, 1, classes) * 10
    node = below + inside + above
    edges = score_subsets(criterion, below, inside[None], node)
    pure = np.where(np.arange(classes) % 2, node, 0.0)
    best = score_subsets(criterion, pure, np.zeros((1, classes)), node).max()
    assert bound_bin(criterion, below, below + inside, node) < edges.max() + 0.1 * best


TARGET = st.floats(-3, 3) | st.sampled_from([0.0, 1.0, 1.0, -2.0, 1e6, -1e4, 1e-6])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(TARGET, HEAVY), max_size=6),
    st.lists(st.tuples(TARGET, HEAVY), min_size=1, max_size=8),
    st.lists(st.tuples(TARGET, HEAVY), max_size=6),
)
@example([], [(1e6, 1.0), (0.0, 1.0), (0.0, 1.0)], [])
@example([(0.0, 1.0)] * 6, [(0.0, 1.0)] * 7 + [(1e6, 0.1)], [(0.0, 1.0)] * 6)
def test_no_branch_of_numbers_beats_its_bin(
    below: list[tuple[float, float]], inside: list[tuple[float, float]], above: list[tuple[float, float]]
) -> None:
    """Whichever of a bin's rows go left, outliers or not, the reduction of variance is not above the bin's bound."""
    value, weight = np.array([*below, *inside, *above]).T
    value = value - np.average(value, weights=weight)
    channels = np.stack([weight, weight * value], axis=1)
    first, last = len(below), len(below) + len(inside)
    node = channels.sum(0)
    squares = float((weight * value * value)[first:last].sum())
    spread = (np.array([[value.min()], [value.max()]]), np.array([[squares * (1 + 1e-12)]]))
    scores = score_subsets("variance", channels[:first].sum(0), channels[first:last], node)
    bound = bound_bin("variance", channels[:first].sum(0), channels[:last].sum(0), node, spread)
    variance = float((weight * value * value).sum() / node[0])
    assert not np.isnan(bound)
    assert len(scores) == 0 or bound >= scores.max() - SLACK * max(variance, 1e-300)


# the square of a smaller one than 1e-150 is 0
COUNT = st.floats(1e-150, 3) | st.sampled_from([0.0, 0.0, 1.0, 1.0, 2.0, 1e6, 1e-6])


@settings(max_examples=300, deadline=None)
@given(
    st.lists(st.tuples(COUNT, HEAVY), max_size=6),
    st.lists(st.tuples(COUNT, HEAVY), min_size=1, max_size=8),
    st.lists(st.tuples(COUNT, HEAVY), max_size=6),
)
@example([(0.0, 1.0)], [(0.0, 1.0), (1e6, 0.1), (0.0, 1.0)], [(1.0, 1.0)])
@example([], [(0.0, 1.0), (4e-276, 1.0), (4e-276, 1.0)], [])
def test_no_branch_of_counts_beats_its_bin(
    below: list[tuple[float, float]], inside: list[tuple[float, float]], above: list[tuple[float, float]]
) -> None:
    """Whichever of a bin's rows go left, the reduction of the Poisson deviance is not above the bin's bound."""
    target, weight = np.array([*below, *inside, *above]).T
    if not target.any():
        return
    centre = np.average(target, weights=weight)
    value = target - centre
    channels = np.stack([weight, weight * value, target > 0, weight * centre], axis=1)
    first, last = len(below), len(below) + len(inside)
    node = channels.sum(0)
    squares = float((weight * value * value)[first:last].sum())
    spread = (np.array([[value.min()], [value.max()]]), np.array([[squares * (1 + 1e-12)]]))
    scores = score_subsets("poisson", channels[:first].sum(0), channels[first:last], node)
    bound = bound_bin("poisson", channels[:first].sum(0), channels[:last].sum(0), node, spread)
    deviance = float((weight * centre * rise_above(value / centre)).sum() / node[0])
    assert not np.isnan(bound)
    assert len(scores) == 0 or bound >= scores.max() - SLACK * max(deviance, 1e-300)


def test_numbers_all_alike_are_worth_their_edges() -> None:
    """A bin whose rows have one target has no more than the better of its edges, however far the node reaches."""
    value = np.array([-3.0, -1, -1, 0.5, 0.5, 0.5, 0.5, 2, 2, 300])
    value -= value.mean()
    channels = np.stack([np.ones(10), value], axis=1)
    below, upto = channels[:3].sum(0), channels[:7].sum(0)
    spread = (np.array([[value.min()], [value.max()]]), np.array([[(value[3:7] ** 2).sum()]]))
    edges = score_subsets("variance", below, (upto - below)[None], channels.sum(0))
    assert bound_bin("variance", below, upto, channels.sum(0), spread) == pytest.approx(edges.max(), rel=1e-4)


def test_a_narrow_bin_of_numbers_is_bounded_closely() -> None:
    """A small bin beside a good cut is discarded, though the node's targets reach far: its own spread says so."""
    source = np.random.default_rng(0)
    value = np.concatenate([source.normal(-1, 0.3, 500), source.normal(1, 0.3, 500), [80, -80]])
    value -= value.mean()
    channels = np.stack([np.ones(len(value)), value], axis=1)
    squares = float((value[200:210] ** 2).sum())
    spread = (np.array([[value.min()], [value.max()]]), np.array([[squares]]))
    node = channels.sum(0)
    bound = bound_bin("variance", channels[:200].sum(0), channels[:210].sum(0), node, spread)
    best = score_subsets("variance", channels[:500].sum(0), np.zeros((1, 2)), node).max()
    assert bound < best / 2


def test_what_has_no_bound() -> None:
    """The criteria that change branches with the sign of a difference have no bound, nor those that need all rows."""
    without = {"absolute_error", "dissimilarity", "positive_correctness", "true_positive_rate"}
    assert set(CRITERIA) - set(BOUNDS) == without
