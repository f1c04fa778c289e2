"""Splits -> routes: the branch that each entry takes at its node, and the children that it comes to."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.candidates import NO_ROUTE, Form
from service.core.criteria import Floats
from service.core.encoding import smallest_unsigned
from service.core.entries import Entries
from service.core.learner import Learner
from service.core.parallel import PARALLEL_CELLS, run_parallel
from service.core.parting import part_entries
from service.core.quantities import count_true
from service.core.route_bins import find_binned, route_by_bins
from service.core.search import Splits, levels_of
from service.core.sorting import FEW_TURNS, argsort_turns
from service.core.statistics import Ints


def route_entries(learner: Learner, batch: Batch, splits: Splits) -> Route:
    """(entry,) the branch that each entry takes at its node; 0 at nodes without a split."""
    if splits.side is not None:
        return splits.side.view(np.int8)
    entries = batch.entries
    few = splits.branches.max() <= np.iinfo(np.int8).max
    branch: Route = np.zeros(len(entries.row), np.int8) if few else np.zeros(len(entries.row), np.int64)
    offset, table = _lay_out_categories(learner, splits)
    rows, feature = batch.rows, splits.feature
    if batch.binned is not None:
        nodes = find_binned(batch, splits)
        route_by_bins(learner, batch, batch.binned, splits, nodes, branch)
        feature = feature.copy()
        feature[nodes] = -1

    def route(task: tuple[int, Ints, Ints]) -> None:
        f, nodes, mine = task
        # that many times each node, which is quicker than to look up each entry's
        node = np.repeat(nodes, rows[nodes])
        coded, row = learner.features[f], entries.row.take(mine)
        if learner.is_ordered(f):
            keys = coded.numbers if coded.feature.kind == "numeric" else coded.codes
            went: NDArray[Any] = keys.take(row) > np.repeat(keys[splits.lower[nodes]], rows[nodes])
        else:
            nominal = splits.form[node] != Form.MISSING
            went = table[np.where(nominal, offset[node] + coded.codes[row], 0)]
        if coded.has_missing:
            missing, present = coded.is_missing(row), splits.form[node] == Form.MISSING
            went = np.where(missing, np.where(present, 0, splits.missing_to[node]), np.where(present, 1, went))
        branch[mine] = went

    if (feature >= 0).any():
        run_parallel(route, list(_split_by_feature(rows, feature)), worth=len(branch) > PARALLEL_CELLS)
    return branch


def _split_by_feature(rows: Ints, feature: Ints) -> Iterator[tuple[int, Ints, Ints]]:
    """Each feature that some node is split on, with these nodes and their entries; ``rows``, ``feature``: (node,)."""
    start = np.cumsum(rows) - rows
    nodes = np.argsort(feature, kind="stable")
    # entries of one node stand side by side: those of several nodes are a few runs
    place = np.repeat(start[nodes] - (np.cumsum(rows[nodes]) - rows[nodes]), rows[nodes])
    place += np.arange(len(place))
    edge = np.cumsum(rows[nodes])
    found, first = np.unique(feature[nodes], return_index=True)
    for f, begin, end in zip(found.tolist(), first.tolist(), [*first[1:].tolist(), len(nodes)], strict=True):
        if f >= 0:
            yield f, nodes[begin:end], place[edge[begin] - rows[nodes[begin]] : edge[end - 1]]


def _lay_out_categories(learner: Learner, splits: Splits) -> tuple[Ints, Ints]:
    """(node,) where each node's run begins in the (cell,) table of branches by code, NO_ROUTE where unseen."""
    if not splits.category.size:
        return np.zeros(len(splits.form), np.int64), np.full(1, NO_ROUTE)
    nominal = (splits.form == Form.SUBSET) | (splits.form == Form.MULTIWAY)
    size = np.where(nominal, levels_of(learner, splits.feature) + 1, 0)
    offset = np.cumsum(size) - size
    table = np.full(max(int(size.sum()), 1), NO_ROUTE)
    node, code, branch = splits.category
    table[offset[node] + code] = branch
    return offset, table


Route: TypeAlias = NDArray[np.signedinteger]
"""(entry,) branches, or `NO_ROUTE`."""


@dataclass(frozen=True, slots=True)
class Children:
    """Children of the nodes of a batch, by parent and branch, with what comes to them.

    ``parent``, ``branch``: (child,); ``share: (child,)`` of the parent's known weight, 1 where rows are not parted.
    The nodes of ``entries`` are those of the children that have rows: ``child: (node,)`` says which.
    """

    entries: Entries
    child: Ints
    parent: Ints
    branch: Ints
    share: Floats


