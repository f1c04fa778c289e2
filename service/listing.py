"""Where a listing's candidates come from: weighed again from retained data, or a summary that was kept instead."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from service.core.audit import Audited, Listing, group_nodes, list_candidates, rank_by
from service.core.candidates import Form
from service.core.criteria import LOWER_IS_BETTER
from service.core.learn import Learnt
from service.core.schema import Target
from service.core.statistics import Ints
from service.core.tree import Tree
from service.rendering import show_candidate, show_head, show_margins
from service.retention import unpack_data, unpack_summary
from service.store.records import ModelRecord


@dataclass(frozen=True)
class SplitQuery:
    """Which candidates to list, in which order."""

    node: int | None = None
    feature: str | None = None
    type: str | None = None
    chosen: bool | None = None
    admissible: bool | None = None
    top: int | None = None
    measure: str | None = None
    sort: Literal["rank", "position"] = "rank"
    limit: int = 100
    cursor: str | None = None


class DataView:
    """The candidates of one node, weighed again from the retained data."""

    def __init__(self, audited: Audited, listing: Listing, place: int) -> None:
        self.node = int(listing.nodes[place])
        self._audited, self._listing, self._place = audited, listing, place

    def head(self) -> dict[str, Any]:
        """What is said of the node."""
        margin = show_margins(self._audited.learner, self._listing, self._place)
        return show_head(self._audited.tree, self.node) | {"margin": margin}

    def select(self, query: SplitQuery) -> Ints:
        """The candidates that the query wants, in its order."""
        listing = self._listing
        rows = listing.find_rows(self._place)
        if query.feature is not None:
            names = [feature.name for feature in self._audited.tree.features]
            rows = rows[listing.feature[rows] == names.index(query.feature)]
        if query.type is not None:
            rows = rows[self._forms()[rows] == query.type]
        if query.chosen is not None:
            rows = rows[listing.chosen[rows] == query.chosen]
        if query.admissible is not None:
            rows = rows[(listing.reason[rows] == 0) == query.admissible]
        rank = self._ranks(query)[rows]
        worth = np.where(rank == 0, self._worth(query)[rows], 0.0)
        chosen = np.lexsort((worth, rank, rank == 0))[: query.top]
        return rows[np.sort(chosen) if query.sort == "position" else chosen]

    def _forms(self) -> np.ndarray[Any, np.dtype[np.str_]]:
        """(candidate,) the API's name of each candidate's form; cuts of an ordinal feature are subsets."""
        listing = self._listing
        names = np.array([table.form.name.lower() for table in listing.tables])[listing.table]
        ordinal = np.array([feature.kind == "ordinal" for feature in self._audited.tree.features])[listing.feature]
        return np.where(ordinal & (names == Form.THRESHOLD.name.lower()), "subset", names)

    def _worth(self, query: SplitQuery) -> np.ndarray[Any, np.dtype[np.float64]]:
        """(candidate,) what orders the inadmissible ones: their scores, best first, the undefined last."""
        measure = query.measure or self._audited.learner.objective.criterion.measure
        score = self._listing.scores[measure] * (1 if measure in LOWER_IS_BETTER else -1)
        return np.where(np.isnan(score), np.inf, score)

    def _ranks(self, query: SplitQuery) -> Ints:
        return self._listing.rank if query.measure is None else rank_by(self._listing, query.measure)

    def render(self, index: int, query: SplitQuery) -> dict[str, Any]:
        """One candidate."""
        return show_candidate(self._audited.learner, self._listing, index, int(self._ranks(query)[index]))


class DataSource:
    """Listings from retained data."""

    def __init__(self, record: ModelRecord, tree: Tree, data: Mapping[str, Any]) -> None:
        self._audited = unpack_data(record, tree, data)
        self._id = record.id
        self.measures = list(self._audited.learner.objective.measures())
        self.measure = self._audited.learner.objective.criterion.measure

    def view_nodes(self, nodes: Ints) -> Iterator[DataView]:
        """Each node with rows, in order."""
        for group in group_nodes(self._audited, nodes[self._audited.tree.rows[nodes] > 0]):
            listing = list_candidates(self._audited, group)
            for place in range(len(group)):
                yield DataView(self._audited, listing, place)

    def warnings(self) -> list[str]:
        """Nothing: the listing is complete."""
        return []


class SummaryView:
    """What was kept of one node."""

    def __init__(self, node: int, head: dict[str, Any], rows: list[dict[str, Any]]) -> None:
        self.node = node
        self._head, self._rows = head, rows

    def head(self) -> dict[str, Any]:
        """What is said of the node."""
        return self._head

    def select(self, query: SplitQuery) -> list[int]:
        """The candidates that the query wants, in its order; they were kept in (feature, candidate) order."""
        wanted = [i for i, row in enumerate(self._rows) if _is_wanted(row, query)]
        ranks = self._ranks(query)
        best_first = sorted(wanted, key=lambda i: (ranks[i] is None, ranks[i] or 0, i))[: query.top]
        return sorted(best_first) if query.sort == "position" else best_first

    def _ranks(self, query: SplitQuery) -> list[int | None]:
        if query.measure is None:
            return [row["rank"] for row in self._rows]
        sign = 1 if query.measure in LOWER_IS_BETTER else -1
        scored = [
            (sign * row["scores"][query.measure], i)
            for i, row in enumerate(self._rows)
            if row["admissible"] and row["scores"][query.measure] is not None
        ]
        ranks: list[int | None] = [None] * len(self._rows)
        for rank, (_, i) in enumerate(sorted(scored), start=1):
            ranks[i] = rank
        return ranks

    def render(self, index: int, query: SplitQuery) -> dict[str, Any]:
        """One candidate."""
        return self._rows[index] | {"rank": self._ranks(query)[index]}


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

    def view_nodes(self, nodes: Ints) -> Iterator[SummaryView]:
        """Each node with rows, in order."""
        for node in nodes[self._tree.rows[nodes] > 0].tolist():
            head, rows = unpack_summary(self._record, self._data, node)
            yield SummaryView(node, head, rows)

    def warnings(self) -> list[str]:
        """What the listing lacks."""
        return [
            (
                f"this model kept a summary: the {self._data['kept']} best candidates of each feature in each node; "
                "ranks count all candidates that were weighed, totals only what was kept"
            )
        ]


Source = DataSource | SummarySource


def summarize_splits(learnt: Learnt, target: Target, kept: int) -> dict[str, Any]:
    """What ``retain: summary`` keeps, before packing: heads and rows by node, and the measures' names."""
    audited = Audited(learnt.learner, target, learnt.tree, learnt.leaf)
    heads: list[dict[str, Any]] = [{} for _ in range(learnt.tree.nodes)]
    rows: list[list[dict[str, Any]]] = [[] for _ in range(learnt.tree.nodes)]
    for group in group_nodes(audited, np.flatnonzero(learnt.tree.rows > 0)):
        listing = list_candidates(audited, group)
        best = _find_best_of_features(listing, kept)
        for place in range(len(group)):
            heads[group[place]] = DataView(audited, listing, place).head()
        for index in best.tolist():
            node = int(group[listing.node[index]])
            rows[node].append(show_candidate(learnt.learner, listing, index, int(listing.rank[index])))
    objective = learnt.learner.objective
    names = {"measures": list(objective.measures()), "measure": objective.criterion.measure, "kept": kept}
    return {"heads": heads, "rows": rows, "names": names}


def _find_best_of_features(listing: Listing, kept: int) -> Ints:
    """Up to ``kept`` candidates of each feature in each node, in listing order: admissible ones first."""
    rank = np.where(listing.rank == 0, np.iinfo(np.int64).max, listing.rank)
    order = np.lexsort((rank, listing.feature, listing.node))
    segment = listing.node[order] * (int(listing.feature.max(initial=0)) + 1) + listing.feature[order]
    first = np.flatnonzero(np.diff(segment, prepend=-1))
    place = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order)))
    return np.sort(order[place < kept])
