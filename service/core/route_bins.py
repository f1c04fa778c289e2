"""The side of a cut that each row of a binned node takes: nearly all of them are told by their bins.

Bins rise with the values, so what lies in a lower bin than the last row on the left goes left, and what lies in a
higher one than the first row on the right goes right. Only where both are in one bin its rows are compared by value.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.bins import Binned
from service.core.candidates import Form
from service.core.learner import Learner
from service.core.search import Splits
from service.core.statistics import Ints


def find_binned(batch: Batch, splits: Splits) -> Ints:
    """The nodes that are split at a cut of a binned feature."""
    if batch.binned is None:
        return np.empty(0, np.int64)
    return np.flatnonzero(np.isin(splits.feature, batch.binned.feature) & (splits.form == Form.THRESHOLD))


def route_by_bins(
    learner: Learner, batch: Batch, binned: Binned, splits: Splits, nodes: Ints, out: NDArray[np.signedinteger]
) -> None:
    """Write the branches of the entries of ``nodes``, which `find_binned` gave, to ``out: (entry,)``."""
    ends = np.cumsum(batch.rows)
    lines = np.searchsorted(binned.feature, splits.feature[nodes])
    for node, line in zip(nodes.tolist(), lines.tolist(), strict=True):
        inside = slice(int(ends[node] - batch.rows[node]), int(ends[node]))
        code, row = binned.code[line, inside], batch.entries.row[inside]
        # the rows of a node stand in their own order
        below, above = code[np.searchsorted(row, [splits.lower[node], splits.upper[node]])].tolist()
        right = code > below
        if below == above:
            numbers = learner.features[int(splits.feature[node])].numbers
            unsure = np.flatnonzero(code == below)
            right[unsure] = numbers.take(row.take(unsure)) > numbers[splits.lower[node]]
        if splits.missing_to[node] == 0:
            right &= code != binned.bins[line]
        out[inside] = right
