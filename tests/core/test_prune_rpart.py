"""rpart's sequence against its own recursion, written out as partition.c has it."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.learn import build_objective, learn
from service.core.prune import find_subtrees
from service.core.prune_cost import Costs, Risks, find_cut, find_path, find_risks
from service.core.prune_cut import cut_back
from service.core.prune_rpart import find_order, follow_rpart
from service.core.tree import LeafReason, Tree
from tests.core.growing import resolved
from tests.core.making import numbers, values
from tests.core.pruning import SLOWLY, Grown, grown_trees


class Partition:
    """partition() of rpart on a tree of two branches a split that is grown already; ``complexity`` as it leaves it."""

    def __init__(self, tree: Tree, risk: list[float], order: list[list[int]], alpha: float) -> None:
        self.tree, self.risk, self.order, self.alpha = tree, risk, order, alpha
        self.complexity = [0.0] * tree.nodes
        self.kept: set[int] = set()

    def run(self, me: int) -> tuple[int, float]:
        """The splits and the risk below ``me``, whose complexity holds the bound when it is called."""
        bound = self.risk[me] if me == 0 else min(self.risk[me], self.complexity[me])
        if self.tree.is_leaf[me] or bound <= self.alpha:
            self.complexity[me] = self.alpha
            return 0, self.risk[me]
        left, right = self.order[me]
        self.complexity[left] = bound - self.alpha
        left_split, left_risk = self.run(left)
        most = max((self.risk[me] - left_risk) / (left_split + 1), self.risk[me] - self.risk[left])
        inherited = self.risk[me] if me == 0 else self.complexity[me]
        self.complexity[right] = min(most, inherited, bound) - self.alpha
        right_split, right_risk = self.run(right)
        worth = (self.risk[me] - (left_risk + right_risk)) / (left_split + right_split + 1)
        if self.complexity[right] > self.complexity[left]:
            if worth > self.complexity[left]:
                left_risk, left_split = self.risk[left], 0
                worth = (self.risk[me] - (left_risk + right_risk)) / (left_split + right_split + 1)
                if worth > self.complexity[right]:
                    right_risk, right_split = self.risk[right], 0
        elif worth > self.complexity[right]:
            right_risk, right_split = self.risk[right], 0
            worth = (self.risk[me] - (left_risk + right_risk)) / (left_split + right_split + 1)
            if worth > self.complexity[left]:
                left_risk, left_split = self.risk[left], 0
        self.complexity[me] = (self.risk[me] - (left_risk + right_risk)) / (left_split + right_split + 1)
        if self.complexity[me] <= self.alpha:
            return 0, self.risk[me]
        self.kept.add(me)
        return left_split + right_split + 1, left_risk + right_risk

    def list_levels(self, me: int = 0, above: float = np.inf) -> list[float]:
        """The complexities that nodes have below their parents' (fix_cp, make_cp_list)."""
        if me not in self.kept:
            return []
        own = min(self.complexity[me], above)
        return [own, *(level for child in self.order[me] for level in self.list_levels(child, own))]


@st.composite
def binary_trees(draw: st.DrawFn) -> tuple[Grown, Risks]:
    """A tree of binary splits with its risks."""
    grown = draw(grown_trees(nominal="subset", empty_branches=False))
    parameters = resolved(grown.target, grown.parameters)
    objective, shown = build_objective(grown.target, parameters, None)
    return grown, find_risks(grown.tree, objective, Costs(shown, parameters.loss), "error")


