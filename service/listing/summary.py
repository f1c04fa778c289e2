"""Listings from what was kept instead of the training data."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from service.core.criteria import LOWER_IS_BETTER
from service.core.statistics import Ints
from service.core.tree import Tree
from service.listing.query import SplitQuery
from service.retention import unpack_summary
from service.store.records import ModelRecord


class SummaryView:
    """What a query wants of what was kept of one node, in (feature, candidate) order."""

    is_counted = True

    def __init__(self, node: int, head: dict[str, Any], rows: list[dict[str, Any]], query: SplitQuery) -> None:
        self.node = node
        self._head, self._rows, self._ranks = head, rows, _rank_kept(rows, query.measure)
        ranks = self._ranks
        wanted = [i for i, row in enumerate(rows) if _is_wanted(row, query)]
        best_first = sorted(wanted, key=lambda i: (*_rate_kept(rows[i], ranks[i], query.measure), i))[: query.top]
        self._chosen = sorted(best_first) if query.sort == "position" else best_first

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self._chosen)

    def head(self) -> dict[str, Any]:
        """What is said of the node."""
        return self._head

    def stream(self, begin: int, most: int) -> Iterator[list[dict[str, Any]]]:
        """The candidates from ``begin`` on, up to ``most`` at a time."""
        return (self.render(first, first + most) for first in range(begin, len(self), most))

    def render(self, begin: int, end: int) -> list[dict[str, Any]]:
        """Some of the candidates, in the query's order."""
        return [self._rows[i] | {"rank": self._ranks[i]} for i in self._chosen[begin:end]]


def _rank_kept(rows: Sequence[Mapping[str, Any]], measure: str | None) -> list[int | None]:
    """The rank of each kept candidate: among all that were weighed, or under another measure among those kept."""
    if measure is None:
        return [row["rank"] for row in rows]
    sign = 1 if measure in LOWER_IS_BETTER else -1
    scored = [
        (sign * row["scores"][measure], i)
        for i, row in enumerate(rows)
        if row["admissible"] and row["scores"][measure] is not None
    ]
    ranks: list[int | None] = [None] * len(rows)
    for rank, (_, i) in enumerate(sorted(scored), start=1):
        ranks[i] = rank
    return ranks


def _rate_kept(row: Mapping[str, Any], rank: int | None, measure: str | None) -> tuple[bool, float]:
    """What orders kept candidates, ascending: those with a rank by it, then the others by score, the undefined last."""
    if rank is not None:
        return False, rank
    score = row["score"] if measure is None else row["scores"][measure]
    return True, np.inf if score is None else score * (1 if measure in LOWER_IS_BETTER else -1)


def _is_wanted(row: Mapping[str, Any], query: SplitQuery) -> bool:
    return (
        (query.feature is None or row["feature"] == query.feature)
        and (query.type is None or row["split"]["type"] == query.type)
        and (query.chosen is None or row["chosen"] == query.chosen)
        and (query.admissible is None or row["admissible"] == query.admissible)
    )


class SummarySource:
    """Listings from what was kept instead of the data."""

    def __init__(self, record: ModelRecord, tree: Tree, data: Mapping[str, Any]) -> None:
        self._record, self._tree, self._data = record, tree, data
        self.measures, self.measure = list(data["measures"]), str(data["measure"])

    def view_nodes(
        self,
        nodes: Ints,
        query: SplitQuery,
        *,
        end: int = 0,  # noqa: ARG002 - as `DataSource`
    ) -> Iterator[SummaryView]:
        """What the query wants of each node with rows, in order."""
        for node in nodes[self._tree.rows[nodes] > 0].tolist():
            head, rows = unpack_summary(self._record, self._data, node)
            yield SummaryView(node, head, rows, query)

    stream_nodes = view_nodes

    def warnings(self, query: SplitQuery) -> list[str]:
        """What the listing lacks."""
        kept = f"this model kept a summary: the {self._data['kept']} best candidates of each feature in each node; "
        if query.measure is not None:
            return [kept + "ranks by a measure, and totals, count only what was kept: it may lack the best by it"]
        return [kept + "ranks count all candidates that were weighed, totals only what was kept"]
