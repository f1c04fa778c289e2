"""Candidates under measures that the model's own statistics do not give: of numbers every measure is listed.

A model by variance sums squares; the deviations from medians of its candidates, and their Poisson deviances, are worked
out for those that are asked for, with the branches as runs of entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TypeAlias

import numpy as np

from service.core.branches import weigh_runs
from service.core.candidates import Candidates
from service.core.criteria import CRITERIA, MEASURES_OF, Floats
from service.core.lines import LineRuns
from service.core.objective import Objective
from service.core.runs import Weighed
from service.core.schema import Statistic, Target
from service.core.statistics import Entries, Ints
from service.core.weigh import Batch, make_batch

_OBJECTIVES = {
    criterion.statistic: Objective(criterion) for criterion in CRITERIA.values() if criterion.task == "regression"
}
Origin: TypeAlias = Weighed | LineRuns
"""What candidates came from, to ask for their branches as runs."""


class Rescorer:
    """Scores candidates of nodes, which have the ``entries``; ``weighed`` is what each of the ``tables`` came from."""

    def __init__(
        self,
        target: Target,
        entries: Entries,
        tables: Sequence[Candidates],
        weighed: Sequence[Origin],
        unknown_branch: bool,
    ) -> None:
        self._target, self._entries = target, entries
        self._tables, self._weighed = tables, weighed
        self._unknown_branch = unknown_branch
        self._batches: dict[Statistic, Batch] = {}

    def score(self, measure: str, table: int, place: Ints) -> Floats:
        """(candidate,) a measure of the candidates at ``place`` of a table; NaN where it is undefined."""
        statistic = find_statistic(measure)
        values = self._target.values
        if statistic == "deviance" and (values is None or values.min() < 0):
            return np.full(len(place), np.nan)
        if statistic not in self._batches:
            target = replace(self._target, statistic=statistic)
            self._batches[statistic] = make_batch(target, self._entries, _OBJECTIVES[statistic])
        batch, candidates, weighed = self._batches[statistic], self._tables[table], self._weighed[table]
        layout = weighed.lay_out_for(candidates).narrow(np.unique(candidates.segment[place]))
        node = weighed.find_nodes(candidates, place)
        branches, gone = weigh_runs(batch.tally, batch.stats, layout, candidates, place, node)
        objective = replace(_OBJECTIVES[statistic], unknown_branch=self._unknown_branch)
        with np.errstate(invalid="ignore", divide="ignore"):
            return objective.rate(measure, branches, branches.sum(1), gone)

    def count_bytes(self) -> int:
        """About how much memory it takes."""
        return sum(weighed.count_bytes() for weighed in set(self._weighed))


def find_statistic(measure: str) -> Statistic:
    """The statistics that a measure of numbers is made from."""
    return next(statistic for statistic, measures in MEASURES_OF.items() if measure in measures)
