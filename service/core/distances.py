"""Dissimilarities between rows by named metrics."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from service.core.criteria import Floats
from service.core.statistics import Ints

PORTION = 8_000_000
"""Differences of pairs are made in portions of about so many numbers."""


def _euclidean(difference: Floats) -> Floats:
    return np.asarray(np.sqrt((difference * difference).sum(-1)))


def _squared(difference: Floats) -> Floats:
    total: Floats = (difference * difference).sum(-1)
    return total


def _cityblock(difference: Floats) -> Floats:
    total: Floats = np.abs(difference).sum(-1)
    return total


def _chebyshev(difference: Floats) -> Floats:
    greatest: Floats = np.abs(difference).max(-1)
    return greatest


NUMERIC: dict[str, Callable[[Floats], Floats]] = {
    "euclidean": _euclidean,
    "sqeuclidean": _squared,
    "cityblock": _cityblock,
    "chebyshev": _chebyshev,
}
"""Of numbers: functions of ``difference: (row, row, column)``."""
METRICS = (*NUMERIC, "hamming")
"""All metrics; `hamming` is the share of the columns in which two rows differ, of whatever kind these are."""


def measure_pairs(cells: Floats | Ints, metric: str) -> Floats:
    """(row, row) float64 the dissimilarity of each pair; ``cells: (row, column)`` are numbers, or codes (`hamming`).

    Distances that overflow are infinite.
    """
    with np.errstate(over="ignore"):
        return _measure_portions(cells, metric)


def _measure_portions(cells: Floats | Ints, metric: str) -> Floats:
    rows, columns = cells.shape
    distance = np.empty((rows, rows))
    step = max(1, PORTION // max(rows * columns, 1))
    for begin in range(0, rows, step):
        part = cells[begin : begin + step, None]
        if metric == "hamming":
            distance[begin : begin + step] = (part != cells).mean(-1)
        else:
            distance[begin : begin + step] = NUMERIC[metric](np.asarray(part - cells, np.float64))
    return distance
