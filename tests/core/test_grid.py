"""A grid's edges score what the cuts there score, and its bounds hold for every cut between."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest

from service.core.batch import Batch
from service.core.bounds import BOUNDS
from service.core.criteria import Floats
from service.core.cuts import Lacking
from service.core.grid import Grid, build_grid, lift_grid, score_grid
from service.core.learner import Learner
from service.core.statistics import Ints
from tests.core.growing import SORTED, make_root, random_columns, suitable_target

ROWS, NODES, BINS = 90, 3, 7


def make_case(criterion: str, parameters: dict[str, Any], seed: int = 0) -> tuple[Learner, Batch, Ints, Ints]:
    """A learner, a batch of some nodes, and of each entry a bin (`BINS`: it has no value) and a place in that bin."""
    source = np.random.default_rng(seed)
    columns = random_columns(source, ROWS, gaps=False)
    target = suitable_target(source, columns, criterion, "real")
    node = source.integers(0, NODES, ROWS).tolist()
    learner, batch = make_root(columns, target, {"criterion": criterion, **parameters}, SORTED, node)
    return learner, batch, source.choice([0, 1, 1, 3, 4, 4, 4, 5, BINS], ROWS), source.permutation(ROWS)


def count_grid(batch: Batch, bins: Ints) -> tuple[Grid, Lacking]:
    """The grid of counted bins, and what has no value."""
    width = BINS + 1
    cell = batch.entries.node * width + bins
    tally = batch.tally
    sums = [s.reshape(len(s), NODES, width) for s in tally.sum_scored(tally.key(cell, NODES * width), NODES * width)]
    rows = np.bincount(cell, minlength=NODES * width).reshape(NODES, width)
    squares = None
    if not tally.classes:
        total = np.bincount(cell, tally.squares.parts[0], NODES * width).reshape(NODES, width)
        squares = tally.bound_squares(total, rows, np.arange(NODES)[:, None])[:, :BINS]
    grid = build_grid(np.arange(NODES), np.arange(NODES), [s[..., :BINS] for s in sums], rows[:, :BINS], squares)
    return grid, Lacking([s[..., BINS] for s in sums], rows[:, BINS])


def score_left(learner: Learner, batch: Batch, node: int, left: np.ndarray[Any, Any]) -> float:
    """The score of the cut with these entries (a mask) on the left; -inf where a branch is empty or too small."""
    inside = batch.entries.node == node
    sides = [np.flatnonzero(inside & left), np.flatnonzero(inside & ~left)]
    least = learner.parameters.min_samples_leaf
    weights = [1.0 * len(side) if batch.entries.weight is None else batch.entries.weight[side].sum() for side in sides]
    if min(map(len, sides)) < least or min(weights) < learner.parameters.min_weight_leaf:
        return -np.inf
    group = np.where(inside & left, 0, np.where(inside, 1, 2))
    sums = batch.tally.sum_scored(batch.tally.key(group, 3), 3)
    stats = learner.objective.alter(batch.tally.combine_scored(sums, np.array([node, node, node])))[:, :2]
    found = float(learner.objective.score(stats, stats.sum(1)))
    return -np.inf if np.isnan(found) else found  # undefined: a branch without events


def score_edge(learner: Learner, batch: Batch, bins: Ints, node: int, edge: int) -> float:
    """The score of the cut after a bin, the better of both places for what has no value; -inf where none is."""
    inside, missing = batch.entries.node == node, bins == BINS
    if not ((inside & (bins == edge)).any() and (inside & (bins > edge) & ~missing).any()):
        return -np.inf
    return max(score_left(learner, batch, node, cut) for cut in ((bins <= edge) | missing, bins <= edge))


def list_inside(learner: Learner, batch: Batch, bins: Ints, place: Ints) -> Iterator[tuple[int, int, float]]:
    """Node, bin and score of each cut amid the rows of a bin, which stand there by ``place``."""
    for row in range(ROWS):
        node, own = int(batch.entries.node[row]), int(bins[row])
        below = (bins < own) | ((bins == own) & (place < place[row]))
        if own == BINS or not ((batch.entries.node == node) & (bins == own) & below).any():
            continue
        yield node, own, max(score_left(learner, batch, node, below | gone) for gone in (bins == BINS, bins < 0))


LIMITS: list[dict[str, Any]] = [{}, {"min_samples_leaf": 5}, {"min_weight_leaf": 4.0}]


def score(learner: Learner, batch: Batch, grid: Grid, lacking: Lacking) -> tuple[Floats, Floats]:
    """The grid's scores and bounds."""
    found = score_grid(learner, batch, grid, lacking, bounded=True)
    return found.edge, found.inside


@pytest.mark.parametrize("criterion", BOUNDS)
def test_edges_score_as_cuts(criterion: str) -> None:
    """An edge has the score of the cut after its bin, the better of both places for what is missing, or -inf."""
    for seed, limits in product(range(3), LIMITS):
        learner, batch, bins, _ = make_case(criterion, limits, seed)
        grid, lacking = count_grid(batch, bins)
        found, _ = score(learner, batch, grid, lacking)
        for node, edge in product(range(NODES), range(BINS)):
            best = score_edge(learner, batch, bins, node, edge)
            assert found[node, edge] == pytest.approx(best, rel=1e-9, abs=1e-12), (seed, limits, node, edge)


@pytest.mark.parametrize("criterion", BOUNDS)
def test_bounds_hold_inside(criterion: str) -> None:
    """No cut amid the rows of a bin, in whatever order they stand, scores above the bin's bound."""
    for seed, limits in product(range(3), LIMITS):
        learner, batch, bins, place = make_case(criterion, limits, seed)
        grid, lacking = count_grid(batch, bins)
        _, bound = score(learner, batch, grid, lacking)
        for node, own, best in list_inside(learner, batch, bins, place):
            assert bound[node, own] >= best - 1e-12, (seed, limits, node, own)


def test_unbounded_grids_have_no_bounds() -> None:
    """Where bins hold one value each nothing lies inside them: the bounds are -inf, the scores the same."""
    learner, batch, bins, _ = make_case("gini", {})
    grid, lacking = count_grid(batch, bins)
    found = score_grid(learner, batch, grid, lacking, bounded=False)
    assert (found.inside == -np.inf).all()
    assert np.array_equal(found.edge, score(learner, batch, grid, lacking)[0])


@pytest.mark.parametrize("criterion", ["gini", "gain_ratio", "variance"])
def test_a_lifted_grid_is_part_of_the_whole(criterion: str) -> None:
    """Some bins of a node as a group of their own, with what lies below added, score as they do in the node."""
    learner, batch, bins, _ = make_case(criterion, {"min_samples_leaf": 2})
    grid, lacking = count_grid(batch, bins)
    whole, bounds = score(learner, batch, grid, lacking)
    first = 3
    squares = None if grid.squares is None else grid.squares[:, first:]
    part = build_grid(grid.node, grid.segment, [own[..., first:] for own in grid.own], grid.rows[:, first:], squares)
    lifted = lift_grid(part, [upto[..., first - 1] for upto in grid.upto], grid.rows_upto[:, first - 1])
    found, bound = score(learner, batch, lifted, lacking)
    assert np.array_equal(found, whole[:, first:])
    assert np.array_equal(bound, bounds[:, first:])
