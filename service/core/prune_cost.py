"""Cost-complexity pruning: the whole sequence of weakest links (Breiman et al. 1984, chapter 3).

The complexity of a subtree is its number of leaves; ``alpha`` is the risk that a leaf has to be worth. The subtree
T(alpha) is the smallest among those of least risk + alpha x leaves; as alpha rises they are nested, and the next
nodes to become leaves are those whose split is worth least per leaf:

    g(t) = (R(t) - R(T_t)) / (leaves(T_t) - 1)
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import TOLERANCE, Floats
from service.core.objective import Objective
from service.core.prune_cut import list_levels
from service.core.statistics import Ints
from service.core.tree import Tree

BITS = 61
"""Risks are whole numbers of so many bits: their sums are exact, whatever the order."""


@dataclass(frozen=True, slots=True)
class Costs:
    """What wrong answers cost: ``weight: (class,)`` of a class's rows (None: 1), ``loss: (class, answer)`` or None."""

    weight: Floats | None = None
    loss: Sequence[Sequence[float]] | None = None

    def of_answers(self, classes: int) -> Floats:
        """(class, answer) what an answer costs for a row that weighs 1."""
        loss = 1.0 - np.eye(classes) if self.loss is None else np.asarray(self.loss, float)
        return loss if self.weight is None else loss * self.weight[:, None]


@dataclass(frozen=True, slots=True)
class Risks:
    """``cost: (node,)`` R(t) of each node as a leaf, as a sum over its rows, which weigh ``total`` at the root."""

    cost: Floats
    total: float


@dataclass(frozen=True, slots=True)
class Path:
    """The nested subtrees, from T(0), or a greater alpha, to the root alone; (step,) unless a shape is given.

    ``alpha`` is the least alpha at which the subtree is T(alpha); ``risk`` that of its leaves, both per unit of weight;
    ``splits`` its inner nodes; ``link: (node,)`` the first step without the node's split, 0 for leaves.
    """

    alpha: Floats
    risk: Floats
    leaves: Ints
    splits: Ints
    link: Ints

    def find_step(self, alpha: float) -> int:
        """The step whose subtree is T(``alpha``), give or take `TOLERANCE` of the root's risk."""
        return max(int(np.searchsorted(self.alpha, alpha + self.tolerance, side="right")) - 1, 0)

    @property
    def tolerance(self) -> float:
        """How close two alphas are the same."""
        return TOLERANCE * float(self.risk[-1])


def find_risks(tree: Tree, objective: Objective, costs: Costs, risk: str) -> Risks:
    """R(t), which adds up over leaves; ``risk``: see `rate_nodes`."""
    counts = tree.counts if tree.classes else None
    cost, weight = rate_nodes(objective, counts, tree.weight, tree.impurity, costs, risk)
    return Risks(cost + _weigh_shrinkage(tree), float(weight[0]))


def _weigh_shrinkage(tree: Tree) -> Floats:
    """(node,) by how much half the Poisson deviance about the answers is more than that about the means."""
    if tree.statistic != "deviance":
        return np.zeros(tree.nodes)
    ratio = np.divide(tree.mean, tree.prediction, out=np.ones(tree.nodes), where=tree.prediction > 0)
    log = np.log(ratio, out=np.zeros(tree.nodes), where=ratio > 0)
    return np.asarray(tree.weight * tree.prediction * (ratio * log - ratio + 1.0))


def rate_nodes(
    objective: Objective, counts: Floats | None, weight: Floats, impurity: Floats, costs: Costs, risk: str
) -> tuple[Floats, Floats]:
    """(node,) R of nodes as leaves, and their weights as these are counted; ``counts: (class, node)``, if any.

    ``risk``: "error" is the cost of the cheapest answer (rpart's risk), "impurity" the criterion's impurity times the
    weight (scikit-learn's); for numbers both are the latter, which is what the answers cost; of rates that were
    shrunk, they cost more.
    """
    if counts is None:
        return weight * impurity, weight
    if risk == "impurity":
        altered = objective.criterion.family.weigh(objective.alter(counts))
        return altered * impurity, altered
    cost: Floats = np.einsum("cn,ca->an", counts, costs.of_answers(len(counts))).min(0)
    shown: Floats = (counts if costs.weight is None else counts * costs.weight[:, None]).sum(0)
    return cost, shown


