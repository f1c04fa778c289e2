"""Two trees node by node: which have the same number at the same place to the last bit, and what differs where."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import Form
from service.core.statistics import Ints
from service.core.tree import Surrogates, Tree

Flags = NDArray[np.bool_]

SPLIT = ("feature", "form", "branches", "threshold", "whole", "missing_to")
PARTS = {
    "branches": ("beside", "beside_whole"),
    "rows": ("rows",),
    "weight": ("weight", "share"),
    "statistics": ("counts", "mean", "variances"),
    "impurity": ("impurity",),
    "prediction": ("prediction", "probability"),
    "score": ("score",),
    "reason": ("reason",),
}
"""What differences are called, and the arrays that tell; the split comes first and surrogates last."""
BY_COLUMN = ("counts", "beside", "beside_whole")
"""Arrays whose nodes are the last axis."""
TESTS = ("feature", "threshold", "whole", "beside", "beside_whole", "flipped", "agree", "adjusted", "rows", "asked")
"""What surrogates are compared by, beside their categories."""


@dataclass(frozen=True, slots=True)
class Difference:
    """A node of either tree at the same place, and the names of what differs in it."""

    first: int
    second: int
    names: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Comparison:
    """How many places both trees have, breadth first as far as they split alike, and which of them differ.

    ``schema`` is True where features, classes and answers are the same; else nothing is compared.
    """

    schema: bool
    places: int
    identical: bool
    differences: list[Difference]


def find_differences(first: Tree, second: Tree) -> Comparison:
    """Go down both trees level by level; numbers are equal or they are not (NaN equals NaN, -0.0 equals 0.0)."""
    if not _know_the_same(first, second):
        return Comparison(False, 0, False, [])
    found: list[Difference] = []
    places, nodes = 0, (np.zeros(1, np.int64), np.zeros(1, np.int64))
    while len(nodes[0]):
        places += len(nodes[0])
        alike = _split_alike(first, second, *nodes)
        differ = {"split": ~alike} | {name: ~_are_equal(first, second, names, *nodes) for name, names in PARTS.items()}
        differ["surrogates"] = ~_stand_alike(first, second, *nodes)
        for at in np.flatnonzero(np.logical_or.reduce(list(differ.values()))).tolist():
            names = tuple(name for name, flags in differ.items() if flags[at])
            found.append(Difference(int(nodes[0][at]), int(nodes[1][at]), names))
        nodes = _descend(first, nodes[0][alike]), _descend(second, nodes[1][alike])
    return Comparison(True, places, not found, found)


def _know_the_same(first: Tree, second: Tree) -> bool:
    """Whether features, classes and answers are the same: 1 and True are not."""

    def describe(tree: Tree) -> str:
        features = [(f.name, f.kind, f.categories) for f in tree.features]
        return repr((features, tree.classes, tree.answers, tree.statistic, tree.mean.shape[1:]))

    return describe(first) == describe(second)


def _descend(tree: Tree, nodes: Ints) -> Ints:
    """The children of the nodes, side by side."""
    count = tree.branches[nodes].astype(np.int64)
    begin = np.cumsum(count) - count
    return cast("Ints", np.repeat(tree.first_child[nodes] - begin, count) + np.arange(int(count.sum())))


def _equal(a: Any, b: Any) -> Flags:  # noqa: ANN401 - arrays of any dtype
    same = np.asarray(a == b)
    if np.asarray(a).dtype.kind == "f":
        same |= np.isnan(a) & np.isnan(b)
    return same


def _are_equal(first: Tree, second: Tree, names: tuple[str, ...], a: Ints, b: Ints) -> Flags:
    """(pair,) True where all these arrays say the same of node ``a`` of the one and node ``b`` of the other tree."""
    same = np.ones(len(a), bool)
    for name in names:
        one, other = getattr(first, name), getattr(second, name)
        if one is None or other is None:
            same &= one is other
            continue
        mine, its = (one[:, a].T, other[:, b].T) if name in BY_COLUMN else (one[a], other[b])
        same &= _equal(mine, its).reshape(len(a), -1).all(1)
    return same


def _split_alike(first: Tree, second: Tree, a: Ints, b: Ints) -> Flags:
    def lies(tree: Tree, node: Ints) -> tuple[Ints, Ints]:
        form = tree.form[node]
        listed = (form == Form.SUBSET) | (form == Form.MULTIWAY)
        return tree.category_start[node], np.where(listed, _count_cells(tree)[tree.feature[node]], 0)

    def equal(mine: Ints, its: Ints) -> Flags:
        return _equal(first.category_branch[mine], second.category_branch[its])

    return _are_equal(first, second, SPLIT, a, b) & _equal_runs(lies(first, a), lies(second, b), equal)


def _count_cells(tree: Tree) -> Ints:
    """(feature,) a cell for each category and one for what is missing, and one more entry for what is no feature."""
    return np.array([*(len(feature.categories) + 1 for feature in tree.features), 0])


def _stand_alike(first: Tree, second: Tree, a: Ints, b: Ints) -> Flags:
    """(pair,) True where the nodes have the same surrogates in the same order."""
    ours, theirs = first.surrogates, second.surrogates
    if ours is None or theirs is None:
        return np.full(len(a), ours is theirs)
    # ordered features are cut: only the others list their categories
    ordered = np.array([feature.kind in ("numeric", "ordinal") for feature in first.features], bool)
    cells = np.where(ordered, 0, _count_cells(first)[:-1])

    def lies(stands: Surrogates, node: Ints) -> tuple[Ints, Ints]:
        return stands.start[node], stands.start[node + 1] - stands.start[node]

    def equal(mine: Ints, its: Ints) -> Flags:
        def goes(cell: Ints, other: Ints) -> Flags:
            return _equal(ours.category_branch[cell], theirs.category_branch[other])

        listed = (ours.category_start[mine], cells[ours.feature[mine]])
        same = _equal_runs(listed, (theirs.category_start[its], cells[theirs.feature[its]]), goes)
        for name in TESTS:
            one, other = getattr(ours, name), getattr(theirs, name)
            equals = _equal(one[..., mine], other[..., its])
            same &= equals if equals.ndim == 1 else equals.all(0)
        return same

    return _equal_runs(lies(ours, a), lies(theirs, b), equal)


def _equal_runs(first: tuple[Ints, Ints], second: tuple[Ints, Ints], equal: Callable[[Ints, Ints], Flags]) -> Flags:
    """(pair,) True where two runs are as long and ``equal`` says so of each pair of their entries.

    ``first``, ``second``: where the runs begin and their sizes, each (pair,).
    """
    same = np.asarray(first[1] == second[1])
    size = np.where(same, first[1], 0).astype(np.int64)
    begin = np.cumsum(size) - size
    step = np.arange(int(size.sum()))
    mine, its = (np.repeat(start - begin, size) + step for start, _ in (first, second))
    wrong = np.repeat(np.arange(len(size)), size)[~equal(mine, its)]
    same[wrong] = False
    return same
