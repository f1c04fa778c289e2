"""Growth: batches of open nodes are searched, split, and their entries routed to the children.

Without `max_leaf_nodes` a batch is a whole level; with it, nodes wait in a heap and the one that gains most is
expanded next. Nothing recurses.
"""

from __future__ import annotations

import heapq
from collections.abc import Callable, Iterator
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch, make_batch
from service.core.candidates import Form, Lack
from service.core.criteria import Floats
from service.core.entries import Entries
from service.core.growth import Growth, Open
from service.core.judge import is_fewer
from service.core.learner import Learner
from service.core.monotonic import narrow_bounds, read_values
from service.core.prune_cost import rate_nodes
from service.core.route import Children, route_entries, send_entries
from service.core.schema import Target
from service.core.search import Splits, search
from service.core.statistics import Ints
from service.core.surrogates import stand_in
from service.core.tree import LeafReason
from service.core.upkeep import lay_out, pass_on

Progress = Callable[[int, int], None]
"""Told after each batch: the depth reached, and the entries still open."""


def grow(learner: Learner, target: Target, progress: Progress | None = None) -> Growth:
    """Grow a tree over the rows of ``target``; the root is node 0."""
    rows = target.rows
    growth = Growth(np.zeros(rows, np.int64))
    entries = Entries(np.arange(rows), np.zeros(rows, np.int64), 1, target.weight)
    used = None if learner.parameters.reuse_features is True else np.zeros((1, len(learner.features)), bool)
    bounds = None if learner.directions is None else np.array([[-np.inf], [np.inf]])
    batch = make_batch(target, entries, learner.objective, used, bounds)
    if learner.floor is not None:
        growth.least = learner.floor.find_least(learner.objective, *_tell_risk(learner, batch))
    depth = np.zeros(1, np.int64)
    reason = _find_reasons(growth, learner, batch, depth)
    nodes = {"parent": depth - 1, "branch": depth, "share": np.ones(1), "depth": depth}
    ids = growth.record(batch, reason, nodes, depth)
    if reason[0]:
        return growth
    fronts = [Open(lay_out(learner, batch), ids, depth)]
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
        batch = make_batch(target, entries, learner.objective, np.concatenate(used) if used else None)
        ids, depth = (np.concatenate([getattr(front, name) for front in portion]) for name in ("ids", "depth"))
        yield Open(lay_out(learner, batch, few=True), ids, depth)


def _read_weights(batch: Batch) -> Floats:
    return np.ones(len(batch.entries.row)) if batch.entries.weight is None else batch.entries.weight


def _find_reasons(growth: Growth, learner: Learner, batch: Batch, depth: Ints) -> Ints:
    """(node,) the `LeafReason` that finishes each node, 0 where it may be split."""
    parameters = learner.parameters
    reason = np.zeros(len(depth), np.int64)
    few = batch.rows < parameters.min_samples_split
    if learner.parts_rows:
        few = is_fewer(learner.objective.criterion.family.weigh(batch.stats), parameters.min_samples_split)
    reason[few] = LeafReason.MIN_SAMPLES_SPLIT
    if learner.floor is not None:
        cost, _ = rate_nodes(learner.objective, *_tell_risk(learner, batch), learner.floor.costs, learner.floor.risk)
        reason[cost <= growth.least] = LeafReason.CP
    if parameters.max_depth is not None:
        reason[depth >= parameters.max_depth] = LeafReason.MAX_DEPTH
    reason[batch.impurity <= 0] = LeafReason.PURE
    return reason


def _tell_risk(learner: Learner, batch: Batch) -> tuple[Floats | None, Floats, Floats]:
    """(class, node) the class weights, if there are classes; the weight and the impurity, (node,) both."""
    counts = batch.stats if learner.objective.criterion.task == "classification" else None
    return counts, learner.objective.criterion.family.weigh(batch.stats), batch.impurity


