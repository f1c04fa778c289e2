"""Growth: batches of open nodes are searched, split, and their entries routed to the children.

Without `max_leaf_nodes` a batch is a whole level; with it, nodes wait in a heap and the one that gains most is
expanded next. Nothing recurses.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import Form
from service.core.criteria import Floats
from service.core.judge import is_fewer
from service.core.monotonic import narrow_bounds, read_values
from service.core.prune_cost import rate_nodes
from service.core.route import Children, route_entries, send_entries
from service.core.schema import Target
from service.core.search import Splits, search
from service.core.stand_ins import StandIns
from service.core.statistics import Entries, Ints
from service.core.surrogates import stand_in
from service.core.tree import LeafReason
from service.core.upkeep import lay_out, pass_on
from service.core.weigh import Batch, Learner, make_batch

Progress = Callable[[int, int], None]
"""Told after each batch: the depth reached, and the entries still open."""


@dataclass(slots=True)
class Growth:
    """What has been decided so far, in chunks of nodes in order of creation; `assemble.build_tree` reads it.

    ``nodes`` holds per chunk: parent, branch, depth, rows, stats, centre, reason, share; ``splits`` the splits taken,
    with the ids of their nodes and first children; ``stands`` their surrogates, with the ids of the nodes. ``leaf:
    (row,)`` is the node that each row has reached (rows that were parted have reached several, of which this is any).
    Nodes that have become too small for bins are ``waiting``. A node that risks no more than ``least`` is not split.
    """

    leaf: Ints
    nodes: list[dict[str, Any]] = field(default_factory=list)
    splits: list[tuple[Ints, Ints, Splits]] = field(default_factory=list)
    size: int = 0
    stands: list[tuple[Ints, StandIns]] = field(default_factory=list)
    waiting: list[Open] = field(default_factory=list)
    least: float = 0.0

    def add_nodes(self, chunk: dict[str, Any]) -> Ints:
        """Append nodes; returns their ids."""
        count = len(chunk["parent"])
        self.nodes.append(chunk)
        self.size += count
        return np.arange(self.size - count, self.size)


@dataclass(frozen=True, slots=True)
class Open:
    """Nodes that may be split: a batch with their ids and depths (node,)."""

    batch: Batch
    ids: Ints
    depth: Ints


def grow(learner: Learner, target: Target, progress: Progress | None = None) -> Growth:
    """Grow a tree over the rows of ``target``; the root is node 0."""
    rows = target.rows
    growth = Growth(np.zeros(rows, np.int64))
    entries = Entries(np.arange(rows), np.zeros(rows, np.int64), 1, target.weight)
    used = None if learner.parameters.reuse_features is True else np.zeros((1, len(learner.features)), bool)
    bounds = None if learner.directions is None else np.array([[-np.inf], [np.inf]])
    batch = make_batch(target, entries, used, bounds)
    impurity = learner.objective.impurity(batch.stats)
    ids = _record(growth, batch, impurity, np.array([-1]), np.array([0]), np.array([0]), np.ones(1))
    if learner.floor is not None:
        growth.least = learner.floor.find_least(learner.objective, *_tell_risk(learner, batch), impurity)
    keep = _keep_open(growth, learner, batch, impurity, ids, np.zeros(1, np.int64))
    if not keep.any():
        return growth
    fronts = [Open(lay_out(learner, batch), ids, np.zeros(1, np.int64))]
    # here and below nothing holds on to the arrays of a level longer than the next one needs them
    del entries, batch
    if learner.parameters.max_leaf_nodes is not None:
        _grow_best_first(growth, learner, target, fronts.pop(), learner.parameters.max_leaf_nodes, progress)
        return growth
    _grow_levels(growth, learner, target, fronts.pop(), progress)
    for front in _merge_waiting(learner, target, growth.waiting):
        _grow_levels(growth, learner, target, front, progress)
    return growth


def _grow_levels(
    growth: Growth, learner: Learner, target: Target, front: Open | None, progress: Progress | None
) -> None:
    while front is not None:
        front = _expand(growth, learner, target, front, search(learner, front.batch))
        if progress is not None and front is not None:
            waiting = sum(len(other.batch.entries.row) for other in growth.waiting)
            progress(int(front.depth[0]), len(front.batch.entries.row) + waiting)


def _merge_waiting(learner: Learner, target: Target, waiting: list[Open]) -> Iterator[Open]:
    """The waiting nodes in portions that fit the memory, their rows in order."""
    waiting.sort(key=lambda front: int(front.ids[0]))
    while waiting:
        portion: list[Open] = []
        rows = 0
        while waiting and (not portion or rows + len(waiting[0].batch.entries.row) <= learner.sizes.portion):
            portion.append(waiting.pop(0))
            rows += len(portion[-1].batch.entries.row)
        shift = np.cumsum([0, *(len(front.ids) for front in portion)])
        batches = [front.batch for front in portion]
        entries = Entries(
            np.concatenate([batch.entries.row for batch in batches]),
            np.concatenate([batch.entries.node + first for batch, first in zip(batches, shift, strict=False)]),
            int(shift[-1]),
            None if target.weight is None else np.concatenate([_read_weights(batch) for batch in batches]),
        )
        used = [batch.used for batch in batches if batch.used is not None]
        batch = make_batch(target, entries, np.concatenate(used) if used else None)
        ids, depth = (np.concatenate([getattr(front, name) for front in portion]) for name in ("ids", "depth"))
        yield Open(lay_out(learner, batch, few=True), ids, depth)


def _read_weights(batch: Batch) -> Floats:
    return np.ones(len(batch.entries.row)) if batch.entries.weight is None else batch.entries.weight


def _keep_open(
    growth: Growth, learner: Learner, batch: Batch, impurity: Floats, ids: Ints, depth: Ints
) -> NDArray[np.bool_]:
    """(node,) True for the nodes that may be split; what finished the others is recorded."""
    parameters = learner.parameters
    reason = np.zeros(len(ids), np.int64)
    few = batch.rows < parameters.min_samples_split
    if learner.parts_rows:
        few = is_fewer(learner.objective.criterion.family.weigh(batch.stats), parameters.min_samples_split)
    reason[few] = LeafReason.MIN_SAMPLES_SPLIT
    if learner.floor is not None:
        counts, weight = _tell_risk(learner, batch)
        floor = learner.floor
        cost, _ = rate_nodes(learner.objective, counts, weight, impurity, floor.costs, floor.risk)
        reason[cost <= growth.least] = LeafReason.CP
    if parameters.max_depth is not None:
        reason[depth >= parameters.max_depth] = LeafReason.MAX_DEPTH
    reason[impurity <= 0] = LeafReason.PURE
    _set_reasons(growth, ids, reason)
    return np.asarray(reason == 0)


def _tell_risk(learner: Learner, batch: Batch) -> tuple[Floats | None, Floats]:
    """(class, node) the class weights, if there are classes, and (node,) the weight."""
    counts = batch.stats if learner.objective.criterion.task == "classification" else None
    return counts, learner.objective.criterion.family.weigh(batch.stats)


def _set_reasons(growth: Growth, ids: Ints, reason: Ints) -> None:
    """Write the reasons of nodes of the newest chunks; a batch's nodes were created together."""
    offset = growth.size
    for chunk in reversed(growth.nodes):
        offset -= len(chunk["parent"])
        mine = (ids >= offset) & (ids < offset + len(chunk["parent"]))
        chunk["reason"][ids[mine] - offset] = reason[mine]
        if offset <= ids.min(initial=growth.size):
            return


