"""The descent takes every row where growth took it, and says where it cannot know the way."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.descend import descend
from service.core.tree import Tree, find_heaviest_branches
from tests.core.making import classes, grow, labels, numbers

NUMBER = st.none() | st.sampled_from([-1.5, -0.0, 0.0, 1e-7, 0.1, 1e308, 1.7e308, float("inf"), float("-inf")])
WHOLE = st.none() | st.sampled_from([0, 1, 2**53, 2**53 + 1, -(2**63), 2**63 - 1])
NAME = st.none() | st.sampled_from(["ash", "birch", "elm"])
ROWS = st.lists(st.tuples(NUMBER, WHOLE, NAME, st.sampled_from("abc")), min_size=1, max_size=25)
HANDLING = st.fixed_dictionaries(
    {
        "nominal": st.sampled_from(["subset", "one_vs_rest", "multiway"]),
        "missing": st.sampled_from(["direction", "branch"]),
    }
)


@settings(max_examples=80, deadline=None)
@given(ROWS, HANDLING)
def test_training_rows_end_where_growth_put_them(rows: list[tuple[Any, ...]], handling: dict[str, str]) -> None:
    """Whatever the values and the handling, a training row goes down to the leaf that it helped to make."""
    columns = [
        numbers("real", [None if row[0] is None else float(row[0]) for row in rows]),
        numbers("whole", [row[1] for row in rows]),
        labels("name", [row[2] for row in rows], ["ash", "birch", "elm"]),
        labels("size", [row[2] for row in rows], ["elm", "ash", "birch"], "ordinal"),
    ]
    learnt = grow(columns, classes([row[3] for row in rows]), handling)
    down = descend(learnt.tree, columns, len(rows))
    assert down.node.tolist() == learnt.leaf.tolist()
    assert not down.stopped.any()
    assert learnt.tree.is_leaf[down.node].all()
    plain = Tree.from_arrays(learnt.tree.as_arrays())
    assert descend(plain, columns, len(rows)).node.tolist() == learnt.leaf.tolist()


@settings(max_examples=40, deadline=None)
@given(ROWS, HANDLING)
def test_children_share_their_parent(rows: list[tuple[Any, ...]], handling: dict[str, str]) -> None:
    """Children stand side by side in breadth-first order, and their rows and counts add up to their parent's."""
    columns = [
        numbers("whole", [row[1] for row in rows]),
        labels("name", [row[2] for row in rows], ["ash", "birch", "elm"]),
    ]
    tree = grow(columns, classes([row[3] for row in rows]), handling).tree
    assert (np.diff(tree.depth) >= 0).all()
    for node in np.flatnonzero(~tree.is_leaf).tolist():
        children = slice(int(tree.first_child[node]), int(tree.first_child[node] + tree.branches[node]))
        assert (tree.parent[children] == node).all()
        assert tree.rows[children].sum() == tree.rows[node]
        assert tree.counts[:, children].sum(1).tolist() == tree.counts[:, node].tolist()


def test_unseen_categories_stop() -> None:
    """A category that training did not see, or that no row had here, stops at the node that asks for it."""
    column = labels("x", list("ppqq"), ["p", "q", "r"])
    tree = grow([column], classes(list("aabb"))).tree
    down = descend(tree, [labels("x", ["p", "r", "q"], ["p", "q", "r"])], 3)
    assert down.stopped.tolist() == [False, True, False]
    assert down.node[1] == 0


def test_missing_goes_with_the_heaviest() -> None:
    """Where training had no gap a missing value takes the branch with most weight, the first of equals."""
    for marks, weight, child in (
        ("abb", [1, 1, 1], 2),
        ("aab", [1, 1, 1], 1),
        ("ab", [1, 1], 1),
        ("abb", [5, 1, 1], 1),
    ):
        cells = list(range(len(marks)))
        tree = grow([numbers("x", cells)], classes(list(marks), [float(w) for w in weight])).tree
        assert descend(tree, [numbers("x", [None])], 1).node.tolist() == [child], marks
        assert find_heaviest_branches(tree)[0] == child - 1


def test_exactly_at_the_threshold() -> None:
    """A value equal to the threshold goes left, as a float and as a whole number; the next one goes right."""
    tree = grow([numbers("x", [1, 4])], classes(list("ab"))).tree
    assert float(tree.threshold[0]) == 2.5
    assert descend(tree, [numbers("x", [2.5, float(np.nextafter(2.5, 3))])], 2).node.tolist() == [1, 2]
    assert descend(tree, [numbers("x", [2, 3])], 2).node.tolist() == [1, 2]
