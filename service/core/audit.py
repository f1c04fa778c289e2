"""The audit: every candidate of any node, weighed and judged by the functions that growth used."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import Candidates, Form
from service.core.criteria import LOWER_IS_BETTER, Floats
from service.core.judge import judge, narrow_bounds, read_values
from service.core.schema import Target
from service.core.search import USEFUL_MARGIN
from service.core.statistics import Entries, Ints
from service.core.tree import Tree
from service.core.weigh import Batch, Learner, list_blocks, make_batch, weigh_block

LISTED_CELLS = 60_000
"""Nodes are audited together up to about so many rows x features."""


@dataclass(frozen=True, slots=True)
class Audited:
    """What is needed to weigh a model's candidates again: its learner and target, its tree, (row,) its leaves."""

    learner: Learner
    target: Target
    tree: Tree
    leaf: Ints


@dataclass(frozen=True, slots=True)
class Listing:
    """All candidates of ``nodes``, in (node, feature, candidate) order; every array is (candidate,).

    ``table``, ``place``: where its branches are in ``tables``. ``node`` indexes ``nodes``. ``rank`` is 1 for the best
    under the selection, 0 for what is inadmissible. ``chosen`` marks the split that the tree took. ``key``:
    (key, candidate) what ranks, greater first.
    """

    nodes: Ints
    batch: Batch
    tables: list[Candidates]
    table: Ints
    place: Ints
    node: Ints
    feature: Ints
    reason: Ints
    scores: dict[str, Floats]
    key: Floats
    rank: Ints
    chosen: NDArray[np.bool_]

    def find_rows(self, node: int) -> Ints:
        """The candidates of one node (an index into ``nodes``)."""
        return np.flatnonzero(self.node == node)


def group_nodes(audited: Audited, nodes: Ints) -> Iterator[Ints]:
    """Runs of ``nodes`` (ascending ids) of one depth with rows, small enough to audit together."""
    tree = audited.tree
    cells = np.maximum(tree.rows[nodes], 1) * max(len(tree.features), 1)
    run: list[int] = []
    size = 0
    for node, cost in zip(nodes.tolist(), cells.tolist(), strict=True):
        if run and (size + cost > LISTED_CELLS or tree.depth[node] != tree.depth[run[0]]):
            yield np.array(run)
            run, size = [], 0
        run.append(node)
        size += cost
    if run:
        yield np.array(run)


def list_candidates(audited: Audited, nodes: Ints) -> Listing:
    """Weigh, judge, score and rank every candidate of ``nodes``, none of which is above another; all have rows."""
    batch = _rebuild_batch(audited, nodes)
    learner = audited.learner
    tables, parts = [], []
    for run in list_blocks(learner, np.arange(len(learner.features)), len(batch.entries.row)):
        block, found = weigh_block(learner, batch, run, constants=True)
        for table in found:
            reason, within = judge(learner, batch, block, table)
            parts.append((block.node[table.segment], block.feature[table.segment], reason, within))
            tables.append(table)
    size = [len(table.segment) for table in tables]
    of_table = np.repeat(np.arange(len(tables)), size)
    place = np.concatenate([np.arange(n) for n in size] or [np.empty(0, np.int64)])
    position = np.concatenate([t.position for t in tables] or [np.empty(0, np.int64)])
    node, feature, reason, within = (
        np.concatenate([part[i] for part in parts] or [np.empty(0, np.int64)]) for i in range(4)
    )
    scores = _score_all(learner, tables)
    order = np.lexsort((position, feature, node))
    of_table, place, node, feature = of_table[order], place[order], node[order], feature[order]
    reason, within = reason[order], within[order].astype(np.float64)
    scores = {name: values[order] for name, values in scores.items()}
    key = _build_keys(learner, batch, node, feature, np.where(reason == 0, within, -np.inf), scores)
    rank = _rank(node, reason == 0, key)
    chosen = (rank == 1) & ~audited.tree.is_leaf[nodes][node]
    return Listing(
        nodes, batch, tables, of_table, place, node, feature, reason.astype(np.int64), scores, key, rank, chosen
    )


def _rebuild_batch(audited: Audited, nodes: Ints) -> Batch:
    """The batch that growth searched: the rows below each node, with the rules that the path imposes."""
    tree, learner = audited.tree, audited.learner
    owner = np.full(tree.nodes, -1)
    owner[nodes] = np.arange(len(nodes))
    for depth in range(int(tree.depth[nodes].min(initial=0)) + 1, int(tree.depth.max()) + 1):
        level = np.flatnonzero(tree.depth == depth)
        level = level[owner[level] < 0]
        owner[level] = owner[tree.parent[level]]
    row = np.flatnonzero(owner[audited.leaf] >= 0)
    node = owner[audited.leaf[row]]
    order = np.argsort(node, kind="stable")
    row = row[order]
    weight = None if audited.target.weight is None else audited.target.weight[row]
    entries = Entries(row, node[order], len(nodes), weight)
    used = None if learner.parameters.reuse_features else _find_used(learner, tree, nodes)
    bounds = None if learner.directions is None else find_bounds(learner, tree)[:, nodes]
    return make_batch(audited.target, entries, used, bounds)


