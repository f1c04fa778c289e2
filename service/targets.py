"""What a training request is about: its columns, its task, and the target that is learnt."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import CRITERIA, Task
from service.core.errors import Fault, InvalidData, UnsuitableTask, pointer
from service.core.parameters import CLASSIFIERS
from service.core.schema import Column, Label, Table, Target
from service.settings import Settings
from service.store.records import Retention

FEW_WHOLE = 10
"""A numeric target with so few distinct whole numbers may well be meant as classes: the answer warns."""
LEAST_WEIGHT, MOST_WEIGHT = 1e-100, 1e100
"""Weights between these can be squared and divided by one another."""
MOST_SQUARES = 1e300
"""What weighted squares of targets may add up to, so that there is room for what is made of them."""
LARGEST_TARGET = 1e150
"""Beyond it the square of a target overflows."""


@dataclass(frozen=True)
class TrainingRequest:
    """What to learn from which table."""

    table: Table
    target: str | tuple[str, ...]
    features: tuple[str, ...] | None = None
    weight: str | None = None
    task: Task | None = None
    algorithm: str = "cart"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    positive_class: Label | None = None
    dissimilarity: Mapping[str, Any] | None = None
    missing_target: str = "refuse"
    cross_validation: int | Mapping[str, Any] | None = None
    name: str | None = None
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    retain: Retention | None = None
    summary_splits: int | None = None


def select_columns(request: TrainingRequest) -> tuple[list[Column], list[Column], Column | None]:
    """The features, the targets and the weight. Raises InvalidData with each name that will not do."""
    targets = (request.target,) if isinstance(request.target, str) else request.target
    posted = {column.name: column for column in request.table.columns}
    reserved = {*targets, request.weight}
    names = request.features if request.features is not None else tuple(n for n in posted if n not in reserved)
    faults = _find_name_faults(request, targets, names, posted)
    if faults:
        raise InvalidData(faults)
    if request.table.rows == 0:
        raise InvalidData(Fault("/data", "there are no rows: a model needs one at least"))
    weight = None if request.weight is None else posted[request.weight]
    return [posted[name] for name in names], [posted[name] for name in targets], weight


def _find_name_faults(
    request: TrainingRequest, targets: Sequence[str], names: Sequence[str], posted: Mapping[str, Column]
) -> list[Fault]:
    """Names of no column, names that stand twice, and columns that are asked to be two things."""
    several = not isinstance(request.target, str)
    named = [(pointer("target", i) if several else "/target", name) for i, name in enumerate(targets)]
    named += [] if request.weight is None else [("/weight", request.weight)]
    named += [(pointer("features", i), name) for i, name in enumerate(names)]
    known = ", ".join(list(posted)[:20])
    faults = [
        Fault(place, f'there is no column "{name}" in the data: {known}') for place, name in named if name not in posted
    ]
    faults += [] if targets else [Fault("/target", "name the column to predict, or several")]
    faults += [Fault("/weight", "the target cannot be the weight")] if request.weight in targets else []
    for field_name, listed in (("target", targets), ("features", names)):
        faults += [
            Fault(pointer(field_name, i), f'"{name}" is named twice')
            for i, name in enumerate(listed)
            if name in listed[:i]
        ]
    return faults + [
        Fault(pointer("features", i), f'"{name}" is the target or the weight, not a feature')
        for i, name in enumerate(names)
        if name in targets or name == request.weight
    ]


def decide_task(
    request: TrainingRequest, targets: Sequence[Column], posted: Mapping[str, Any]
) -> tuple[Task, list[str]]:
    """The task that was asked for or that the criterion, the positive class or the target's kind means."""
    target = targets[0]
    criterion = CRITERIA.get(str(posted.get("criterion")))
    if request.task is not None:
        task: Task = request.task
    elif request.dissimilarity is not None:
        task = "dissimilarity"
    elif criterion is not None:
        task = criterion.task
    elif len(targets) > 1:
        task = "regression"
    elif request.positive_class is not None or target.kind != "numeric" or request.algorithm in CLASSIFIERS:
        task = "classification"
    else:
        distinct = np.unique(target.values[~target.is_missing()])
        few = len(distinct) <= FEW_WHOLE and bool((distinct == np.floor(distinct)).all())
        hint = (
            f'"{target.name}" has {len(distinct)} distinct whole numbers and was taken as a number; if they are '
            'classes, say "task": "classification"'
        )
        return "regression", [hint] if few else []
    if task == "classification" and len(targets) > 1:
        raise UnsuitableTask(Fault("/target", "several targets are for regression; of classes there is one"))
    if task == "regression":
        for column in targets:
            if column.kind != "numeric":
                other = 'of anything there is "dissimilarity": {"metric": "hamming"}'
                said = f'"{column.name}" is {column.kind}: regression needs numbers, {other}'
                raise UnsuitableTask(Fault("/target", said))
    return task, []


def find_rows(targets: Sequence[Column], weight: Column | None, missing_target: str) -> NDArray[np.bool_]:
    """(row,) True for rows that have all targets and a weight above 0; raises as `find_usable_rows` does."""
    keep: NDArray[np.bool_] = np.logical_and.reduce(
        [find_usable_rows(target, weight, missing_target) for target in targets]
    )
    if not keep.any():
        raise InvalidData(Fault("/data", "no row has all targets and a weight above 0: at least one is needed"))
    return keep