def _expand(growth: Growth, learner: Learner, target: Target, front: Open, splits: Splits) -> Open | None:
    """Split the nodes that have a split: record it and the children, route the entries.

    Returns the children that may be split in turn, None without any.
    """
    taken = splits.feature >= 0
    growth.finish(front, ~taken, LeafReason.NO_ADMISSIBLE_SPLIT)
    if not taken.any():
        return None
    branches = np.where(taken, splits.branches, 0)
    first = branches.cumsum() - branches
    route = route_entries(learner, front.batch, splits)
    splits.side = None  # as long as the entries, and told now
    if learner.parameters.missing == "surrogate":
        splits, stands, route = stand_in(learner, front.batch, splits, route)
        growth.stands.append((front.ids, stands))
    if learner.lack is Lack.APART:
        stays = np.flatnonzero(route < 0)
        growth.leaf[front.batch.entries.row[stays]] = front.ids[front.batch.entries.node[stays]]
    growth.splits.append((front.ids, growth.size + first, splits))
    # handed on without a name here, so that the arrays of a level end with it
    return _open_children(growth, learner, target, front, splits, send_entries(learner, front.batch, route, branches))


def _open_children(
    growth: Growth, learner: Learner, target: Target, front: Open, splits: Splits, children: Children
) -> Open | None:
    """Record the children; those without rows become leaves at once."""
    entries, parent = children.entries, children.parent[children.child]
    used = front.batch.used
    if used is not None:
        used = _use_up(learner, used[parent], splits.feature[parent])
    label = None
    if target.codes is not None and entries.source is not None:
        label = front.batch.tally.label_entries.take(entries.source)
    batch = make_batch(target, entries, learner.objective, used, label=label)
    if learner.directions is not None:
        batch = replace(batch, bounds=_narrow_bounds(learner, front.batch, batch, splits, children))
    depth = front.depth[parent] + 1
    reason = _find_reasons(growth, learner, batch, depth)
    nodes = {"parent": front.ids[children.parent], "branch": children.branch, "share": children.share,
             "depth": front.depth[children.parent] + 1}  # fmt: skip
    ids = growth.record(batch, reason, nodes, children.child)
    keep = reason == 0
    growth.settle(Open(batch, ids, depth), ~keep)
    if front.batch.binned is not None and learner.parameters.max_leaf_nodes is None:
        ahead = (learner.parameters.max_depth or target.rows) - depth
        small = keep & (batch.rows < learner.sizes.find_small(front.batch.binned, ahead))
        if small.any():
            waits = batch.keep(small)
            waits = replace(waits, entries=replace(waits.entries, source=None))
            growth.waiting.append(Open(waits, ids[small], depth[small]))
        keep &= ~small
    if not keep.any():
        return None
    if not keep.all():
        batch = batch.keep(keep)
    del entries
    return Open(pass_on(front.batch, batch, parent[keep], target.rows), ids[keep], depth[keep])


def _use_up(learner: Learner, used: NDArray[np.bool_], feature: Ints) -> NDArray[np.bool_]:
    """(child, feature) what is used up below; thresholds may cut the same feature again where cuts are allowed."""
    spent = learner.find_spent()
    used = used.copy()
    used[np.arange(len(feature)), feature] |= spent[feature]
    return used


def _narrow_bounds(learner: Learner, above: Batch, batch: Batch, splits: Splits, children: Children) -> Floats | None:
    if learner.directions is None or above.bounds is None:
        return None
    parent = children.parent
    value = np.zeros(len(parent))
    value[children.child] = read_values(learner.objective, batch.stats, batch.tally.centre)
    direction = learner.directions[splits.feature[parent]] * (splits.form[parent] == Form.THRESHOLD)
    return narrow_bounds(above.bounds[:, parent], value, direction, children.branch)[:, children.child]


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
        growth.finish(front, splits.feature < 0, LeafReason.NO_ADMISSIBLE_SPLIT)
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
            growth.finish(alone, np.ones(1, bool), LeafReason.MAX_LEAF_NODES)
            continue
        leaves += more
        children = _expand(growth, learner, target, alone, split)
        if children is not None:
            push(children)
        if progress is not None:
            progress(int(alone.depth[0]), rows)
