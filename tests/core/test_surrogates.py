"""Splits that stand in: which are kept, whom they send, and who stays; prediction by many rows and by one."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.core.descend import descend
from service.core.descend_one import OneRow
from service.core.schema import Column, Target
from service.core.tree import STAYS, Surrogates, Tree
from tests.core.growing import SORTED, grow_by, random_target
from tests.core.making import classes, grow, labels, numbers
from tests.core.test_descend_parts import mixed

# the target follows x, of which the last value is missing; z is like x but for one row, w turned round but for two
X = [1, 2, 3, 4, 11, 12, 13, 14, None]
Y = classes(["n"] * 4 + ["p"] * 5)
Z = [1, 1, 1, 1, 5, 5, 5, 1, 5]
W = [9, 9, 9, 2, 2, 2, 2, 9, 2]


def make(parameters: dict[str, Any] | None = None, target: Target = Y) -> Tree:
    """The tree of one split on x."""
    columns = [numbers("x", X), numbers("z", Z), numbers("w", W)]
    asked = {"missing": "surrogate", "max_depth": 1, **(parameters or {})}
    return grow(columns, target, asked).tree


def stands_of(tree: Tree) -> Surrogates:
    """What the tree has of them."""
    assert tree.surrogates is not None
    return tree.surrogates


def test_agreement() -> None:
    """Of eight rows whose x is known z sends seven the same way and w six, turned round: by hand (7 - 4) / (8 - 4)."""
    stands = stands_of(make())
    assert stands.feature.tolist() == [1, 2]
    assert stands.agree.tolist() == [7 / 8, 6 / 8]
    assert stands.adjusted.tolist() == [3 / 4, 2 / 4]
    assert stands.flipped.tolist() == [False, True]
    assert stands.threshold.tolist() == [3.0, 5.5]
    assert stands.rows.tolist() == [1, 0], "z sends the row without x, so w is not asked"


@pytest.mark.parametrize(("most", "kept"), [(0, []), (1, [1]), (2, [1, 2])])
def test_at_most_so_many(most: int, kept: list[int]) -> None:
    """``max_surrogates`` keeps the best."""
    assert stands_of(make({"max_surrogates": most})).feature.tolist() == kept


def test_what_is_left_stays() -> None:
    """As many rows go left as right, so without surrogates there is no majority, and the row ends at the root."""
    tree = make({"max_surrogates": 0})
    assert tree.missing_to[0] == STAYS
    assert tree.rows.tolist() == [9, 4, 4]
    asked = [numbers("x", [None]), numbers("z", [5]), numbers("w", [9])]
    assert descend(tree, asked, 1).node.tolist() == [0]
    assert OneRow(tree).descend([None, 5, 9]) == 0


@pytest.mark.parametrize(("use", "ends"), [(0, [0, 0, 0]), (1, [2, 1, 0]), (2, [2, 1, 2])])
def test_use(use: int, ends: list[int]) -> None:
    """0: rows without x stay; 1: surrogates are asked, and where none knows rows stay; 2: these follow the majority."""
    target = classes(["n"] * 3 + ["p"] * 6)
    tree = make({"use_surrogates": use}, target)
    assert tree.threshold[0] == 3.5, "three on the left, five on the right"
    asked = [numbers("x", [None] * 3), numbers("z", [5, None, None]), numbers("w", [None, 9, None])]
    assert descend(tree, asked, 3).node.tolist() == ends
    cells = ([None, 5, None], [None, None, 9], [None, None, None])
    assert [OneRow(tree).descend(row) for row in cells] == ends


def test_style() -> None:
    """Rows that lack the surrogate's own value count against it, or under style 1 do not count."""
    z = [1, 1, 1, None, None, 5, 5, 5, 5]
    columns = [numbers("x", X), numbers("z", z)]
    found = [
        stands_of(grow(columns, Y, {"missing": "surrogate", "max_depth": 1, "surrogate_style": style}).tree)
        for style in (0, 1)
    ]
    assert [stands.agree.tolist() for stands in found] == [[6 / 8], [1.0]]
    assert [stands.adjusted.tolist() for stands in found] == [[(6 - 4) / (8 - 4)], [1.0]]


def test_weight_or_rows() -> None:
    """Agreement is by weight, or by rows where that is asked for; the split itself goes by weight all the same."""
    target = classes(["n"] * 4 + ["p"] * 5, [1, 1, 1, 1, 1, 1, 1, 3, 1])
    columns = [numbers("x", X), numbers("z", Z)]
    parameters = {"missing": "surrogate", "max_depth": 1}
    heavy = stands_of(grow(columns, target, parameters).tree)
    plain = stands_of(grow(columns, target, parameters | {"surrogate_count": "rows"}).tree)
    assert heavy.agree.tolist() == [7 / 10]
    assert heavy.adjusted == pytest.approx([(7 - 6) / (10 - 6)])
    assert plain.agree.tolist() == [7 / 8]


