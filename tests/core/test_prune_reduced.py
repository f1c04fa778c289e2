"""Reduced-error pruning against a recursion, one held-out row at a time."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.core.descend import descend
from service.core.errors import InvalidParameters
from service.core.folds import hold_out, take_rows
from service.core.learn import learn
from service.core.parameters import resolve
from service.core.prune_reduced import choose_held
from service.core.schema import Column, Target
from service.core.tree import LeafReason, Tree
from tests.core.growing import resolved
from tests.core.making import classes, grow, numbers
from tests.core.pruning import SLOWLY, children_of, tables


class Slowly:
    """Quinlan's reduced-error pruning of a grown tree, by held-out rows with the nodes that they passed.

    ``ended``: row, node and weight of what came to each end; a row that is parted has several.
    """

    def __init__(self, tree: Tree, columns: list[Column], target: Target) -> None:
        self.tree, self.target, self.columns = tree, target, columns
        ended = descend(tree, columns, target.rows).node.tolist()
        weight = [1.0] * target.rows if target.weight is None else target.weight.tolist()
        self.ended = list(zip(range(target.rows), ended, weight, strict=True))
        if tree.share is not None:
            self.ended = [end for row in range(target.rows) for end in self.send(row, 0, weight[row])]

    def send(self, row: int, node: int, weight: float) -> list[tuple[int, int, float]]:
        """Where the parts of a row end below a node: what a split says nothing of goes to all branches."""
        tree = self.tree
        if tree.is_leaf[node]:
            return [(row, node, weight)]
        column = self.columns[int(tree.feature[node])]
        branch = -1
        if column.is_missing()[row]:
            branch = -1
        elif column.kind == "numeric":
            branch = int(column.values[row] > tree.threshold[node])
        else:
            branch = int(tree.category_branch[tree.category_start[node] + column.values[row]])
        children = children_of(tree, node)
        if branch >= 0:
            return self.send(row, children[branch], weight)
        assert tree.share is not None
        return [end for child in children for end in self.send(row, child, weight * float(tree.share[child]))]

    def passes(self, end: int, node: int) -> bool:
        """Whether what came to an end came by a node."""
        at = self.ended[end][1]
        while at >= 0:
            if at == node:
                return True
            at = int(self.tree.parent[at])
        return False

    def cost(self, ends: list[int], node: int) -> float:
        """What the answer of a node costs for what came to some ends."""
        answer = float(self.tree.prediction[node])
        total = 0.0
        for row, _, weight in map(self.ended.__getitem__, ends):
            if self.target.codes is not None:
                total += weight * (self.target.codes[row] != answer)
            elif self.target.values is not None:
                total += weight * float(self.target.values[row] - answer) ** 2
        return total

    def prune(self, node: int) -> tuple[float, set[int]]:
        """The cost of the pruned subtree, and the splits in it that are left."""
        ends = [end for end in range(len(self.ended)) if self.passes(end, node)]
        here = self.cost(ends, node)
        if self.tree.is_leaf[node]:
            return here, set()
        pruned = [self.prune(child) for child in children_of(self.tree, node)]
        below = sum(cost for cost, _ in pruned) + self.cost([end for end in ends if self.ended[end][1] == node], node)
        if here <= below + 1e-9:
            return here, set()
        return below, {node}.union(*(splits for _, splits in pruned))


@SLOWLY
@given(
    tables(most=24), st.sampled_from([{"pruning_holdout": 0.4}, {"pruning_folds": 2}]), st.integers(0, 5),
    st.sampled_from(["direction", "fractional"]),
)  # fmt: skip
def test_the_recursion(table: tuple[list[Column], Target], how: dict[str, float], seed: int, missing: str) -> None:
    """The splits that are left are those that help on the rows held out; all others are leaves that say why."""
    columns, target = table
    parameters = resolved(target, {"pruning": "reduced_error", "seed": seed, "missing": missing, **how})
    held = choose_held(target, parameters)
    grown_from, of_grown = take_rows(columns, target, ~held)
    grown = grow(grown_from, of_grown, {"missing": missing}).tree
    slow = Slowly(grown, *take_rows(columns, target, held))
    left = slow.prune(0)[1]
    learnt = learn(columns, target, parameters)
    kept = [node for node in range(grown.nodes) if node == 0 or int(grown.parent[node]) in left]
    tree = learnt.tree
    assert tree.rows.tolist() == grown.rows[kept].tolist()
    assert tree.is_leaf.tolist() == [node not in left for node in kept]
    cut = [not grown.is_leaf[node] and node not in left for node in kept]
    assert [reason == LeafReason.REDUCED_ERROR for reason in tree.reason] == cut
    assert missing == "direction" or tree.share is not None
    assert len(learnt.leaf) == of_grown.rows == target.rows - learnt.pruning.held_out
    if missing == "direction":
        assert descend(tree, grown_from, of_grown.rows).node.tolist() == learnt.leaf.tolist()


@given(st.integers(2, 200), st.floats(0.01, 0.99), st.integers(0, 9), st.integers(1, 4))
def test_held_out_rows(rows: int, share: float, seed: int, kinds: int) -> None:
    """About the share of the rows is held out, and of each class; never none, never all; by the seed alone."""
    assume(rows >= kinds)
    target = classes([place % kinds for place in range(rows)])
    held = hold_out(target, share, seed)
    assert held.tolist() == hold_out(target, share, seed).tolist()
    assert 1 <= held.sum() <= rows - 1
    assert abs(held.sum() - share * rows) <= 1
    assert target.codes is not None
    for code in range(kinds):
        mine = target.codes == code
        assert abs(held[mine].sum() - held.mean() * mine.sum()) < 2


def test_few_rows() -> None:
    """One row is grown from and not held out; the default folds are as many as the rows, others have to fit."""
    one, two = classes(["a"]), classes(["a", "b"])
    asked = resolve("cart", {"pruning": "reduced_error"}, "classification")
    assert learn([numbers("x", [1])], one, asked).pruning.held_out == 0
    assert learn([numbers("x", [1, 2])], two, asked).pruning.held_out == 1
    more = resolve("cart", {"pruning": "reduced_error", "pruning_folds": 4}, "classification")
    with pytest.raises(InvalidParameters, match="more than the 2 rows"):
        learn([numbers("x", [1, 2])], two, more)


def test_a_split_that_only_noise_suggested_goes() -> None:
    """A cut that the grown rows need and the held-out rows do not is a leaf; the true cut stays."""
    source = np.random.default_rng(2)
    x = source.permutation(200)
    y = np.where((x > 100) ^ (source.random(200) < 0.15), "b", "a")
    target = classes(y.tolist())
    columns = [numbers("x", x.tolist())]
    parameters = resolve("cart", {"pruning": "reduced_error", "seed": 3}, "classification")
    learnt = learn(columns, target, parameters)
    assert learnt.pruning.leaves > 20
    assert learnt.tree.is_leaf.sum() < 12
    assert 95 < learnt.tree.threshold[0] < 106