def _expand(growth: Growth, learner: Learner, target: Target, front: Open, splits: Splits) -> Open | None:
    """Split the nodes that have a split: record it and the children, route the entries.

    Returns the children that may be split in turn, None without any.
    """
    taken = splits.feature >= 0
    _set_reasons(growth, front.ids, np.where(taken, 0, LeafReason.NO_ADMISSIBLE_SPLIT))
    if not taken.any():
        return None
    branches = np.where(taken, splits.branches, 0)
    first = np.cumsum(branches) - branches
    route = route_entries(learner, front.batch.entries, splits)
    if learner.parameters.missing == "surrogate":
        splits, stands, route = stand_in(learner, front.batch, splits, route)
        growth.stands.append((front.ids, stands))
    growth.splits.append((front.ids, growth.size + first, replace(splits, side=None)))
    # handed on without a name here, so that the arrays of a level end with it
    return _open_children(growth, learner, target, front, splits, send_entries(learner, front.batch, route, branches))


def _open_children(
    growth: Growth, learner: Learner, target: Target, front: Open, splits: Splits, children: Children
) -> Open | None:
    """Record the children; those without rows become leaves at once."""
    entries, parent, branch = children.entries, children.parent, children.branch
    rows = np.bincount(entries.node, minlength=len(parent))
    occupied = rows > 0
    depth = front.depth[parent] + 1
    if not occupied.all():
        entries = replace(entries, node=(np.cumsum(occupied) - 1)[entries.node], nodes=int(occupied.sum()))
    used = front.batch.used
    if used is not None:
        used = _use_up(learner, used[parent], splits.feature[parent])[occupied]
    batch = make_batch(target, entries, used)
    batch = replace(batch, bounds=_narrow_bounds(learner, front.batch, batch, splits, parent, branch))
    impurity = learner.objective.impurity(batch.stats)
    ids = _record(growth, batch, impurity, front.ids[parent], branch, depth, children.share, occupied)
    growth.leaf[entries.row] = np.repeat(ids[occupied], batch.rows)
    keep = _keep_open(growth, learner, batch, impurity, ids[occupied], depth[occupied])
    ids, depth = ids[occupied], depth[occupied]
    if front.batch.binned is not None and learner.parameters.max_leaf_nodes is None:
        small = keep & (batch.rows < learner.sizes.scan)
        if small.any():
            growth.waiting.append(Open(batch.keep(small), ids[small], depth[small]))
        keep &= ~small
    if not keep.any():
        return None
    if not keep.all():
        batch = batch.keep(keep)
    del entries
    return Open(pass_on(front.batch, batch, target.rows), ids[keep], depth[keep])


