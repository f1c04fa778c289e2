"""The sequence of subtrees that rpart finds (partition.c, make_cp_list.c of rpart 4.1.19).

rpart works out the complexity of each split once, when the split's subtree is finished, instead of cutting the weakest
link over and over: a branch that collapses before the split does counts as a leaf, but what collapses further down is
taken to have collapsed too. So it may find a split weaker than Breiman's g does. And it does not try to split a node
where what is known so far says that this cannot be worth alpha; for the second branch that is a guess.
"""

from __future__ import annotations

from dataclasses import dataclass, field

import numpy as np

from service.core.candidates import Form
from service.core.criteria import TOLERANCE, Floats
from service.core.objective import Objective
from service.core.prune_cost import Path, Risks
from service.core.prune_cut import list_levels
from service.core.statistics import Ints
from service.core.tree import Tree


@dataclass(slots=True)
class _Frame:
    """A node whose branches are being finished, in ``order``; ``bound`` is the most that its split can be worth."""

    node: int
    bound: float
    order: list[int]
    done: list[int] = field(default_factory=list)


def find_order(tree: Tree, objective: Objective) -> list[list[int]]:
    """The children of each node as rpart orders them, left first: by the mean of numbers or of the classes' places."""
    if tree.classes:
        shares = objective.alter(tree.counts)
        place = np.arange(len(tree.classes)) @ shares
        value = np.divide(place, shares.sum(0), out=np.zeros(tree.nodes), where=tree.rows > 0)
    else:
        value = tree.mean
    level, first = value.tolist(), tree.first_child.tolist()
    branches, forms = tree.branches.tolist(), tree.form.tolist()
    # of two equal sides of a threshold, rpart calls the upper one left
    return [
        sorted(
            range(begin, begin + count),
            key=lambda child, sign=-1 if form == Form.THRESHOLD else 1: (level[child], sign * child),  # type: ignore[misc]  # defaults bind
        )
        for begin, count, form in zip(first, branches, forms, strict=True)
    ]


def follow_rpart(tree: Tree, risks: Risks, floor: float, order: list[list[int]]) -> Path:
    """The subtrees from T(``floor``) on; a Python loop over nodes, for each waits for the one before."""
    walk = _Walk(risks.cost.tolist(), floor * risks.total, order)
    complexity = np.array(walk.run())
    split = np.array(walk.split)
    for begin, end in list_levels(tree.depth):
        above = tree.parent[begin:end]
        split[begin:end] &= split[above]
        complexity[begin:end] = np.minimum(complexity[begin:end], complexity[above])
    tolerance = TOLERANCE * float(risks.cost[0])
    levels = np.unique(complexity[split])
    levels = levels[np.diff(levels, prepend=walk.alpha) > tolerance]
    alpha = np.append(walk.alpha, levels)
    link = np.where(split, np.searchsorted(alpha, complexity + tolerance, side="right") - 1, 0)
    return Path(alpha / risks.total, *_sum_up(tree, risks, link, len(alpha)), link)


def _sum_up(tree: Tree, risks: Risks, link: Ints, steps: int) -> tuple[Floats, Ints, Ints]:
    """(step,) the risk, the leaves and the splits: a node is a leaf from its own step on up to its parent's."""
    end = np.append(steps, link[tree.parent[1:]])

    def count(amount: Floats) -> Floats:
        change = np.bincount(link, amount, steps + 1) - np.bincount(end, amount, steps + 1)
        return np.asarray(np.cumsum(change)[:-1])

    leaves = np.rint(count(np.ones(tree.nodes))).astype(np.int64)
    splits = np.count_nonzero(link) - np.cumsum(np.bincount(link[link > 0], minlength=steps))
    return count(risks.cost) / risks.total, leaves, splits


class _Walk:
    """rpart's depth-first pass; ``complexity``, ``below`` (risk) and ``size`` (splits) of finished subtrees by node."""

    def __init__(self, risk: list[float], alpha: float, order: list[list[int]]) -> None:
        self.risk, self.alpha, self.order = risk, alpha, order
        self.complexity = [alpha] * len(risk)
        self.below = list(risk)
        self.size = [0] * len(risk)
        self.split = [False] * len(risk)

    def run(self) -> list[float]:
        """(node,) the complexity of each split; ``split`` says which nodes keep theirs."""
        stack = self._enter(0, self.risk[0])
        while stack:
            frame = stack[-1]
            if len(frame.done) == len(frame.order):
                self._finish(stack.pop())
                continue
            child = frame.order[len(frame.done)]
            stack += self._enter(child, self._bound_next(frame) - self.alpha)
            frame.done.append(child)
        return self.complexity

    def _enter(self, node: int, bound: float) -> list[_Frame]:
        bound = min(self.risk[node], bound)
        return [_Frame(node, bound, self.order[node])] if self.order[node] and bound > self.alpha else []

    def _bound_next(self, frame: _Frame) -> float:
        """The most that the split of a node is worth, if the branches that are not finished had no risk left."""
        if not frame.done:
            return frame.bound
        risk = self.risk[frame.node]
        size = sum(self.size[child] for child in frame.done)
        whole = (risk - sum(self.below[child] for child in frame.done)) / (size + 1)
        return min(max(whole, risk - sum(self.risk[child] for child in frame.done)), frame.bound)

    def _finish(self, frame: _Frame) -> None:
        node, children = frame.node, frame.order
        worth = self._weigh(node, children)
        weakest = children[::-1]  # of equal ones the last goes first
        weakest.sort(key=self.complexity.__getitem__)
        for child in weakest:
            if worth <= self.complexity[child]:
                break
            self.below[child], self.size[child] = self.risk[child], 0
            worth = self._weigh(node, children)
        self.complexity[node] = worth
        if worth > self.alpha:
            self.split[node] = True
            self.below[node] = sum(self.below[child] for child in children)
            self.size[node] = sum(self.size[child] for child in children) + len(children) - 1

    def _weigh(self, node: int, children: list[int]) -> float:
        size = sum(self.size[child] for child in children) + len(children) - 1
        return (self.risk[node] - sum(self.below[child] for child in children)) / size
