"""Splits and nodes in the words of the API: plain dicts of plain numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from service.core.candidates import NO_ROUTE, Form
from service.core.schema import Feature, Label
from service.core.tree import STAYS, LeafReason, Surrogates, Tree

EXACT_HALVES = 2**51
"""Up to here the middle of two whole numbers is exact in float64."""
SIDES = ("left", "right", "branch")


def show_number(value: float) -> float | str | None:
    """A number as JSON has it: undefined is null, infinity a string."""
    if math.isnan(value):
        return None
    return float(value) if math.isfinite(value) else ("Infinity" if value > 0 else "-Infinity")


def show_threshold(feature: Feature, threshold: float, whole: int) -> float | int | str | None:
    """A threshold, exact also where whole numbers are too large for float64."""
    if feature.integer and abs(whole) >= EXACT_HALVES:
        return int(whole)
    return show_number(threshold)


def show_leaf_reason(tree: Tree, node: int) -> str | None:
    """Why a node is a leaf, or that its split is one that was raised; None for other inner nodes."""
    reason = LeafReason(int(tree.reason[node]))
    return reason.name.lower() if tree.is_leaf[node] or reason == LeafReason.RAISED else None


def show_answer(tree: Tree, node: int) -> Any:  # noqa: ANN401 - a label, a number, or a list of either
    """What a row that ends at the node is predicted."""
    answer = tree.prediction[node].tolist()
    if tree.answers:
        return tree.answers[int(answer)]
    return tree.classes[int(answer)] if tree.classes else answer


def show_statistics(tree: Tree, node: int) -> dict[str, Any]:
    """Rows, weight, class weights or mean (and variance, where that is the impurity), and impurity of a node."""
    shown: dict[str, Any] = {"n": int(tree.rows[node]), "weight": float(tree.weight[node])}
    if tree.classes:
        shown["counts"] = show_counts(tree.counts[:, node].tolist())
    else:
        shown |= {} if tree.answers else {"mean": tree.mean[node].tolist()}
        if tree.statistic == "moments":
            shown["variance"] = float(tree.impurity[node])
        if tree.statistic == "vectors":
            shown["variance"] = tree.variances[node].tolist()
        if tree.statistic == "deviations":
            shown["median"] = float(tree.prediction[node])
    return shown | {"impurity": float(tree.impurity[node])}


def show_counts(counts: Sequence[float]) -> list[int | float]:
    """Class weights; whole ones are shown as whole numbers."""
    return [int(count) if count.is_integer() and count < EXACT_HALVES else count for count in counts]


def show_tree_split(tree: Tree, node: int) -> dict[str, Any] | None:
    """The split of a node of the tree; None for a leaf."""
    form = Form(int(tree.form[node]))
    if form == Form.LEAF:
        return None
    if form == Form.MISSING:
        return {"type": "missing"}
    index = int(tree.feature[node])
    feature = tree.features[index]
    if form == Form.THRESHOLD and feature.kind == "numeric":
        return _show_threshold(feature, tree, node) | show_lack(tree, node)
    if form == Form.THRESHOLD:
        return show_halves(feature, int(tree.whole[node]) + 1, find_levels(tree, node, index)) | show_lack(tree, node)
    groups, lacking = _list_groups(feature, tree, node, int(tree.branches[node]))
    shown = {"type": form.name.lower(), "categories": groups}
    # where missing values are a category, null stands among the categories
    return shown if lacking else shown | show_lack(tree, node)


def _show_threshold(feature: Feature, tests: Tree | Surrogates, at: int) -> dict[str, Any]:
    whole, beside = tests.beside_whole[:, at], tests.beside[:, at]
    return {
        "type": "threshold",
        "threshold": show_threshold(feature, float(tests.threshold[at]), int(tests.whole[at])),
        "below": int(whole[0]) if feature.integer else show_number(float(beside[0])),
        "above": int(whole[1]) if feature.integer else show_number(float(beside[1])),
    }


def _list_groups(
    feature: Feature, tests: Tree | Surrogates, at: int, branches: int
) -> tuple[list[list[Label | None]], bool]:
    """The categories of each branch, and whether null, for what is missing, is one of them."""
    start = int(tests.category_start[at])
    branch = tests.category_branch[start : start + len(feature.categories) + 1].tolist()
    labels: list[Label | None] = [*feature.categories, None]
    groups = [[label for label, b in zip(labels, branch, strict=True) if b == i] for i in range(branches)]
    return groups, branch[-1] != NO_ROUTE


def show_lack(tree: Tree, node: int) -> dict[str, Any]:
    """Where rows without a value go that a tree's split, and its surrogates, say nothing of."""
    if tree.share is not None:
        first = int(tree.first_child[node])
        return {"missing": "parts", "shares": tree.share[first : first + int(tree.branches[node])].tolist()}
    return show_side(int(tree.missing_to[node]), Form(int(tree.form[node])))


