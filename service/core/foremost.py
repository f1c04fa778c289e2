"""The best candidates of a large node, found as growth finds the best one: bins that hold none are passed over."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from service.core.audit import (
    Audited,
    Found,
    find_chosen,
    judge_candidates,
    rank_listing,
    rebuild_batch,
    weigh_run,
)
from service.core.batch import Batch
from service.core.bins import Binned, bin_features
from service.core.candidates import Form, Lack
from service.core.coarse import can_bound, weigh_foremost
from service.core.learner import Learner
from service.core.lines import can_line, draw_line
from service.core.listing import Listing
from service.core.parallel import run_parallel
from service.core.statistics import Ints
from service.core.tree import LeafReason
from service.core.upkeep import can_scan
from service.core.walk import pick_some
from service.core.weigh import list_blocks

MOST = 1000
"""Up to so many are found without weighing all."""


def tells_foremost(audited: Audited, node: int) -> bool:
    """True where `list_foremost` may know the best candidates of a node, and whether they were chosen."""
    learner = audited.learner
    return (
        can_bound(learner)
        and not learner.parts_rows
        and learner.parameters.min_weight_leaf == 0
        and audited.tree.reason[node] != LeafReason.RAISED
        and len(find_numbers(learner)) > 0
    )


def find_numbers(learner: Learner) -> Ints:
    """The numeric features that are binned."""
    numeric = [coded.feature.kind == "numeric" for coded in learner.features]
    return np.flatnonzero([is_number and can_scan(learner, f) for f, is_number in enumerate(numeric)])


def bin_numbers(audited: Audited) -> Binned:
    """The bins of all training rows."""
    return bin_features(audited.learner.features, find_numbers(audited.learner))


def list_foremost(audited: Audited, node: int, most: int, bins: Binned) -> Listing | None:
    """The ``most`` best candidates of one node, and the best on another feature than the first, and some more.

    Their ranks are those among all. None where fewer are admissible.
    """
    learner, nodes = audited.learner, np.array([node])
    batch = rebuild_batch(audited, nodes)
    binned = replace(batch, binned=bins.reorder(batch.entries.row))
    found = judge_candidates(learner, audited.target, batch, nodes, _weigh(learner, batch, binned, max(most, 2)))
    listing = rank_listing(learner, batch, found)
    if int((listing.rank > 0).sum()) < max(most, 2):
        return None
    if not batch.tally.classes:
        listing = _list_again(audited, batch, nodes, listing, max(most, 2))
    return replace(listing, chosen=find_chosen(audited, listing, listing.rank))


def _list_again(audited: Audited, batch: Batch, nodes: Ints, listing: Listing, most: int) -> Listing:
    """The first of a listing, and the best on another feature, with all that is told of numbers.

    Scores need less than that, and bins know no more.
    """
    learner, ranked = audited.learner, np.flatnonzero(listing.rank > 0)
    ranked = ranked[np.argsort(listing.rank[ranked])]
    others = ranked[listing.feature[ranked] != listing.feature[ranked[0]]]
    rows = np.union1d(ranked[:most], others[:1])

    def weigh(feature: int) -> Sequence[Found]:
        directed = learner.lack is Lack.DIRECTED and feature in find_numbers(learner)
        if not directed and not can_line(learner, batch, feature):
            return [weigh_run(learner, batch, np.array([feature]))]
        line, mine = draw_line(learner, batch, feature), rows[listing.feature[rows] == feature]
        cuts = [np.empty(0, np.int64)]
        for index in np.unique(listing.table[mine]).tolist():
            table, place = listing.tables[index], listing.place[mine[listing.table[mine] == index]]
            if table.form is Form.THRESHOLD:
                cuts.append(table.rows[0, place] - len(line.missing) * (table.missing_to[place] == 0) - 1)
        return pick_some(batch, line, np.unique(np.concatenate(cuts)))

    found = run_parallel(weigh, np.unique(listing.feature[rows]).tolist())
    again = judge_candidates(learner, audited.target, batch, nodes, [each for some in found for each in some])
    return rank_listing(learner, batch, again)


def _weigh(learner: Learner, batch: Batch, binned: Batch, most: int) -> Iterator[Found]:
    yield (*weigh_foremost(learner, binned, most), None)
    numbers = find_numbers(learner)
    others = np.setdiff1d(np.arange(len(learner.features)), numbers)
    for run in list_blocks(learner, others, len(batch.entries.row)):
        yield weigh_run(learner, batch, run)
