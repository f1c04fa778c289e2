"""What is kept up by row from level to level: bins, or rows in the order of values."""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from service.core.batch import Batch
from service.core.bins import bin_features
from service.core.candidates import Lack
from service.core.coarse import can_bound
from service.core.count_bins import keep_up
from service.core.learner import Learner
from service.core.scan import arrange
from service.core.statistics import Ints


def lay_out(learner: Learner, batch: Batch, *, few: bool = False) -> Batch:
    """The batch with the rows of ordered features binned or in order, whichever is quicker to search.

    ``few``: its nodes have few rows each, however many there are.
    """
    if learner.parts_rows:
        return batch  # what is kept up by row knows of one entry only
    lines = np.array([f for f in range(len(learner.features)) if can_scan(learner, f)], np.int64)
    if not few and len(batch.entries.row) >= learner.sizes.coarse and can_bound(learner):
        numeric = np.array([learner.features[f].feature.kind == "numeric" for f in lines], bool)
        if numeric.any():
            return keep_up(replace(batch, binned=bin_features(learner.features, lines[numeric])))
    if not len(lines):
        return batch
    ordered = arrange(learner.features, lines, batch.entries.row)
    if batch.entries.nodes > 1:
        ordered = ordered.regroup(batch.entries, np.zeros(batch.entries.nodes, np.int64), batch.tally.all_rows)
    return replace(batch, ordered=ordered)


def can_scan(learner: Learner, feature: int) -> bool:
    """True where the cuts of a feature are read off rows kept in its order.

    Counts give those with a third branch for what is missing, those where it is set apart, and those whose branches
    are told by more than sums.
    """
    counted = learner.lack is not Lack.DIRECTED and learner.features[feature].has_missing
    return learner.is_ordered(feature) and not counted and learner.objective.criterion.adds_up


def pass_on(above: Batch, batch: Batch, parent: Ints, rows: int) -> Batch:
    """``batch``, children of the nodes ``parent: (node,)`` of ``above``, with the ordered rows or bins of these."""
    source = batch.entries.source
    if above.binned is not None and source is not None:
        batch = replace(batch, entries=replace(batch.entries, source=None))
        return keep_up(replace(batch, binned=above.binned.reorder(source)), above, parent)
    if above.ordered is not None:
        return replace(batch, ordered=above.ordered.regroup(batch.entries, parent, rows))
    return batch
