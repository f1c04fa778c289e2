"""The audit of a stored model: its candidate splits, page by page, and its tree."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal

import numpy as np

from service.core.audit import Audited, Listing, group_nodes, list_candidates, rank_by
from service.core.candidates import Form
from service.core.criteria import CLASS_MEASURES, LOWER_IS_BETTER, POSITIVE_MEASURES
from service.core.errors import Fault, InvalidData, UnsuitableTask
from service.core.learn import Learnt
from service.core.schema import Label, Target
from service.core.statistics import Ints
from service.core.tree import Tree
from service.errors import InvalidRequest, NotFound
from service.rendering import show_candidate, show_head, show_margins, show_number, show_tree_node
from service.retention import unpack_data, unpack_summary
from service.settings import Settings
from service.store.models import ModelStore
from service.store.records import ModelRecord

COUNTED_CELLS = 2_000_000
"""The total of a listing of all nodes is counted at once up to about so many rows x features; else it is null."""


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


def list_splits(record: ModelRecord, query: SplitQuery, store: ModelStore, settings: Settings) -> dict[str, Any]:
    """A page of the candidates of one node or of all nodes in breadth-first order, best first within each.

    ``next`` is the cursor of the following page, None on the last; ``total`` is None where it was not counted.
    Raises `NotFound` for a node that is not there, `InvalidRequest` for a feature, measure or cursor that cannot be,
    `NotRetained` where the model kept nothing to list.
    """
    tree = Tree.from_arrays(store.load_tree(record))
    kept = store.load_data(record)
    source: Source = (
        SummarySource(record, tree, kept) if record.retention == "summary" else DataSource(record, tree, kept)
    )
    _check_query(query, tree, source)
    nodes = np.flatnonzero(tree.rows > 0) if query.node is None else np.array([query.node])
    begin_node, begin = _read_cursor(query.cursor, nodes)
    heads: list[dict[str, Any]] = []
    splits: list[dict[str, Any]] = []
    following = None
    for view in source.view_nodes(nodes[nodes >= begin_node]):
        index = view.select(query)
        skip = begin if view.node == begin_node else 0
        room = min(query.limit, settings.max_page) - len(splits)
        page = index[skip : skip + room]
        if len(page):
            heads.append(view.head())
            splits += [view.render(i, query) for i in page]
        if skip + len(page) < len(index):
            following = _write_cursor(view.node, skip + len(page))
            break
    return {
        "criterion": record.body["parameters"]["criterion"],
        "measure": query.measure or source.measure,
        "classes": list(tree.classes) or None,
        "retention": record.retention,
        "total": _count_total(source, tree, nodes, query),
        "next": following,
        "nodes": heads,
        "splits": splits,
        "warnings": source.warnings(),
    }


def _check_query(query: SplitQuery, tree: Tree, source: Source) -> None:
    if query.node is not None and not (0 <= query.node < tree.nodes):
        raise NotFound(f"there is no node {query.node}: the tree has {tree.nodes}")
    if query.feature is not None and query.feature not in {feature.name for feature in tree.features}:
        raise InvalidRequest(
            f'the model has no feature "{query.feature}"',
            Fault("?feature", f"must be one of {', '.join(feature.name for feature in tree.features)}"),
        )
    if query.measure is not None and query.measure not in source.measures:
        raise InvalidRequest(
            f'there is no measure "{query.measure}" for this model',
            Fault("?measure", f"must be one of {', '.join(source.measures)}"),
        )


def _count_total(source: Source, tree: Tree, nodes: Ints, query: SplitQuery) -> int | None:
    """How many candidates the query has over all pages, where counting them is quick."""
    if len(nodes) > 1 and int(tree.rows[nodes].sum()) * len(tree.features) > COUNTED_CELLS:
        return None
    return sum(len(view.select(query)) for view in source.view_nodes(nodes))


def _write_cursor(node: int, offset: int) -> str:
    return base64.urlsafe_b64encode(f"{node}:{offset}".encode()).decode().rstrip("=")


def _read_cursor(cursor: str | None, nodes: Ints) -> tuple[int, int]:
    """The node and the place in it where a page begins."""
    if cursor is None:
        return (int(nodes[0]) if len(nodes) else 0), 0
    try:
        node, offset = base64.urlsafe_b64decode(cursor + "=" * (-len(cursor) % 4)).decode().split(":")
        if int(offset) >= 0 and int(node) in nodes:
            return int(node), int(offset)
    except (ValueError, binascii.Error, UnicodeDecodeError):
        pass
    raise InvalidRequest(
        "the cursor does not belong to this listing", Fault("?cursor", 'take it from "next" of the page before')
    )


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
            f"this model kept a summary: the {self._data['kept']} best candidates of each feature in each node; "
            "ranks count all candidates that were weighed, totals only what was kept"
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


def show_tree(record: ModelRecord, store: ModelStore) -> dict[str, Any]:
    """The tree, its nodes in breadth-first order."""
    tree = Tree.from_arrays(store.load_tree(record))
    return {"classes": list(tree.classes) or None, "nodes": [show_tree_node(tree, node) for node in range(tree.nodes)]}


def score_branches(branches: Sequence[Mapping[str, float]], positive_class: Label | None) -> dict[str, Any]:
    """Every measure of a split, given the class weights of its branches; undefined ones are None.

    Raises `UnsuitableTask` for a positive class that is not one of two, `InvalidData` for weights that sum to nothing.
    """
    classes = list(dict.fromkeys(label for branch in branches for label in branch))
    table = np.array([[float(branch.get(label, 0.0)) for branch in branches] for label in classes])
    if not table.size or not table.sum() > 0 or not np.isfinite(table).all():
        raise InvalidData(Fault("/branches", "at least one weight must be above 0, and all must be finite"))
    # fewer than two branches leave an empty one, which contributes nothing
    table = np.pad(table, ((0, 0), (0, max(0, 2 - table.shape[1]))))
    scores = {name: measure(table) for name, measure in CLASS_MEASURES.items()}
    if positive_class is not None:
        if positive_class not in classes or len(classes) > 2:
            raise UnsuitableTask(Fault("/positive_class", f"must be one of two classes; the classes are {classes}"))
        scores |= {name: f(table, classes.index(str(positive_class))) for name, f in POSITIVE_MEASURES.items()}
    else:
        scores |= {name: np.array(np.nan) for name in POSITIVE_MEASURES}
    return {name: show_number(float(value)) for name, value in scores.items()}

