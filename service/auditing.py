"""The audit of a stored model: its candidate splits, page by page, and its tree."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from service.core.criteria import CLASS_MEASURES, POSITIVE_MEASURES
from service.core.errors import Fault, InvalidData, UnsuitableTask
from service.core.objective import bind_positive
from service.core.schema import Label
from service.core.statistics import Ints
from service.core.tree import Tree
from service.errors import InvalidRequest, NotFound
from service.listing.query import SplitQuery
from service.listing.source import Recent, Source, make_recent, open_source
from service.rendering.nodes import show_number, show_tree_node
from service.settings import Settings
from service.store.models import ModelStore
from service.store.records import ModelRecord
from service.targets import MOST_WEIGHT

PAGE_CELLS = 600_000
"""A page goes through nodes of about so many rows x features in all, or one node: then it ends, full or not."""
COUNTED_CELLS = 300_000
"""The total of a listing of all nodes is counted at once up to about so many rows x features; else it is null."""


def list_splits(
    record: ModelRecord, query: SplitQuery, store: ModelStore, settings: Settings, recent: Recent | None = None
) -> dict[str, Any]:
    """A page of the candidates of one node or of all nodes in breadth-first order, best first within each.

    ``next`` is the cursor of the following page, None on the last; ``total`` is None where it was not counted.
    ``recent`` keeps what was weighed for the page after. Raises `NotFound` for a node that is not there,
    `InvalidRequest` for a feature, measure or cursor that cannot be, `NotRetained` where the model kept nothing.
    """
    tree = Tree.from_arrays(store.load_tree(record))
    source = open_source(record, tree, store, recent or make_recent())
    check_query(query, tree, source)
    nodes = np.flatnonzero(tree.rows > 0) if query.node is None else np.array([query.node])
    page = _fill_page(source, tree, nodes, query, min(query.limit, settings.max_page))
    return {
        "criterion": record.body["parameters"]["criterion"],
        "measure": query.measure or source.measure,
        "classes": list(tree.classes) or None,
        "retention": record.retention,
        "total": _find_total(record, source, tree, nodes, query, page),
        "next": page.following,
        "nodes": page.heads,
        "splits": page.splits,
        "warnings": source.warnings(query),
    }


@dataclass
class Page:
    """Candidates, what is said of their nodes, the cursor of what follows, and of one node how many there are."""

    heads: list[dict[str, Any]] = field(default_factory=list)
    splits: list[dict[str, Any]] = field(default_factory=list)
    following: str | None = None
    total: int | None = None


def _fill_page(source: Source, tree: Tree, nodes: Ints, query: SplitQuery, limit: int) -> Page:
    """Up to ``limit`` candidates from the cursor on; fewer where finding them takes more than `PAGE_CELLS`."""
    page = Page()
    begin_node, begin = read_cursor(query.cursor, nodes)
    nodes = nodes[nodes >= begin_node]
    cells = np.cumsum(tree.rows[nodes] * max(len(tree.features), 1))
    few = nodes[: max(int(np.searchsorted(cells, PAGE_CELLS, side="right")), 1)]
    for view in source.view_nodes(few, query, end=begin + limit):
        if len(nodes) == 1:
            page.total = len(view) if view.is_counted else None
        skip = begin if view.node == begin_node else 0
        shown = view.render(skip, skip + limit - len(page.splits))
        if shown:
            page.heads.append(view.head())
            page.splits += shown
        if skip + len(shown) < len(view) or not view.is_counted:
            page.following = _write_cursor(view.node, skip + len(shown))
            return page
    if len(few) < len(nodes):
        page.following = _write_cursor(int(nodes[len(few)]), 0)
    return page


def check_query(query: SplitQuery, tree: Tree, source: Source) -> None:
    """Raise what `list_splits` raises for a node, a feature or a measure that is not there."""
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


def _find_total(
    record: ModelRecord, source: Source, tree: Tree, nodes: Ints, query: SplitQuery, page: Page
) -> int | None:
    """How many candidates all pages have: as the page found, as was kept, or counted."""
    if query.node is not None:
        return page.total
    if query.is_whole and record.splits_total is not None:
        return record.splits_total
    return _count_total(source, tree, nodes, query)


def _count_total(source: Source, tree: Tree, nodes: Ints, query: SplitQuery) -> int | None:
    """How many candidates the query has over all pages, where counting them is quick."""
    if len(nodes) > 1 and int(tree.rows[nodes].sum()) * len(tree.features) > COUNTED_CELLS:
        return None
    return sum(len(view) for view in source.view_nodes(nodes, query))


def _write_cursor(node: int, offset: int) -> str:
    return base64.urlsafe_b64encode(f"{node}:{offset}".encode()).decode().rstrip("=")


def read_cursor(cursor: str | None, nodes: Ints) -> tuple[int, int]:
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
    with np.errstate(over="ignore"):
        total = table.sum()
    if not 0 < total <= MOST_WEIGHT:
        raise InvalidData(Fault("/branches", f"weights must add up to more than 0, and to at most {MOST_WEIGHT:g}"))
    # fewer than two branches leave an empty one, which contributes nothing
    table = np.pad(table, ((0, 0), (0, max(0, 2 - table.shape[1]))))
    scores = {name: measure(table, table.sum(1)) for name, measure in CLASS_MEASURES.items()}
    if positive_class is not None:
        if positive_class not in classes or len(classes) > 2:
            shown = ", ".join(classes)
            raise UnsuitableTask(Fault("/positive_class", f"must be one of two classes; the classes are {shown}"))
        bound = bind_positive(classes.index(str(positive_class)))
        scores |= {name: measure(table, table.sum(1)) for name, measure in bound.items()}
    else:
        scores |= {name: np.array(np.nan) for name in POSITIVE_MEASURES}
    return {name: show_number(float(value)) for name, value in scores.items()}
