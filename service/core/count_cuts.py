"""Cuts of a line where every row weighs 1: scored as their classes are counted, with no table in between.

    labels in value order       0 1 1 0 1 ...
    running count of each       the left branch of every cut; the right one is the rest of the node

What depends on nothing but how many rows are on the left is worked out once for all features. Numbers are summed
instead (`sum_cuts`).
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.audit import rate_table
from service.core.batch import Batch
from service.core.c45 import charge, price_cuts
from service.core.candidates import Lack
from service.core.criteria import Floats
from service.core.impurities import ENTROPY, look_up_entropy
from service.core.judge import Reason, find_limited, has_limits, judge_gains
from service.core.learner import Learner
from service.core.lines import Line, weigh_lack
from service.core.listing import SIDE_BY_SIDE, score_table
from service.core.parallel import run_parallel
from service.core.statistics import Ints
from service.core.sum_cuts import Sums

CELLS = 2**17
"""So many cuts x classes are rated at a time: more than the nearest cache holds, but threads take turns for the
interpreter between calls, and lose more by short ones."""
Reasons: TypeAlias = NDArray[np.uint8]


@dataclass(frozen=True, slots=True)
class Rated:
    """What is said of all candidates of a line in order, as `audit.rate_table` has it; how many count in the price.

    ``within`` is what ranks them within their feature where the score does not, ``other`` the score by another measure.
    """

    tried: Floats | None
    reason: Reasons
    score: Floats
    within: Floats | None = None
    other: Floats | None = None


def can_count(learner: Learner, batch: Batch, line: Line) -> bool:
    """True where the cuts of a line of a batch of one node are rated by counts; too few are not worth it."""
    plain = batch.tally.counts_rows and learner.directions is None
    if len(line.missing):
        directed = line.lack is Lack.DIRECTED and learner.parameters.cut_penalty is None
        return can_rate(learner, batch) and plain and directed and bool(line.ends.any())
    return can_rate(learner, batch) and plain and int(np.count_nonzero(line.ends)) >= SIDE_BY_SIDE


def can_rate(learner: Learner, batch: Batch) -> bool:
    """True where a `Rater` knows what is summed: classes are counted, or a number and its squares."""
    numbers = learner.objective.criterion.statistic == "moments" and not learner.parameters.has_cut_rules
    return batch.tally.classes > 0 or (numbers and batch.tally.centre.ndim == 1)


class Rater:
    """Rates the cuts of the lines of a batch of one node."""

    def __init__(self, learner: Learner, batch: Batch) -> None:
        self._learner, self._batch, objective = learner, batch, learner.objective
        self._sums = None if batch.tally.classes else Sums(batch)
        self._by_gain = learner.parameters.selection == "c45"
        self._baseline = float(objective.baseline(batch.stats)[0])
        self._tolerance = float(objective.tolerance(batch.stats, learner.parameters.selection)[0])
        told = run_parallel(self._tell_rows, range(1, max(int(batch.rows[0]), 2), CELLS))
        limited, content = (np.concatenate(each) for each in zip(*told, strict=True))
        self._limited = limited if has_limits(learner.parameters) else None
        self._content = content if self._divides else None
        self._family = objective.criterion.family
        self._total: NDArray[Any] = batch.stats
        self._node = batch.stats if self._sums else _repeat_node(objective.alter(batch.stats))
        if self._divides and self._family is ENTROPY:
            self._family, self._total = look_up_entropy(int(batch.rows[0])), batch.sums[0]
            self._node = _repeat_node(self._total)

    @property
    def _divides(self) -> bool:
        """True where scores are gains by a content that follows from how many rows are on the left."""
        return self._learner.objective.criterion.within is not None and self._learner.objective.alteration is None

    def _tell_rows(self, first: int) -> tuple[Reasons, Floats]:
        """(place,) what follows from how many rows are on the left, from ``first`` on: limits, information content."""
        left = np.arange(first, min(first + CELLS, int(self._batch.rows[0])))
        rows = np.stack([left, self._batch.rows - left])
        weight = rows.astype(np.float64)
        limited, content = np.empty(0, np.uint8), np.empty(0)
        if has_limits(self._learner.parameters):
            limited = find_limited(self._learner, rows, lambda: weight, self._batch.tally.classes, cut=True)
        if self._divides:
            content = self._learner.objective.rate("information_content", weight[None], weight.sum(0)[None])
        return limited, content

    def rate(self, line: Line, measure: str | None = None) -> Rated:
        """All candidates of a line, also by another ``measure``."""
        objective, count = self._learner.objective, line.count_candidates()
        tried, price = self._count_tried(line), None
        if tried is not None:
            price = price_cuts(objective.criterion.family.weigh(objective.alter(self._batch.stats)), tried)
        reason, score = np.empty(count + 2 * SIDE_BY_SIDE, np.uint8), np.empty(count + 2 * SIDE_BY_SIDE)
        within = np.empty_like(score) if self._by_gain else None
        other = np.empty_like(score) if measure else None
        for some, place, branches in self._list(line, scored=measure is None):
            altered = objective.alter(branches)
            selects, score[some] = self._rate(place, altered, price)
            reason[some] = self._judge(line.feature, place, selects)
            if within is not None:
                within[some] = np.where(reason[some] == 0, selects, -np.inf)
            if measure and other is not None:
                other[some] = self._score(altered, measure)
        for table in weigh_lack(self._batch, line):
            reason[count - 1 :], selects, score[count - 1 :], _ = rate_table(
                self._learner, self._batch, line.block, table
            )
            if within is not None:
                within[count - 1 :] = selects
            if measure and other is not None:
                other[count - 1 :] = score_table(objective, table, measure)
        return Rated(tried, reason[:count], score[:count], *(a if a is None else a[:count] for a in (within, other)))

    def score(self, line: Line, measure: str) -> Floats:
        """(candidate,) one measure of all candidates of a line, as `listing.score_branches`."""
        objective, count = self._learner.objective, line.count_candidates()
        score = np.empty(count + 2 * SIDE_BY_SIDE)
        for some, _, branches in self._list(line, scored=False):
            score[some] = self._score(objective.alter(branches), measure)
        for table in weigh_lack(self._batch, line):
            score[count - 1 :] = score_table(objective, table, measure)
        return score[:count]

    def _list(self, line: Line, *, scored: bool) -> Iterator[tuple[slice, Ints, Floats]]:
        """Which candidates come next, how many rows but one are on the left of each, and their branches.

        Where something is missing each cut is two candidates: with that on the left, and with that on the right.
        """
        missing, begin = len(line.missing), 0
        sums, walk = self._sums, partial(_walk, self._batch, line, self._total)
        for place, branches, moved in walk() if sums is None else sums.walk(line, scored=scored):
            first, begin = begin, begin + len(place) * (1 + (missing > 0))
            if missing:
                yield slice(first, begin, 2), place + missing, moved
                yield slice(first + 1, begin, 2), place, branches
            else:
                yield slice(first, begin), place, branches

    def _score(self, branches: Floats, measure: str) -> Floats:
        objective = self._learner.objective
        counted = self._sums is None and objective.alteration is None
        with np.errstate(invalid="ignore", divide="ignore"):
            branches = branches.astype(np.float64, copy=False)
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

    def _rate(self, place: Ints, branches: Floats, price: Floats | None) -> tuple[Floats, Floats]:
        """What ranks cuts within their feature, and among all, as `audit.rate_table` has it."""
        objective, selection = self._learner.objective, self._learner.parameters.selection
        with np.errstate(invalid="ignore", divide="ignore"):
            if self._content is None:
                within = objective.score_within(branches, self._node, selection, price=price).ravel()
                score = objective.score(branches, branches.sum(1), price=price).ravel() if self._by_gain else within
                return within, score
            gain = self._family.gain(branches, self._node).ravel()
            score = objective.score_ratio(gain, self._content[place], price)
            return charge(gain, price) if self._by_gain else score, score

    def _judge(self, feature: int, place: Ints, within: Floats) -> Reasons:
        """As `judge.judge`."""
        reason = judge_gains(self._learner.parameters, within, self._baseline, self._tolerance)
        reason[np.isnan(within)] = Reason.UNDEFINED
        if self._limited is not None:
            limited = self._limited[place]
            reason = np.where(limited > 0, limited, reason)
        if self._batch.used is not None and self._batch.used[0, feature]:
            reason[:] = Reason.USED_ON_PATH
        return reason


def _repeat_node(node: NDArray[Any]) -> NDArray[Any]:
    """(class, 32, 1) a node (class, 1), so often that its classes are added up in the same order as the branches'."""
    return np.repeat(node, SIDE_BY_SIDE, axis=1)[:, :, None]