@dataclass(frozen=True, slots=True)
class Floor:
    """Growth stops at nodes whose whole risk is worth no more than this: no split below could be worth it.

    ``cp`` is a share of the root's risk; where ``alpha`` is given, risk per unit of weight, that counts instead.
    """

    cp: float
    costs: Costs
    risk: str
    alpha: float | None = None

    def find_least(self, objective: Objective, counts: Floats | None, weight: Floats, impurity: Floats) -> float:
        """The most that a node may risk without being split, given the root: arrays of one node."""
        cost, total = rate_nodes(objective, counts, weight, impurity, self.costs, self.risk)
        return float(self.cp * cost[0] if self.alpha is None else self.alpha * total[0])


def find_path(tree: Tree, risks: Risks, floor: float = 0.0) -> Path:
    """The weakest links of ``tree``, one step after the other, from T(``floor``) on.

    The nodes stand in preorder, so that the leaves below a node are a run of them, and running sums give R(T_t) and
    the number of leaves of all nodes at once. A step costs a few passes over the nodes that are left.
    """
    begin = number_preorder(tree)
    node = np.argsort(begin)
    # of risks that are nothing beside the weight no unit would be left once it is divided by that
    largest = max(float(risks.cost.max()), np.ldexp(risks.total, -900), 1e-300)
    unit = np.ldexp(1.0, int(np.frexp(largest)[1]) - BITS)
    cost = np.rint(risks.cost[node] / unit).astype(np.int64)
    last, inner = begin[node] + count_below(tree)[node], ~tree.is_leaf[node]
    scale = unit / risks.total
    tolerance, level = TOLERANCE * float(cost[0]), floor / scale
    link, steps = np.zeros(tree.nodes, np.int64), list[tuple[float, int, int, int]]()
    while True:
        at = np.flatnonzero(inner)
        worth = _weigh_links(cost, last, inner, at)
        least = float(worth.min(initial=np.inf))
        if least > level + tolerance:
            steps.append((level, int(cost[~inner].sum()), int((~inner).sum()), len(at)))
            if not len(at):
                break
            level = least
        # the weakest only, also below the floor: without them others may be worth more
        cut = at[worth <= least + tolerance]
        kept = _keep_outside(cut, last)
        link[node[~kept & inner]] = link[node[cut]] = len(steps)
        inner[cut] = False
        number = np.append(0, np.cumsum(kept))
        node, cost, inner, last = node[kept], cost[kept], inner[kept], number[last[kept]]
    alpha, risk, leaves, splits = (np.array(column) for column in zip(*steps, strict=True))
    return Path(alpha * scale, risk * scale, leaves, splits, link)


def _keep_outside(cut: Ints, last: Ints) -> NDArray[np.bool_]:
    """(node,) False for all that is below the nodes ``cut``; those below node i end before ``last[i]``."""
    change = np.zeros(len(last) + 1, np.int64)
    np.add.at(change, cut + 1, 1)
    np.add.at(change, last[cut], -1)
    return np.asarray(np.cumsum(change[:-1]) == 0)


def _weigh_links(cost: Ints, last: Ints, inner: NDArray[np.bool_], at: Ints) -> Floats:
    """(link,) g of the inner nodes ``at``, in preorder; the nodes below node i are those from i + 1 up to last[i]."""
    risk = np.append(0, np.cumsum(np.where(inner, 0, cost)))
    leaves = np.append(0, np.cumsum(~inner))
    saved = cost[at] - (risk[last[at]] - risk[at])
    return np.asarray(saved / np.maximum(leaves[last[at]] - leaves[at] - 1, 1))


def count_below(tree: Tree) -> Ints:
    """(node,) how many nodes a node's subtree has, itself included."""
    size = np.ones(tree.nodes, np.int64)
    for begin, end in reversed(list_levels(tree.depth)):
        np.add.at(size, tree.parent[begin:end], size[begin:end])
    return size


def number_preorder(tree: Tree) -> Ints:
    """(node,) the place of each node when every node is followed by its subtree, first branch first."""
    size = count_below(tree)
    before = np.cumsum(size) - size
    begin = before - before[tree.first_child[tree.parent]] + 1
    begin[0] = 0
    for first, end in list_levels(tree.depth):
        begin[first:end] += begin[tree.parent[first:end]]
    return begin


def find_cut(tree: Tree, path: Path, step: int) -> NDArray[np.bool_]:
    """(node,) True for the nodes that are leaves of the subtree of ``step`` and not of the tree."""
    return np.asarray(~tree.is_leaf & (path.link <= step))
