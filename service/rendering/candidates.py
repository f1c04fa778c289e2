"""Candidate splits in the words of the API: how each parts its node, and what is in its branches."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any

import numpy as np

from service.core.audit import Audited
from service.core.criteria import LOWER_IS_BETTER
from service.core.listing import Listing
from service.core.ranking import Margin, find_margin
from service.core.statistics import Ints
from service.rendering.branches import list_branches
from service.rendering.columns import REASONS, Part, list_shown, read_parts
from service.rendering.nodes import show_head, show_number, show_surrogates


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
    return show_parts(read_parts(audited, listing, rows, ranks))


def show_parts(parts: Sequence[Part]) -> list[dict[str, Any]]:
    """The candidates of all parts in the order of their places."""
    shown: list[dict[str, Any]] = [{}] * sum(map(len, parts))
    for part in parts:
        for i, row in zip(part.place.tolist(), _show_part(part), strict=True):
            shown[i] = row
    return shown


def _show_part(part: Part) -> Iterator[dict[str, Any]]:
    """Each candidate of a part."""
    size = len(part)
    scores = [list_shown(values) for values in part.scores.values()]
    split = [list_shown(values) for values in part.split.values()]
    lack, branches = part.lack or [{}] * size, list_branches(part.branches, size)
    columns = zip(
        part.node.tolist(), part.rank.tolist(), part.chosen.tolist(), part.feature.tolist(), part.reason.tolist(),
        list_shown(part.score), strict=True,
    )  # fmt: skip
    for i, (node, rank, chosen, feature, reason, score) in enumerate(columns):
        yield {
            "node": node,
            "rank": rank or None,
            "chosen": chosen,
            "feature": part.names[feature],
            "split": {"type": part.type} | {name: split[at][i] for at, name in enumerate(part.split)} | {**lack[i]},
            "branches": branches[i],
            "score": score,
            "scores": {name: scores[at][i] for at, name in enumerate(part.scores)},
            "admissible": REASONS[reason] is None,
            "reason": REASONS[reason],
        }