def _walk(batch: Batch, line: Line, total: NDArray[Any]) -> Iterator[tuple[Ints, NDArray[Any], NDArray[Any]]]:
    """The places of cuts, and their branches (class, 2, 32, cut / 32), some at a time; the last cut comes repeatedly.

    Branches are of the type of the node's ``total: (class, 1)``. A node that is there 32 times matches them. First with
    what is missing on the right, then on the left; nothing may be.
    """
    cut, tally = line.find_cuts(), batch.tally
    label = tally.label_entries.take(line.entry)
    before, first = np.zeros(tally.classes, np.int64), 0
    most = max(CELLS // tally.classes // SIDE_BY_SIDE, 1) * SIDE_BY_SIDE
    for begin in range(0, len(cut), most):
        place = cut[begin : begin + most]
        place = np.append(place, np.full(-len(place) % SIDE_BY_SIDE, place[-1]))
        end, after = int(place[-1]) + 1, place - first
        branches = np.empty((tally.classes, 2, len(place)), total.dtype)
        for one in range(tally.classes - 1):
            # along one axis and without another type numpy lets go of the interpreter
            upto = np.cumsum((label[first:end] == one).astype(np.int64))
            upto += before[one]
            branches[one, 0], before[one] = upto.take(after), upto[-1]
        np.subtract(place + 1, branches[:-1, 0].sum(0), out=branches[-1, 0])
        np.subtract(total, branches[:, 0], out=branches[:, 1])
        stacked = branches.reshape(tally.classes, 2, SIDE_BY_SIDE, -1)
        moved = stacked
        if len(line.missing):
            lacking = np.bincount(tally.label_entries.take(line.missing), minlength=tally.classes)[:, None, None]
            moved = np.stack([stacked[:, 0] + lacking, stacked[:, 1] - lacking], axis=1)
        yield place, stacked, moved
        first = end
