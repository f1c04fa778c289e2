"""Listed candidates: where each one's branches are, and what it scores under any measure."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import Candidates
from service.core.criteria import Floats
from service.core.objective import Objective
from service.core.rescore import Rescorer
from service.core.statistics import Ints

SIDE_BY_SIDE = 32
"""At least so many candidates are scored at a time: numpy adds up classes in the same order, then, few or many."""


@dataclass(frozen=True, slots=True)
class Listing:
    """All candidates of ``nodes``, in (node, feature, candidate) order; every array is (candidate,).

    ``table``, ``place``: where its branches are in ``tables``. ``node`` indexes ``nodes``. ``score`` is that of the
    criterion, less what gains pay if they are ``priced``. ``rank`` is 1 for the best under the selection, 0 for what is
    inadmissible. ``chosen`` marks the tree's split. ``centre: (node,)`` is what the sums of a regression are about.
    ``rescorer`` knows the measures of numbers that the tables' statistics do not give.
    """

    nodes: Ints
    centre: Floats
    objective: Objective
    tables: list[Candidates]
    table: Ints
    place: Ints
    node: Ints
    feature: Ints
    reason: Ints
    score: Floats
    rank: Ints
    chosen: NDArray[np.bool_]
    priced: bool
    rescorer: Rescorer

    def find_rows(self, node: int) -> Ints:
        """The candidates of one node (an index into ``nodes``)."""
        return np.arange(*np.searchsorted(self.node, [node, node + 1]))

    def take(self, rows: Ints) -> Listing:
        """Some of the candidates, in that order."""
        arrays = ("table", "place", "node", "feature", "reason", "score", "rank", "chosen")
        return replace(self, **{name: getattr(self, name)[rows] for name in arrays})

    def score_rows(self, measure: str, rows: Ints) -> Floats:
        """The scores of some candidates under any measure."""
        if measure == self.objective.criterion.measure and not self.priced:
            return self.score[rows]
        own = measure in self.objective.measures()
        scores = np.empty(len(rows))
        of_table = self.table[rows]
        for index in find_distinct(of_table):
            mine = np.flatnonzero(of_table == index)
            place = self.place[rows[mine]]
            if not own:
                scores[mine] = self.rescorer.score(measure, index, pad_places(place))[: len(mine)]
                continue
            branches, gone = gather_branches(self.tables[index], place)
            scores[mine] = score_branches(self.objective, branches, gone, measure)[: len(mine)]
        return scores

    def count_bytes(self) -> int:
        """About how much memory it takes."""
        arrays = (self.table, self.place, self.node, self.feature, self.reason, self.score, self.rank, self.chosen)
        parts = [(t.segment, t.position, t.missing_to, t.rows, t.branches, t.lower, t.upper) for t in self.tables]
        return self.rescorer.count_bytes() + sum(array.nbytes for part in [arrays, *parts] for array in part)


def find_distinct(codes: NDArray[np.integer]) -> list[int]:
    """The distinct codes, ascending; most often there is one, which is seen at once."""
    found: list[int] = (codes[:1] if (codes == codes[:1]).all() else np.unique(codes)).tolist()
    return found


def pad_places(place: Ints) -> Ints:
    """The places, again from the first on up to `SIDE_BY_SIDE`."""
    return np.resize(place, max(len(place), SIDE_BY_SIDE))


def gather_branches(table: Candidates, place: Ints) -> tuple[Floats, Floats | None]:
    """The branches (channel, branch, candidate) at ``place``, again from the first on up to `SIDE_BY_SIDE`.

    Also what is in none of them (channel, candidate), None where that is nothing.
    """
    at = pad_places(place)
    # np.take would copy a whole table whose classes do not lie apart in memory
    return np.ascontiguousarray(table.branches[:, :, at]), table.take_gone(at)


def score_table(objective: Objective, table: Candidates, measure: str) -> Floats:
    """(candidate,) one measure of all candidates of a table."""
    place = np.arange(len(table.segment))
    few = len(place) < SIDE_BY_SIDE
    branches, gone = gather_branches(table, place) if few else (table.branches, table.gone)
    return score_branches(objective, branches, gone, measure)[: len(place)]


def score_branches(objective: Objective, branches: Floats, gone: Floats | None, measure: str) -> Floats:
    """(candidate,) one measure of ``branches: (channel, branch, candidate)`` and what is ``gone``: see `rate`."""
    altered = objective.alter(branches)
    with np.errstate(invalid="ignore"):
        return objective.rate(measure, altered, altered.sum(1), objective.alter_gone(gone))
