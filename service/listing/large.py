"""What a query wants of a large node, of which only a survey is kept: what is shown is weighed again."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any

import numpy as np

from service.core.audit import Audited
from service.core.candidates import Form
from service.core.listing import Listing
from service.core.parallel import run_parallel
from service.core.standing import Flags
from service.core.statistics import Ints
from service.core.survey import Survey
from service.listing.query import SplitQuery
from service.rendering.candidates import show_candidates, show_margin
from service.rendering.columns import Part, read_parts
from service.rendering.nodes import show_head, show_number, show_surrogates

STREAMED = 2**16
"""So many candidates are weighed again at a time where all are listed."""


class LargeView:
    """What a query wants of one large node; ``survey`` is by the query's measure, ``own`` by the model's.

    ``end``: no candidate beyond that place in the node is asked for; 0 where there is no such place.
    """

    is_counted = True

    def __init__(self, audited: Audited, own: Survey, survey: Survey, query: SplitQuery, end: int = 0) -> None:
        self.node = survey.node
        self._audited, self._own, self._survey, self._query = audited, own, survey, query
        names = [feature.name for feature in audited.tree.features]
        features = survey.features if query.feature is None else [names.index(query.feature)]
        self._wanted = {feature: partial(self._find_wanted, feature) for feature in features}
        self._count = sum(int(np.count_nonzero(wanted())) for wanted in self._wanted.values())
        self._best = None if query.sort == "position" and query.top is None else self._select(end or self._count)

    def __len__(self) -> int:
        """How many candidates there are."""
        return self._count if self._query.top is None else min(self._query.top, self._count)

    def count_better(self, score: float) -> int:
        """How many admissible candidates of the node score more, by the criterion."""
        return self._own.count_better(score)

    def head(self) -> dict[str, Any]:
        """What is said of the node; under another measure also what that would have taken."""
        tree, margin = self._audited.tree, show_margin(self._own.find_margin())
        surrogates = {} if tree.is_leaf[self.node] else show_surrogates(tree, self.node)
        head = show_head(tree, self.node) | {"margin": margin} | surrogates
        return head if self._query.measure is None else head | {"by_measure": self._show_reranked()}

    def render(self, begin: int, end: int) -> list[dict[str, Any]]:
        """Some of the candidates, in the query's order."""
        asked = np.concatenate([*self._list_places(begin, end), np.empty(0, np.int64)])
        shown = np.sort(asked)
        parts = self._part(shown, self._survey.find_ranks(shown))
        rows = run_parallel(lambda part: self._show(self._survey.list_some(self._audited, *part)), parts)
        found = dict(zip(shown.tolist(), [row for part in rows for row in part], strict=True))
        return [found[place] for place in asked.tolist()]

    def stream(self, begin: int, most: int) -> Iterator[tuple[Part, ...]]:
        """The candidates from ``begin`` on, by position, up to ``most`` at a time."""
        for place in self._list_places(begin, len(self)):
            for feature, mine, ranks in self._part(place, self._survey.find_ranks(place)):
                listing = self._survey.list_some(self._audited, feature, mine, ranks)
                for first in range(0, len(mine), most):
                    rows = np.arange(first, min(first + most, len(mine)))
                    yield read_parts(self._audited, listing, rows, listing.rank[rows])

    def _show(self, listing: Listing) -> list[dict[str, Any]]:
        return show_candidates(self._audited, listing, np.arange(len(listing.rank)), listing.rank)

    def _list_places(self, begin: int, end: int) -> Iterator[Ints]:
        """Candidates in the query's order, by position among all; where all are listed, feature by feature."""
        if self._best is not None:
            yield self._best[begin:end]
            return
        for feature, wanted in self._wanted.items():
            place = np.flatnonzero(wanted())
            yield place[max(begin, 0) : max(end, 0)] + self._survey.begin[feature]
            begin, end = begin - len(place), end - len(place)
            if end <= 0:
                return

    def _part(self, place: Ints, rank: Ints) -> list[tuple[int, Ints, Ints]]:
        """Candidates at ascending ``place`` with their ranks, feature by feature, and not too many at a time."""
        feature = self._survey.find_features(place)
        edges = np.union1d(np.searchsorted(feature, np.unique(feature)), np.arange(0, len(place), STREAMED))
        ends = [*edges[1:].tolist(), len(place)][: len(edges)]
        return [
            (int(feature[begin]), place[begin:end], rank[begin:end])
            for begin, end in zip(edges.tolist(), ends, strict=True)
        ]

    def _select(self, end: int) -> Ints:
        """The candidates that the query wants up to its ``end``-th, in its order."""
        most = min(end, len(self))
        if self._query.sort == "position":
            most = len(self)
        ranked = self._survey.find_best(self._wanted, most)
        best = np.concatenate([ranked, self._survey.find_rest(self._wanted, most - len(ranked))])
        return np.sort(best) if self._query.sort == "position" else best

    def _find_wanted(self, feature: int) -> Flags:
        """(candidate,) those of a feature that fit all filters."""
        survey, query = self._survey, self._query
        wanted = np.ones(len(survey.score[feature]), bool)
        if query.type is not None:
            names = np.array(["", *(form.name.lower() for form in list(Form)[1:])])
            if self._audited.tree.features[feature].kind == "ordinal":
                names[Form.THRESHOLD] = "subset"
            wanted &= (names == query.type)[survey.form[feature]]
        if query.admissible is not None:
            wanted &= (survey.reason[feature] == 0) == query.admissible
        if query.chosen is not None:
            taken = np.zeros(len(wanted), bool)
            taken[survey.find_inside(feature, survey.chosen)] = True
            wanted &= taken == query.chosen
        return wanted

    def _show_reranked(self) -> dict[str, Any]:
        """As `rendering.candidates.show_reranked`."""
        survey, own = self._survey, self._own
        first, chosen = survey.find_best(survey.everything(), 1), survey.chosen[:1]
        best, own_best = (survey.sign * survey.look_up(place)[0] for place in (first, chosen))
        shown: dict[str, Any] = {"measure": self._query.measure}
        shown |= {"split": None, "same": None, "score": None, "chosen_score": None}
        if len(chosen):
            shown["chosen_score"] = show_number(float(own_best[0]))
        if len(first):
            (taken,) = self._show(
                own.list_some(self._audited, int(survey.find_features(first)[0]), first, np.ones(1, np.int64))
            )
            shown["split"] = {"feature": taken["feature"], **taken["split"]}
            shown["score"] = show_number(float(best[0]))
            shown["same"] = bool(first[0] in survey.chosen) if len(chosen) else None
        gap = show_number(survey.sign * float(best[0] - own_best[0])) if len(first) and len(chosen) else None
        return shown | {"gap": gap, "margin": show_margin(survey.find_margin())}