@SLOWLY
@given(binary_trees(), st.sampled_from([0.0, 0.01, 0.1, 0.13, 0.2, 0.3]))
def test_the_recursion_of_rpart(made: tuple[Grown, Risks], cp: float) -> None:
    """The same splits are kept at the given cp, and the same complexities follow."""
    grown, risks = made
    tree, objective = grown.tree, grown.learnt.learner.objective
    order = find_order(tree, objective)
    alpha = cp * float(risks.cost[0])
    slow = Partition(tree, risks.cost.tolist(), order, alpha)
    slow.run(0)
    path = follow_rpart(tree, risks, alpha / risks.total, order)
    cut = find_cut(tree, path, 0)
    kept, open_nodes = set(), [0]
    while open_nodes:
        node = open_nodes.pop()
        if not cut[node] and not tree.is_leaf[node]:
            kept.add(node)
            open_nodes += order[node]
    reached, open_nodes = set(), [0]
    while open_nodes:
        node = open_nodes.pop()
        if node in slow.kept:
            reached.add(node)
            open_nodes += order[node]
    assert kept == reached
    levels = sorted(set(np.round(np.array(slow.list_levels()) / risks.total, 12)))
    assert path.alpha[1:].tolist() == pytest.approx(levels, abs=1e-11)
    assert path.risk[0] == pytest.approx(
        sum(risks.cost[[leaf for leaf in range(tree.nodes) if _is_end(tree, leaf, kept)]]) / risks.total
    )
    assert path.splits[0] == len(kept)


def _is_end(tree: Tree, node: int, kept: set[int]) -> bool:
    return node not in kept and (node == 0 or int(tree.parent[node]) in kept)


@SLOWLY
@given(binary_trees())
def test_stumps_of_both_sequences_agree(made: tuple[Grown, Risks]) -> None:
    """Where a tree has up to two splits one below the other, rpart's sequence is Breiman's."""
    grown, risks = made
    if (~grown.tree.is_leaf).sum() > 2:
        return
    ours = find_path(grown.tree, risks)
    theirs = follow_rpart(grown.tree, risks, 0.0, find_order(grown.tree, grown.learnt.learner.objective))
    assert ours.alpha.tolist() == pytest.approx(theirs.alpha.tolist(), abs=1e-12)
    assert ours.leaves.tolist() == theirs.leaves.tolist()
    assert ours.risk.tolist() == pytest.approx(theirs.risk.tolist(), abs=1e-12)


@SLOWLY
@given(
    grown_trees(),
    st.sampled_from([0.0, 0.013, 0.07, 0.11, 0.31]),
    st.sampled_from(["breiman", "rpart"]),
    st.sampled_from(["error", "impurity"]),
)
def test_what_growth_leaves_out(grown: Grown, cp: float, sequence: str, risk: str) -> None:
    """Nodes that are not worth a split whatever it is are not grown, and the tree is that of cutting it all back."""
    asked = {**grown.parameters, "sequence": sequence, "risk": risk}
    learnt = learn(grown.columns, grown.target, resolved(grown.target, {**asked, "cp": cp}))
    parameters = resolved(grown.target, asked)
    objective, shown = build_objective(grown.target, parameters, None)
    costs = Costs(shown, parameters.loss)
    risks = find_risks(grown.tree, objective, costs, risk)
    path = find_subtrees(grown.tree, objective, costs, parameters, cp * float(risks.cost[0]) / risks.total)
    expected, place = cut_back(grown.tree, find_cut(grown.tree, path, 0), LeafReason.CP)
    assert learnt.pruning.nodes <= grown.tree.nodes
    tree = learnt.tree
    for name in ("parent", "feature", "form", "rows", "counts", "mean", "prediction"):
        assert getattr(tree, name).tolist() == getattr(expected, name).tolist()
    assert (tree.reason[expected.reason == LeafReason.CP] == LeafReason.CP).all()
    assert learnt.leaf.tolist() == place[grown.learnt.leaf].tolist()
    assert learnt.pruning.path is not None
    assert learnt.pruning.path.alpha.tolist() == pytest.approx(path.alpha.tolist(), abs=1e-12)


def test_a_small_cp_share_spares_growth() -> None:
    """Of a large noisy table nearly all nodes are never searched for a split."""
    source = np.random.default_rng(1)
    x = source.normal(size=4000)
    target = values((np.sign(x) + source.normal(size=4000)).tolist())
    columns = [numbers("x", x.tolist()), numbers("z", source.normal(size=4000).tolist())]
    learnt = learn(columns, target, resolved(target, {"cp": 0.01}))
    assert learnt.tree.is_leaf.sum() < 10
    assert learnt.pruning.nodes < 400
