"""Cuts of a line where every row weighs 1: scored as their classes are counted, with no table in between.

    labels in value order       0 1 1 0 1 ...
    running count of each       the left branch of every cut; the right one is the rest of the node

What depends on nothing but how many rows are on the left is worked out once for all features. Numbers are summed
instead (`sum_cuts`).
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
from service.core.sum_cuts import Sums

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
    plain = batch.tally.counts_rows and learner.directions is None
    return can_rate(learner, batch) and plain and int(np.count_nonzero(line.ends)) >= SIDE_BY_SIDE


def can_rate(learner: Learner, batch: Batch) -> bool:
    """True where a `Rater` knows what is summed: classes are counted, or a number and its squares."""
    numbers = learner.objective.criterion.statistic == "moments" and not learner.parameters.has_cut_rules
    return batch.tally.classes > 0 or (numbers and batch.tally.centre.ndim == 1)


class Rater:
    """Rates the cuts of the lines of a batch of one node."""

    def __init__(self, learner: Learner, batch: Batch) -> None:
        parameters, objective = learner.parameters, learner.objective
        self._learner, self._batch = learner, batch
        self._selection = parameters.selection
        self._sums = None if batch.tally.classes else Sums(batch)
        self._node = batch.stats if self._sums else _repeat_node(objective, batch)
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
        for cut, branches in self._walk(line, scored=measure is None):
            altered = objective.alter(branches)
            rated.append(self._rate(line.feature, cut, altered, price))
            if measure is not None:
                other.append(self._score(altered, measure))
        reason, within, score = (np.concatenate(parts)[:count] for parts in zip(*rated, strict=True))
        return Rated(tried, reason, within, score, np.concatenate(other)[:count] if other else None)

    def score(self, line: Line, measure: str) -> Floats:
        """(cut,) one measure of every cut of a line, as `listing.score_branches`."""
        alter = self._learner.objective.alter
        found = [self._score(alter(branches), measure) for _, branches in self._walk(line, scored=False)]
        return np.concatenate(found)[: np.count_nonzero(line.ends)]

    def _walk(self, line: Line, *, scored: bool) -> Iterator[tuple[Ints, Floats]]:
        return _walk(self._batch, line) if self._sums is None else self._sums.walk(line, scored=scored)

    def _score(self, branches: Floats, measure: str) -> Floats:
        objective = self._learner.objective
        counted = self._sums is None and objective.alteration is None
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.ravel(objective.rate(measure, branches, self._node if counted else branches.sum(1)))

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
