"""One number for an edge of a grid is its score, rounded, and its bounds hold for every cut between."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import product
from typing import Any

import numpy as np
import pytest

from service.core.batch import Batch
from service.core.criteria import CRITERIA, Floats
from service.core.cuts import Lacking
from service.core.grid import Grid, score_grid
from service.core.learner import Learner
from service.core.schema import Column, Target
from service.core.screen_grid import can_screen_grid, screen_grid
from service.core.statistics import Ints
from tests.core.growing import SORTED, make_root, random_columns, random_target, suitable_target
from tests.core.test_grid import BINS, NODES, ROWS, count_grid, list_inside, score_edge

CASES = list(product(["gini", "variance"], [{}, {"min_samples_leaf": 5}], [0.0, 1e6], range(3)))


def make_target(source: np.random.Generator, columns: Sequence[Column], criterion: str) -> Target:
    """Two classes, or numbers."""
    classes = 2 if CRITERIA[criterion].task == "classification" else 0
    return random_target(source, columns, classes, "none")


def make_case(criterion: str, limits: dict[str, Any], far: float, seed: int) -> tuple[Learner, Batch, Ints, Ints]:
    """Some nodes of rows that weigh 1, and of each entry a bin (`BINS`: it has no value) and a place in that bin."""
    source = np.random.default_rng(seed)
    columns = random_columns(source, ROWS, gaps=False)
    target = make_target(source, columns, criterion)
    if target.values is not None:
        target.values[:] += far
    node = source.integers(0, NODES, ROWS).tolist()
    learner, batch = make_root(columns, target, {"criterion": criterion, **limits}, SORTED, node)
    return learner, batch, source.choice([0, 1, 1, 3, 4, 4, 4, 5, BINS], ROWS), source.permutation(ROWS)


def screen(learner: Learner, batch: Batch, grid: Grid, lacking: Lacking) -> tuple[Floats, Floats]:
    """The grid's rounded scores and bounds."""
    found = screen_grid(learner, batch, grid, lacking, bounded=True)
    assert np.array_equal(found.best, found.edge.max(1))
    return found.edge, found.inside


@pytest.mark.parametrize(("criterion", "limits", "far", "seed"), CASES)
def test_edges_score_as_cuts(criterion: str, limits: dict[str, Any], far: float, seed: int) -> None:
    """An edge has the score of the cut after its bin, the better of both places for what is missing, or 0."""
    learner, batch, bins, _ = make_case(criterion, limits, far, seed)
    grid, lacking = count_grid(batch, bins)
    found, _ = screen(learner, batch, grid, lacking)
    for node, edge in product(range(NODES), range(BINS)):
        best = max(0.0, score_edge(learner, batch, bins, node, edge))
        assert found[node, edge] == pytest.approx(best, rel=1e-9, abs=1e-12), (node, edge)


@pytest.mark.parametrize(("criterion", "limits", "far", "seed"), CASES)
def test_bounds_hold_inside(criterion: str, limits: dict[str, Any], far: float, seed: int) -> None:
    """No cut amid the rows of a bin, in whatever order they stand, scores above the bin's bound."""
    learner, batch, bins, place = make_case(criterion, limits, far, seed)
    grid, lacking = count_grid(batch, bins)
    _, bound = screen(learner, batch, grid, lacking)
    for node, own, best in list_inside(learner, batch, bins, place):
        assert bound[node, own] >= best - 1e-12, (node, own)


@pytest.mark.parametrize(("criterion", "limits", "far", "seed"), CASES)
def test_bounds_are_as_near_as_the_slow_ones(criterion: str, limits: dict[str, Any], far: float, seed: int) -> None:
    """A bound lies no more than rounding above that which any criterion's would be found by."""
    learner, batch, bins, _ = make_case(criterion, limits, far, seed)
    grid, lacking = count_grid(batch, bins)
    _, bound = screen(learner, batch, grid, lacking)
    slow = np.maximum(score_grid(learner, batch, grid, lacking, bounded=True).inside, 0.0)
    assert (bound <= slow * (1 + 1e-5) + 1e-9 * learner.objective.impurity(batch.stats)[:, None]).all()


@pytest.mark.parametrize(
    ("criterion", "parameters", "screened"),
    [
        ("gini", {}, True),
        ("variance", {}, True),
        ("entropy", {}, False),
        ("gini", {"min_weight_leaf": 2.0}, False),
        ("gini", {"class_weight": "balanced"}, False),
        ("poisson", {}, False),
    ],
)
def test_what_can_be_screened(criterion: str, parameters: dict[str, Any], screened: bool) -> None:
    """The number is the score of two classes under gini, and of variance, where nothing is altered or limited."""
    source = np.random.default_rng(0)
    columns = random_columns(source, 60, gaps=False)
    target = make_target(source, columns, criterion)
    if criterion == "poisson":
        target = suitable_target(source, columns, criterion, "none")
    learner, batch = make_root(columns, target, {"criterion": criterion, **parameters}, SORTED)
    assert can_screen_grid(learner, batch) == screened
