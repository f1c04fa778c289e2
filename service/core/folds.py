"""Rows dealt into folds for cross-validation, and the columns and target of some rows."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from service.core.schema import Column, Target
from service.core.statistics import Ints

Rows = NDArray[np.bool_] | Ints
"""Which rows: (row,) True for each, or their numbers."""


def assign_folds(target: Target, folds: int, seed: int | Sequence[int]) -> Ints:
    """(row,) int64 the fold of each row, 0 to ``folds`` - 1, where 1 <= folds.

    Rows are shuffled, sorted by their target and dealt out like cards, so that the sizes of folds differ by at most
    one, and so do those of each class within them. Along the sorted numbers of a regression every ``folds`` neighbours
    are dealt in an order of their own: else the first fold would get the smallest of each lot (Breiman and Spector
    1992, "Submodel selection and evaluation in regression", stratify alike). A target of other kinds is shuffled only.
    The same seed and the same rows in their order give the same folds, whatever the cores.
    """
    random = np.random.default_rng(seed)
    order = random.permutation(target.rows)
    deal = np.arange(len(order)) % folds
    if target.codes is not None:
        order = order[np.argsort(target.codes[order], kind="stable")]
    elif target.values is not None and target.values.ndim == 1:
        order = order[np.argsort(target.values[order], kind="stable")]
        lots = -(-len(order) // folds)
        deal = random.permuted(np.tile(np.arange(folds), (lots, 1)), axis=1).ravel()[: len(order)]
    fold = np.empty(len(order), np.int64)
    fold[order] = deal
    return fold


def hold_out(target: Target, share: float, seed: int) -> NDArray[np.bool_]:
    """(row,) True for about ``share`` of the rows, at least one and not all of two or more, evenly from the classes.

    Rows are shuffled, sorted by their target, and taken at equal distances (numbers so too).
    """
    random = np.random.default_rng(seed)
    order = random.permutation(target.rows)
    keys = target.values if target.codes is None else target.codes
    if keys is not None and keys.ndim == 1:
        order = order[np.argsort(keys[order], kind="stable")]
    count = min(max(round(share * len(order)), 1), max(len(order) - 1, 1))
    start = random.random()
    held = np.zeros(len(order), bool)
    held[order[((np.arange(count) + start) * len(order) / count).astype(np.int64)]] = True
    return held


def take_rows(columns: Sequence[Column], target: Target, rows: Rows) -> tuple[list[Column], Target]:
    """Those rows of the columns and of the target, which keeps all its classes, whether or not the rows have them."""
    return [take_cells(column, rows) for column in columns], take_target(target, rows)


def take_cells(column: Column, rows: Rows) -> Column:
    """Those rows of a column."""
    missing = None if column.missing is None else column.missing[rows]
    return replace(column, values=column.values[rows], missing=missing)


def take_target(target: Target, rows: Rows) -> Target:
    """Those rows of a target."""
    return replace(
        target,
        codes=None if target.codes is None else target.codes[rows],
        values=None if target.values is None else target.values[rows],
        weight=None if target.weight is None else target.weight[rows],
    )
