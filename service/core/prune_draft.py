"""A tree while it is pruned from below: nodes become leaves, or take over the split of a branch (subtree raising).

Nodes keep the numbers that they had in the grown tree. One whose branch was raised has the *content* of that branch:

    content[t] == t        the node's own split
    content[t] == s        that of s, once a child of t; the children of t now are those that s had

so what is below a node now was below it always: a run of the grown tree's preorder.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from service.core.criteria import Floats
from service.core.encoding import CodedFeature
from service.core.entries import Entries
from service.core.prune_cost import count_below, number_preorder
from service.core.prune_route import Flow, Router
from service.core.quantities import sum_weights
from service.core.schema import Target
from service.core.statistics import Ints, Tally
from service.core.tree import LeafReason, Tree


class Draft:
    """The state of a pruning; arrays are (node,) unless said otherwise.

    ``inner``: split now; ``alive``: still part of the tree; ``touched``: its rows are not those it was grown with;
    ``reason`` is set where pruning made a leaf. ``flow`` are the entries (row, weight) with the leaf each is ``at``.
    ``counts: (class, node)`` are class weights, up to date for what is alive.
    """

    def __init__(
        self, tree: Tree, features: Sequence[CodedFeature], target: Target, leaf: Ints, *, one_vs_rest: bool = False
    ) -> None:
        self.tree, self.target = tree, target
        self.content = np.arange(tree.nodes)
        self.inner = ~tree.is_leaf
        self.alive = np.ones(tree.nodes, bool)
        self.touched = np.zeros(tree.nodes, bool)
        self.reason = np.full(tree.nodes, -1)
        self.begin = number_preorder(tree)
        self.end = self.begin + count_below(tree)
        self.preorder = np.argsort(self.begin)
        self.router = Router(tree, features, one_vs_rest=one_vs_rest)
        self.flow = Flow(np.arange(len(leaf)), target.weight, leaf)
        if self.router.parts:
            weight = np.ones(len(leaf)) if target.weight is None else target.weight
            self.flow = self.send(Flow(np.arange(len(leaf)), weight, np.zeros(len(leaf), np.int64)))
        self.counts, self.rows = tree.counts, tree.rows

    def list_children(self, nodes: Ints) -> tuple[Ints, Ints]:
        """(child,) the children of split nodes, one after the other, and (node,) where those of each begin."""
        content = self.content[nodes]
        count = self.tree.branches[content]
        start = np.cumsum(count) - count
        first = self.tree.first_child[content]
        return np.repeat(first - start, count) + np.arange(int(count.sum())), start

    def find_above(self, nodes: Ints, at: Ints) -> Ints:
        """(at,) which of ``nodes``, none of them above another, each of the nodes ``at`` is below or is; -1: none."""
        order = np.argsort(self.begin[nodes])
        place = np.searchsorted(self.begin[nodes][order], self.begin[at], side="right") - 1
        which = order[np.maximum(place, 0)]
        inside = (place >= 0) & (self.begin[at] < self.end[nodes[which]])
        return np.where(inside, which, -1)

    def send(self, flow: Flow) -> Flow:
        """Entries from the nodes that they are at down to leaves."""
        return self.router.send(flow, self.content, self.inner)

    def cut(self, nodes: Ints, reason: LeafReason) -> None:
        """Make leaves of split nodes, none of which is above another."""
        if not len(nodes):
            return
        self._bury(nodes)
        self.inner[nodes] = False
        self.reason[nodes] = reason
        above = self.find_above(nodes, self.flow.at)
        self.flow = self.flow.move(np.where(above >= 0, nodes[above], self.flow.at))

    def _bury(self, nodes: Ints) -> None:
        """What is below ``nodes`` is no longer part of the tree."""
        change = np.zeros(len(self.alive) + 1, np.int64)
        np.add.at(change, self.begin[nodes] + 1, 1)
        np.add.at(change, self.end[nodes], -1)
        self.alive[self.preorder[np.cumsum(change[:-1]) > 0]] = False

    def raise_branches(self, nodes: Ints, branches: Ints, flow: Flow) -> None:
        """Put split ``branches``, children of ``nodes``, in their places; ``flow`` are all entries as they are then."""
        kept = self.alive & (self.find_above(branches, np.arange(len(self.alive))) >= 0)
        self._bury(nodes)
        kept[branches] = False
        self.alive |= kept
        self.content[nodes] = self.content[branches]
        self.touched |= kept
        self.touched[nodes] = True
        self.flow = flow
        self.count()

    def count(self) -> None:
        """Class weights and rows of every node, from the entries: exact in any order."""
        tally = Tally(self.target, Entries(self.flow.row, np.zeros(len(self.flow.row), np.int64), 1, self.flow.weight))
        nodes = len(self.alive)
        sums = [self._add_up(part) for part in tally.sum(self.flow.at, nodes)]
        self.counts = tally.combine(sums, np.zeros(nodes, np.int64))
        self.rows = self._add_up(np.bincount(self.flow.at, minlength=nodes)[None])[0]

    def sum_classes(self, flow: Flow, groups: int) -> Floats:
        """(class, group) the class weights of entries, which are at groups instead of nodes: exact in any order."""
        classes = max(len(self.target.classes), 1)
        label = 0 if self.target.codes is None else self.target.codes[flow.row].astype(np.int64)
        return sum_weights(flow.weight, label * groups + flow.at, classes * groups).reshape(classes, groups)

    def _add_up(self, leaves: Ints) -> Ints:
        """(..., node) the sums of all that is below each node, itself included."""
        total = np.cumsum(leaves[:, self.preorder], axis=1)
        total = np.concatenate([np.zeros((len(leaves), 1), np.int64), total], axis=1)
        return np.asarray(total[:, self.end] - total[:, self.begin])
