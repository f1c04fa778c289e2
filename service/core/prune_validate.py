"""How the subtrees of a cost-complexity path do on rows that they did not see.

As rpart does it (Therneau and Atkinson 2022, "An introduction to recursive partitioning using the rpart routines",
section 4.2): for each fold a tree is grown on the others and pruned at the geometric means of the path's alphas, each
of which stands for an interval; the errors of all rows add up to the cross-validated risk of each subtree.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from service.core.criteria import TOLERANCE, Floats
from service.core.encoding import CodedFeature
from service.core.folds import assign_folds, take_target
from service.core.prune_cost import Costs, Path
from service.core.prune_ends import Ends, find_ends, find_errors, read_weights
from service.core.schema import Target
from service.core.statistics import Ints
from service.core.tree import Tree

Grower = Callable[[tuple[CodedFeature, ...], Target], tuple[Tree, Path]]
"""Grows a tree on some of the rows, and finds its path."""


@dataclass(frozen=True, slots=True)
class Validated:
    """Cross-validated errors of the subtrees of a path, relative to the root's: ``error``, ``deviation``: (step,).

    ``deviation`` is the standard deviation of ``error`` (rpart's xstd). Where the root makes no error both are NaN.
    """

    error: Floats
    deviation: Floats
    folds: int = 0

    def choose(self, rule: str) -> int:
        """The step of least error, the smallest tree of equals; by "one_se" the smallest less than a deviation worse.

        (Breiman et al. 1984, section 3.4.3.)
        """
        if np.isnan(self.error).any():
            return len(self.error) - 1
        least = float(self.error.min())
        near = TOLERANCE * max(least, 1.0)
        best = np.flatnonzero(self.error <= least + near)[-1]
        if rule == "min":
            return int(best)
        return int(np.flatnonzero(self.error <= least + self.deviation[best] + near)[-1])


def find_middles(path: Path) -> Floats:
    """(step,) an alpha for each subtree: the geometric mean of its own and the next one's; infinite for the root."""
    return np.append(np.sqrt(path.alpha[:-1] * path.alpha[1:]), np.inf)


def validate(
    features: Sequence[CodedFeature], target: Target, grown: tuple[Tree, Path], grower: Grower, costs: Costs,
    folds: int, seed: int,
) -> Validated:  # fmt: skip
    """The cross-validated error of each subtree of what was ``grown`` on all rows; 2 <= ``folds`` <= rows."""
    tree, path = grown
    fold = assign_folds(target, folds, seed)
    middles = find_middles(path)
    total = np.zeros((2, len(middles)))
    for index in range(folds):
        held = fold == index
        other, its_path = grower(tuple(coded.take(~held) for coded in features), take_target(target, ~held))
        kept = take_target(target, held)
        ends = find_ends(other, [coded.take(held).as_column() for coded in features], kept)
        total += sum_errors(other, _find_first(other, its_path, middles), kept, ends, costs, len(middles))
    weight = read_weights(target)
    root = float((weight * find_errors(tree, target, np.zeros(target.rows, np.int64), costs)).sum())
    spread = np.sqrt(np.maximum(total[1] - total[0] ** 2 / weight.sum(), 0.0))
    scale = 1.0 / root if root > 0 else np.nan
    return Validated(total[0] * scale, spread * scale, folds)


def _find_first(tree: Tree, path: Path, middles: Floats) -> Ints:
    """(node,) the first of ``middles`` at which an inner node is a leaf or gone; 0 for leaves."""
    return np.where(tree.is_leaf, 0, np.searchsorted(middles, path.alpha - path.tolerance)[path.link])


def sum_errors(tree: Tree, first: Ints, target: Target, ends: Ends, costs: Costs, steps: int) -> Floats:
    """(2, step) the sums of the errors, and of their squares, of rows that ended so.

    A node is a leaf, or gone, from the step ``first: (node,)`` on. A row is answered by the node that it ended in until
    that node's parent is a leaf, by the parent until the next one is, and so on up: each time for a run of steps, at
    whose begin its error is added and at whose end it is taken off again.
    """
    change = np.zeros((2, steps + 1))
    row, node, weight = ends.row, ends.node, ends.weight
    begin = np.zeros(len(row), np.int64)
    while len(row):
        above = tree.parent[node]
        end = np.where(above < 0, steps, first[above])
        error = find_errors(tree, take_target(target, row), node, costs)
        for power in (1, 2):
            amount = weight * error**power
            change[power - 1] += np.bincount(begin, amount, steps + 1) - np.bincount(end, amount, steps + 1)
        further = end < steps
        row, node, weight, begin = row[further], above[further], weight[further], end[further]
    return np.cumsum(change, axis=1)[:, :-1]
