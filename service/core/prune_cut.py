"""Cutting a tree back: inner nodes become leaves, and what was below them goes."""

from __future__ import annotations

from dataclasses import fields, replace
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import NO_ROUTE, Form
from service.core.statistics import Ints
from service.core.tree import LeafReason, Tree

BY_NODE_FIRST = ("probability", "prediction", "mean", "variances")
"""Arrays whose first axis is the node; it is the last one of all others."""
LEAF = {
    "feature": -1,
    "form": int(Form.LEAF),
    "first_child": 0,
    "branches": 0,
    "threshold": np.nan,
    "whole": 0,
    "beside": np.nan,
    "beside_whole": 0,
    "missing_to": NO_ROUTE,
    "score": np.nan,
}
"""What a leaf has where an inner node has its split."""
OTHERS = ("features", "classes", "answers", "statistic", "category_start", "category_branch", "loss", "surrogates")
"""What does not have an entry for each node, or is laid out anew."""


def list_levels(depth: Ints) -> list[tuple[int, int]]:
    """Where each level below the root begins and ends, from the top down, in breadth-first order."""
    return list(pairwise(np.searchsorted(depth, np.arange(1, int(depth[-1]) + 2)).tolist()))


def find_kept(tree: Tree, cut: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(node,) True for the nodes that stay where those in ``cut: (node,)`` become leaves."""
    kept = np.ones(tree.nodes, bool)
    ends = cut | tree.is_leaf
    for begin, end in list_levels(tree.depth):
        above = tree.parent[begin:end]
        kept[begin:end] = kept[above] & ~ends[above]
    return kept


def cut_back(tree: Tree, cut: NDArray[np.bool_], reason: LeafReason | Ints) -> tuple[Tree, Ints]:
    """The tree in which the inner nodes of ``cut: (node,)`` are leaves, breadth-first again.

    ``reason`` is why, for all or for each node: (node,). Also ``place: (node,)``: the new number of each node, or of
    the leaf that it is now part of.
    """
    cut = cut & ~tree.is_leaf
    kept = find_kept(tree, cut)
    number = np.cumsum(kept) - 1
    place = number.copy()
    for begin, end in list_levels(tree.depth):
        gone = begin + np.flatnonzero(~kept[begin:end])
        place[gone] = place[tree.parent[gone]]
    if not cut.any():
        return tree, place
    by_node = {f.name: getattr(tree, f.name) for f in fields(tree) if f.name not in OTHERS}
    arrays: dict[str, Any] = {
        name: values[kept] if name in BY_NODE_FIRST else values[..., kept]
        for name, values in by_node.items()
        if isinstance(values, np.ndarray)
    }
    ends = cut[kept]
    for name, blank in LEAF.items():
        arrays[name][..., ends] = blank
    arrays["reason"][ends] = np.broadcast_to(reason, tree.nodes)[kept][ends]
    arrays["parent"] = np.where(arrays["parent"] < 0, -1, number[arrays["parent"]])
    arrays["first_child"] = np.where(arrays["form"] == Form.LEAF, 0, number[arrays["first_child"]])
    arrays |= take_categories(tree, np.flatnonzero(kept), ends)
    stands = tree.surrogates and tree.surrogates.arrange(np.flatnonzero(kept), ~ends)
    return replace(tree, **arrays, surrogates=stands), place


def take_categories(tree: Tree, kept: Ints, ends: NDArray[np.bool_]) -> dict[str, Ints]:
    """The runs of `Tree.category_branch` of the nodes ``kept: (new node,)``, empty for those that are leaves now."""
    total = len(tree.category_branch)
    size = np.diff(tree.category_start, append=total)[kept]
    nominal = (tree.form == Form.SUBSET) | (tree.form == Form.MULTIWAY)
    size = np.where(nominal[kept] & ~ends, size, 0)
    start = np.cumsum(size) - size
    cell = np.repeat(tree.category_start[kept] - start, size) + np.arange(int(size.sum()))
    branch = tree.category_branch[cell] if len(cell) else np.full(1, NO_ROUTE)
    return {"category_start": start, "category_branch": branch}
