"""Tables and trees for comparing the ways of searching: bins, sorted rows, one node at a time."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from service.core.batch import Batch, make_batch
from service.core.bounds import BOUNDS
from service.core.criteria import CRITERIA
from service.core.encoding import encode
from service.core.entries import Entries
from service.core.learn import Learnt, build_learner, learn, prepare_target
from service.core.learner import Learner, Sizes
from service.core.parameters import Parameters, resolve
from service.core.schema import Column, Label, Target
from service.core.upkeep import lay_out

SORTED = Sizes(coarse=10**9)
"""Bins are never used: every cut of every node is scored."""
BINNED = Sizes(coarse=1, scan=2, portion=100)
"""Bins wherever two rows are left."""
CLASS_CRITERIA = [name for name in BOUNDS if CRITERIA[name].task == "classification"]


def grow_by(
    sizes: Sizes, columns: Sequence[Column], target: Target, parameters: Mapping[str, Any], algorithm: str = "cart"
) -> Learnt:
    """The tree grown with ``sizes``; the last of two classes is the positive one."""
    return learn(columns, target, resolved(target, parameters, algorithm), name_positive(target), sizes=sizes)


def resolved(target: Target, parameters: Mapping[str, Any], algorithm: str = "cart") -> Parameters:
    """The parameters of a run on ``target``."""
    return resolve(algorithm, parameters, "classification" if target.is_classification else "regression")


def assert_same_growth(left: Learnt, right: Learnt, case: object = None) -> None:
    """Every array of both trees is the same to the last bit, and so is the leaf of every row."""
    plain, other = left.tree.as_arrays(), right.tree.as_arrays()
    for name in ("feature", "rows", "threshold", *plain):
        one, two = plain[name], other[name]
        if isinstance(one, np.ndarray):
            assert np.array_equal(one, two, equal_nan=one.dtype.kind == "f"), (case, name, one, two)
        else:
            assert one == two, (case, name)
    assert left.leaf.tolist() == right.leaf.tolist(), case


def assert_bins_change_nothing(
    columns: Sequence[Column],
    target: Target,
    parameters: Mapping[str, Any],
    sizes: Sizes = BINNED,
    algorithm: str = "cart",
) -> Learnt:
    """Growth by bins gives the tree of growth by sorting, which is returned."""
    by_rows = grow_by(SORTED, columns, target, parameters, algorithm)
    by_bins = grow_by(sizes, columns, target, parameters, algorithm)
    assert_same_growth(by_rows, by_bins, (parameters, sizes))
    return by_rows


def make_root(
    columns: Sequence[Column], target: Target, parameters: Mapping[str, Any], sizes: Sizes, node: Sequence[int] = ()
) -> tuple[Learner, Batch]:
    """The learner and all rows as one batch, binned or in order as ``sizes`` say; in several nodes if ``node`` says."""
    learner, _ = build_learner(encode(columns), target, resolved(target, parameters), name_positive(target))
    learner = replace(learner, sizes=sizes)
    target = prepare_target(target, learner.parameters)
    of_row = np.array(node, np.int64) if len(node) else np.zeros(target.rows, np.int64)
    row = np.argsort(of_row, kind="stable")
    weight = None if target.weight is None else target.weight[row]
    entries = Entries(row, of_row[row], int(of_row.max()) + 1, weight)
    batch = lay_out(learner, make_batch(target, entries, learner.objective))
    # growth bins the root, whose rows stand in their own order
    return learner, batch if batch.binned is None else replace(batch, binned=batch.binned.reorder(row))


def name_positive(target: Target) -> Label | None:
    """The last of two classes."""
    return target.classes[1] if len(target.classes) == 2 else None


def random_columns(source: np.random.Generator, rows: int, *, gaps: bool) -> list[Column]:
    """Distinct values, few whole ones, a heavy tail, the first turned round, a constant; perhaps with gaps."""
    cells = source.normal(size=(5, rows))
    cells[1] = source.integers(0, 6, rows)
    cells[2] = np.exp(4 * cells[2])
    cells[3] = -cells[0]
    cells[4] = 3.0
    if gaps:
        cells[source.random(cells.shape) < 0.1] = np.nan
    return [Column(f"x{i}", "numeric", line.copy()) for i, line in enumerate(cells)]


def random_target(
    source: np.random.Generator, columns: Sequence[Column], classes: int, weight: str, *, offset: float = 0.0
) -> Target:
    """What depends loosely on the columns: numbers, or one of so many ``classes``; ``weight``: none, whole or real."""
    rows = len(columns[0].values)
    signal = np.nan_to_num(columns[0].values) + np.nan_to_num(columns[1].values) / 4 + source.normal(size=rows) / 2
    heavy = {"none": None, "whole": source.integers(1, 5, rows) * 1.0, "real": source.uniform(0.1, 1, rows)}[weight]
    if not classes:
        return Target("y", values=signal + offset, weight=heavy)
    codes = np.clip(np.round(signal * 2).astype(int), -classes, classes) % classes
    found, codes = np.unique(codes, return_inverse=True)
    return Target("y", tuple(found.tolist()), codes.astype(np.int32), weight=heavy)


def suitable_target(source: np.random.Generator, columns: Sequence[Column], criterion: str, weight: str) -> Target:
    """Three classes, numbers, or for the Poisson deviance numbers of 0 and more, as the criterion needs them."""
    classes = 3 if CRITERIA[criterion].task == "classification" else 0
    target = random_target(source, columns, classes, weight)
    if criterion == "poisson" and target.values is not None:
        return replace(target, values=np.maximum(target.values, 0.0))
    return target