def find_usable_rows(target: Column, weight: Column | None, missing_target: str) -> NDArray[np.bool_]:
    """(row,) True for rows that have a target and a weight above 0; a row of weight 0 equals no row.

    Raises InvalidData where none is left, where a weight is not one, and, unless ``missing_target`` is ``drop``, where
    a target is missing.
    """
    missing = target.is_missing()
    if missing.any() and missing_target == "refuse":
        row = int(missing.argmax())
        raise InvalidData(
            Fault(
                pointer("data", "columns", target.name, row),
                f"the target has no value in {int(missing.sum())} rows, the first is row {row}: fill them in, or say "
                '"missing_target": "drop"',
            )
        )
    keep = ~missing
    if weight is not None:
        keep &= _check_weights(weight) > 0
    if not keep.any():
        raise InvalidData(Fault("/data", "no row has a target and a weight above 0: at least one is needed"))
    return keep


def _check_weights(weight: Column) -> NDArray[np.float64]:
    if weight.kind != "numeric":
        raise InvalidData(Fault("/weight", f'"{weight.name}" is {weight.kind}: weights are numbers'))
    values = weight.values.astype(np.float64)
    bad = weight.is_missing() | ~np.isfinite(values) | (values < 0)
    if bad.any():
        row = int(bad.argmax())
        message = f"the weight of row {row} is not a number of 0 or more"
        raise InvalidData(Fault(pointer("data", "columns", weight.name, row), message))
    with np.errstate(over="ignore"):
        if not np.isfinite(values.sum()):
            raise InvalidData(Fault("/weight", "the weights add up to more than a number can hold: scale them down"))
    return values


def check_numbers(column: Column) -> NDArray[np.float64]:
    """(row,) the targets of a regression; raises InvalidData at the first that is too large to be squared."""
    values = column.values.astype(np.float64)
    bad = ~(np.abs(values) <= LARGEST_TARGET)
    if bad.any():
        row = int(bad.argmax())
        message = f"a target is a number of at most {LARGEST_TARGET:g} either way"
        raise InvalidData(Fault(pointer("data", "columns", column.name, row), message))
    return values


def check_counts(column: Column, keep: NDArray[np.bool_]) -> None:
    """Raise InvalidData that names the first of the rows to ``keep`` whose target is below 0, or says that all are."""
    below = keep & (column.values < 0)
    if below.any() or not column.values[keep].any():
        row = int((below if below.any() else keep).argmax())
        message = f'"poisson" needs targets of 0 or more, one of them above 0: row {row} has {column.values[row]:g}'
        raise InvalidData(Fault(pointer("data", "columns", column.name, row), message))


def build_target(task: Task, columns: Sequence[Column], weight: Column | None, settings: Settings) -> Target:
    """The target of usable rows. Raises InvalidData and UnsuitableTask where it cannot be learnt."""
    column, weights = columns[0], read_weights(weight)
    if task == "regression":
        values = np.stack([check_numbers(each) for each in columns], axis=1)
        check_sums(float(np.abs(values).max()) ** 2, len(values), weights)
        if len(columns) == 1:
            return Target(column.name, values=values[:, 0].copy(), weight=weights)
        names = tuple(each.name for each in columns)
        return Target(", ".join(names), values=values, weight=weights, names=names)
    classes, codes = _code_classes(column)
    if len(classes) > settings.max_classes:
        raise UnsuitableTask(
            Fault(
                "/target",
                f'"{column.name}" has {len(classes)} classes; this service allows {settings.max_classes} '
                '(TREEWRIGHT_MAX_CLASSES), and for numbers there is "task": "regression"',
            )
        )
    return Target(column.name, classes, codes.astype(np.int32), weight=weights)


def read_weights(weight: Column | None) -> NDArray[np.float64] | None:
    """(row,) the weights of usable rows, None where all are 1; raises InvalidData for what cannot be squared."""
    if weight is None:
        return None
    values = weight.values.astype(np.float64)
    if float(values.sum()) > MOST_WEIGHT or float(values.min()) < LEAST_WEIGHT:
        message = f"weights are 0, or from {LEAST_WEIGHT:g} on, and add up to at most {MOST_WEIGHT:g}: scale them"
        raise InvalidData(Fault("/weight", message))
    return None if (values == 1).all() else values


def check_sums(square: float, rows: int, weights: NDArray[np.float64] | None) -> None:
    """Raise InvalidData where the sum of so many squares would overflow."""
    total = rows if weights is None else float(weights.sum())
    if square * total > MOST_SQUARES:
        place, what = ("/target", "targets") if weights is None else ("/weight", "weights")
        raise InvalidData(
            Fault(place, f"the squares of the targets add up to more than a number can hold: scale the {what}")
        )


def _code_classes(column: Column) -> tuple[tuple[Label, ...], NDArray[np.integer]]:
    """The classes that occur, in the order of the categories or ascending, and (row,) the class of each row."""
    values, codes = np.unique(column.values, return_inverse=True)
    if column.kind == "numeric":
        return tuple(values.tolist()), codes
    return tuple(column.categories[code] for code in values.tolist()), codes
