"""Training on data that are hard for coarse bins and bounds: nowhere may we be slower than scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np

from benchmarks import peers
from benchmarks.measure import Findings, Options, compare
from benchmarks.ours import make_fit
from benchmarks.problems import Floats, Problem, from_matrix, make_classes, make_matrix, make_scores

ROWS = 100_000
Generator = np.random.Generator


def _floats32(values: Floats) -> Floats:
    return np.asfortranarray(values.astype(np.float32).astype(np.float64))


def _learnable(generator: Generator, matrix: Floats, signal: Floats | None = None) -> Problem:
    return from_matrix(matrix, make_classes(make_scores(generator, matrix if signal is None else signal), 2))


def heavy_tails(generator: Generator, rows: int, columns: int) -> Problem:
    """Magnitudes from 1e-30 to 1e30."""
    normal = make_matrix(generator, rows, columns) / 1000
    tails = np.sign(normal) * 10.0 ** (30 * np.tanh(normal))
    return _learnable(generator, _floats32(tails), normal)


def one_coarse_bin(generator: Generator, rows: int, columns: int) -> Problem:
    """One outlier at each end stretches an even grid until all other cells share a cell of it."""
    matrix = make_matrix(generator, rows, columns)
    normal = matrix.copy(order="F")
    matrix[0], matrix[-1] = -1e30, 1e30
    return _learnable(generator, _floats32(matrix), normal)


def few_distinct(generator: Generator, rows: int, columns: int) -> Problem:
    """Two to five distinct values in each column."""
    matrix = np.asfortranarray(generator.integers(0, 2 + np.arange(columns) % 4, (rows, columns)).astype(np.float64))
    return _learnable(generator, matrix)


def constant_column(generator: Generator, rows: int, columns: int) -> Problem:
    """One column has the same value everywhere, one nearly so."""
    matrix = make_matrix(generator, rows, columns)
    matrix[:, -1] = 7.0
    matrix[:, -2] = 7.0
    matrix[0, -2] = 8.0
    return _learnable(generator, matrix)


def sorted_input(generator: Generator, rows: int, columns: int) -> Problem:
    """Rows in the order of the most telling column."""
    matrix = make_matrix(generator, rows, columns)
    return _learnable(generator, np.asfortranarray(matrix[np.argsort(matrix[:, 0])]))


def tied_features(generator: Generator, rows: int, columns: int) -> Problem:
    """Every column is the first one over again, so every cut is tied across all features."""
    matrix = np.asfortranarray(np.repeat(make_matrix(generator, rows, 1), columns, axis=1))
    return from_matrix(matrix, make_classes(matrix[:, 0] + 1000 * generator.standard_normal(rows), 2))


def alternating(generator: Generator, rows: int, columns: int) -> Problem:
    """Neighbouring values of the first column have different classes: all cuts score alike, next to nothing."""
    matrix = make_matrix(generator, rows, columns)
    rank = np.empty(rows, np.int64)
    rank[np.argsort(matrix[:, 0], kind="stable")] = np.arange(rows)
    return from_matrix(matrix, rank % 2)


def pure_noise(generator: Generator, rows: int, columns: int) -> Problem:
    """Classes that depend on nothing, so that no cut stands out."""
    matrix = make_matrix(generator, rows, columns)
    return from_matrix(matrix, generator.integers(0, 2, rows))


PROBLEMS: dict[str, Callable[[Generator, int, int], Problem]] = {
    "heavy tails": heavy_tails,
    "all cells in one coarse bin": one_coarse_bin,
    "few distinct values": few_distinct,
    "a constant column": constant_column,
    "sorted input": sorted_input,
    "tied features": tied_features,
    "alternating classes": alternating,
    "pure noise": pure_noise,
}


def hard(name: str, options: Options) -> Findings:
    """One of the hard problems against scikit-learn."""
    problem = PROBLEMS[name](np.random.default_rng(options.seed), options.limit(ROWS), max(options.columns, 3))
    contestants = {
        "ours": make_fit(problem, options.depth),
        "scikit-learn": peers.sklearn_fit(problem, options.depth),
    }
    work = f"train {problem.shape}, {name}, depth {options.depth}"
    return Findings(compare(work, contestants, {"scikit-learn": 1.0}, options))


CASES = {f"hard-{name.replace(' ', '-')}": partial(hard, name) for name in PROBLEMS}