def _use_up(learner: Learner, used: NDArray[np.bool_], feature: Ints) -> NDArray[np.bool_]:
    """(child, feature) what is used up below; thresholds may cut the same feature again where cuts are allowed."""
    spent = learner.find_spent()
    used = used.copy()
    used[np.arange(len(feature)), feature] |= spent[feature]
    return used


def _narrow_bounds(
    learner: Learner, above: Batch, batch: Batch, splits: Splits, parent: Ints, branch: Ints
) -> Floats | None:
    if learner.directions is None or above.bounds is None:
        return None
    value = read_values(learner.objective, batch.stats, batch.tally.centre)
    direction = learner.directions[splits.feature[parent]] * (splits.form[parent] == Form.THRESHOLD)
    return narrow_bounds(above.bounds[:, parent], value, direction, branch)


def _record(
    growth: Growth, batch: Batch, impurity: Floats, parent: Ints, branch: Ints, depth: Ints, share: Floats,
    occupied: NDArray[np.bool_] | None = None,
) -> Ints:  # fmt: skip
    """Append the nodes; those not ``occupied`` get no rows and no statistics. Returns the ids of all."""
    count = len(parent)
    at = np.arange(count) if occupied is None else np.flatnonzero(occupied)
    if occupied is None or occupied.all():
        stats, rows, centre = batch.stats, batch.rows, batch.tally.centre
    else:
        stats, rows = np.zeros((len(batch.stats), count)), np.zeros(count, np.int64)
        centre, spread = np.zeros((*batch.tally.centre.shape[:-1], count)), np.zeros(count)
        stats[:, at], rows[at], centre[..., at], spread[at] = batch.stats, batch.rows, batch.tally.centre, impurity
        impurity = spread
    answer = np.full(count, np.nan)
    if batch.answer is not None:
        answer[at] = batch.answer
    reason = np.full(count, int(LeafReason.EMPTY))
    reason[at] = LeafReason.SPLIT
    return growth.add_nodes(
        {"parent": parent, "branch": branch, "depth": depth, "stats": stats, "rows": rows, "centre": centre,
         "impurity": impurity, "reason": reason, "answer": answer, "share": share}
    )  # fmt: skip


def _grow_best_first(
    growth: Growth, learner: Learner, target: Target, root: Open, most: int, progress: Progress | None
) -> None:
    """Expand the node with the greatest gain times weight until there are ``most`` leaves."""
    heap: list[tuple[float, int, Open, Splits]] = []
    leaves, rows = 1, 0

    def push(front: Open) -> None:
        nonlocal rows
        if front.batch.binned is not None and int(front.batch.rows.max()) < learner.sizes.coarse:
            front = replace(front, batch=lay_out(learner, replace(front.batch, binned=None), few=True))
        splits = search(learner, front.batch)
        _set_reasons(growth, front.ids, np.where(splits.feature >= 0, 0, LeafReason.NO_ADMISSIBLE_SPLIT))
        gain = splits.score - learner.objective.baseline(front.batch.stats)
        weight = learner.objective.criterion.family.weigh(learner.objective.alter(front.batch.stats))
        for i in np.flatnonzero(splits.feature >= 0).tolist():
            alone = Open(front.batch.run(i, i + 1), front.ids[[i]], front.depth[[i]])
            heapq.heappush(heap, (-float(gain[i] * weight[i]), int(front.ids[i]), alone, splits.take_node(i)))
            rows += len(alone.batch.entries.row)

    push(root)
    while heap:
        _, _, alone, split = heapq.heappop(heap)
        rows -= len(alone.batch.entries.row)
        more = int(split.branches[0]) - 1
        if leaves + more > most:
            _set_reasons(growth, alone.ids, np.array([LeafReason.MAX_LEAF_NODES]))
            continue
        leaves += more
        children = _expand(growth, learner, target, alone, split)
        if children is not None:
            push(children)
        if progress is not None:
            progress(int(alone.depth[0]), rows)
