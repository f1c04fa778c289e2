"""Splits and nodes in the words of the API: plain dicts of plain numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from service.core.assemble import place_thresholds
from service.core.audit import Listing, find_margins
from service.core.candidates import NO_ROUTE, Candidates, Form
from service.core.judge import Reason
from service.core.schema import Feature, Label
from service.core.subsets import find_left
from service.core.tree import LeafReason, Tree
from service.core.weigh import Learner

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
    """Why a node is a leaf; None for an inner node."""
    return LeafReason(int(tree.reason[node])).name.lower() if tree.is_leaf[node] else None


def show_answer(tree: Tree, node: int) -> Label:
    """What a row that ends at the node is predicted."""
    answer = float(tree.prediction[node])
    return tree.classes[int(answer)] if tree.classes else answer


def show_statistics(tree: Tree, node: int) -> dict[str, Any]:
    """Rows, weight, class weights or mean and variance, and impurity of a node."""
    shown: dict[str, Any] = {"n": int(tree.rows[node]), "weight": float(tree.weight[node])}
    if tree.classes:
        shown["counts"] = show_counts(tree.counts[:, node])
    else:
        shown |= {"mean": float(tree.mean[node]), "variance": float(tree.impurity[node])}
    return shown | {"impurity": float(tree.impurity[node])}


def show_counts(counts: np.ndarray[Any, np.dtype[np.float64]]) -> list[int | float]:
    """Class weights; whole ones are shown as whole numbers."""
    return [int(c) if c.is_integer() else c for c in counts.tolist()]


def show_tree_split(tree: Tree, node: int) -> dict[str, Any] | None:
    """The split of a node of the tree; None for a leaf."""
    form = Form(int(tree.form[node]))
    if form == Form.LEAF:
        return None
    feature = tree.features[int(tree.feature[node])]
    missing_to = int(tree.missing_to[node])
    if form == Form.MISSING:
        return {"type": "missing"}
    if form == Form.THRESHOLD and feature.kind == "numeric":
        whole, beside = tree.beside_whole[:, node], tree.beside[:, node]
        shown: dict[str, Any] = {
            "type": "threshold",
            "threshold": show_threshold(feature, float(tree.threshold[node]), int(tree.whole[node])),
            "below": int(whole[0]) if feature.integer else show_number(float(beside[0])),
            "above": int(whole[1]) if feature.integer else show_number(float(beside[1])),
        }
        return shown | _show_side(missing_to)
    if form == Form.THRESHOLD:
        cut = int(tree.whole[node]) + 1
        shown = {"type": "subset", "categories": [list(feature.categories[:cut]), list(feature.categories[cut:])]}
        return shown | _show_side(missing_to)
    start = int(tree.category_start[node])
    branch = tree.category_branch[start : start + len(feature.categories) + 1].tolist()
    labels: list[Label | None] = [*feature.categories, None]
    groups = [[label for label, b in zip(labels, branch, strict=True) if b == i] for i in range(tree.branches[node])]
    shown = {"type": form.name.lower(), "categories": groups}
    # where missing values are a category, null stands among the categories
    return shown if branch[-1] != NO_ROUTE else shown | _show_side(missing_to, form)


def _show_side(missing_to: int, form: Form = Form.SUBSET) -> dict[str, Any]:
    if missing_to == NO_ROUTE:
        return {}
    return {"missing": missing_to if form == Form.MULTIWAY else SIDES[missing_to]}


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


def show_margins(learner: Learner, listing: Listing, node: int) -> dict[str, float | None]:
    """The margins of one node (an index into the listing's nodes)."""
    nearest, other = find_margins(listing, node, learner.objective.criterion.measure)
    return {"any": nearest, "other_feature": other}


def show_candidate(learner: Learner, listing: Listing, index: int, rank: int) -> dict[str, Any]:
    """One candidate of a listing; ``rank`` 0 is shown as null."""
    scores = {name: show_number(float(values[index])) for name, values in listing.scores.items()}
    reason = Reason(int(listing.reason[index]))
    return {
        "node": int(listing.nodes[listing.node[index]]),
        "rank": rank or None,
        "chosen": bool(listing.chosen[index]),
        "feature": learner.features[int(listing.feature[index])].feature.name,
        "split": show_candidate_split(learner, listing, index),
        "branches": _show_branches(learner, listing, index),
        "score": scores[learner.objective.criterion.measure],
        "scores": scores,
        "admissible": reason == Reason.ADMISSIBLE,
        "reason": None if reason == Reason.ADMISSIBLE else reason.name.lower(),
    }


def show_candidate_split(learner: Learner, listing: Listing, index: int) -> dict[str, Any]:
    """How one candidate splits."""
    table, place = listing.tables[int(listing.table[index])], int(listing.place[index])
    coded = learner.features[int(listing.feature[index])]
    feature, missing_to = coded.feature, int(table.missing_to[place])
    if table.form in (Form.MISSING, Form.CONSTANT):
        return {"type": table.form.name.lower()}
    if table.form == Form.THRESHOLD:
        lower, upper = table.lower[[place]], table.upper[[place]]
        if feature.kind != "numeric":
            cut = int(lower[0]) + 1
            halves = [list(feature.categories[:cut]), list(feature.categories[cut:])]
            return {"type": "subset", "categories": halves} | _show_side(missing_to)
        threshold, whole = place_thresholds(coded, lower, upper, learner.parameters.threshold_value)
        below, above = coded.values[lower].tolist()[0], coded.values[upper].tolist()[0]
        return {
            "type": "threshold",
            "threshold": show_threshold(feature, float(threshold[0]), int(whole[0])),
            "below": below if feature.integer else show_number(below),
            "above": above if feature.integer else show_number(above),
        } | _show_side(missing_to)
    groups = _group_categories(table, place, feature)
    return {"type": table.form.name.lower(), "categories": groups} | _show_side(missing_to, table.form)


def _group_categories(table: Candidates, place: int, feature: Feature) -> list[list[Label | None]]:
    """The categories of each branch; null is what is missing, where that is a category."""
    labels: list[Label | None] = [*feature.categories, None]
    slots = table.slots
    if slots is None:
        return []
    begin, end = np.searchsorted(slots.segment, [table.segment[place], table.segment[place] + 1])
    codes = slots.code[begin:end]
    if table.subsets is None:
        return [[labels[code]] for code in codes]
    left = find_left(table.subsets, slots, table.segment, np.array([place]))[0][begin:end]
    return [[labels[code] for code in codes[left]], [labels[code] for code in codes[~left]]]


def _show_branches(learner: Learner, listing: Listing, index: int) -> list[dict[str, Any]]:
    """Both populations of each branch that has rows.

    Where missing values have a learnt direction or a branch they are an outcome of the test: all routed are known.
    """
    table, place = listing.tables[int(listing.table[index])], int(listing.place[index])
    stats, rows = table.branches[:, :, place], table.rows[:, place]
    centre = float(listing.batch.tally.centre[listing.node[index]])
    impurity = learner.objective.impurity(stats)
    shown = []
    for branch in np.flatnonzero(rows > 0):
        routed: dict[str, Any] = {"n": int(rows[branch])}
        if learner.objective.criterion.task == "classification":
            routed |= {"weight": float(stats[:, branch].sum()), "counts": show_counts(stats[:, branch])}
        else:
            mean = centre + float(stats[1, branch] / stats[0, branch])
            routed |= {"weight": float(stats[0, branch]), "mean": mean, "variance": float(impurity[branch])}
        shown.append({"known": routed | {"impurity": float(impurity[branch])}, "routed": routed})
    return shown
