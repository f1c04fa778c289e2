"""Where rows end that a tree did not see, and what its answers to them cost."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.core.criteria import Floats
from service.core.descend import follow
from service.core.descend_parts import descend_parts
from service.core.guide import are_floats, lay_out
from service.core.prune_cost import Costs
from service.core.schema import Column, Target
from service.core.statistics import Ints
from service.core.tree import Tree


def read_weights(target: Target) -> Floats:
    """(row,) what each row weighs."""
    return np.ones(target.rows) if target.weight is None else target.weight


@dataclass(frozen=True, slots=True)
class Ends:
    """The nodes that rows end in; a row that is parted has several: ``row``, ``node``, ``weight``: (entry,)."""

    row: Ints
    node: Ints
    weight: Floats


def find_ends(tree: Tree, columns: Sequence[Column], target: Target) -> Ends:
    """Where rows go down the tree to."""
    weight, guide = read_weights(target), lay_out(tree, are_floats(columns))
    if not guide.parted:
        return Ends(np.arange(target.rows), follow(guide, columns, target.rows).node, weight)
    parts = descend_parts(guide, columns, target.rows, weight)
    return Ends(parts.row, parts.node, parts.share)


def find_errors(tree: Tree, target: Target, node: Ints, costs: Costs) -> Floats:
    """(row,) what the answers of ``node: (row,)`` cost: for classes the loss, for numbers what the criterion minimizes.

    That is the square of the error, its mean over several numbers, its absolute value, or half the Poisson deviance.
    """
    answer = tree.prediction[node]
    if target.codes is not None:
        return costs.of_answers(len(target.classes))[target.codes, answer.astype(np.int64)]
    if target.values is None:
        return np.zeros(len(node))
    if target.statistic == "deviations":
        return np.abs(target.values - answer)
    if target.statistic == "deviance":
        # an answer of 0 would cost without end where something happened
        rate = np.maximum(answer, np.finfo(np.float64).eps * np.maximum(tree.prediction[0], target.values))
        ratio = np.divide(target.values, rate, out=np.ones(len(node)), where=rate > 0)
        return np.asarray(target.values * np.log(np.where(ratio > 0, ratio, 1.0)) - target.values + answer)
    square = (target.values - answer) ** 2
    return np.asarray(square if square.ndim == 1 else square.mean(1))
