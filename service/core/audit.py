"""The audit: every candidate of any node, weighed and judged by the functions that growth used."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, replace
from itertools import pairwise
from mmap import mmap
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch, make_batch
from service.core.candidates import Block, Candidates
from service.core.criteria import Floats
from service.core.descend_parts import descend_parts
from service.core.encoding import smallest_unsigned
from service.core.entries import Entries
from service.core.guide import are_floats, lay_out
from service.core.judge import judge, select_within
from service.core.learn import prepare_target
from service.core.learner import Learner
from service.core.listing import Listing
from service.core.monotonic import find_bounds
from service.core.prune_match import match_split
from service.core.ranking import build_keys, rank_keys
from service.core.rescore import Origin, Rescorer, Restated
from service.core.scan import Grouping, arrange, scan_cuts
from service.core.schema import Target
from service.core.sorting import argsort_keys
from service.core.statistics import Ints
from service.core.tree import LeafReason, Tree
from service.core.weigh import list_blocks, weigh_features

LISTED_CELLS = 60_000
"""Nodes are audited together up to about so many rows x features."""
LINED_ROWS = 20_000
"""In a node of so many rows cuts are read off rows in value order."""


@dataclass(frozen=True, slots=True)
class Audited:
    """What is needed to weigh a model's candidates again.

    ``row: (row,)`` are the training rows in such an order that those below a node stand side by side, from
    ``begin: (node,)`` on. ``bounds: (2, node)``: see `Batch`. ``groups`` are the nodes with rows that are audited
    together, in breadth-first order, and ``group: (node,)`` is the group of each node (-1: it has no rows).

    Where rows are parted they are listed node by node, with the ``weight`` of what of them is in it: (entry,).
    """

    learner: Learner
    target: Target
    tree: Tree
    row: Ints
    begin: Ints
    bounds: Floats | None
    groups: list[Ints]
    group: Ints
    weight: Floats | None = None

    def count_bytes(self) -> int:
        """About how much memory it takes, with the codes that numbers with gaps get once they are weighed."""
        coded = self.learner.features
        # pages of a file are not ours
        own = sum(each.kept.nbytes for each in coded if not _is_mapped(each.kept))
        codes = sum(4 * len(each.kept) for each in coded if each.has_missing)
        return (1 + (self.weight is not None)) * self.row.nbytes + 4 * self.begin.nbytes + own + codes


def _is_mapped(array: object) -> bool:
    """True where an array looks at pages of a file, perhaps through others."""
    while isinstance(array, np.ndarray):
        array = array.base
    return isinstance(array, mmap)


def prepare_audit(learner: Learner, target: Target, tree: Tree, leaf: Ints) -> Audited:
    """What does not differ from node to node; ``leaf: (row,)`` is where each training row ended."""
    target = prepare_target(target, learner.parameters)
    weight = None
    if learner.parts_rows:
        row, weight, begin = _part_rows(learner, target, tree)
    else:
        begin = _place_rows(tree)
        # rows that stay in a node stand behind those of its children
        below = np.bincount(np.maximum(tree.parent, 0), tree.rows * (tree.parent >= 0), tree.nodes).astype(np.int64)
        turn = np.empty(tree.nodes, smallest_unsigned(tree.nodes))
        turn[np.argsort(begin + below)] = np.arange(tree.nodes)
        row = argsort_keys(turn[leaf], tree.nodes)
    bounds = None if learner.directions is None else find_bounds(learner, tree)
    groups = _group_nodes(tree)
    group = np.full(tree.nodes, -1)
    for index, nodes in enumerate(groups):
        group[nodes] = index
    return Audited(learner, target, tree, row, begin, bounds, groups, group, weight)


def _part_rows(learner: Learner, target: Target, tree: Tree) -> tuple[Ints, Floats, Ints]:
    """(entry,) the rows of every node, node by node, what of their weight is in it, and (node,) where each begins."""
    columns = [coded.as_column() for coded in learner.features]
    guide = lay_out(tree, are_floats(columns))
    parts = descend_parts(guide, columns, target.rows, target.weight, inner=True)
    order = np.argsort(parts.node, kind="stable")
    return parts.row[order], parts.share[order], np.searchsorted(parts.node[order], np.arange(tree.nodes))


def _place_rows(tree: Tree) -> Ints:
    """(node,) where the rows of each node begin when those below a node stand side by side, its first child's first."""
    before = np.cumsum(tree.rows) - tree.rows
    begin = before - before[tree.first_child[tree.parent]]
    begin[0] = 0
    edges = np.searchsorted(tree.depth, np.arange(1, int(tree.depth.max()) + 2))
    for first, last in pairwise(edges.tolist()):
        begin[first:last] += begin[tree.parent[first:last]]
    return begin


