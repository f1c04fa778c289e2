"""Surrogates that were chosen, and where they send what the splits cannot."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import NO_ROUTE
from service.core.criteria import Floats
from service.core.entries import Entries
from service.core.learner import Learner
from service.core.statistics import Ints

Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class StandIns:
    """The surrogates of some nodes, node by node, best first; everything is (surrogate,) but ``category: (3, pair)``.

    ``lower``, ``upper``: training rows whose values stand beside a threshold; ``flipped``: what is above it goes left.
    ``agree``, ``adjusted``: see `tree.Surrogates`; ``rows``: how many rows each sent. Of categories, ``category`` has
    the surrogate, code and branch.
    """

    node: Ints
    feature: Ints
    lower: Ints
    upper: Ints
    flipped: Flags
    agree: Floats
    adjusted: Floats
    rows: Ints
    category: Ints


def follow_stands(learner: Learner, entries: Entries, stands: StandIns, branch: Ints) -> tuple[Ints, Ints]:
    """(entry,) the branch once surrogates were asked in order, and (surrogate,) how many rows each sent."""
    branch = branch.copy()
    sent = np.zeros(len(stands.node), np.int64)
    count = np.bincount(stands.node, minlength=entries.nodes)
    first = np.cumsum(count) - count
    offset, table = _lay_out_codes(learner, stands)
    lost = np.flatnonzero(branch < 0)
    for rank in range(int(count.max(initial=0))):
        lost = lost[(branch[lost] < 0) & (count[entries.node[lost]] > rank)]
        which = first[entries.node[lost]] + rank
        for f, mine in _by_feature(stands.feature[which]):
            branch[lost[mine]] = _ask(learner, stands, f, which[mine], entries.row[lost[mine]], offset, table)
        sent += np.bincount(which[branch[lost] >= 0], minlength=len(sent))
    return branch, sent


def _by_feature(feature: Ints) -> Iterator[tuple[int, Ints]]:
    for f in np.unique(feature).tolist():
        yield f, np.flatnonzero(feature == f)


def _ask(learner: Learner, stands: StandIns, feature: int, which: Ints, row: Ints, offset: Ints, table: Ints) -> Ints:
    """(entry,) the branch that each entry's surrogate, all on one feature, says; `NO_ROUTE` where it does not know."""
    coded = learner.features[feature]
    if learner.is_ordered(feature):
        keys = coded.numbers if coded.feature.kind == "numeric" else coded.codes
        went = ((keys[row] > keys[stands.lower[which]]) ^ stands.flipped[which]).astype(np.int64)
    else:
        went = table[offset[which] + coded.codes[row]]
    return np.where(coded.is_missing(row), NO_ROUTE, went) if coded.has_missing else went


def _lay_out_codes(learner: Learner, stands: StandIns) -> tuple[Ints, Ints]:
    """(surrogate,) where each one's run begins in the (cell,) table of branches by code."""
    size = count_cells(learner, stands.feature)
    offset = np.cumsum(size) - size
    table = np.full(max(int(size.sum()), 1), NO_ROUTE)
    table[offset[stands.category[0]] + stands.category[1]] = stands.category[2]
    return offset, table


def count_cells(learner: Learner, feature: Ints) -> Ints:
    """(surrogate,) a cell for each category and one for missing values; none where the feature is ordered."""
    cells = [0 if learner.is_ordered(f) else coded.levels + 1 for f, coded in enumerate(learner.features)]
    return np.array([*cells, 0], np.int64)[feature]


def join_stands(parts: Sequence[tuple[Ints, StandIns]]) -> StandIns:
    """All of them, with the nodes' ids in place of their numbers in a batch."""
    if not parts:
        none = np.empty(0, np.int64)
        real, flags = np.empty(0), np.empty(0, bool)
        return StandIns(none, none, none, none, flags, real, real, none, np.empty((3, 0), np.int64))
    shift = np.cumsum([0, *(len(stands.node) for _, stands in parts)])
    category = [
        stands.category + np.array([[first], [0], [0]]) for (_, stands), first in zip(parts, shift, strict=False)
    ]
    names = ("feature", "lower", "upper", "flipped", "agree", "adjusted", "rows")
    return StandIns(
        node=np.concatenate([ids[stands.node] for ids, stands in parts]),
        **{name: np.concatenate([getattr(stands, name) for _, stands in parts]) for name in names},
        category=np.concatenate(category, axis=1),
    )
