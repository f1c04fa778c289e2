"""Candidates -> the best split of each node.

nominate   the best of each (node, feature)
choose     the best feature of each node
resolve    weigh the chosen features once more, and take the winners apart into splits
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import NO_ROUTE, Block, Candidates, Form, Slots
from service.core.criteria import Floats
from service.core.judge import judge
from service.core.statistics import Ints
from service.core.subsets import find_left
from service.core.weigh import Batch, Learner, list_blocks, weigh_block, weigh_chosen

USEFUL_MARGIN = 1e-3
"""Under C4.5's selection a feature competes whose gain is the mean useful gain less this, or more (C4.5 release 8)."""


@dataclass(frozen=True, slots=True)
class Nominees:
    """The best admissible candidate of each segment, -inf or -1 where there is none.

    ``within``: what chose it among its feature's, ``across``: what it competes with, ``tie``: what decides ties
    (all 0 if nothing does): (segment,).
    """

    within: Floats
    across: Floats
    tie: Floats


def nominate(
    learner: Learner, batch: Batch, block: Block, tables: Sequence[Candidates], top: Floats | None = None
) -> tuple[Nominees, Ints, Ints]:
    """The first of each segment's tied best candidates, with (segment,) the table and the place in it (-1: none).

    ``top: (segment,)`` is the score to reach where it is known already (the node's best).
    """
    segments, selection = len(block.node), learner.parameters.selection
    judged = [judge(learner, batch, block, table) for table in tables]
    score = np.concatenate([np.where(reason == 0, within, -np.inf) for reason, within in judged] or [np.empty(0)])
    segment = np.concatenate([table.segment for table in tables] or [np.empty(0, np.int64)])
    best = np.full(segments, -np.inf)
    np.maximum.at(best, segment, score)
    floor = (best if top is None else top) - learner.objective.tolerance(batch.stats, selection)[block.node]
    near = np.flatnonzero((score >= floor[segment]) & (score > -np.inf))
    size = np.array([0, *np.cumsum([len(table.segment) for table in tables])])
    of_table = np.searchsorted(size, near, side="right") - 1
    place = near - size[of_table]
    across, tie, position = _rate_nominees(learner, tables, of_table, place)
    order = np.lexsort((position, -tie, segment[near]))
    order = order[np.diff(segment[near][order], prepend=-1) != 0]
    winner = segment[near][order]
    return (
        Nominees(best, _spread(across[order], winner, segments, -np.inf), _spread(tie[order], winner, segments, 0.0)),
        _spread(of_table[order], winner, segments, -1),
        _spread(place[order], winner, segments, -1),
    )


def _rate_nominees(
    learner: Learner, tables: Sequence[Candidates], of_table: Ints, place: Ints
) -> tuple[Floats, Floats, Ints]:
    """(near,) each near-best candidate's score across features, its tie-breaking score, and its position."""
    objective = learner.objective
    across, tie, position = np.zeros(len(place)), np.zeros(len(place)), np.zeros(len(place), np.int64)
    for index, table in enumerate(tables):
        mine = of_table == index
        branches = objective.alter(table.branches[:, :, place[mine]])
        node = branches.sum(1)
        across[mine] = objective.score(branches, node)
        broken = objective.break_ties(branches, node)
        tie[mine] = 0.0 if broken is None else broken
        position[mine] = table.position[place[mine]]
    return across, tie, position


Number = TypeVar("Number", np.float64, np.int64)


def _spread(values: NDArray[Number], at: Ints, size: int, otherwise: float) -> NDArray[Number]:
    out = np.full(size, otherwise, dtype=values.dtype)
    out[at] = values
    return out


@dataclass(frozen=True, slots=True)
class Splits:
    """The best split of each node of a batch; everything is (node,).

    ``feature`` is -1 where no candidate is admissible. ``branches`` counts the children. ``lower``, ``upper`` are the
    codes beside a threshold. Nominal splits are spelt out in ``category: (3, pair)``: node, code, branch.
    """

    feature: Ints
    form: Ints
    score: Floats
    branches: Ints
    missing_to: Ints
    lower: Ints
    upper: Ints
    category: Ints


def search(learner: Learner, batch: Batch) -> Splits:
    """The split that an exhaustive search takes in each node, ties broken by (feature order, candidate order)."""
    nodes, features = batch.entries.nodes, len(learner.features)
    if features == 0:
        return _no_splits(nodes)
    nominees = Nominees(*(np.full((nodes, features), worst) for worst in (-np.inf, -np.inf, 0.0)))
    for run in list_blocks(learner, len(batch.entries.row)):
        block, tables = weigh_block(learner, batch, run)
        found = nominate(learner, batch, block, tables)[0]
        for whole, part in zip(_fields(nominees), _fields(found), strict=True):
            whole[:, run] = part.reshape(nodes, -1)
    chosen, best = choose(learner, batch, nominees)
    if not (chosen >= 0).any():
        return _no_splits(nodes)
    return resolve(learner, batch, chosen, best)


