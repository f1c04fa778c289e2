"""Small columns, targets and growths for the tests of the core."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from service.core.audit import Audited, list_candidates, prepare_audit
from service.core.learn import Learnt, learn
from service.core.listing import Listing
from service.core.parameters import resolve
from service.core.schema import MISSING, Column, Kind, Label, Table, Target


def numbers(name: str, cells: Sequence[float | None]) -> Column:
    """A numeric column: int64 where all cells are whole numbers, as a posted one is."""
    missing = np.array([cell is None for cell in cells], bool)
    if all(isinstance(cell, int) for cell in cells if cell is not None):
        whole = np.array([0 if cell is None else cell for cell in cells], np.int64)
        return Column(name, "numeric", whole, missing=missing if missing.any() else None)
    return Column(name, "numeric", np.array([np.nan if cell is None else cell for cell in cells], float))


def labels(
    name: str, cells: Sequence[Label | None], categories: Sequence[Label] | None = None, kind: Kind = "nominal"
) -> Column:
    """A column of categories, sorted unless they are given."""
    known = sorted({cell for cell in cells if cell is not None}, key=str) if categories is None else categories
    codes = [MISSING if cell is None else list(known).index(cell) for cell in cells]
    return Column(name, kind, np.array(codes, np.int32), tuple(known))


def table(*columns: Column) -> Table:
    """The columns side by side."""
    return Table(columns, len(columns[0].values))


def classes(cells: Sequence[Label], weight: Sequence[float] | None = None) -> Target:
    """A target of classes, in ascending order."""
    column = labels("y", cells)
    heavy = None if weight is None else np.array(weight, float)
    return Target("y", column.categories, column.values.astype(np.int32), weight=heavy)


def values(cells: Sequence[float], weight: Sequence[float] | None = None) -> Target:
    """A target of numbers."""
    return Target("y", values=np.array(cells, float), weight=None if weight is None else np.array(weight, float))


def grow(
    columns: Sequence[Column], target: Target, parameters: Mapping[str, Any] | None = None, algorithm: str = "cart",
    positive: Label | None = None,
) -> Learnt:  # fmt: skip
    """The tree that the learner grows."""
    task = "classification" if target.is_classification else "regression"
    return learn(columns, target, resolve(algorithm, parameters or {}, task), positive)


def audit(learnt: Learnt, target: Target) -> Audited:
    """What the audit of a growth needs."""
    return prepare_audit(learnt.learner, target, learnt.tree, learnt.leaf)


def list_root(learnt: Learnt, target: Target) -> Listing:
    """All candidates of the root."""
    return list_candidates(audit(learnt, target), np.array([0]))
