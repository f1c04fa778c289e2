"""Entries on their way down a tree whose nodes may have changed places, by the codes that growth used."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import NO_ROUTE, Form
from service.core.criteria import Floats
from service.core.encoding import CodedFeature
from service.core.quantities import sum_weights
from service.core.statistics import Ints
from service.core.tree import Tree, find_heaviest_branches


@dataclass(frozen=True, slots=True)
class Flow:
    """Entries: ``row``, ``weight`` (None: all 1), and the node that each is ``at``; (entry,)."""

    row: Ints
    weight: Floats | None
    at: Ints

    def move(self, at: Ints) -> Flow:
        """The same entries at other nodes."""
        return Flow(self.row, self.weight, at)

    def take(self, inside: NDArray[np.bool_] | Ints) -> Flow:
        """Some of the entries."""
        return Flow(self.row[inside], None if self.weight is None else self.weight[inside], self.at[inside])

    def join(self, *others: Flow) -> Flow:
        """The entries of all, which have weights or have none."""
        flows = (self, *others)
        weights = [flow.weight for flow in flows if flow.weight is not None]
        row, at = (np.concatenate([getattr(flow, name) for flow in flows]) for name in ("row", "at"))
        return Flow(row, np.concatenate(weights) if weights else None, at)


class Router:
    """Sends entries through the splits of a tree.

    What a split says nothing of, be it a missing value or a category that its node had not seen, goes with the branch
    that was heaviest when the tree was grown; or, where rows are parted, to every branch by its share of what is known.
    Under ``one_vs_rest`` a category that is not the one is of the rest.
    """

    def __init__(self, tree: Tree, features: Sequence[CodedFeature], *, one_vs_rest: bool = False) -> None:
        self.tree, self.features, self.one_vs_rest = tree, features, one_vs_rest
        self.parts = getattr(tree, "share", None) is not None
        # else no row lacks a value, nor has it a category that a node has not seen
        self.parts_rows = self.parts and any(one.has_missing or one.feature.kind != "numeric" for one in features)
        self.heaviest = find_heaviest_branches(tree)

    def read(self, row: Ints, node: Ints, *, rest: bool = True) -> Ints:
        """(entry,) the branch that the split of ``node: (entry,)`` sends ``row: (entry,)`` to, `NO_ROUTE`: none.

        Without ``rest`` only what the node has seen has a branch.
        """
        tree = self.tree
        branch = np.full(len(row), NO_ROUTE)
        feature = tree.feature[node]
        for f in np.flatnonzero(np.bincount(feature)).tolist():
            mine = np.flatnonzero(feature == f)
            branch[mine] = self._read_feature(self.features[f], row[mine], node[mine], rest and self.one_vs_rest)
        return branch

    def _read_feature(self, coded: CodedFeature, row: Ints, node: Ints, rest: bool) -> Ints:
        tree = self.tree
        form = tree.form[node]
        if coded.feature.kind == "numeric":
            limit = tree.whole if coded.feature.integer else tree.threshold
            branch = (coded.pick(row) > limit[node]).astype(np.int64)
        else:
            code = coded.codes[row].astype(np.int64)
            named = (form == Form.SUBSET) | (form == Form.MULTIWAY)
            listed = tree.category_branch[np.where(named, tree.category_start[node] + code, 0)]
            if rest:
                # the one is always the first branch
                listed = np.where((form == Form.SUBSET) & (listed < 0), 1, listed)
            branch = np.where(named, listed, code > tree.whole[node])
        present = form == Form.MISSING
        gone = coded.is_missing(row)
        return np.where(gone, np.where(present, 0, tree.missing_to[node]), np.where(present, 1, branch))

    def send(self, flow: Flow, content: Ints, inner: NDArray[np.bool_]) -> Flow:
        """Entries down to leaves, all those of a node at once; node i has the split of ``content[i]`` if ``inner``."""
        arrived = [flow.take(~inner[flow.at])]
        moving = flow.take(inner[flow.at])
        while len(moving.row):
            split = content[moving.at]
            branch = self.read(moving.row, split)
            lost = branch < 0
            if lost.any() and self.parts:
                moving = self._part(moving, split, branch)
            else:
                branch = np.where(lost, self.heaviest[split], branch)
                moving = moving.move(self.tree.first_child[split] + branch)
            arrived.append(moving.take(~inner[moving.at]))
            moving = moving.take(inner[moving.at])
        return arrived[0].join(*arrived[1:])

    def _part(self, flow: Flow, split: Ints, branch: Ints) -> Flow:
        """Entries at the children; those without a branch (-1) at each by its share of the known weight."""
        tree = self.tree
        weight = np.ones(len(flow.row)) if flow.weight is None else flow.weight
        known = np.flatnonzero(branch >= 0)
        came = sum_weights(weight[known], tree.first_child[split[known]] + branch[known], tree.nodes)
        lost = np.flatnonzero(branch < 0)
        count = tree.branches[split[lost]]
        entry = np.repeat(lost, count)
        start = np.cumsum(count) - count
        child = np.repeat(tree.first_child[split[lost]] - start, count) + np.arange(len(entry))
        total = np.bincount(tree.parent[1:], came[1:], tree.nodes)
        # where nothing is known the branches have the shares that they were grown with
        unknown = total[split[entry]] <= 0
        base = np.where(unknown, tree.weight[child], came[child])
        whole = np.where(
            unknown, np.bincount(tree.parent[1:], tree.weight[1:], tree.nodes)[split[entry]], total[split[entry]]
        )
        share = base / whole
        some = share > 0
        parted = Flow(flow.row[entry[some]], weight[entry[some]] * share[some], child[some])
        stays = Flow(flow.row[known], weight[known], tree.first_child[split[known]] + branch[known])
        return stays.join(parted)
