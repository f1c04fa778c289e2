"""Candidates -> the best of each (node, feature)."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import Block, Candidates
from service.core.criteria import Floats
from service.core.judge import judge
from service.core.statistics import Ints
from service.core.weigh import Batch, Learner


@dataclass(frozen=True, slots=True)
class Nominees:
    """The best admissible candidate of each segment, -inf where there is none.

    ``within``: what chose it among its feature's, ``across``: what it competes with, ``tie``: what decides ties
    (all 0 if nothing does): (segment,).
    """

    within: Floats
    across: Floats
    tie: Floats


class Board:
    """The judged candidates of some features in some nodes; only admissible ones can be nominated."""

    def __init__(self, learner: Learner, batch: Batch, block: Block, tables: Sequence[Candidates]) -> None:
        self.block, self.tables = block, tables
        self._learner = learner
        tolerance = learner.objective.tolerance(batch.stats, learner.parameters.selection)
        judged = [judge(learner, batch, block, table, tolerance) for table in tables]
        self._score = _join([np.where(reason == 0, within, -np.inf) for reason, within in judged], np.float64)
        self._segment = _join([table.segment for table in tables], np.int64)
        self._position = _join([table.position for table in tables], np.int64)
        self._size = np.array([0, *np.cumsum([len(table.segment) for table in tables])])
        self._tolerance = tolerance[block.node]
        self._best = np.full(len(block.node), -np.inf)
        np.maximum.at(self._best, self._segment, self._score)
        self._nominated: tuple[Nominees, Ints, Ints] | None = None

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
        across, tie = self._rate(near, of_table, place)
        order = np.lexsort((self._position[near], -tie, self._segment[near]))
        order = order[np.diff(self._segment[near][order], prepend=-1) != 0]
        winner = self._segment[near][order]
        nominees = Nominees(
            self._best, _spread(across[order], winner, segments, -np.inf), _spread(tie[order], winner, segments, 0.0)
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

    def _rate(self, near: Ints, of_table: Ints, place: Ints) -> tuple[Floats, Floats]:
        """(near,) each near-best candidate's score across features, and its tie-breaking score."""
        objective = self._learner.objective
        if self._learner.parameters.selection == "criterion" and objective.criterion.tie_break is None:
            return self._score[near], np.zeros(len(near))
        across, tie = np.zeros(len(place)), np.zeros(len(place))
        for index, table in enumerate(self.tables):
            mine = of_table == index
            branches = objective.alter(table.branches[:, :, place[mine]])
            known = branches.sum(1)
            gone = objective.alter_gone(table.take_gone(place[mine]))
            across[mine] = objective.score(branches, known, gone)
            broken = objective.break_ties(branches, known, gone)
            tie[mine] = 0.0 if broken is None else broken
        return across, tie


def _join(arrays: Sequence[NDArray[Any]], kind: type) -> NDArray[Any]:
    if len(arrays) == 1:
        return arrays[0]
    return np.concatenate(arrays) if arrays else np.empty(0, kind)


Number = TypeVar("Number", np.float64, np.int64)


def _spread(values: NDArray[Number], at: Ints, size: int, otherwise: float) -> NDArray[Number]:
    out = np.full(size, otherwise, dtype=values.dtype)
    out[at] = values
    return out