def send_entries(learner: Learner, batch: Batch, route: Route, branches: Ints) -> Children:
    """Entries to children, by the ``route``; `NO_ROUTE` is parted among all or stays.

    ``branches: (node,)`` counts the children, 0 where there is no split.
    """
    first = branches.cumsum() - branches
    parent = np.arange(len(branches)).repeat(branches)
    branch = np.arange(len(parent)) - first[parent]
    if learner.parts_rows:
        child = np.where(branches > 0, first, -1).repeat(batch.rows) + route
        lost = (branches > 0)[batch.entries.node] & (route < 0)
        child[lost] = -1
        entries, share = part_entries(batch, child, np.flatnonzero(lost), parent)
        rows = np.bincount(entries.node, minlength=len(parent))
        some = np.flatnonzero(rows)
        entries = replace(entries, node=np.repeat(np.arange(len(some)), rows[some]), nodes=len(some))
        return Children(entries, some, parent, branch, share)
    entries, some = _group_by_turns(batch, route, branches, parent, branch)
    return Children(entries, some, parent, branch, np.ones(len(parent)))


def _group_by_turns(batch: Batch, route: Route, branches: Ints, parent: Ints, branch: Ints) -> tuple[Entries, Ints]:
    """The entries that have a child, grouped by it, and (node,) the children with rows.

    Of each parent's children that with the fewest rows comes in the first turn, the next in the second, and so on;
    within a turn they stand as their parents do, so that each turn's entries only have to be looked out.
    """
    turns = int(branches.max())
    if turns == 2 and route.dtype == np.int8:
        turn, of_entry, rows = _tell_two_turns(batch, route, branches)
    else:
        turn, of_entry, rows = _tell_turns(batch, route, branches, parent, branch)
    some = turn.argsort(kind="stable")
    some = some[rows[some] > 0]
    rows = rows[some]
    if len(route) <= PORTION or turns > FEW_TURNS:
        order = argsort_turns(of_entry, turns)
        routed = batch.entries.take(order, np.arange(len(some)).repeat(rows), len(some))
        return replace(routed, source=order), some
    return _look_out(batch.entries, of_entry, np.bincount(turn[some], rows, turns).astype(np.int64), rows), some


def _tell_two_turns(
    batch: Batch, route: Route, branches: Ints
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger], Ints]:
    """As `_tell_turns`, where nodes have two children or none."""
    start = batch.starts()
    right = count_true(route == 1, start)
    left = count_true(route == 0, start)
    split = branches > 0
    larger = left > right
    # the branch, or the other one where the left child is the larger; more than 1 without a child
    of_entry = np.where(split, larger, 2).astype(np.uint8).repeat(batch.rows)
    of_entry ^= route.view(np.uint8)
    turn = larger[split].repeat(2)
    turn[1::2] ^= True
    rows = np.empty(len(turn), np.int64)
    rows[::2], rows[1::2] = left[split], right[split]
    return turn.view(np.uint8), of_entry, rows


def _tell_turns(
    batch: Batch, route: Route, branches: Ints, parent: Ints, branch: Ints
) -> tuple[NDArray[np.unsignedinteger], NDArray[np.unsignedinteger], Ints]:
    """The turns of children (child,), and of entries (entry,), as many as there are where they have no child.

    Also how many rows come to each child.
    """
    child = np.where(branches > 0, branches.cumsum() - branches, -1).repeat(batch.rows) + route
    child[(route < 0)] = -1
    rows = np.bincount(child + 1, minlength=len(parent) + 1)[1:]
    turns = int(branches.max())
    # what has no child, -1, reads the last place
    turn = np.full(len(parent) + 1, turns, smallest_unsigned(turns))
    turn[np.lexsort((rows, parent))] = branch
    return turn[:-1], turn[child], rows


PORTION = 2**16
"""Entries are looked out so many at a time: memory for all at once would have to be fetched for each step."""


def _look_out(entries: Entries, turn: NDArray[np.unsignedinteger], of_turn: Ints, rows: Ints) -> Entries:
    """The entries of each turn, ``of_turn: (turn,)`` of them, one turn after the other; ``rows: (node,)`` of nodes."""
    total, places = int(of_turn.sum()), (of_turn.cumsum() - of_turn).tolist()
    row, source = np.empty(total, np.int64), np.empty(total, np.int64)
    weight = None if entries.weight is None else np.empty(total)

    def fill(one: int) -> None:
        end = places[one]
        for begin in range(0, len(turn), PORTION):
            inside = slice(begin, begin + PORTION)
            at = np.flatnonzero(turn[inside] == one)
            to = slice(end, end + len(at))
            row[to] = entries.row[inside].take(at)
            np.add(at, begin, out=source[to])
            if weight is not None and entries.weight is not None:
                weight[to] = entries.weight[inside].take(at)
            end = to.stop

    run_parallel(fill, range(len(places)))
    return Entries(row, np.arange(len(rows)).repeat(rows), len(rows), weight, source)
