"""Monotonic features: what their cuts may not do, the predictions that they leave to what is below, and the answers.

A cut of a monotonic feature has to part predictions in its direction, and the middle of its branches' predictions is a
bound that answers below neither may pass. A split of another feature may do as it likes: an answer that would pass a
bound is set to it. So scikit-learn has it.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.candidates import Block, Candidates, Form
from service.core.criteria import Floats
from service.core.learner import Learner
from service.core.objective import Objective
from service.core.statistics import Ints
from service.core.tree import Tree, choose_answers


def breaks_order(learner: Learner, batch: Batch, block: Block, table: Candidates) -> NDArray[np.bool_]:
    """(candidate,) True for cuts of monotonic features that go against them, or leave the bounds from further up."""
    if learner.directions is None or batch.bounds is None or table.form != Form.THRESHOLD:
        return np.zeros(len(table.segment), bool)
    node = block.node[table.segment]
    direction = learner.directions[block.feature[table.segment]]
    low, high = batch.bounds[:, node]
    value = read_values(learner.objective, table.branches, batch.tally.centre[node])
    outside = ((table.rows > 0) & ((value < low) | (value > high))).any(0)
    return np.asarray((direction != 0) & (outside | ((value[0] - value[1]) * direction > 0)))


def read_values(objective: Objective, stats: Floats, centre: Floats) -> Floats:
    """What monotonic rules compare, for ``stats: (channel, ..., node)``: the mean, or the share of the second class.

    ``centre: (node,)`` is what the sums of a regression are about; 0 for classes.
    """
    altered = objective.alter(stats)
    weight = objective.criterion.family.weigh(altered)
    share: Floats = np.divide(altered[1], weight, out=np.zeros_like(weight), where=weight > 0)
    return share + centre


def narrow_bounds(bounds: Floats, value: Floats, direction: Ints, branch: Ints) -> Floats:
    """(2, child) bounds of children, side by side, from the parents': the middle of two parts their predictions.

    ``value``, ``direction`` (of the parent's threshold, 0 for other splits), ``branch``: (child,).
    """
    bounds = bounds.copy()
    sibling = np.arange(len(value)) + np.where(branch == 0, 1, -1)
    middle = (value + value[np.clip(sibling, 0, len(value) - 1)]) / 2
    ruled = (direction != 0) & (branch < 2)
    upper = ruled & ((direction > 0) == (branch == 0))
    bounds[1, upper] = middle[upper]
    bounds[0, ruled & ~upper] = middle[ruled & ~upper]
    return bounds


def find_bounds(learner: Learner, tree: Tree) -> Floats:
    """(2, node) the predictions that monotonic ancestors allow, level by level."""
    directions = np.zeros(len(tree.features), np.int64) if learner.directions is None else learner.directions
    bounds = np.full((2, tree.nodes), [[-np.inf], [np.inf]])
    value = read_values(learner.objective, tree.counts, np.zeros(tree.nodes)) if len(tree.counts) else tree.mean
    for depth in range(1, int(tree.depth.max()) + 1):
        level = np.flatnonzero(tree.depth == depth)
        parent = tree.parent[level]
        direction = directions[tree.feature[parent]] * (tree.form[parent] == Form.THRESHOLD)
        bounds[:, level] = narrow_bounds(bounds[:, parent], value[level], direction, level - tree.first_child[parent])
    return bounds


def bind_answers(learner: Learner, tree: Tree, shown: Floats | None, loss: Sequence[Sequence[float]] | None) -> Tree:
    """The tree whose answers keep to their bounds; statistics are those of the rows, as ever.

    ``shown: (class,)`` and ``loss``: see `assemble.build_tree`.
    """
    low, high = find_bounds(learner, tree)
    if not len(tree.counts):
        return replace(tree, prediction=np.clip(tree.prediction, low, high))
    # bounds are on shares as they are scored; from there to those that are shown odds change by a constant
    scored = learner.objective.alteration
    ratio = _find_odds(shown) / _find_odds(scored)
    share = np.clip(read_values(learner.objective, tree.counts, np.zeros(tree.nodes)), low, high)
    second = ratio * share / (1.0 - share + ratio * share)
    probability = np.stack([1.0 - second, second], axis=1)
    bound = (low > -np.inf) | (high < np.inf)
    probability = np.where(bound[:, None], probability, tree.probability)
    return replace(tree, probability=probability, prediction=choose_answers(probability, loss))


def _find_odds(factors: Floats | None) -> float:
    """By what the odds of the second class are multiplied."""
    return 1.0 if factors is None else float(factors[1] / factors[0])