def show_side(missing_to: int, form: Form) -> dict[str, Any]:
    """Where rows without a value go, of which a split may say nothing."""
    if missing_to == NO_ROUTE:
        return {}
    if missing_to == STAYS:
        return {"missing": "stays"}
    return {"missing": missing_to if form == Form.MULTIWAY else SIDES[missing_to]}


def show_surrogates(tree: Tree, node: int) -> dict[str, Any]:
    """The surrogates of a node, best first, where the tree has any."""
    stands = tree.surrogates
    if stands is None:
        return {}
    return {
        "surrogates": [
            {
                "rank": rank,
                "feature": tree.features[int(stands.feature[at])].name,
                "split": _show_surrogate(tree, stands, at, node),
                "agree": float(stands.agree[at]),
                "adj": float(stands.adjusted[at]),
                "n": int(stands.rows[at]),
            }
            for rank, at in enumerate(stands.list_at(node), start=1)
        ]
    }


def _show_surrogate(tree: Tree, stands: Surrogates, at: int, node: int) -> dict[str, Any]:
    index = int(stands.feature[at])
    feature = tree.features[index]
    if feature.kind == "numeric":
        return _show_threshold(feature, stands, at) | {"below_to": SIDES[int(stands.flipped[at])]}
    if feature.kind != "ordinal":
        return {"type": "subset", "categories": _list_groups(feature, stands, at, 2)[0]}
    shown = show_halves(feature, int(stands.whole[at]) + 1, find_levels(tree, node, index))
    return shown | {"categories": shown["categories"][:: -1 if stands.flipped[at] else 1]}


def show_tree_node(tree: Tree, node: int) -> dict[str, Any]:
    """A node of the tree."""
    leaf = bool(tree.is_leaf[node])
    first = int(tree.first_child[node])
    return {
        "node": node,
        "parent": None if node == 0 else int(tree.parent[node]),
        "depth": int(tree.depth[node]),
        "feature": None if leaf else tree.features[int(tree.feature[node])].name,
        "split": show_tree_split(tree, node),
        "children": list(range(first, first + int(tree.branches[node]))),
        **show_statistics(tree, node),
        "score": None if leaf else float(tree.score[node]),
        "prediction": show_answer(tree, node),
        "leaf": leaf,
        "reason": show_leaf_reason(tree, node),
        **(show_surrogates(tree, node) if not leaf else {}),
    }


def show_head(tree: Tree, node: int) -> dict[str, Any]:
    """What a listing says of a node before its candidates, without margins."""
    return {
        "node": node,
        "depth": int(tree.depth[node]),
        **show_statistics(tree, node),
        "leaf": bool(tree.is_leaf[node]),
        "reason": show_leaf_reason(tree, node),
    }


def find_levels(tree: Tree, node: int, feature: int) -> range:
    """The levels of an ordinal feature, by number, that the cuts above the node let through."""
    low, high = 0, len(tree.features[feature].categories)
    while node:
        parent = int(tree.parent[node])
        if tree.feature[parent] == feature and tree.form[parent] == Form.THRESHOLD:
            cut, branch = int(tree.whole[parent]) + 1, node - int(tree.first_child[parent])
            low, high = (low, min(high, cut)) if branch == 0 else (max(low, cut), high)
        node = parent
    return range(low, high)


def show_halves(feature: Feature, cut: int, levels: range) -> dict[str, Any]:
    """The cut of an ordinal feature before its category number ``cut``, where ``levels`` can come."""
    names = feature.categories
    return {"type": "subset", "categories": [list(names[levels.start : cut]), list(names[cut : levels.stop])]}
