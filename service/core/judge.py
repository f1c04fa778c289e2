"""Which candidates are admissible, and why the others are not."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.c45 import ROUNDING, find_short_cuts, is_cut, price_cuts
from service.core.candidates import Block, Candidates, Form
from service.core.criteria import Floats
from service.core.learner import Learner
from service.core.monotonic import breaks_order
from service.core.parameters import Parameters
from service.core.statistics import Ints


class Reason(IntEnum):
    """Why a candidate is inadmissible; the names are the API's."""

    ADMISSIBLE = 0
    CONSTANT = 1
    USED_ON_PATH = 2
    MIN_SAMPLES_LEAF = 3
    MIN_WEIGHT_LEAF = 4
    UNDEFINED = 5
    MONOTONIC = 6
    NO_IMPROVEMENT = 7
    MIN_GAIN = 8
    CUT_LIMIT = 9


@dataclass(frozen=True, slots=True)
class Judged:
    """All (candidate,): the `Reason` against it; the score that selects within its feature; what its gain paid."""

    reason: NDArray[np.uint8]
    within: Floats
    price: Floats | None


def select_within(learner: Learner, block: Block) -> str:
    """How a candidate is chosen among its feature's: under C4.5's selection cuts by gain, groups by the criterion.

    The features of a ``block`` are cut alike.
    """
    if len(block.feature) and learner.is_ordered(int(block.feature[0])):
        return learner.parameters.selection
    return "criterion"


def judge(
    learner: Learner, batch: Batch, block: Block, table: Candidates, tolerance: Floats | None = None,
    tried: Floats | None = None,
) -> Judged:  # fmt: skip
    """What is said of each candidate.

    ``tolerance: (node,)`` is that of the selection within a feature, and ``tried: (segment,)`` how many cuts count in
    the price of a gain, where these are known already: a table may be a part of what was weighed.
    """
    objective = learner.objective
    selection = select_within(learner, block)
    if tolerance is None:
        tolerance = objective.tolerance(batch.stats, selection)
    node = block.node[table.segment]
    branches = objective.alter(table.branches)
    limited = _find_limited(learner, block, table)
    if learner.parameters.cut_penalty and tried is None:
        tried = _count_tried(learner, block, table, limited)
    price = None if tried is None else _price(learner, batch, block, table, tried)
    if table.gone is None:
        # taken so, and not by an index, the classes of a node stand far apart, like those of the branches
        whole = np.take(objective.alter(batch.stats), node, axis=1)
        within = objective.score_within(branches, whole, selection, price=price)
        baseline = objective.baseline(batch.stats)[node]
    else:
        known = table.branches[:, 0].copy()
        for branch in range(1, table.branches.shape[1]):
            known += table.branches[:, branch]  # several times as fast as a sum over an axis in the middle
        within = objective.score_within(branches, objective.alter(known), selection, objective.alter(table.gone), price)
        baseline = objective.baseline(known)
    reason = judge_gains(learner.parameters, within, baseline, tolerance[node])
    if learner.directions is not None:
        reason[breaks_order(learner, batch, block, table)] = Reason.MONOTONIC
    reason[np.isnan(within)] = Reason.UNDEFINED
    if limited is not None:
        reason = np.where(limited > 0, limited, reason)
    if batch.used is not None:
        reason[batch.used[node, block.feature[table.segment]]] = Reason.USED_ON_PATH
    if table.form == Form.CONSTANT:
        reason[:] = Reason.CONSTANT
    return Judged(reason, within, price)


def judge_gains(
    parameters: Parameters, within: Floats, baseline: Floats | float, tolerance: Floats | float
) -> NDArray[np.uint8]:
    """(candidate,) why what each gains is not enough, or 0."""
    reason = np.zeros(within.shape, np.uint8)
    with np.errstate(invalid="ignore"):
        gain = within - baseline
        if parameters.min_gain > 0:
            reason[gain < parameters.min_gain] = Reason.MIN_GAIN
        reason[gain <= tolerance] = Reason.NO_IMPROVEMENT
    return reason


def _find_limited(learner: Learner, block: Block, table: Candidates) -> NDArray[np.uint8] | None:
    """(candidate,) the limit on branches that a candidate breaks, or 0; None where there is no limit."""
    parameters = learner.parameters
    if not has_limits(parameters):
        return None
    cut = parameters.cut_limit is not None and is_cut(table, learner.features, block.feature[table.segment])
    weigh = partial(learner.objective.criterion.family.weigh, table.branches)
    return find_limited(learner, table.rows, weigh, len(table.branches), cut)


def has_limits(parameters: Parameters) -> bool:
    """True where branches may be too small."""
    return bool(parameters.cut_limit or parameters.min_weight_leaf > 0 or parameters.min_samples_leaf > 1)


def find_limited(
    learner: Learner, rows: Ints, weigh: Callable[[], Floats], classes: int, cut: NDArray[np.bool_] | bool
) -> NDArray[np.uint8]:
    """(candidate,) the limit that branches with so many ``rows: (branch, candidate)`` break, or 0.

    ``weigh`` tells their weights, where any limit is one; ``cut``: which are cuts of numbers.
    """
    parameters = learner.parameters
    reason = np.zeros(rows.shape[1], np.uint8)
    if parameters.cut_limit:
        reason[cut & find_short_cuts(rows, weigh(), classes)] = Reason.CUT_LIMIT
    if parameters.min_weight_leaf > 0:
        light = weigh() < parameters.min_weight_leaf * (1 - ROUNDING)
        reason[_starves(rows, light, parameters)] = Reason.MIN_WEIGHT_LEAF
    if parameters.min_samples_leaf > 1:
        small = rows < parameters.min_samples_leaf
        if learner.parts_rows:
            small = is_fewer(weigh(), parameters.min_samples_leaf)
        reason[_starves(rows, small, parameters)] = Reason.MIN_SAMPLES_LEAF
    return reason


def count_tried(learner: Learner, block: Block, table: Candidates) -> Floats:
    """(segment,) how many cuts of each feature count in the price of a gain."""
    return _count_tried(learner, block, table, _find_limited(learner, block, table))


def _count_tried(learner: Learner, block: Block, table: Candidates, limited: NDArray[np.uint8] | None) -> Floats:
    counted = is_cut(table, learner.features, block.feature[table.segment])
    if limited is not None and learner.parameters.cut_penalty != "distinct":
        counted = limited == Reason.ADMISSIBLE
    return np.bincount(table.segment, weights=counted).astype(np.float64, copy=False)


def _price(learner: Learner, batch: Batch, block: Block, table: Candidates, tried: Floats) -> Floats:
    """(candidate,) what the gain of each pays."""
    objective = learner.objective
    cut = is_cut(table, learner.features, block.feature[table.segment])
    weight = objective.criterion.family.weigh(objective.alter(batch.stats))[block.node[table.segment]]
    return np.where(cut, price_cuts(weight, tried[table.segment]), 0.0)


def is_fewer(weight: Floats, least: int) -> NDArray[np.bool_]:
    """Less ``weight`` than ``least`` rows have: where rows are parted limits count weight (as in C4.5 and J48)."""
    return np.asarray(weight < least * (1 - ROUNDING))


def _starves(rows: Ints, small: NDArray[np.bool_], parameters: Parameters) -> NDArray[np.bool_]:
    """(candidate,) True where the occupied branches (all, or two of them) do not meet a limit."""
    occupied = rows > 0
    if parameters.leaf_limit == "two":
        return np.asarray((occupied & ~small).sum(0) < 2)
    return np.asarray((occupied & small).any(0))
