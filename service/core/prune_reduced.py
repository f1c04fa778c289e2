"""Reduced-error pruning (Quinlan 1987, "Simplifying decision trees", section 3; J48's option -R).

Some rows are kept from growth. From below, a split becomes a leaf where that costs no more on these rows, so also where
none of them comes by.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import TOLERANCE, Floats
from service.core.folds import assign_folds, hold_out, take_target
from service.core.parameters import Parameters
from service.core.prune_cost import Costs
from service.core.prune_cut import list_levels
from service.core.prune_ends import Ends, find_errors
from service.core.schema import Target
from service.core.tree import Tree


def choose_held(target: Target, parameters: Parameters) -> NDArray[np.bool_]:
    """(row,) True for those that are kept from growth: a share, or the first of so many folds."""
    seed = parameters.seed or 0
    if parameters.pruning_holdout is not None:
        return hold_out(target, parameters.pruning_holdout, seed)
    return np.asarray(assign_folds(target, parameters.pruning_folds or 2, seed) == 0)


def find_idle(tree: Tree, target: Target, ends: Ends, costs: Costs) -> NDArray[np.bool_]:
    """(node,) True for splits that are no better than a leaf, on rows that ended so."""
    as_leaf, stopped = sum_errors_above(tree, target, ends, costs)
    below = np.where(tree.is_leaf, as_leaf, stopped)
    idle = np.zeros(tree.nodes, bool)
    slack = TOLERANCE * float(as_leaf[0])
    levels = [(0, 1), *list_levels(tree.depth)]
    for begin, end in reversed(levels):
        here = ~tree.is_leaf[begin:end] & (as_leaf[begin:end] <= below[begin:end] + slack)
        idle[begin:end] = here
        below[begin:end] = np.where(here, as_leaf[begin:end], below[begin:end])
        if begin:
            np.add.at(below, tree.parent[begin:end], below[begin:end])
    return idle


def sum_errors_above(tree: Tree, target: Target, ends: Ends, costs: Costs) -> tuple[Floats, Floats]:
    """(node,) what the node's answer costs for all rows at and below it, and for those alone that ended in it."""
    row, node, weight = ends.row, ends.node, ends.weight
    total = np.zeros(tree.nodes)
    own: Floats | None = None
    while len(row):
        error = weight * find_errors(tree, take_target(target, row), node, costs)
        total += np.bincount(node, error, tree.nodes)
        own = total.copy() if own is None else own
        above = tree.parent[node]
        row, node, weight = row[above >= 0], above[above >= 0], weight[above >= 0]
    return total, total if own is None else own
