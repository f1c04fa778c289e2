"""Candidates -> the best of each (node, feature)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.candidates import Block, Candidates
from service.core.criteria import Floats
from service.core.judge import Reason, judge, select_within
from service.core.learner import Learner
from service.core.statistics import Ints


@dataclass(frozen=True, slots=True)
class Nominees:
    """The best admissible candidate of each segment, -inf where there is none.

    ``within``: what chose it among its feature's, ``across``: what it competes with, ``tie``: what decides ties
    (all 0 if nothing does): (segment,). ``gain`` is what C4.5's selection takes the mean of (see `c45.find_useful`).
    """

    within: Floats
    across: Floats
    tie: Floats
    gain: Floats


class Board:
    """The judged candidates of some features in some nodes; only admissible ones can be nominated."""

    def __init__(self, learner: Learner, batch: Batch, block: Block, tables: Sequence[Candidates]) -> None:
        self.block, self.tables = block, tables
        self._learner = learner
        selection = select_within(learner, block)
        tolerance = learner.objective.tolerance(batch.stats, selection)
        judged = [judge(learner, batch, block, table, tolerance) for table in tables]
        self._score = _join([np.where(each.reason == 0, each.within, -np.inf) for each in judged], np.float64)
        self._price = [each.price for each in judged]
        self._segment = _join([table.segment for table in tables], np.int64)
        self._position = _join([table.position for table in tables], np.int64)
        self._size = np.array([0, *np.cumsum([len(table.segment) for table in tables])])
        self._tolerance = tolerance[block.node]
        self._best = np.full(len(block.node), -np.inf)
        np.maximum.at(self._best, self._segment, self._score)
        self._nominated: tuple[Nominees, Ints, Ints] | None = None
        # a nominal feature that may be split and gains nothing counts in C4.5's mean
        self._idle = np.full(len(block.node), -np.inf)
        if learner.parameters.selection != selection:
            for table, each in zip(tables, judged, strict=True):
                self._idle[table.segment[each.reason == Reason.NO_IMPROVEMENT]] = 0.0

    def nominate(self, top: Floats | None = None) -> tuple[Nominees, Ints, Ints]:
        """The first of each segment's tied best candidates, with (segment,) the table and the place in it (-1: none).

        ``top: (segment,)`` is the score to reach where it is known already (the node's best).
        """
        if self._nominated is not None and (top is None or self._holds(top)):
            return self._nominated
        segments = len(self._best)
        floor = (self._best if top is None else top) - self._tolerance
        near = np.flatnonzero((self._score >= floor[self._segment]) & (self._score > -np.inf))
        of_table = np.searchsorted(self._size, near, side="right") - 1
        place = near - self._size[of_table]
        gain, across, tie = self._rate(near, of_table, place)
        order = np.lexsort((self._position[near], -tie, self._segment[near]))
        order = order[np.diff(self._segment[near][order], prepend=-1) != 0]
        winner = self._segment[near][order]
        nominees = Nominees(
            self._best,
            _spread(across[order], winner, segments, -np.inf),
            _spread(tie[order], winner, segments, 0.0),
            np.maximum(self._idle, _spread(gain[order], winner, segments, -np.inf)),
        )
        table = _spread(of_table[order], winner, segments, -1)
        found = nominees, table, _spread(place[order], winner, segments, -1)
        if top is None:
            self._nominated = found
        return found

    def _holds(self, top: Floats) -> bool:
        """True where every segment that reaches ``top`` within the tolerance has it for its own best."""
        reaches = self._best >= top - self._tolerance
        return bool((self._best[reaches] == top[reaches]).all())

    def find_price(self, index: int, place: Ints) -> Floats | None:
        """What the gains of some candidates of a table pay; None where nothing does."""
        price = self._price[index]
        return None if price is None else price[place]

    def _rate(self, near: Ints, of_table: Ints, place: Ints) -> tuple[Floats, Floats, Floats]:
        """(near,) each near-best candidate's gain and score across features, and its tie-breaking score."""
        objective, selection = self._learner.objective, self._learner.parameters.selection
        if selection == "criterion" and objective.criterion.tie_break is None:
            return self._score[near], self._score[near], np.zeros(len(near))
        gain, across, tie = np.zeros(len(place)), np.zeros(len(place)), np.zeros(len(place))
        for index, table in enumerate(self.tables):
            mine = of_table == index
            branches = objective.alter(np.take(table.branches, place[mine], axis=2))
            price = self.find_price(index, place[mine])
            known = branches.sum(1)
            gone = objective.alter_gone(table.take_gone(place[mine]))
            across[mine] = objective.score(branches, known, gone, price)
            gain[mine] = objective.score_within(branches, known, selection, gone, price)
            broken = objective.break_ties(branches, known, gone)
            tie[mine] = 0.0 if broken is None else broken
        return gain, across, tie


def _join(arrays: Sequence[NDArray[Any]], kind: type) -> NDArray[Any]:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


Number = TypeVar("Number", np.float64, np.int64)


def _spread(values: NDArray[Number], at: Ints, size: int, otherwise: float) -> NDArray[Number]:
    out = np.full(size, otherwise, dtype=values.dtype)
    out[at] = values
    return out