def _find_used(learner: Learner, tree: Tree, nodes: Ints) -> NDArray[np.bool_]:
    """(node, feature) True where the path to the node has used a feature up."""
    used = np.zeros((len(nodes), len(learner.features)), bool)
    spent = ~np.array([learner.is_ordered(f) for f in range(len(learner.features))])
    at = tree.parent[nodes]
    while (at >= 0).any():
        below = np.flatnonzero(at >= 0)
        feature = tree.feature[at[below]]
        used[below, feature] |= spent[feature]
        at[below] = tree.parent[at[below]]
    return used


def find_bounds(learner: Learner, tree: Tree) -> Floats:
    """(2, node) the predictions that monotonic ancestors allow, level by level."""
    directions = np.zeros(len(tree.features), np.int64) if learner.directions is None else learner.directions
    bounds = np.full((2, tree.nodes), [[-np.inf], [np.inf]])
    value = read_values(learner.objective, tree.counts, np.zeros(tree.nodes)) if len(tree.counts) else tree.mean
    for depth in range(1, int(tree.depth.max()) + 1):
        level = np.flatnonzero(tree.depth == depth)
        parent = tree.parent[level]
        direction = directions[tree.feature[parent]] * (tree.form[parent] == Form.THRESHOLD)
        bounds[:, level] = narrow_bounds(bounds[:, parent], value[level], direction, level - tree.first_child[parent])
    return bounds


def _score_all(learner: Learner, tables: Sequence[Candidates]) -> dict[str, Floats]:
    """Every measure of every candidate, in table order."""
    objective = learner.objective
    altered = [objective.alter(table.branches) for table in tables]
    with np.errstate(invalid="ignore"):
        return {
            name: np.concatenate([measure(branches, branches.sum(1)) for branches in altered] or [np.empty(0)])
            for name, measure in objective.measures().items()
        }


def _build_keys(
    learner: Learner, batch: Batch, node: Ints, feature: Ints, within: Floats, scores: dict[str, Floats]
) -> Floats:
    """(key, candidate) what ranks, first key first: tied with the best, the tie-breaking score, the score.

    Under C4.5's selection the first key says that the candidate is its feature's and has a useful gain.
    """
    criterion, selection = learner.objective.criterion, learner.parameters.selection
    score = np.where(within > -np.inf, scores[criterion.measure], -np.inf)
    if selection == "c45":
        eligible = _find_eligible(learner, batch, node, feature, within)
        rival = np.where(eligible, score, -np.inf)
    else:
        eligible, rival = np.ones(len(node), bool), score
    best = np.full(batch.entries.nodes, -np.inf)
    np.maximum.at(best, node, rival)
    with np.errstate(invalid="ignore"):
        tied = (rival >= (best - learner.objective.tolerance(batch.stats))[node]) & (rival > -np.inf)
    tie = scores[criterion.tie_break] if criterion.tie_break else np.zeros(len(node))
    return np.stack([tied, np.where(tied, tie, 0.0), eligible & ~tied, np.where(tied, 0.0, score)]).astype(float)


def _find_eligible(learner: Learner, batch: Batch, node: Ints, feature: Ints, within: Floats) -> NDArray[np.bool_]:
    """(candidate,) True for each feature's first best cut, where its gain is useful (see `search.choose`)."""
    features = len(learner.features)
    segment = node * features + feature
    best = np.full(batch.entries.nodes * features, -np.inf)
    np.maximum.at(best, segment, within)
    tolerance = learner.objective.tolerance(batch.stats, "c45")
    near = np.flatnonzero((within >= best[segment] - tolerance[node]) & (within > -np.inf))
    first = near[np.diff(segment[near], prepend=-1) != 0]  # candidates stand in segment order
    table = best.reshape(-1, features)
    useful = np.isfinite(table)
    mean = np.where(useful, table, 0.0).sum(1) / np.maximum(useful.sum(1), 1)
    eligible = np.zeros(len(node), bool)
    eligible[first] = within[first] >= mean[node[first]] - USEFUL_MARGIN
    return eligible


def _rank(node: Ints, admissible: NDArray[np.bool_], key: Floats) -> Ints:
    """(candidate,) 1 for the best of its node, 0 for what is inadmissible; equal keys stay in order."""
    rank = np.zeros(len(node), np.int64)
    index = np.flatnonzero(admissible)
    order = index[np.lexsort((*(-key[::-1, index]), node[index]))]
    first = np.flatnonzero(np.diff(node[order], prepend=-1))
    rank[order] = np.arange(len(order)) - np.repeat(first, np.diff(first, append=len(order))) + 1
    return rank


def rank_by(listing: Listing, measure: str) -> Ints:
    """(candidate,) ranks under another measure, 0 where it is inadmissible or undefined."""
    score = listing.scores[measure] * (-1.0 if measure in LOWER_IS_BETTER else 1.0)
    return _rank(listing.node, (listing.reason == 0) & ~np.isnan(score), np.nan_to_num(score)[None])


def find_margins(listing: Listing, node: int, measure: str) -> tuple[float | None, float | None]:
    """How far the best admissible candidate of a node is ahead of the next one, and of the best of another feature."""
    rows = listing.find_rows(node)
    rows = rows[listing.rank[rows] > 0]
    if not len(rows):
        return None, None
    rows = rows[np.argsort(listing.rank[rows])]
    score = listing.scores[measure][rows]
    other = score[listing.feature[rows] != listing.feature[rows[0]]]
    return (
        float(score[0] - score[1]) if len(score) > 1 else None,
        float(score[0] - np.nanmax(other)) if len(other) else None,
    )
