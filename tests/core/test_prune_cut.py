"""Cutting back: what is left is the same tree, numbered anew, with leaves where the cuts were."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.core.descend import descend
from service.core.prune_cut import cut_back
from service.core.tree import LeafReason, Tree
from tests.core.making import audit, classes, grow, numbers
from tests.core.pruning import SLOWLY, Grown, children_of, grown_trees


def describe(tree: Tree, node: int, cut: frozenset[int]) -> object:
    """A node with all below it, but for what is below the nodes of ``cut``, without their numbers."""
    own = (tree.rows[node], tree.weight[node], tree.counts[:, node].tolist(), tree.mean[node], tree.impurity[node],
           tree.depth[node], tree.prediction[node], tree.probability[node].tolist())  # fmt: skip
    if node in cut or tree.is_leaf[node]:
        return own, "leaf", LeafReason.CP if node in cut else tree.reason[node]
    start, size = tree.category_start[node], len(tree.features[tree.feature[node]].categories) + 1
    routes = tree.category_branch[start : start + size].tolist() if tree.form[node] in (2, 3) else None
    split = (tree.feature[node], tree.form[node], str(tree.threshold[node]), tree.whole[node], tree.missing_to[node],
             str(tree.beside[:, node]), tree.beside_whole[:, node].tolist(), tree.score[node], routes)  # fmt: skip
    return own, split, [describe(tree, child, cut) for child in children_of(tree, node)]


@SLOWLY
@given(grown_trees(), st.data())
def test_what_is_left(grown: Grown, data: st.DataObject) -> None:
    """Whatever is cut, the tree is the old one down to the cuts, and each row is in the leaf that it goes to."""
    tree = grown.tree
    inner = np.flatnonzero(~tree.is_leaf).tolist()
    chosen = data.draw(st.sets(st.sampled_from(inner))) if inner else set()
    cut = np.isin(np.arange(tree.nodes), sorted(chosen))
    shorter, place = cut_back(tree, cut, LeafReason.CP)
    assert describe(shorter, 0, frozenset()) == describe(tree, 0, frozenset(chosen))
    assert (np.diff(shorter.depth) >= 0).all()
    assert all(shorter.parent[child] == node for node in range(shorter.nodes) for child in children_of(shorter, node))
    leaf = place[grown.learnt.leaf]
    assert (
        np.bincount(leaf, minlength=shorter.nodes)[shorter.is_leaf].tolist() == shorter.rows[shorter.is_leaf].tolist()
    )
    assert descend(shorter, grown.columns, grown.target.rows).node.tolist() == leaf.tolist()


def test_a_deep_tree() -> None:
    """A chain of more than 100 levels is cut in its middle, and the audit finds the rows below each node."""
    target = classes(["a", "b"] * 150)
    learnt = grow([numbers("x", list(range(300)))], target, {"criterion": "gini"})
    assert learnt.tree.depth.max() > 100
    shorter, place = cut_back(learnt.tree, learnt.tree.depth == 60, LeafReason.COST_COMPLEXITY)
    assert int(shorter.depth.max()) == 60
    assert [LeafReason(r) for r in shorter.reason[shorter.depth == 60]].count(LeafReason.COST_COMPLEXITY) >= 1
    assert len(place) == learnt.tree.nodes
    audit(learnt, target)
