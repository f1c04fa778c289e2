"""Made-up data to learn from, each as our columns and as the matrix that other tools take.

All numbers are such that float32 holds them: scikit-learn rounds its input to it, and so sees the same values.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.schema import Column, Target

Floats = NDArray[np.float64]
SCALE = 1000.0
"""Spread of the numbers: scikit-learn takes values nearer than 1e-7 for equal, which this keeps rare."""
DISTINCT = (3, 5, 10, 20, 50, 100, 200, 300, 500, 1000)
LEVELS = (5, 11, 23, 50, 108, 232, 500, 1077, 2320, 5000)


@dataclass(frozen=True)
class Problem:
    """``matrix: (row, column)`` float64 in columns (NaN is missing), of which ``columns`` are views where they can be.

    ``answers: (row,)`` are class numbers, or the values of a regression.
    """

    columns: tuple[Column, ...]
    target: Target
    matrix: Floats
    answers: NDArray[np.int64] | Floats

    @property
    def shape(self) -> str:
        """Such as 1,000,000 x 20."""
        rows, columns = self.matrix.shape
        return f"{rows:,} x {columns}"


def make_matrix(generator: np.random.Generator, rows: int, columns: int) -> Floats:
    """(row, column) normal numbers that float32 holds, each column contiguous."""
    matrix = np.empty((columns, rows))
    for column in matrix:
        column[:] = generator.standard_normal(rows, dtype=np.float32) * np.float32(SCALE)
    return matrix.T


def make_scores(generator: np.random.Generator, matrix: Floats) -> Floats:
    """(row,) a noisy function of a few columns with interactions, centred and of spread about 1.5; no NaN."""

    def column(number: int) -> Floats:
        values = matrix[:, number % matrix.shape[1]]
        return np.nan_to_num((values - np.nanmean(values)) / (np.nanstd(values) or 1.0))

    signal = column(0) + column(1) * column(2) + np.abs(column(3)) - np.where(column(4) > 0.5, column(5), 0.0)
    return np.asarray(signal - signal.mean() + generator.standard_normal(len(signal)))


def make_classes(scores: Floats, classes: int) -> NDArray[np.int64]:
    """(row,) classes of equal size, by rank of the score."""
    edges = np.quantile(scores, np.arange(1, classes) / classes)
    return np.searchsorted(edges, scores)


def name_classes(answers: NDArray[np.int64]) -> Target:
    """The target of class numbers."""
    classes = tuple(f"class {number:03d}" for number in range(int(answers.max()) + 1))
    return Target("target", classes, answers.astype(np.int32))


def from_matrix(matrix: Floats, answers: NDArray[np.int64] | Floats) -> Problem:
    """A problem whose columns are the matrix's."""
    columns = tuple(Column(f"x{i}", "numeric", matrix[:, i]) for i in range(matrix.shape[1]))
    if answers.dtype.kind == "f":
        return Problem(columns, Target("target", values=np.asarray(answers, np.float64)), matrix, answers)
    return Problem(columns, name_classes(answers.astype(np.int64)), matrix, answers)


def make_numbers(seed: int, rows: int, columns: int, classes: int | None = 2) -> Problem:
    """Normal numbers and classes, or a regression where ``classes`` is None."""
    generator = np.random.default_rng(seed)
    matrix = make_matrix(generator, rows, columns)
    scores = make_scores(generator, matrix)
    return from_matrix(matrix, scores if classes is None else make_classes(scores, classes))


def make_mixed(seed: int, rows: int, columns: int) -> Problem:
    """Every other column whole numbers of 3 to 1,000 distinct values, a tenth of all cells missing; two classes."""
    generator = np.random.default_rng(seed)
    matrix = make_matrix(generator, rows, columns)
    made = []
    for number in range(columns):
        values, missing = matrix[:, number], generator.random(rows) < 0.1
        if number % 2:
            distinct = DISTINCT[(number // 2) % len(DISTINCT)]
            whole = generator.integers(0, distinct, rows)
            whole[missing] = 0
            values[:] = whole
            made.append(Column(f"x{number}", "numeric", whole, missing=missing))
        else:
            made.append(Column(f"x{number}", "numeric", values))
        values[missing] = np.nan
    answers = make_classes(make_scores(generator, matrix), 2)
    return Problem(tuple(made), name_classes(answers), matrix, answers)


def make_nominal(seed: int, rows: int, levels: Sequence[int]) -> Problem:
    """Columns of so many levels, each level with an effect of its own on two classes; the matrix holds the codes."""
    generator = np.random.default_rng(seed)
    scores = generator.standard_normal(rows)
    matrix, made = np.empty((len(levels), rows)), []
    for number, count in enumerate(levels):
        codes = generator.integers(0, count, rows)
        scores += 0.7 * generator.standard_normal(count)[codes]
        matrix[number] = codes
        names = tuple(f"level {code:05d}" for code in range(count))
        made.append(Column(f"x{number}", "nominal", codes.astype(np.int32), names))
    answers = make_classes(scores, 2)
    return Problem(tuple(made), name_classes(answers), matrix.T, answers)


def load_iris() -> Problem | None:
    """Fisher's irises as scikit-learn ships them, or None where it is not installed."""
    try:
        from sklearn.datasets import load_iris as load  # noqa: PLC0415 - a peer, which need not be there
    except ImportError:
        return None
    iris = load()
    matrix = np.asfortranarray(iris.data.astype(np.float32).astype(np.float64))
    return from_matrix(matrix, iris.target.astype(np.int64))
