"""Whatever is changed in a tree is found at its node, under its name, and nothing else is."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.core.candidates import Form
from service.core.difference import BY_COLUMN, PARTS, SPLIT, TESTS, find_differences
from service.core.prune_cut import cut_back
from service.core.tree import LeafReason, Tree
from tests.core.making import classes, grow, labels, numbers, values

ROWS = 80
NAMES = {array: name for name, arrays in PARTS.items() for array in arrays} | dict.fromkeys(SPLIT, "split")


def make_tree(kind: str) -> Tree:
    """A tree of numbers and categories with gaps."""
    random = np.random.default_rng(5)
    broken, label, whole = random.normal(size=ROWS), random.choice([*"abcd"], ROWS), random.integers(0, 9, ROWS)
    score = broken + (label < "c") + whole / 5 + random.normal(size=ROWS) / 2
    gap = random.random((3, ROWS)) < 0.1
    columns = [
        numbers("broken", [None if g else x for x, g in zip(broken.tolist(), gap[0], strict=True)]),
        labels("label", [None if g else x for x, g in zip(label.tolist(), gap[1], strict=True)]),
        numbers("whole", [None if g else x for x, g in zip(whole.tolist(), gap[2], strict=True)]),
    ]
    if kind == "numbers":
        return grow(columns, values(score.tolist())).tree
    target = classes(["high" if x > 1 else "low" for x in score.tolist()])
    if kind == "surrogates":
        return grow(columns, target, {"missing": "surrogate"}).tree
    return grow(columns, target, algorithm=kind).tree


KINDS = ("cart", "surrogates", "j48", "numbers")


def spoil(array: np.ndarray, at: tuple[int, ...]) -> np.ndarray:
    """The array with another value in one place."""
    other = np.array(array)
    old = other[at]
    other[at] = 0.25 if isinstance(old, np.floating) and np.isnan(old) else ~old if other.dtype == bool else old + 1
    return other


@pytest.mark.parametrize("kind", KINDS)
def test_the_same(kind: str) -> None:
    """A tree has no difference from itself, and every node of it is looked at."""
    tree = make_tree(kind)
    found = find_differences(tree, make_tree(kind))
    assert (found.identical, found.schema, found.places, found.differences) == (True, True, tree.nodes, [])


@pytest.mark.parametrize("kind", KINDS)
def test_each_number_of_each_node(kind: str) -> None:
    """One number that is another one is found at its node, under its name alone."""
    tree = make_tree(kind)
    for array, name in NAMES.items():
        value = getattr(tree, array)
        if value is None or array in ("form", "branches", "feature") or not value.size:
            continue
        for node in range(tree.nodes):
            place = (0, node) if array in BY_COLUMN else (node, *[0] * (value.ndim - 1))
            (found,) = find_differences(tree, replace(tree, **{array: spoil(value, place)})).differences
            assert (found.first, found.second, found.names) == (node, node, (name,))


@pytest.mark.parametrize("kind", KINDS)
def test_each_category(kind: str) -> None:
    """A category that goes elsewhere is another split, at the node that has it in its list."""
    tree = make_tree(kind)
    listed = (tree.form == Form.SUBSET) | (tree.form == Form.MULTIWAY)
    assert listed.any()
    for node in np.flatnonzero(listed).tolist():
        cells = len(tree.features[int(tree.feature[node])].categories) + 1
        for code in range(cells):
            other = spoil(tree.category_branch, (int(tree.category_start[node]) + code,))
            (found,) = find_differences(tree, replace(tree, category_branch=other)).differences
            assert (found.first, found.names) == (node, ("split",))


def test_each_surrogate() -> None:
    """A surrogate that is another one, or is not there, is told at its node."""
    tree = make_tree("surrogates")
    stands = tree.surrogates
    assert stands is not None
    owner = np.repeat(np.arange(tree.nodes), np.diff(stands.start)).tolist()
    assert len(owner) > 1
    for at, node in enumerate(owner):
        for name in set(TESTS) - {"feature"}:
            value = getattr(stands, name)
            place = (0, at) if value.ndim > 1 else (at,)
            other = replace(stands, **{name: spoil(value, place)})
            (found,) = find_differences(tree, replace(tree, surrogates=other)).differences
            assert (found.first, found.names) == (node, ("surrogates",)), name
    assert find_differences(tree, replace(tree, surrogates=None)).differences


def test_a_branch_that_was_cut() -> None:
    """Where one tree ends and the other goes on, that node is told, and what is below it has no counterpart."""
    tree = make_tree("cart")
    inner = np.flatnonzero(~tree.is_leaf)[1:]
    for node in inner.tolist():
        shorter, place = cut_back(tree, np.arange(tree.nodes) == node, LeafReason.COST_COMPLEXITY)
        found = find_differences(tree, shorter)
        assert found.places == shorter.nodes
        (difference,) = found.differences
        assert (difference.first, difference.second) == (node, int(place[node]))
        assert {"split", "reason"} <= set(difference.names)
        (difference,) = find_differences(shorter, tree).differences
        assert difference.second == node


def test_zeros_and_gaps() -> None:
    """NaN equals NaN, and 0.0 equals -0.0: they say the same of every row."""
    tree = make_tree("numbers")
    threshold = np.array(tree.threshold)
    threshold[0] = 0.0
    one, other = replace(tree, threshold=threshold), replace(tree, threshold=np.where(threshold == 0, -0.0, threshold))
    assert find_differences(one, other).identical


def test_other_features_and_classes() -> None:
    """Trees of other features or classes are not compared; 1, 1.0 and true are different classes."""
    tree = make_tree("cart")
    for other in (
        replace(tree, features=tree.features[::-1]),
        replace(tree, classes=("high", "lower")),
        make_tree("numbers"),
    ):
        found = find_differences(tree, other)
        assert (found.schema, found.identical, found.places) == (False, False, 0)
    assert not find_differences(replace(tree, classes=(0, 1)), replace(tree, classes=(False, True))).schema
