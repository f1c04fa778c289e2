"""Where a listing's candidates come from: weighed again from retained data, or a summary that was kept instead."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from functools import partial
from tempfile import TemporaryFile
from typing import Any, BinaryIO, TypeAlias, cast

import numpy as np
from numpy.typing import NDArray

from service.core.audit import Audited, list_candidates
from service.core.bins import Binned
from service.core.criteria import LOWER_IS_BETTER, Floats
from service.core.foremost import MOST, bin_numbers, list_foremost, tells_foremost
from service.core.listing import Listing
from service.core.ranking import count_better, rank_by
from service.core.statistics import Ints
from service.core.surpass import count_surpassing
from service.core.survey import LARGE_CELLS, Survey
from service.core.surveyor import survey_by, survey_node, survey_twice
from service.core.tree import Tree
from service.listing.filters import find_wanted
from service.listing.large import LargeView
from service.listing.query import SplitQuery
from service.listing.summary import SummarySource
from service.listing.swept import SweptView
from service.rendering.candidates import show_candidates, show_listed_head, show_reranked
from service.rendering.columns import Part, read_parts
from service.retention import unpack_data
from service.store.cache import RecentlyUsed
from service.store.mapping import release_pages
from service.store.models import ModelStore
from service.store.records import ModelRecord

Flags: TypeAlias = NDArray[np.bool_]

RECENT_BYTES = 128 * 2**20
"""Each worker keeps about so much of what recent audits weighed."""
ENTRY_BYTES = 2**17
"""What each entry takes besides arrays of its own: objects, a small model's file, a map of a large one."""
UNCOUNTED_CELLS = 500_000
"""It is not worth a survey of more rows x features to say how many candidates there are."""
WHOLE, BINS = -1, -2
"""In the place of a group of nodes: what serves all of them."""


@dataclass(frozen=True, slots=True)
class Surveyed:
    """A large node: the survey by the run's selection, and the one by the measure that was asked for last, if any."""

    own: Survey
    by: Survey | None = None

    def count_bytes(self) -> int:
        """About how much memory it takes; of the second survey only the scores are its own."""
        return self.own.count_bytes() + (sum(score.nbytes for score in self.by.score) if self.by else 0)


Recent: TypeAlias = RecentlyUsed[tuple[str, int], Audited | Listing | Surveyed | Binned]
"""By model and group of nodes: their candidates, and under `WHOLE` what is needed to weigh any.

Also surveys of large nodes, by the model with what they are by, and the node.
"""


def make_recent(size: int = RECENT_BYTES) -> Recent:
    """Room for ``size`` bytes of what recent audits weighed."""
    return RecentlyUsed(size, lambda value: value.count_bytes() + ENTRY_BYTES)


