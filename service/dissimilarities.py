"""The target whose rows differ pairwise: by a metric between targets, or by a posted matrix."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.distances import measure_pairs
from service.core.errors import Fault, InvalidData, UnsuitableTask, pointer
from service.core.folds import take_cells
from service.core.pairs import Pairs
from service.core.schema import Column, Target
from service.settings import Settings
from service.targets import LARGEST_TARGET, check_numbers, check_sums, read_weights


def build_pairs(
    dissimilarity: Mapping[str, Any] | None, columns: Sequence[Column], weight: Column | None, keep: NDArray[np.bool_],
    settings: Settings,
) -> Target:  # fmt: skip
    """The target of rows of which pairwise dissimilarities are known, ``columns`` and ``weight`` being all posted rows.

    Raises InvalidData and UnsuitableTask for what gives none, or too many.
    """
    rows = int(keep.sum())
    if rows > settings.max_dissimilarity_rows:
        message = (
            f"the dissimilarities of {rows} rows are more than this service keeps: at most "
            f"{settings.max_dissimilarity_rows} rows (TREEWRIGHT_MAX_DISSIMILARITY_ROWS)"
        )
        raise UnsuitableTask(Fault("/target", message))
    used = [take_cells(column, keep) for column in columns]
    if dissimilarity is not None and "matrix" in dissimilarity:
        distance = read_matrix(dissimilarity["matrix"], len(keep))[np.ix_(keep, keep)]
    else:
        distance = _measure_columns(used, None if dissimilarity is None else str(dissimilarity["metric"]))
    weights = read_weights(None if weight is None else take_cells(weight, keep))
    total = rows if weights is None else float(weights.sum())
    with np.errstate(over="ignore"):
        check_sums(float(distance.max()) * total, rows, weights)
    cells = [_read_cells(column) for column in used]
    answers = cells[0] if len(cells) == 1 else [list(row) for row in zip(*cells, strict=True)]
    # of equal medoids the one whose targets come first
    order = np.empty(rows, np.int64)
    order[np.lexsort([column.values for column in reversed(used)])] = np.arange(rows)
    names = tuple(column.name for column in columns)
    pairs = Pairs(distance, weights, answers, order)
    several = names if len(names) > 1 else ()
    return Target(", ".join(names), weight=weights, statistic="pairs", names=several, pairs=pairs)


def _measure_columns(columns: Sequence[Column], metric: str | None) -> NDArray[np.float64]:
    """(row, row) by a metric; None is Euclidean for numbers and Hamming for anything else."""
    numeric = all(column.kind == "numeric" for column in columns)
    metric = metric or ("euclidean" if numeric else "hamming")
    if metric == "hamming":
        codes = [np.unique(column.values, return_inverse=True)[1] for column in columns]
        return measure_pairs(np.stack(codes, axis=1), metric)
    for column in columns:
        if column.kind != "numeric":
            message = f'"{column.name}" is {column.kind}: "{metric}" is of numbers, of anything there is "hamming"'
            raise UnsuitableTask(Fault("/dissimilarity/metric", message))
    return measure_pairs(np.stack([check_numbers(column) for column in columns], axis=1), metric)


def read_matrix(matrix: Any, rows: int) -> NDArray[np.float64]:  # noqa: ANN401 - as it was posted
    """(row, row) float64; raises InvalidData at the first place where it is no matrix of dissimilarities."""
    place = ("dissimilarity", "matrix")
    if len(matrix) != rows:
        raise InvalidData(Fault(pointer(*place), f"has {len(matrix)} rows, the data have {rows}"))
    for index, row in enumerate(matrix):
        if len(row) != rows:
            raise InvalidData(Fault(pointer(*place, index), f"has {len(row)} numbers, the data have {rows} rows"))
        if not set(map(type, row)) <= {int, float}:
            raise InvalidData(Fault(pointer(*place, index), "must have numbers only"))
    distance = np.array(matrix, np.float64).reshape(rows, rows)
    wrong = {
        f"must be a number from 0 to {LARGEST_TARGET:g}": ~((distance >= 0) & (distance <= LARGEST_TARGET)),
        "must be 0: a row does not differ from itself": np.diag(np.diagonal(distance) != 0),
        "must be the same both ways": distance != distance.T,
    }
    for message, bad in wrong.items():
        if bad.any():
            row, other = np.argwhere(bad)[0].tolist()
            raise InvalidData(Fault(pointer(*place, row, other), message))
    return distance


def _read_cells(column: Column) -> list[Any]:
    """The cells of a column without gaps, as JSON has them."""
    cells: list[Any] = column.values.tolist()
    return cells if column.kind == "numeric" else [column.categories[code] for code in cells]
