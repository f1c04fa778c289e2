"""Candidate splits in the words of the API: how each parts its node, and what is in its branches."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from service.core.assemble import place_thresholds
from service.core.audit import Audited
from service.core.candidates import Candidates, Form, Lack
from service.core.criteria import LOWER_IS_BETTER, Floats
from service.core.encoding import CodedFeature
from service.core.impurities import find_variances
from service.core.judge import Reason
from service.core.listing import Listing, gather_branches
from service.core.ranking import Margin, find_margin
from service.core.schema import Feature, Label, Statistic, keep_apart
from service.core.statistics import Ints
from service.core.subsets import find_left
from service.core.tree import Tree
from service.core.weigh import Learner
from service.rendering import (
    find_levels,
    show_counts,
    show_halves,
    show_head,
    show_lack,
    show_number,
    show_side,
    show_statistics,
    show_surrogates,
    show_threshold,
)


def show_listed_head(audited: Audited, listing: Listing, node: int) -> dict[str, Any]:
    """What a listing says of a node (an index into its nodes), with how far its best candidate is ahead."""
    rows = listing.find_rows(node)
    margin = find_margin(listing, rows, listing.rank[rows], listing.score[rows])
    number = int(listing.nodes[node])
    surrogates = {} if audited.tree.is_leaf[number] else show_surrogates(audited.tree, number)
    return show_head(audited.tree, number) | {"margin": show_margin(margin)} | surrogates


def show_margin(margin: Margin) -> dict[str, float | None]:
    """How far the best candidate is ahead, absolute and as a share of its score."""
    return {
        "any": margin.nearest,
        "other_feature": margin.other,
        "any_relative": margin.relate(margin.nearest),
        "other_feature_relative": margin.relate(margin.other),
    }


def show_reranked(audited: Audited, listing: Listing, rows: Ints, ranks: Ints, measure: str) -> dict[str, Any]:
    """Which split of a node another measure would have taken, and how far that is from the tree's.

    ``rows``, ``ranks``: (candidate,) all candidates of the node.
    """
    scores = listing.score_rows(measure, rows)
    sign = -1.0 if measure in LOWER_IS_BETTER else 1.0
    margin = find_margin(listing, rows, ranks, sign * scores)
    first, chosen = np.flatnonzero(ranks == 1), np.flatnonzero(listing.chosen[rows])
    shown: dict[str, Any] = {"measure": measure, "split": None, "same": None, "score": None, "chosen_score": None}
    if len(chosen):
        shown["chosen_score"] = show_number(float(scores[chosen[0]]))
    if len(first):
        taken = show_candidates(audited, listing, rows[first], ranks[first])[0]
        shown["split"] = {"feature": taken["feature"], **taken["split"]}
        shown["score"] = show_number(float(scores[first[0]]))
        shown["same"] = bool(listing.chosen[rows[first[0]]]) if len(chosen) else None
    gap = None
    if len(first) and len(chosen):
        gap = show_number(sign * float(scores[first[0]] - scores[chosen[0]]))
    return shown | {"gap": gap, "margin": show_margin(margin)}


def show_candidates(audited: Audited, listing: Listing, rows: Ints, ranks: Ints) -> list[dict[str, Any]]:
    """Some candidates of a listing with their ``ranks: (candidate,)``, of which 0 is shown as null."""
    learner = audited.learner
    measures = learner.objective.list_measures()
    scores = {name: [show_number(score) for score in listing.score_rows(name, rows).tolist()] for name in measures}
    splits: list[dict[str, Any]] = [{}] * len(rows)
    branches: list[list[dict[str, Any]]] = [[]] * len(rows)
    for index in np.unique(listing.table[rows]).tolist():
        mine = np.flatnonzero(listing.table[rows] == index)
        for i, split in zip(mine.tolist(), _show_splits(audited, listing, index, rows[mine]), strict=True):
            splits[i] = split
        for i, shown in zip(mine.tolist(), _show_branches(audited, listing, index, rows[mine]), strict=True):
            branches[i] = shown
    if learner.parameters.empty_branches:
        for i, feature in enumerate(listing.feature[rows].tolist()):
            _open_branches(splits[i], branches[i], learner.features[feature].feature, len(audited.tree.classes))
    names = [coded.feature.name for coded in learner.features]
    columns = zip(
        listing.nodes[listing.node[rows]].tolist(), ranks.tolist(), listing.chosen[rows].tolist(),
        listing.feature[rows].tolist(), listing.reason[rows].tolist(), listing.score[rows].tolist(), strict=True,
    )  # fmt: skip
    return [
        {
            "node": node,
            "rank": rank or None,
            "chosen": chosen,
            "feature": names[feature],
            "split": splits[i],
            "branches": branches[i],
            "score": show_number(score),
            "scores": {name: values[i] for name, values in scores.items()},
            "admissible": reason == Reason.ADMISSIBLE,
            "reason": None if reason == Reason.ADMISSIBLE else Reason(reason).name.lower(),
        }
        for i, (node, rank, chosen, feature, reason, score) in enumerate(columns)
    ]


def _open_branches(split: dict[str, Any], branches: list[dict[str, Any]], feature: Feature, classes: int) -> None:
    """Add the empty branches of a multiway split: one for each category that no row of the node has."""
    if split["type"] != "multiway":
        return
    occupied = [keep_apart(group[0]) for group in split["categories"]]
    order = [*feature.categories, *([None] if None in occupied else [])]
    keys = list(map(keep_apart, order))
    empty: dict[str, Any] = {"n": 0, "weight": 0.0} | ({"counts": [0] * classes} if classes else {})
    if isinstance(split.get("missing"), int):
        split["missing"] = keys.index(occupied[split["missing"]])
    held = dict(zip(occupied, branches, strict=True))
    split["categories"] = [[label] for label in order]
    nothing = {"known": empty | {"impurity": 0.0}, "routed": empty}
    branches[:] = [held.get(key, nothing) for key in keys]


def _show_splits(audited: Audited, listing: Listing, index: int, rows: Ints) -> list[dict[str, Any]]:
    """How candidates of one table split."""
    learner, table = audited.learner, listing.tables[index]
    if table.form in (Form.MISSING, Form.CONSTANT):
        return [{"type": table.form.name.lower()} for _ in rows]
    shown: list[dict[str, Any]] = [{}] * len(rows)
    for f in np.unique(listing.feature[rows]).tolist():
        coded, mine = learner.features[f], np.flatnonzero(listing.feature[rows] == f)
        place = listing.place[rows[mine]]
        if table.form == Form.THRESHOLD and coded.feature.kind == "numeric":
            splits = _show_thresholds(learner, coded, table.lower[place], table.upper[place])
        elif table.form == Form.THRESHOLD:
            at = listing.nodes[listing.node[rows[mine]]].tolist()
            levels = {node: find_levels(audited.tree, node, f) for node in set(at)}
            cuts = (coded.codes[table.lower[place]].astype(np.int64) + 1).tolist()
            splits = [show_halves(coded.feature, cut, levels[node]) for cut, node in zip(cuts, at, strict=True)]
        else:
            name = table.form.name.lower()
            groups = [_group_categories(table, at, coded.feature) for at in place.tolist()]
            splits = [{"type": name, "categories": categories} for categories in groups]
        for i, split, side in zip(mine.tolist(), splits, table.missing_to[place].tolist(), strict=True):
            shown[i] = split | show_side(side, table.form)
    if learner.lack is Lack.APART:
        nodes = listing.nodes[listing.node[rows]].tolist()
        for i in np.flatnonzero(listing.chosen[rows]).tolist():
            shown[i] |= show_lack(audited.tree, nodes[i])
    return shown


def _show_thresholds(learner: Learner, coded: CodedFeature, lower: Ints, upper: Ints) -> list[dict[str, Any]]:
    """Cuts of a numeric feature between the values of the rows ``lower`` and ``upper``: (cut,)."""
    feature = coded.feature
    threshold, whole = place_thresholds(coded, lower, upper, learner.parameters.threshold_value)
    return [
        {
            "type": "threshold",
            "threshold": show_threshold(feature, at, exact),
            "below": below if feature.integer else show_number(below),
            "above": above if feature.integer else show_number(above),
        }
        for at, exact, below, above in zip(
            threshold.tolist(),
            whole.tolist(),
            (coded.numbers[lower] + 0).tolist(),
            (coded.numbers[upper] + 0).tolist(),
            strict=True,
        )
    ]


def _group_categories(table: Candidates, place: int, feature: Feature) -> list[list[Label | None]]:
    """The categories of each branch; null is what is missing, where that is a category."""
    labels: list[Label | None] = [*feature.categories, None]
    slots, subsets = table.slots, table.subsets
    if slots is None:
        return []
    begin, end = np.searchsorted(slots.segment, [table.segment[place], table.segment[place] + 1])
    codes = slots.code[begin:end]
    if subsets is None:
        return [[labels[code]] for code in codes]
    subsets = replace(subsets, rank=subsets.rank[begin:end], order=subsets.order[:, begin:end])
    left = find_left(subsets, slots.take(np.arange(begin, end)), table.segment, np.array([place]))[0]
    return [[labels[code] for code in codes[left]], [labels[code] for code in codes[~left]]]


def _show_branches(audited: Audited, listing: Listing, index: int, rows: Ints) -> list[list[dict[str, Any]]]:
    """Both populations of each branch that has rows, for candidates of one table.

    Where missing values have a learnt direction or a branch they are an outcome of the test: all routed are known.
    """
    table, place = listing.tables[index], listing.place[rows]
    stats, gone = gather_branches(table, place)
    known = _show_population(audited.learner, listing, rows, table.rows[:, place], stats)
    routed: list[list[dict[str, Any] | None]]
    if gone is None or table.gone_rows is None:
        routed = [[*parts] for parts in known]
    elif audited.learner.parameters.missing == "fractional":
        stats, gone = stats[..., : len(place)], gone[:, : len(place)]
        weight = audited.learner.objective.criterion.family.weigh(stats)
        share = weight / np.where(weight.sum(0) > 0, weight.sum(0), 1.0)
        parted = table.rows[:, place] + table.gone_rows[place] * (table.rows[:, place] > 0)
        whole = _show_population(audited.learner, listing, rows, parted, stats + share * gone[:, None])
        routed = [[*parts] for parts in whole]
    else:
        lacking = (table.gone_rows[place] > 0).tolist()
        routed = [
            _show_children(audited.tree, int(node)) if chosen else [None] * len(parts) if lacks else [*parts]
            for node, chosen, lacks, parts in zip(
                listing.nodes[listing.node[rows]], listing.chosen[rows], lacking, known, strict=True
            )
        ]
    return [
        [{"known": k, "routed": _without_impurity(r)} for k, r in zip(ks, rs, strict=True)]
        for ks, rs in zip(known, routed, strict=True)
    ]


def _without_impurity(shown: dict[str, Any] | None) -> dict[str, Any] | None:
    return None if shown is None else {name: value for name, value in shown.items() if name != "impurity"}


def _show_children(tree: Tree, node: int) -> list[dict[str, Any] | None]:
    first = int(tree.first_child[node])
    return [show_statistics(tree, child) for child in range(first, first + int(tree.branches[node]))]


def _show_numbers(statistic: Statistic, centre: Any, channel: list[float], impurity: float) -> dict[str, Any]:  # noqa: ANN401 - a number or a list
    """The mean of a branch, with the variance where that is the impurity; lists where several numbers are predicted."""
    if statistic == "vectors":
        outputs = len(centre)
        mean = [c + s / (channel[0] or 1.0) for c, s in zip(centre, channel[1:], strict=False)]
        return {"mean": mean, "variance": find_variances(np.array(channel), outputs).tolist()}
    if statistic == "pairs":
        return {}
    shown = {"mean": centre + channel[1] / (channel[0] or 1.0)}
    return shown | {"variance": impurity} if statistic == "moments" else shown


def _show_population(
    learner: Learner, listing: Listing, rows: Ints, counts: Ints, stats: Floats
) -> list[list[dict[str, Any]]]:
    """What is in each branch that has rows; ``counts: (branch, candidate)``, ``stats`` has as many or more."""
    impurity = learner.objective.impurity(stats)
    weight = learner.objective.criterion.family.weigh(stats)
    classes = learner.objective.criterion.task == "classification"
    statistic = learner.objective.criterion.statistic
    centre = listing.centre[..., listing.node[rows]].T.tolist()
    columns = zip(counts.T.tolist(), weight.T.tolist(), impurity.T.tolist(), stats.T.tolist(), strict=False)
    shown = []
    for i, (numbers, weights, impurities, channels) in zip(range(len(rows)), columns, strict=False):
        branches = []
        for n, heavy, impure, channel in zip(numbers, weights, impurities, channels, strict=True):
            if n == 0:
                continue
            population: dict[str, Any] = {"n": n, "weight": heavy}
            if classes:
                population["counts"] = show_counts(channel)
            else:
                population |= _show_numbers(statistic, centre[i], channel, impure)
            branches.append(population | {"impurity": impure})
        shown.append(branches)
    return shown
