"""What a training keeps for the audit instead of its data: the best candidates of each feature in each node."""

from __future__ import annotations

from typing import Any, TypeAlias

import numpy as np

from service.core.audit import Audited, list_candidates, prepare_audit
from service.core.learn import Learnt
from service.core.listing import Listing
from service.core.schema import Target
from service.core.statistics import Ints
from service.core.survey import LARGE_CELLS
from service.core.surveyor import survey_node
from service.listing.large import LargeView
from service.listing.query import SplitQuery
from service.rendering.candidates import show_candidates, show_listed_head

Summary: TypeAlias = tuple[list[dict[str, Any]], list[dict[str, Any]]]
"""What is said of some nodes, and their best candidates."""


def summarize_splits(learnt: Learnt, target: Target, kept: int, large: int = LARGE_CELLS) -> dict[str, Any]:
    """What ``retain: summary`` keeps, before packing: heads and rows by node, and the measures' names."""
    audited = prepare_audit(learnt.learner, target, learnt.tree, learnt.leaf)
    heads: list[dict[str, Any]] = [{} for _ in range(learnt.tree.nodes)]
    rows: list[list[dict[str, Any]]] = [[] for _ in range(learnt.tree.nodes)]
    for group in audited.groups:
        if audited.tree.rows[group[0]] * len(audited.tree.features) > large:
            found = [_summarize_large(audited, node, kept) for node in group.tolist()]
        else:
            found = [_summarize_group(audited, group, kept)]
        for shown_heads, shown_rows in found:
            for head in shown_heads:
                heads[head["node"]] = head
            for row in shown_rows:
                rows[row["node"]].append(row)
    objective = learnt.learner.objective
    names = {"measures": objective.list_measures(), "measure": objective.criterion.measure, "kept": kept}
    return {"heads": heads, "rows": rows, "names": names}


def _summarize_group(audited: Audited, group: Ints, kept: int) -> Summary:
    listing = list_candidates(audited, group)
    best = _find_best_of_features(listing, kept)
    heads = [show_listed_head(audited, listing, place) for place in range(len(group))]
    return heads, show_candidates(audited, listing, best, listing.rank[best])


def _summarize_large(audited: Audited, node: int, kept: int) -> Summary:
    """As `_summarize_group`, of one large node, feature by feature."""
    survey = survey_node(audited, node)
    rows = []
    for feature in survey.features:
        query = SplitQuery(feature=audited.tree.features[feature].name, top=kept, sort="position")
        rows += LargeView(audited, survey, survey, query).render(0, kept)
    return [LargeView(audited, survey, survey, SplitQuery(sort="position")).head()], rows


def _find_best_of_features(listing: Listing, kept: int) -> Ints:
    """Up to ``kept`` candidates of each feature in each node, in listing order: by rank, then by score."""
    rank = np.where(listing.rank == 0, np.iinfo(np.int64).max, listing.rank)
    worse = np.where(np.isnan(listing.score), np.inf, -listing.score)
    order = np.lexsort((worse, rank, listing.feature, listing.node))
    segment = listing.node[order] * (int(listing.feature.max(initial=0)) + 1) + listing.feature[order]
    first = np.flatnonzero(np.diff(segment, prepend=-1))
    place = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    return np.sort(order[place < kept])