def _group_nodes(tree: Tree) -> list[Ints]:
    """Runs of nodes with rows, each of one depth and small enough to be audited together."""
    nodes = np.flatnonzero(tree.rows > 0)
    cells = tree.rows[nodes] * max(len(tree.features), 1)
    groups: list[Ints] = []
    run: list[int] = []
    size = 0
    for node, depth, cost in zip(nodes.tolist(), tree.depth[nodes].tolist(), cells.tolist(), strict=True):
        if run and (size + cost > LISTED_CELLS or depth != tree.depth[run[0]]):
            groups.append(np.array(run))
            run, size = [], 0
        run.append(node)
        size += cost
    return [*groups, np.array(run)]


def list_candidates(audited: Audited, nodes: Ints) -> Listing:
    """Weigh, judge and rank every candidate of ``nodes``, none of which is above another; all have rows."""
    listing = weigh_listing(audited.learner, audited.target, rebuild_batch(audited, nodes), nodes)
    return replace(listing, chosen=find_chosen(audited, listing, listing.rank))


def weigh_listing(learner: Learner, target: Target, batch: Batch, nodes: Ints) -> Listing:
    """Weigh, judge and rank every candidate of the ``nodes`` of a batch; none is marked as chosen."""
    return rank_listing(
        learner, batch, weigh_candidates(learner, target, batch, nodes, np.arange(len(learner.features)))
    )


def rank_listing(learner: Learner, batch: Batch, weighed: Unranked) -> Listing:
    """The candidates with their ranks; none is marked as chosen."""
    listing = weighed.listing
    keys = build_keys(learner, batch, listing, weighed.within, weighed.gain)
    return replace(listing, rank=rank_keys(listing.node, listing.reason == 0, keys))


@dataclass(frozen=True, slots=True)
class Unranked:
    """A ``listing`` without ranks, and what ranks it: scores ``within`` features, -inf where inadmissible, ``gain``.

    Both are (candidate,); see `build_keys`.
    """

    listing: Listing
    within: Floats
    gain: Floats


Found: TypeAlias = tuple[Block, list[Candidates], Origin | None]
"""Candidates of some features, and what they were made from where that is needed again."""


def weigh_candidates(learner: Learner, target: Target, batch: Batch, nodes: Ints, features: Ints) -> Unranked:
    """Weigh and judge every candidate of some ``features`` in the ``nodes`` of a batch."""
    runs = list_blocks(learner, features, len(batch.entries.row))
    return judge_candidates(learner, target, batch, nodes, (weigh_run(learner, batch, run) for run in runs))


def judge_candidates(
    learner: Learner, target: Target, batch: Batch, nodes: Ints, weighed_runs: Iterable[Found],
    tried: Floats | None = None,
) -> Unranked:  # fmt: skip
    """Judge candidates of the ``nodes`` of a batch, and put them in order; ``tried``: see `judge`."""
    objective = learner.objective
    tables: list[Candidates] = []
    origins: list[Origin] = []
    whole: list[list[Ints]] = []
    real: list[list[Floats]] = []
    for block, found, weighed in weighed_runs:
        for table in found:
            reason, within, score, gain = rate_table(learner, batch, block, table, tried)
            size = len(table.segment)
            origin = [np.full(size, len(tables)), np.arange(size)]
            whole.append([*origin, block.node[table.segment], block.feature[table.segment], reason.astype(np.int64)])
            real.append([within, score, gain])
            tables.append(table)
            # of classes every measure is made from the tables
            origins += [] if weighed is None or target.is_classification else [weighed]
    none = np.empty(0, np.int64)
    position = np.concatenate([table.position for table in tables] or [none])
    of_table, place, node, feature, reasons = (np.concatenate([p[i] for p in whole] or [none]) for i in range(5))
    within, score, gain = (np.concatenate([p[i] for p in real] or [none.astype(float)]) for i in range(3))
    one = len(tables) == 1 and (np.diff(tables[0].segment) >= 0).all() and (np.diff(feature) >= 0).all()
    alone = one and len(nodes) == 1  # a table is in order of position within its segments
    order = np.arange(len(node)) if alone else np.lexsort((position, feature, node))
    of_table, place, node, feature, reasons = (each[order] for each in (of_table, place, node, feature, reasons))
    unranked = Listing(
        nodes, batch.tally.centre, objective, tables, of_table, place, node, feature, reasons, score[order],
        np.zeros(len(node), np.int64), np.zeros(len(node), bool), learner.parameters.cut_penalty is not None,
        Rescorer(Restated(target, batch), tables, origins, objective.unknown_branch),
    )  # fmt: skip
    return Unranked(unranked, within[order], gain[order])


