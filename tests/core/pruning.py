"""Small grown trees, and pruned ones by plain loops: what the tests of pruning share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st

from service.core.learn import Learnt
from service.core.schema import Column, Target
from service.core.tree import Tree
from tests.core.making import classes, grow, labels, numbers, values

SLOWLY = settings(max_examples=50, deadline=None, suppress_health_check=[HealthCheck.too_slow])
"""Each example grows a tree or several."""


@dataclass(frozen=True)
class Grown:
    """A tree with what it was grown from."""

    columns: list[Column]
    target: Target
    parameters: Mapping[str, Any]
    learnt: Learnt

    @property
    def tree(self) -> Tree:
        """The tree."""
        return self.learnt.tree


@st.composite
def tables(draw: st.DrawFn, numeric: bool | None = None, most: int = 14) -> tuple[list[Column], Target]:
    """Two columns of numbers, one of categories, some with gaps; classes or numbers to predict, perhaps weighted."""
    rows = draw(st.integers(2, most))

    def cells(choices: list[Any]) -> list[Any]:
        return draw(st.lists(st.sampled_from(choices), min_size=rows, max_size=rows))

    columns = [
        numbers("x", cells([0, 1, 2, 3, 4, 5])),
        numbers("z", cells([0.0, 0.5, 1.0, None])),
        labels("c", cells(["p", "q", "r", None]), ["p", "q", "r"]),
    ]
    weight = draw(st.sampled_from([None, cells([1, 2, 3])]))
    if draw(st.booleans()) if numeric is None else numeric:
        return columns, values(cells([0.0, 1.0, 2.5, 4.0]), weight)
    return columns, classes(cells(["a", "b", "c"]), weight)


@st.composite
def grown_trees(draw: st.DrawFn, numeric: bool | None = None, most: int = 14, **parameters: object) -> Grown:
    """A tree that was not pruned; priors, losses and class weights among the parameters of classes."""
    columns, target = draw(tables(numeric, most))
    asked: dict[str, Any] = {"nominal": draw(st.sampled_from(["subset", "multiway"])), **parameters}
    asked["empty_branches"] = draw(st.booleans())
    if target.is_classification and draw(st.booleans()):
        size = len(target.classes)
        asked["loss"] = [[0 if i == j else 1 + (i + 2 * j) % 3 for j in range(size)] for i in range(size)]
        if size == 1:
            del asked["loss"]
        asked["priors"] = {label: 1 + place for place, label in enumerate(target.classes)}
    return Grown(columns, target, asked, grow(columns, target, asked))


def children_of(tree: Tree, node: int) -> list[int]:
    """The children of a node."""
    first = int(tree.first_child[node])
    return list(range(first, first + int(tree.branches[node])))


def list_subtrees(tree: Tree, node: int = 0) -> Iterator[frozenset[int]]:
    """The leaves of every pruned subtree below a node: itself alone, or any choice for each of its children."""
    yield frozenset([node])
    if not tree.is_leaf[node]:
        for parts in product(*(list(list_subtrees(tree, child)) for child in children_of(tree, node))):
            yield frozenset().union(*parts)


def count_subtrees(tree: Tree, node: int = 0) -> int:
    """How many `list_subtrees` has."""
    if tree.is_leaf[node]:
        return 1
    return 1 + int(np.prod([count_subtrees(tree, child) for child in children_of(tree, node)]))
