"""Cuts of a line where every row weighs 1 and has a class: scored as they are counted, with no table in between.

    labels in value order       0 1 1 0 1 ...
    running count of each       the left branch of every cut; the right one is the rest of the node

What depends on nothing but how many rows are on the left is worked out once for all features.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.c45 import charge, price_cuts
from service.core.criteria import Floats
from service.core.judge import Reason, find_limited, has_limits, judge_gains
from service.core.learner import Learner
from service.core.lines import STEP, Line
from service.core.listing import SIDE_BY_SIDE
from service.core.objective import Objective
from service.core.statistics import Ints

Reasons = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Rated:
    """What is said of every cut of a line in order, as `audit.rate_table` has it, and how many count in the price.

    ``other`` is the score by another measure.
    """

    tried: Floats | None
    reason: Reasons
    within: Floats
    score: Floats
    other: Floats | None = None


def can_count(learner: Learner, batch: Batch, line: Line) -> bool:
    """True where the cuts of a line of a batch of one node are rated by counts; too few are not worth it."""
    plain = batch.tally.classes > 0 and batch.tally.counts_rows and learner.directions is None
    return plain and int(np.count_nonzero(line.ends)) >= SIDE_BY_SIDE


def score_line(objective: Objective, batch: Batch, line: Line, measure: str) -> Floats:
    """(cut,) one measure of every cut of a line, as `listing.score_branches`."""
    node = _repeat_node(objective, batch)
    found = [_score(objective, objective.alter(branches), node, measure) for _, branches in _walk(batch, line)]
    return np.concatenate(found)[: np.count_nonzero(line.ends)]


class Rater:
    """Rates the cuts of the lines of a batch of one node."""

    def __init__(self, learner: Learner, batch: Batch) -> None:
        parameters, objective = learner.parameters, learner.objective
        self._learner, self._batch = learner, batch
        self._selection = parameters.selection
        self._node = _repeat_node(objective, batch)
        self._baseline = float(objective.baseline(batch.stats)[0])
        self._tolerance = float(objective.tolerance(batch.stats, self._selection)[0])
        first = np.arange(1, int(batch.rows[0]))
        rows = np.stack([first, first[::-1]])
        weight = rows.astype(np.float64)
        self._limited = None
        if has_limits(parameters):
            self._limited = find_limited(learner, rows, lambda: weight, batch.tally.classes, cut=True)
        self._content = None
        if objective.criterion.within is not None and objective.alteration is None:
            self._content = objective.criterion.family.information_content(weight[None], weight[None].sum(1))

    def rate(self, line: Line, measure: str | None = None) -> Rated:
        """Every cut of a line, also by another ``measure``."""
        objective, count = self._learner.objective, int(np.count_nonzero(line.ends))
        tried = self._count_tried(line)
        price = None
        if tried is not None:
            price = price_cuts(objective.criterion.family.weigh(objective.alter(self._batch.stats)), tried)
        rated, other = [], []
        for cut, branches in _walk(self._batch, line):
            altered = objective.alter(branches)
            rated.append(self._rate(line.feature, cut, altered, price))
            if measure is not None:
                other.append(_score(objective, altered, self._node, measure))
        reason, within, score = (np.concatenate(parts)[:count] for parts in zip(*rated, strict=True))
        return Rated(tried, reason, within, score, np.concatenate(other)[:count] if other else None)

    def _count_tried(self, line: Line) -> Floats | None:
        """(1,) as `judge.count_tried`."""
        penalty = self._learner.parameters.cut_penalty
        if penalty is None:
            return None
        counted = line.ends[:-1]
        if self._limited is not None and penalty != "distinct":
            counted = counted & (self._limited == Reason.ADMISSIBLE)
        return np.array([float(np.count_nonzero(counted))])

    def _rate(self, feature: int, cut: Ints, branches: Floats, price: Floats | None) -> tuple[Reasons, Floats, Floats]:
        """As `judge` and `audit.rate_table`."""
        objective, node, by_gain = self._learner.objective, self._node, self._selection == "c45"
        with np.errstate(invalid="ignore", divide="ignore"):
            if self._content is None:
                within = objective.score_within(branches, node, self._selection, price=price).ravel()
                score = objective.score(branches, branches.sum(1), price=price).ravel() if by_gain else within
            else:
                gain = objective.rate(str(objective.criterion.within), branches, node).ravel()
                score = objective.score_ratio(gain, self._content[cut], price)
                within = charge(gain, price) if by_gain else score
        reason = judge_gains(self._learner.parameters, within, self._baseline, self._tolerance)
        reason[np.isnan(within)] = Reason.UNDEFINED
        if self._limited is not None:
            limited = self._limited[cut]
            reason = np.where(limited > 0, limited, reason)
        if self._batch.used is not None and self._batch.used[0, feature]:
            reason[:] = Reason.USED_ON_PATH
        return reason, within, score


def _repeat_node(objective: Objective, batch: Batch) -> Floats:
    """(class, 32, 1) the altered node, so often that its classes are added up in the same order as the branches'."""
    return np.repeat(objective.alter(batch.stats), SIDE_BY_SIDE, axis=1)[:, :, None]


def _score(objective: Objective, branches: Floats, node: Floats, measure: str) -> Floats:
    known = node if objective.alteration is None else branches.sum(1)
    with np.errstate(invalid="ignore", divide="ignore"):
        return np.ravel(objective.rate(measure, branches, known))


def _walk(batch: Batch, line: Line) -> Iterator[tuple[Ints, Floats]]:
    """The places of cuts, and their branches (class, 2, 32, cut / 32), some at a time; the last cut comes repeatedly.

    A node that is there 32 times matches such branches.
    """
    cut, tally = line.find_cuts(), batch.tally
    cut = np.append(cut, np.full(-len(cut) % SIDE_BY_SIDE, cut[-1]))
    label = tally.label_entries.take(line.entry)
    before = np.zeros(tally.classes, np.int64)
    first = 0
    for begin in range(0, len(cut), STEP):
        part = cut[begin : begin + STEP]
        end = int(part[-1]) + 1
        branches = np.empty((tally.classes, 2, len(part)))
        for one in range(tally.classes):
            # along one axis and without another type numpy lets go of the interpreter
            upto = np.cumsum((label[first:end] == one).astype(np.int64))
            upto += before[one]
            branches[one, 0] = upto.take(part - first)
            before[one] = upto[-1]
        np.subtract(batch.stats, branches[:, 0], out=branches[:, 1])
        first = end
        yield part, branches.reshape(tally.classes, 2, SIDE_BY_SIDE, -1)
