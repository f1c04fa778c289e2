"""Rows that lack values, down all branches by shares: what growth says comes to a node does, and all of each row."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.core.audit import list_candidates
from service.core.descend_one import OneRow
from service.core.descend_parts import Parts, descend_parts
from service.core.guide import are_floats, lay_out
from service.core.learn import Learnt
from service.core.schema import Column, Target
from service.core.tree import LeafReason
from tests.core.growing import SORTED, grow_by, random_columns, random_target
from tests.core.making import audit, classes, grow, labels, numbers

RUNS: list[tuple[str, dict[str, Any], int, str]] = [
    ("cart", {"missing": "fractional"}, 2, "none"),
    ("cart", {"missing": "fractional", "max_leaf_nodes": 9}, 3, "real"),
    ("cart", {"missing": "fractional", "min_samples_leaf": 3}, 0, "whole"),
    ("c45", {}, 3, "none"),
    ("c45", {"pruning": None}, 2, "whole"),
    ("j48", {}, 3, "none"),
    ("j48", {"nominal": "one_vs_rest"}, 2, "none"),
]


def mixed(rows: int, seed: int) -> list[Column]:
    """Numbers with gaps and two columns of categories, one with gaps."""
    source = np.random.default_rng(seed)
    columns = random_columns(source, rows, gaps=True)[:3]
    columns[2] = Column("whole", "numeric", source.integers(0, 9, rows), missing=source.random(rows) < 0.2)
    code = source.integers(-1, 5, rows).astype(np.int32)
    full = source.integers(0, 3, rows).astype(np.int32)
    return [*columns, Column("tree", "nominal", code, tuple("abcde")), Column("size", "ordinal", full, tuple("SML"))]


def make(algorithm: str, parameters: dict[str, Any], count: int, weight: str, seed: int) -> tuple[Learnt, Target]:
    """A tree of 150 rows."""
    columns = mixed(150, seed)
    target = random_target(np.random.default_rng(seed), columns, count, weight)
    return grow_by(SORTED, columns, target, parameters, algorithm), target


def trace(learnt: Learnt, target: Target) -> Parts:
    """All nodes that each training row comes through, with what of its weight does."""
    columns = [coded.as_column() for coded in learnt.learner.features]
    guide = lay_out(learnt.tree, are_floats(columns))
    return descend_parts(guide, columns, target.rows, target.weight, inner=True)


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize(("algorithm", "parameters", "count", "weight"), RUNS)
def test_training_rows(algorithm: str, parameters: dict[str, Any], count: int, weight: str, seed: int) -> None:
    """The rows, weights and class weights of every node, pruned and raised ones too, are those that come to it."""
    learnt, target = make(algorithm, parameters, count, weight, seed)
    tree, parts = learnt.tree, trace(learnt, target)
    assert tree.share is not None
    assert np.bincount(parts.node, minlength=tree.nodes).tolist() == tree.rows.tolist()
    assert np.bincount(parts.node, parts.share, tree.nodes) == pytest.approx(tree.weight, rel=1e-9, abs=1e-12)
    if target.codes is not None:
        for label in range(len(target.classes)):
            mine = target.codes[parts.row] == label
            came = np.bincount(parts.node[mine], parts.share[mine], tree.nodes)
            assert came == pytest.approx(tree.counts[label], rel=1e-9, abs=1e-12)
    inner = np.flatnonzero(~tree.is_leaf)
    shared = [tree.share[tree.first_child[i] :][: tree.branches[i]].sum() for i in inner]
    assert shared == pytest.approx(np.ones(len(inner)))


def test_raised_branches_have_shares_of_their_own() -> None:
    """Among the trees above are such in which a branch was raised and rows are parted below it."""
    raised = 0
    for seed in range(6):
        for algorithm, parameters, count, weight in RUNS[3:]:
            raised += int((make(algorithm, parameters, count, weight, seed)[0].tree.reason == LeafReason.RAISED).sum())
    assert raised > 3


@pytest.mark.parametrize(("algorithm", "parameters", "count", "weight"), RUNS)
def test_audit_weighs_what_growth_weighed(algorithm: str, parameters: dict[str, Any], count: int, weight: str) -> None:
    """In a grown tree the candidate chosen by the audit has the score and the branches that growth gave the node."""
    learnt, target = make(algorithm, parameters | {"pruning": None, "collapse": False}, count, weight, 1)
    audited, tree = audit(learnt, target), learnt.tree
    assert tree.nodes > 3
    for group in audited.groups:
        listing = list_candidates(audited, group)
        chosen = np.flatnonzero(listing.chosen)
        nodes = listing.nodes[listing.node[chosen]]
        assert nodes.tolist() == group[~tree.is_leaf[group]].tolist()
        assert listing.feature[chosen].tolist() == tree.feature[nodes].tolist()
        assert listing.score[chosen] == pytest.approx(tree.score[nodes], rel=1e-12)


@pytest.mark.parametrize("seed", range(3))
def test_one_row_and_many(seed: int) -> None:
    """A row alone comes to the same leaves, by the same shares to the last bit, as among others."""
    learnt, target = make("c45", {"pruning": None}, 3, "none", seed)
    columns = [coded.as_column() for coded in learnt.learner.features]
    parts = descend_parts(lay_out(learnt.tree, are_floats(columns)), columns, target.rows)
    one = OneRow(learnt.tree)
    for row in range(target.rows):
        cells = [None if c.is_missing()[row] else c.values[row].item() for c in columns]
        mine = parts.row == row
        assert one.part(cells) == list(zip(parts.node[mine].tolist(), parts.share[mine].tolist(), strict=True))
        assert parts.share[mine].sum() == pytest.approx(1)


def test_order_of_rows() -> None:
    """Rows in another order grow the same tree, to the last bit."""
    columns = mixed(120, 4)
    target = random_target(np.random.default_rng(4), columns, 3, "real")
    order = np.random.default_rng(5).permutation(120)
    assert target.codes is not None
    assert target.weight is not None
    turned = Target(target.name, target.classes, target.codes[order], weight=target.weight[order])
    moved = [
        Column(c.name, c.kind, c.values[order], c.categories, None if c.missing is None else c.missing[order])
        for c in columns
    ]
    one = grow_by(SORTED, columns, target, {"missing": "fractional"}).tree
    other = grow_by(SORTED, moved, turned, {"missing": "fractional"}).tree
    for name in ("feature", "threshold", "counts", "share", "score", "probability"):
        assert np.array_equal(getattr(one, name), getattr(other, name), equal_nan=True), name


def test_nothing_missing_in_training() -> None:
    """A row without a value is parted by the weights of the branches although training lacked none."""
    learnt = grow([numbers("x", [1, 2, 3, 4])], classes(["a", "b", "b", "b"]), {"missing": "fractional"})
    guide = lay_out(learnt.tree, (True,))
    parts = descend_parts(guide, [Column("x", "numeric", np.array([np.nan]))], 1)
    assert (parts.node.tolist(), parts.share.tolist()) == ([1, 2], [0.25, 0.75])


def test_unseen_categories_are_parted() -> None:
    """A category that training, or the node, did not see goes to all branches, like a missing value."""
    columns = [labels("tree", ["a", "a", "b", "b", "b"], ["a", "b", "c"])]
    learnt = grow(columns, classes(["n", "n", "p", "p", "p"]), {"missing": "fractional"})
    for code in (2, -2, -1):
        column = Column("tree", "nominal", np.array([code], np.int32), ("a", "b", "c"))
        parts = descend_parts(lay_out(learnt.tree, (False,)), [column], 1)
        assert parts.share.tolist() == [0.4, 0.6]
        assert OneRow(learnt.tree).part([None if code == -1 else code]) == [(1, 0.4), (2, 0.6)]


def test_several_targets_are_parted() -> None:
    """Rows without a value are parted by the weight that is known, however many numbers are predicted."""
    target = Target(
        "y", values=np.array([[0.0, 1], [0, 2], [9, 1], [9, 2], [5, 5]]), statistic="vectors", names=("y", "z")
    )
    tree = grow([numbers("x", [1, 1, 1, 2, None])], target, {"missing": "fractional", "max_depth": 1}).tree
    assert tree.share is not None
    assert tree.share[1:].tolist() == [0.75, 0.25]
    assert tree.weight.tolist() == [5, 3.75, 1.25]
