"""What a query wants of a large node, of which only a survey is kept: what is shown is weighed again."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from service.core.audit import Audited
from service.core.candidates import Form
from service.core.criteria import LOWER_IS_BETTER, Floats
from service.core.listing import Listing
from service.core.ranking import count_better
from service.core.statistics import Ints
from service.core.survey import Survey
from service.rendering import show_head, show_number, show_surrogates
from service.rendering_candidates import show_candidates, show_margin
from service.rendering_columns import Part, read_parts
from service.split_query import SplitQuery


class LargeView:
    """What a query wants of one large node; ``survey`` is by the query's measure, ``own`` by the model's."""

    is_counted = True

    def __init__(self, audited: Audited, own: Survey, survey: Survey, query: SplitQuery) -> None:
        self.node = survey.node
        self._audited, self._own, self._survey, self._measure = audited, own, survey, query.measure
        self._chosen = self._select(query)

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self._chosen)

    def count_better(self, score: float) -> int:
        """How many admissible candidates of the node score more, by the criterion."""
        return count_better(self._own.score, self._own.rank, score)

    def head(self) -> dict[str, Any]:
        """What is said of the node; under another measure also what that would have taken."""
        tree, margin = self._audited.tree, show_margin(self._own.find_margin())
        surrogates = {} if tree.is_leaf[self.node] else show_surrogates(tree, self.node)
        head = show_head(tree, self.node) | {"margin": margin} | surrogates
        return head if self._measure is None else head | {"by_measure": self._show_reranked(self._measure)}

    def render(self, begin: int, end: int) -> list[dict[str, Any]]:
        """Some of the candidates, in the query's order."""
        chosen = self._chosen[begin:end]
        shown: list[dict[str, Any]] = [{}] * len(chosen)
        for run, mine in self._part(chosen):
            listing = self._survey.weigh_run(self._audited, run)
            for i, row in zip(mine.tolist(), self._show(listing, chosen[mine] - self._survey.start[run]), strict=True):
                shown[i] = row
        return shown

    def stream(self, begin: int, most: int) -> Iterator[tuple[Part, ...]]:
        """The candidates from ``begin`` on, by position, up to ``most`` at a time; each run is weighed once."""
        chosen = self._chosen[begin:]
        for run, mine in self._part(chosen):
            listing = self._survey.weigh_run(self._audited, run)
            rows = chosen[mine] - self._survey.start[run]
            for first in range(0, len(rows), most):
                shown = rows[first : first + most]
                yield read_parts(self._audited, listing, shown, listing.rank[shown])

    def _part(self, chosen: Ints) -> Iterator[tuple[int, Ints]]:
        """Each run of features that candidates belong to, and which of them do."""
        run = np.searchsorted(self._survey.start, chosen, side="right") - 1
        for index in np.unique(run).tolist():
            yield index, np.flatnonzero(run == index)

    def _show(self, listing: Listing, rows: Ints) -> list[dict[str, Any]]:
        return show_candidates(self._audited, listing, rows, listing.rank[rows])

    def _select(self, query: SplitQuery) -> Ints:
        """The candidates that the query wants, in its order."""
        rank = self._survey.rank
        wanted = self._find_wanted(query)
        if query.sort == "position" and query.top is None:
            return wanted
        admissible = rank[wanted] > 0
        ranked, others = wanted[admissible], wanted[~admissible]
        if query.top is not None and query.top < len(ranked):
            # the rest need not be sorted
            ranked = ranked[np.argpartition(rank[ranked], query.top - 1)[: query.top]]
        ranked = ranked[np.argsort(rank[ranked])]
        others = others[np.argsort(self._rate_inadmissible(others), kind="stable")]
        chosen = np.concatenate([ranked, others])[: query.top]
        return np.sort(chosen) if query.sort == "position" else chosen

    def _find_wanted(self, query: SplitQuery) -> Ints:
        """The candidates that fit all filters, by position."""
        survey, features = self._survey, self._audited.tree.features
        begin, end = 0, len(survey.rank)
        if query.feature is not None:
            index = [feature.name for feature in features].index(query.feature)
            begin, end = int(survey.begin[index]), int(survey.begin[index + 1])
        wanted = np.ones(end - begin, bool)
        if query.type is not None:
            ordinal = np.repeat([feature.kind == "ordinal" for feature in features], np.diff(survey.begin))[begin:end]
            form = survey.form[begin:end]
            names = np.array(["", *(form.name.lower() for form in list(Form)[1:])])
            wanted &= np.where(ordinal & (form == Form.THRESHOLD), "subset", names[form]) == query.type
        if query.admissible is not None:
            wanted &= (survey.rank[begin:end] > 0) == query.admissible
        if query.chosen is not None:
            taken = np.zeros(len(survey.rank), bool)
            taken[survey.chosen] = True
            wanted &= taken[begin:end] == query.chosen
        return np.flatnonzero(wanted) + begin

    def _rate_inadmissible(self, chosen: Ints) -> Floats:
        """What orders those without a rank, ascending: their scores, best first, the undefined last."""
        score = self._survey.score[chosen] * (1 if self._survey.measure in LOWER_IS_BETTER else -1)
        return np.where(np.isnan(score), np.inf, score)

    def _show_reranked(self, measure: str) -> dict[str, Any]:
        """As `rendering_candidates.show_reranked`."""
        survey, own = self._survey, self._own
        sign = -1.0 if measure in LOWER_IS_BETTER else 1.0
        first, chosen = np.flatnonzero(survey.rank == 1), survey.chosen
        shown: dict[str, Any] = {"measure": measure, "split": None, "same": None, "score": None, "chosen_score": None}
        if len(chosen):
            shown["chosen_score"] = show_number(float(survey.score[chosen[0]]))
        if len(first):
            run = int(np.searchsorted(survey.start, first[0], side="right")) - 1
            listing = own.weigh_run(self._audited, run)
            taken = self._show(listing, first - survey.start[run])[0]
            shown["split"] = {"feature": taken["feature"], **taken["split"]}
            shown["score"] = show_number(float(survey.score[first[0]]))
            shown["same"] = bool(first[0] in chosen) if len(chosen) else None
        gap = None
        if len(first) and len(chosen):
            gap = show_number(sign * float(survey.score[first[0]] - survey.score[chosen[0]]))
        return shown | {"gap": gap, "margin": show_margin(survey.find_margin())}