class DataView:
    """What a query wants of one node, weighed again from the retained data.

    Unless it ``is_counted`` there are more candidates than it has. ``most``: only so many of the node's best are
    certain to be in the listing; None: all are.
    """

    def __init__(
        self,
        audited: Audited,
        listing: Listing,
        place: int,
        query: SplitQuery,
        *,
        is_counted: bool = True,
        most: int | None = None,
    ) -> None:
        self.is_counted, self._most = is_counted, most
        self.node = int(listing.nodes[place])
        self._audited, self._listing, self._place = audited, listing, place
        self._rows, self._measure = listing.find_rows(place), query.measure
        self._ranks = rank_by(audited.learner, listing, query.measure, self._rows)
        self._chosen = self._select(query)

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self._chosen)

    def count_better(self, score: float) -> int | None:
        """How many admissible candidates of the node score more, by the criterion; None where it knows too few."""
        better = count_better(self._listing.score[self._rows], self._listing.rank[self._rows] > 0, score)
        return None if self._most is not None and better >= self._most else better

    def head(self) -> dict[str, Any]:
        """What is said of the node; under another measure than the model's also what that would have taken."""
        head = show_listed_head(self._audited, self._listing, self._place)
        if self._measure is None:
            return head
        ranked = show_reranked(self._audited, self._listing, self._rows, self._ranks, self._measure)
        return head | {"by_measure": ranked}

    def stream(self, begin: int, most: int) -> Iterator[tuple[Part, ...]]:
        """The candidates from ``begin`` on, up to ``most`` at a time, in columns."""
        for first in range(begin, len(self), most):
            chosen = self._chosen[first : first + most]
            yield read_parts(self._audited, self._listing, self._rows[chosen], self._ranks[chosen])

    def render(self, begin: int, end: int) -> list[dict[str, Any]]:
        """Some of the candidates, in the query's order."""
        chosen = self._chosen[begin:end]
        return show_candidates(self._audited, self._listing, self._rows[chosen], self._ranks[chosen])

    def _select(self, query: SplitQuery) -> Ints:
        """The candidates that the query wants, in its order, as indices into the node's."""
        wanted = np.flatnonzero(find_wanted(self._audited, self._listing, self._rows, query))
        if query.sort == "position" and query.top is None:
            return wanted
        rank = self._ranks[wanted]
        ranked, others = wanted[rank > 0], wanted[rank == 0]
        ranked = ranked[np.argsort(rank[rank > 0])]
        others = others[np.argsort(self._rate_inadmissible(others, query), kind="stable")]
        chosen = np.concatenate([ranked, others])[: query.top]
        return np.sort(chosen) if query.sort == "position" else chosen

    def _rate_inadmissible(self, chosen: Ints, query: SplitQuery) -> Floats:
        """What orders those without a rank, ascending: their scores, best first, the undefined last."""
        listing, rows = self._listing, self._rows[chosen]
        measure = query.measure or listing.objective.criterion.measure
        score = listing.score[rows] if query.measure is None else listing.score_rows(measure, rows)
        score = score * (1 if measure in LOWER_IS_BETTER else -1)
        return np.where(np.isnan(score), np.inf, score)


