"""Candidates under measures that the model's own statistics do not give: of numbers every measure is listed.

A model by variance sums squares; the deviations from medians of its candidates, and their Poisson deviances, are worked
out for those that are asked for, with the branches as runs of entries.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import cached_property
from threading import Lock
from typing import TypeAlias

import numpy as np

from service.core.batch import Batch, make_batch, sum_batch
from service.core.branches import weigh_runs
from service.core.candidates import Candidates
from service.core.criteria import CRITERIA, MEASURES_OF, Floats
from service.core.lines import Line
from service.core.objective import Objective
from service.core.parts import Parts, Sorted, weigh_parts
from service.core.runs import Weighed
from service.core.schema import Statistic, Target
from service.core.statistics import Ints
from service.core.walk import Stretch, walk_line

_OBJECTIVES = {
    criterion.statistic: Objective(criterion) for criterion in CRITERIA.values() if criterion.task == "regression"
}
Origin: TypeAlias = Weighed | Stretch | Parts
"""What candidates came from, to ask for their branches as runs."""


class Restated:
    """The entries of a batch by other statistics of their targets, each made when it is first asked for."""

    def __init__(self, target: Target, batch: Batch) -> None:
        self._target, self._batch = target, batch
        self._lock, self._batches = Lock(), dict[Statistic, Batch]()
        self._sorted: Sorted | None = None

    def can_have(self, statistic: Statistic) -> bool:
        """Whether there is such a statistic: negative numbers have no deviance."""
        return statistic != "deviance" or self._has_deviance

    @cached_property
    def _has_deviance(self) -> bool:
        values = self._target.values
        return values is not None and bool(values.min() >= 0)

    def prepare(self) -> None:
        """Make what the measures that are shown of a number need."""
        for statistic in ("deviance", "deviations"):
            if self.can_have(statistic):
                self.get(statistic)

    def get(self, statistic: Statistic) -> Batch:
        """The batch by that statistic."""
        with self._lock:
            if statistic not in self._batches:
                self._batches[statistic] = self._make(statistic)
            return self._batches[statistic]

    def weigh_parts(self, statistic: Statistic, parts: Parts) -> Floats:
        """The branches of cuts of a line by that statistic; see `parts.weigh_parts`."""
        batch = self.get(statistic)
        if batch.tally.ranking is None:
            return weigh_parts(batch, parts, None)
        with self._lock:
            self._sorted = self._sorted or Sorted(batch.tally, batch.tally.ranking)
        return weigh_parts(batch, parts, self._sorted)

    def score_line(self, line: Line, measure: str, *, unknown_branch: bool) -> Floats:
        """(candidate,) a measure of all candidates of a line; NaN where it is undefined."""
        statistic = find_statistic(measure)
        if not self.can_have(statistic):
            return np.full(line.count_candidates(), np.nan)
        rate = replace(_OBJECTIVES[statistic], unknown_branch=unknown_branch).rate
        walked = walk_line(self.get(statistic), line)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.concatenate([rate(measure, each.branches, each.branches.sum(1), each.gone) for each in walked])

    def _make(self, statistic: Statistic) -> Batch:
        entries, objective = self._batch.entries, _OBJECTIVES[statistic]
        target = replace(self._target, statistic=statistic)
        if self._target.statistic in ("moments", "deviance"):
            return sum_batch(self._batch.tally.restate(target, entries), entries, objective)
        return make_batch(target, entries, objective)


class Rescorer:
    """Scores candidates of nodes; ``weighed`` is what each of the ``tables`` came from."""

    def __init__(
        self, restated: Restated, tables: Sequence[Candidates], weighed: Sequence[Origin], unknown_branch: bool
    ) -> None:
        self._restated = restated
        self._tables, self._weighed = tables, weighed
        self._unknown_branch = unknown_branch
        self._last = dict[object, tuple[object, tuple[Floats, Floats | None]]]()

    def share(self, restated: Restated) -> Rescorer:
        """The same, of entries that others have restated already."""
        return Rescorer(restated, self._tables, self._weighed, self._unknown_branch)

    def score(self, measure: str, table: int, place: Ints) -> Floats:
        """(candidate,) a measure of the candidates at ``place`` of a table; NaN where it is undefined."""
        statistic = find_statistic(measure)
        if not self._restated.can_have(statistic):
            return np.full(len(place), np.nan)
        # of a line what was picked is shown, or all of a stretch: that is weighed at once
        picked = isinstance(self._weighed[table], Stretch | Parts)
        key = table, None if picked else place.tobytes()
        # several measures of a statistic are asked for, each of all tables in turn
        kept = (statistic, table) if picked else statistic
        last = self._last.get(kept)
        if last is None or last[0] != key:
            whole = np.arange(len(self._tables[table].segment))
            last = key, self._weigh(statistic, table, whole if picked else place)
            self._last[kept] = last
        branches, gone = last[1]
        if picked:
            branches, gone = np.take(branches, place, axis=2), None if gone is None else np.take(gone, place, axis=1)
        objective = replace(_OBJECTIVES[statistic], unknown_branch=self._unknown_branch)
        with np.errstate(invalid="ignore", divide="ignore"):
            return objective.rate(measure, branches, branches.sum(1), gone)

    def _weigh(self, statistic: Statistic, table: int, place: Ints) -> tuple[Floats, Floats | None]:
        candidates, weighed = self._tables[table], self._weighed[table]
        if isinstance(weighed, Parts):
            return self._restated.weigh_parts(statistic, weighed), None
        batch = self._restated.get(statistic)
        if isinstance(weighed, Stretch):
            found = weighed.walk.weigh(batch, weighed.number)
            return found.branches, found.gone
        layout = weighed.lay_out_for(candidates).narrow(np.unique(candidates.segment[place]))
        node = weighed.find_nodes(candidates, place)
        return weigh_runs(batch.tally, batch.stats, layout, candidates, place, node)

    def count_bytes(self) -> int:
        """About how much memory it takes."""
        return sum(weighed.count_bytes() for weighed in set(self._weighed))


def find_statistic(measure: str) -> Statistic:
    """The statistics that a measure of numbers is made from."""
    return next(statistic for statistic, measures in MEASURES_OF.items() if measure in measures)