def _fields(nominees: Nominees) -> tuple[Floats, Floats, Floats]:
    return nominees.within, nominees.across, nominees.tie


def choose(learner: Learner, batch: Batch, nominees: Nominees) -> tuple[Ints, Floats]:
    """(node,) the feature whose nominee wins, -1 without any; and (node,) the best score across features."""
    across = nominees.across
    if learner.parameters.selection == "c45":
        useful = np.isfinite(nominees.within)
        count = np.maximum(useful.sum(1), 1)
        mean = np.where(useful, nominees.within, 0.0).sum(1) / count
        across = np.where(nominees.within >= mean[:, None] - USEFUL_MARGIN, across, -np.inf)
    best = across.max(1)
    with np.errstate(invalid="ignore"):
        tied = across >= (best - learner.objective.tolerance(batch.stats))[:, None]
    tied &= np.isfinite(across)
    tie = np.where(tied, nominees.tie, -np.inf)
    winner = tied & (tie >= tie.max(1)[:, None])
    return np.where(winner.any(1), winner.argmax(1), -1), best


def resolve(learner: Learner, batch: Batch, chosen: Ints, best: Floats) -> Splits:
    """Take the winner of each node apart; ``chosen``: its feature, ``best``: the score across features: (node,)."""
    block, tables = weigh_chosen(learner, batch, chosen)
    top = None if learner.parameters.selection == "c45" else best
    nominees, of_table, place = nominate(learner, batch, block, tables, top)
    splits = _no_splits(len(chosen))
    splits.feature[:] = np.where(of_table >= 0, chosen, -1)
    splits.score[:] = nominees.across
    category = []
    for index, table in enumerate(tables):
        node = np.flatnonzero(of_table == index)
        if len(node):
            category.append(_describe(learner, splits, table, node, place[node]))
    return Splits(
        splits.feature, splits.form, splits.score, splits.branches, splits.missing_to, splits.lower, splits.upper,
        np.concatenate([splits.category, *category], axis=1),
    )  # fmt: skip


def _no_splits(nodes: int) -> Splits:
    ints = [np.zeros(nodes, np.int64) for _ in range(6)]
    ints[0][:] = -1
    ints[3][:] = NO_ROUTE
    return Splits(ints[0], ints[1], np.full(nodes, -np.inf), ints[2], ints[3], ints[4], ints[5], np.empty((3, 0), int))


def _describe(learner: Learner, splits: Splits, table: Candidates, node: Ints, place: Ints) -> Ints:
    """Fill in the ``splits`` of some nodes from their candidates; returns the categories' branches (3, pair)."""
    splits.form[node] = table.form
    splits.missing_to[node] = table.missing_to[place]
    splits.branches[node] = (table.rows[:, place] > 0).sum(0)
    if table.form == Form.THRESHOLD:
        splits.lower[node], splits.upper[node] = table.lower[place], table.upper[place]
    category = _spell_out(splits, table, node, place)
    if learner.parameters.empty_branches and table.form == Form.MULTIWAY and table.slots is not None:
        _open_empty_branches(learner, splits, table, table.slots, node, place)
        category[2] = category[1]
    # where missing values are a category of their own, the branch of the last code is theirs
    lacking = category[1] == levels_of(learner, splits.feature[category[0]])
    splits.missing_to[category[0][lacking]] = category[2][lacking]
    return category


def _spell_out(splits: Splits, table: Candidates, node: Ints, place: Ints) -> Ints:
    """(3, pair) node, code and branch of every category that the chosen candidates of a nominal ``table`` split."""
    slots = table.slots
    if slots is None:
        return np.empty((3, 0), np.int64)
    if table.subsets is not None:
        left, of_slot = find_left(table.subsets, slots, table.segment, place)
        branch, mine = np.where(left, 0, 1), of_slot >= 0
    else:
        taken = np.zeros(len(splits.feature), bool)
        taken[node] = True
        start = slots.starts()
        branch = np.arange(len(slots.segment)) - np.repeat(start, np.diff(start, append=len(slots.segment)))
        mine = taken[slots.segment]
    return np.stack([slots.segment[mine], slots.code[mine], branch[mine]])


def _open_empty_branches(
    learner: Learner, splits: Splits, table: Candidates, slots: Slots, node: Ints, place: Ints
) -> None:
    """Give every category of the feature a branch, whether rows are in it or not; a branch is its code then."""
    levels = levels_of(learner, splits.feature[node])
    own = learner.parameters.missing == "branch"
    last = np.searchsorted(slots.segment, node, side="right") - 1
    splits.branches[node] = levels + (own & (slots.code[last] == levels))
    to = table.missing_to[place]
    splits.missing_to[node] = np.where(to >= 0, slots.code[table.lower[place] + np.maximum(to, 0)], to)


def levels_of(learner: Learner, feature: Ints) -> Ints:
    """The number of levels of each given feature; 0 for -1, no feature."""
    return np.array([*(coded.levels for coded in learner.features), 0], np.int64)[feature]