def test_categories_of_rpart() -> None:
    """A surrogate by categories that agrees in every row is kept, but not by rpart's rule, which wants two mistakes."""
    columns = [numbers("x", [*X[:-1], 15]), labels("z", [*"aaaabbbbb"])]
    parameters = {"missing": "surrogate", "max_depth": 1}
    assert stands_of(grow(columns, Y, parameters).tree).agree.tolist() == [1.0]
    assert stands_of(grow(columns, Y, parameters | {"nominal_surrogates": "rpart"}).tree).agree.tolist() == []


def test_unseen_categories() -> None:
    """A category that the split, or a surrogate, did not see is like a missing value: the next surrogate is asked."""
    columns = [labels("x", [*"aaabbb"], "abc"), labels("z", [*"dddeee"], "def"), numbers("w", [1, 1, 1, 2, 2, 2])]
    tree = grow(columns, classes(["n"] * 3 + ["p"] * 3), {"missing": "surrogate"}).tree
    assert stands_of(tree).feature.tolist() == [1, 2]
    cases = [(-2, 0, 2, 1), (2, 1, 1, 2), (-1, -2, 2, 2), (-2, 2, 1, 1), (0, 1, 2, 1)]
    asked = [
        Column("x", "nominal", np.array([case[0] for case in cases], np.int32), tuple("abc")),
        Column("z", "nominal", np.array([case[1] for case in cases], np.int32), tuple("def")),
        numbers("w", [case[2] for case in cases]),
    ]
    assert descend(tree, asked, len(cases)).node.tolist() == [case[3] for case in cases]
    for x, z, w, end in cases:
        assert OneRow(tree).descend([None if x == -1 else x, z, w]) == end


@pytest.mark.parametrize("seed", range(4))
@pytest.mark.parametrize("parameters", [{}, {"use_surrogates": 1}, {"max_leaf_nodes": 12}, {"cp": 0.02}])
@pytest.mark.parametrize("count", [3, 0])
def test_training_rows_end_where_growth_left_them(parameters: dict[str, Any], count: int, seed: int) -> None:
    """Many rows and one at a time come to the leaf, or the node, that growth says; nodes weigh what their rows do."""
    columns = mixed(200, seed)
    target = random_target(np.random.default_rng(seed), columns, count, "whole")
    learnt = grow_by(SORTED, columns, target, {"missing": "surrogate", "min_samples_leaf": 5, **parameters})
    tree = learnt.tree
    assert stands_of(tree).rows.sum() > 0
    assert descend(tree, columns, 200).node.tolist() == learnt.leaf.tolist()
    one = OneRow(tree)
    cells = [[None if c.is_missing()[row] else c.values[row].item() for c in columns] for row in range(200)]
    assert [one.descend(row) for row in cells] == learnt.leaf.tolist()
    came = np.bincount(learnt.leaf, target.weight, tree.nodes)
    for node in range(tree.nodes - 1, 0, -1):
        came[tree.parent[node]] += came[node]
    assert came == pytest.approx(tree.weight)


@pytest.mark.parametrize("count", [2, 0])
def test_nothing_missing_grows_the_same_tree(count: int) -> None:
    """Where every value is known all choices grow the same tree, in bins and in order."""
    source = np.random.default_rng(3)
    columns = [Column(f"x{i}", "numeric", source.normal(size=600)) for i in range(3)]
    target = random_target(source, columns, count, "real")
    asked = {"max_depth": 4}
    base = grow_by(SORTED, columns, target, asked)
    for missing in ("surrogate", "fractional", "branch"):
        other = grow_by(SORTED, columns, target, asked | {"missing": missing})
        for name in ("feature", "threshold", "rows", "score", "prediction"):
            assert np.array_equal(getattr(base.tree, name), getattr(other.tree, name), equal_nan=True), (missing, name)
        assert base.leaf.tolist() == other.leaf.tolist()


def test_order_of_rows() -> None:
    """Rows in another order have the same surrogates, to the last bit."""
    columns = mixed(150, 2)
    target = random_target(np.random.default_rng(2), columns, 3, "real")
    order = np.random.default_rng(1).permutation(150)
    assert target.codes is not None
    assert target.weight is not None
    turned = Target(target.name, target.classes, target.codes[order], weight=target.weight[order])
    moved = [
        Column(c.name, c.kind, c.values[order], c.categories, None if c.missing is None else c.missing[order])
        for c in columns
    ]
    one, other = (
        grow_by(SORTED, some, of_some, {"missing": "surrogate"})
        for some, of_some in ((columns, target), (moved, turned))
    )
    for name in ("feature", "threshold", "flipped", "agree", "adjusted", "rows", "category_branch"):
        mine, theirs = getattr(stands_of(one.tree), name), getattr(stands_of(other.tree), name)
        assert np.array_equal(mine, theirs, equal_nan=mine.dtype.kind == "f"), name


def test_stored_and_read() -> None:
    """A tree with surrogates is the same once it was stored as plain arrays; one stored before there were any loads."""
    tree = make()
    again = Tree.from_arrays(tree.as_arrays())
    assert stands_of(again).threshold.tolist() == stands_of(tree).threshold.tolist()
    plain = {name: value for name, value in tree.as_arrays().items() if name not in ("surrogates", "share", "loss")}
    older = Tree.from_arrays(plain)
    assert older.surrogates is None
    assert older.share is None