def rate_table(
    learner: Learner, batch: Batch, block: Block, table: Candidates, tried: Floats | None = None
) -> tuple[NDArray[np.uint8], Floats, Floats, Floats]:
    """(candidate,) the reason against each; what ranks it within its feature, among all, and in C4.5's mean of gains.

    ``tried``: see `judge`. Within its feature what is inadmissible has -inf.
    """
    judged, objective = judge(learner, batch, block, table, tried=tried), learner.objective
    within = np.where(judged.reason == 0, judged.within, -np.inf)
    if learner.parameters.selection == "criterion":
        return judged.reason, within, judged.within, judged.within
    branches, gone = objective.alter(table.branches), objective.alter_gone(table.gone)
    known = branches.sum(1)
    with np.errstate(invalid="ignore"):
        score = objective.score(branches, known, gone, judged.price)
        gain = judged.within
        if select_within(learner, block) != "c45":
            gain = objective.score_within(branches, known, "c45", gone, judged.price)
    return judged.reason, within, score, gain


def weigh_run(learner: Learner, batch: Batch, run: Ints) -> Found:
    """All candidates of the features of a ``run``; of classes in one large node cuts are read off sorted rows.

    That gives the same candidates in half the time, and codes of numbers need not be kept.
    """
    numbers = all(learner.features[f].feature.kind == "numeric" and not learner.features[f].has_missing for f in run)
    large = batch.entries.nodes == 1 and len(batch.entries.row) >= LINED_ROWS
    if large and numbers and batch.tally.classes:
        ordered = arrange(learner.features, run, batch.entries.row)
        grouping = Grouping(batch.entries.node, batch.starts(), batch.rows)
        block, tables = scan_cuts(batch.nodes(), ordered, grouping, strict=False)
        if len(np.unique(tables[0].segment)) == len(run):  # else one is constant, which is a candidate as well
            return block, tables, None
    return weigh_features(learner, batch, run, constants=True)


def find_chosen(audited: Audited, listing: Listing, rank: Ints) -> NDArray[np.bool_]:
    """(candidate,) True for the splits that the tree has: the best of each node, or the one that was raised to it."""
    tree, nodes = audited.tree, listing.nodes
    chosen: NDArray[np.bool_] = (rank == 1) & ~tree.is_leaf[nodes][listing.node]
    for at in np.flatnonzero((tree.reason[nodes] == LeafReason.RAISED) & ~tree.is_leaf[nodes]).tolist():
        node, rows = int(nodes[at]), listing.find_rows(at)
        chosen[rows] = False
        feature = int(tree.feature[node])
        rows = rows[listing.feature[rows] == feature]
        for index in np.unique(listing.table[rows]).tolist():
            mine = rows[listing.table[rows] == index]
            table, place = listing.tables[index], listing.place[mine]
            chosen[mine] = match_split(tree, node, audited.learner.features[feature], table, place)
    return chosen


def rebuild_batch(audited: Audited, nodes: Ints) -> Batch:
    """The batch that growth searched: the rows below each node, with the rules that the path imposes.

    Those of a single node ascend, so that columns are read from one end to the other.
    """
    tree, learner = audited.tree, audited.learner
    rows = tree.rows[nodes]
    node = np.repeat(np.arange(len(nodes)), rows)
    skipped = audited.begin[nodes] - (np.cumsum(rows) - rows)
    place = slice(skipped[0], skipped[0] + rows[0]) if len(nodes) == 1 else skipped[node] + np.arange(len(node))
    row = audited.row[place]
    if len(nodes) == 1 and audited.weight is None:
        here = np.zeros(audited.target.rows, bool)
        here[row] = True
        row = np.flatnonzero(here)
    weight = None if audited.target.weight is None else audited.target.weight[row]
    if audited.weight is not None:
        weight = audited.weight[place]
    entries = Entries(row, node, len(nodes), weight)
    used = None if learner.parameters.reuse_features is True else find_used(learner, tree, nodes)
    bounds = None if audited.bounds is None else audited.bounds[:, nodes]
    return make_batch(audited.target, entries, learner.objective, used, bounds)


def find_used(learner: Learner, tree: Tree, nodes: Ints) -> NDArray[np.bool_]:
    """(node, feature) True where the path to the node has used a feature up."""
    used = np.zeros((len(nodes), len(learner.features)), bool)
    spent = learner.find_spent()
    at = tree.parent[nodes]
    while (at >= 0).any():
        below = np.flatnonzero(at >= 0)
        feature = tree.feature[at[below]]
        used[below, feature] |= spent[feature]
        at[below] = tree.parent[at[below]]
    return used