class DataSource:
    """Listings from retained data, ``audited``; those of recent questions are kept in ``recent``.

    Nodes of more than ``large`` rows x features are surveyed, or swept with files that ``scratch`` makes; of nodes of
    more than ``uncounted`` the best are shown without that where they are all that is asked for.
    """

    def __init__(
        self,
        model: str,
        audited: Audited,
        recent: Recent,
        scratch: Callable[[], BinaryIO] = TemporaryFile,
        large: int = LARGE_CELLS,
        uncounted: int = UNCOUNTED_CELLS,
    ) -> None:
        self._model, self.audited, self._recent = model, audited, recent
        self._large, self._uncounted = large, uncounted
        self._scratch = scratch
        self.measures = audited.learner.objective.list_measures()
        self.measure = audited.learner.objective.criterion.measure

    def view_nodes(self, nodes: Ints, query: SplitQuery, *, end: int = 0) -> Iterator[DataView | LargeView]:
        """What the query wants of each node with rows, in order; nothing is weighed before it is asked for.

        ``end``: no candidate beyond that place in a node is asked for; 0 where there is no such place.
        """
        for index, mine in self._list_groups(nodes):
            if self._is_large(index):
                yield from (self._view_large(node, query, end) for node in mine.tolist())
                continue
            weigh = partial(list_candidates, self.audited, self.audited.groups[index])
            listing = cast("Listing", self._recent.get((self._model, index), weigh))
            for place in np.flatnonzero(np.isin(listing.nodes, mine)).tolist():
                yield DataView(self.audited, listing, place, query)

    def stream_nodes(self, nodes: Ints, query: SplitQuery) -> Iterator[DataView | LargeView | SweptView]:
        """As `view_nodes`, by position, from the first candidate to the last, of which nothing is kept."""
        for index, mine in self._list_groups(nodes):
            if self._is_large(index):
                for node in mine.tolist():
                    whole = query.top is None
                    yield self._sweep(node, query) if whole else self._view_large(node, query, 0)
                continue
            listing = list_candidates(self.audited, self.audited.groups[index])
            for place in np.flatnonzero(np.isin(listing.nodes, mine)).tolist():
                yield DataView(self.audited, listing, place, query)

    def _sweep(self, node: int, query: SplitQuery) -> SweptView:
        return SweptView(self.audited, node, query, self._scratch)

    def _list_groups(self, nodes: Ints) -> Iterator[tuple[int, Ints]]:
        """The groups that nodes with rows belong to, and which do."""
        for index in np.unique(self.audited.group[nodes[self.audited.tree.rows[nodes] > 0]]).tolist():
            yield index, np.intersect1d(self.audited.groups[index], nodes)

    def _is_large(self, index: int) -> bool:
        return self._count_cells(int(self.audited.groups[index][0])) > self._large

    def _count_cells(self, node: int) -> int:
        tree = self.audited.tree
        return int(tree.rows[node]) * len(tree.features)

    def _view_foremost(self, node: int, query: SplitQuery, end: int) -> DataView | None:
        """A view of the best candidates, where these are all that is asked for up to the place ``end``."""
        wanted = min(query.top or end, end)
        plain = (query.feature, query.type, query.measure) == (None, None, None) and query.sort == "rank"
        if query.admissible is False or query.chosen is False or not plain or wanted > MOST:
            return None
        if not tells_foremost(self.audited, node):
            return None
        most = 1 if query.chosen else wanted
        kept = self._recent.peek(key := (f"{self._model} foremost {most}", node))
        if kept is None:
            kept = list_foremost(self.audited, node, most, self._bin_numbers())
        if kept is None:
            return None
        listing = cast("Listing", self._recent.get(key, lambda: kept))
        known = query.chosen or query.top is not None
        top = query.top if query.top is not None else wanted
        return DataView(self.audited, listing, 0, replace(query, top=top), is_counted=bool(known), most=most)

    def _bin_numbers(self) -> Binned:
        return cast("Binned", self._recent.get((self._model, BINS), partial(bin_numbers, self.audited)))

    def count_surpassing(self, node: int, score: float) -> int:
        """How many admissible candidates of a large node score more than this, where its view does not know."""
        if self.audited.target.is_classification:
            return count_surpassing(self.audited, node, score, self._bin_numbers())
        return self._survey(node).own.count_better(score)

    def _survey(self, node: int) -> Surveyed:
        survey = self._recent.get(self._name_survey(node), lambda: Surveyed(survey_node(self.audited, node)))
        return cast("Surveyed", survey)

    def _survey_by(self, node: int, measure: str) -> tuple[Survey, Survey]:
        """By the run's selection, and by a measure, which is kept where that drives nothing out of memory."""
        key = self._name_survey(node)
        if self._recent.peek(key) is None:
            own, by = survey_twice(self.audited, node, measure)
            self._recent.get(key, lambda: Surveyed(own))
        else:
            kept = self._survey(node)
            if kept.by is not None and kept.by.measure == measure:
                return kept.own, kept.by
            own, by = kept.own, survey_by(self.audited, kept.own, measure)
        if by is not own:
            self._recent.offer(key, Surveyed(own, by))
        return own, by

    def _name_survey(self, node: int) -> tuple[str, int]:
        return f"{self._model} surveyed", node

    def _view_large(self, node: int, query: SplitQuery, end: int) -> DataView | LargeView:
        audited, measure = self.audited, query.measure
        uncounted = self._count_cells(node) > self._uncounted
        if end and uncounted and self._recent.peek(self._name_survey(node)) is None:
            foremost = self._view_foremost(node, query, end)
            if foremost is not None:
                return foremost
        if measure is None:
            own = self._survey(node).own
            return LargeView(audited, own, own, query, end)
        return LargeView(audited, *self._survey_by(node, measure), query, end)

    def warnings(self, query: SplitQuery) -> list[str]:  # noqa: ARG002 - as `SummarySource`
        """Nothing: the listing is complete."""
        return []


Source = DataSource | SummarySource


def open_source(record: ModelRecord, tree: Tree, store: ModelStore, recent: Recent) -> Source:
    """Where the listings of a model come from; raises `NotRetained` where it kept nothing."""
    if record.retention == "none":
        forget_model(record, recent)  # its data may have been deleted meanwhile, by another process
    if record.retention != "data":
        return SummarySource(record, tree, store.load_data(record))
    audited = recent.get((record.id, WHOLE), partial(_open_data, record, tree, store))
    return DataSource(record.id, cast("Audited", audited), recent, store.open_scratch)


def _open_data(record: ModelRecord, tree: Tree, store: ModelStore) -> Audited:
    data = store.load_data(record)
    audited = unpack_data(record, tree, data)
    release_pages(data)
    return audited


def forget_model(record: ModelRecord, recent: Recent) -> None:
    """Drop what audits of a model weighed."""
    recent.drop_all(lambda key: key[0].startswith(record.id))
