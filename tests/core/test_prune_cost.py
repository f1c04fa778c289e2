"""The path of weakest links against all subtrees there are, one by one."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.core.criteria import Floats
from service.core.learn import build_objective
from service.core.prune_cost import Costs, Path, Risks, find_cut, find_path, find_risks, number_preorder
from service.core.prune_cut import cut_back
from service.core.tree import LeafReason, Tree
from tests.core.growing import resolved
from tests.core.making import classes, grow, numbers
from tests.core.pruning import SLOWLY, Grown, children_of, count_subtrees, grown_trees, list_subtrees


def risks_of(grown: Grown, risk: str) -> Risks:
    """The risks of a grown tree."""
    parameters = resolved(grown.target, grown.parameters)
    objective, shown = build_objective(grown.target, parameters, None)
    return find_risks(grown.tree, objective, Costs(shown, parameters.loss), risk)


def leaves_of(tree: Tree, path: Path, step: int) -> frozenset[int]:
    """The leaves of a subtree of the path, as nodes of the whole tree."""
    cut = find_cut(tree, path, step)
    open_nodes, found = [0], set()
    while open_nodes:
        node = open_nodes.pop()
        if cut[node] or tree.is_leaf[node]:
            found.add(node)
        else:
            open_nodes += children_of(tree, node)
    return frozenset(found)


def find_smallest(tree: Tree, cost: Floats, total: float, alpha: Fraction) -> frozenset[int]:
    """T(alpha) by trying every subtree: the smallest of those of least risk + alpha x leaves, in exact fractions."""
    exact = [Fraction(float(value)) / Fraction(total) for value in cost]

    def rate(leaves: frozenset[int]) -> tuple[Fraction, int]:
        whole = sum((exact[leaf] for leaf in leaves), Fraction(0)) + alpha * len(leaves)
        return Fraction(round(whole * 10**10)), len(leaves)

    return min(list_subtrees(tree), key=rate)


@SLOWLY
@given(grown_trees(most=12), st.sampled_from(["error", "impurity"]))
def test_every_subtree(grown: Grown, risk: str) -> None:
    """At each alpha of the path, and between any two, its subtree is the one that trying all subtrees finds."""
    tree = grown.tree
    assume(count_subtrees(tree) < 3000)
    risks = risks_of(grown, risk)
    path = find_path(tree, risks)
    assert leaves_of(tree, path, len(path.alpha) - 1) == {0}
    for step in range(len(path.alpha)):
        leaves = leaves_of(tree, path, step)
        following = path.alpha[step + 1] if step + 1 < len(path.alpha) else path.alpha[step] + 1
        for share in (Fraction(1, 1000), Fraction(1, 2)):
            alpha = Fraction(path.alpha[step]) + (Fraction(following) - Fraction(path.alpha[step])) * share
            assert find_smallest(tree, risks.cost, risks.total, alpha) == leaves
        assert len(leaves) == path.leaves[step]
        assert path.risk[step] == pytest.approx(sum(risks.cost[sorted(leaves)]) / risks.total, abs=1e-9)


@SLOWLY
@given(grown_trees(), st.sampled_from(["error", "impurity"]))
def test_the_path_is_nested(grown: Grown, risk: str) -> None:
    """Alphas rise, subtrees shrink, and cutting a subtree out of the tree leaves the rest of the path as it was."""
    tree = grown.tree
    path = find_path(tree, risks_of(grown, risk))
    assert all(first < second for first, second in pairwise(path.alpha.tolist()))
    assert all(first > second for first, second in pairwise(path.leaves.tolist()))
    step = len(path.alpha) // 2
    shorter, _ = cut_back(tree, find_cut(tree, path, step), LeafReason.COST_COMPLEXITY)
    assert (shorter.is_leaf.sum(), (~shorter.is_leaf).sum()) == (path.leaves[step], path.splits[step])
    rest = find_path(shorter, risks_of(replace(grown, learnt=replace(grown.learnt, tree=shorter)), risk))
    assert rest.alpha[1:].tolist() == pytest.approx(path.alpha[step + 1 :].tolist(), abs=1e-12)
    assert rest.leaves.tolist() == path.leaves[step:].tolist()


@SLOWLY
@given(grown_trees())
def test_preorder(grown: Grown) -> None:
    """Every node is followed by its first branch with all below it, then by the next."""
    tree = grown.tree

    def walk(node: int) -> list[int]:
        return [node, *(below for child in children_of(tree, node) for below in walk(child))]

    assert np.argsort(number_preorder(tree)).tolist() == walk(0)


def test_a_floor_goes_up_the_path_link_by_link() -> None:
    """Splits worth nothing go before the split above them is looked at: alone it is worth more than the floor."""
    # rows 0-4 and 5-9; within each half nothing is gained, at the root 2 of 5 errors are
    target = classes(["a"] * 4 + ["b"] + ["b"] * 4 + ["a"])
    learnt = grow([numbers("x", list(range(10)))], target)
    risks = find_risks(learnt.tree, learnt.learner.objective, Costs(), "error")
    whole, floored = find_path(learnt.tree, risks), find_path(learnt.tree, risks, 0.15)
    assert floored.alpha[0] == 0.15
    assert floored.leaves[0] == whole.leaves[whole.find_step(0.15)]


def test_alphas_within_rounding_are_the_same() -> None:
    """An alpha as it is printed, a hair below the one computed, still means that step."""
    target = classes(["a", "a", "b", "a", "b", "b"])
    learnt = grow([numbers("x", list(range(6)))], target)
    path = find_path(learnt.tree, find_risks(learnt.tree, learnt.learner.objective, Costs(), "error"))
    for step, alpha in enumerate(path.alpha.tolist()):
        assert path.find_step(alpha * (1 - 1e-15)) == step
    assert path.find_step(1e9) == len(path.alpha) - 1
