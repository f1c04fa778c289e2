"""Training: a table becomes a stored model."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import perf_counter
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import CRITERIA
from service.core.errors import Fault, InvalidData, InvalidParameters, UnsuitableTask, pointer
from service.core.evaluate import measure_fit
from service.core.folds import take_cells
from service.core.grow import Progress
from service.core.learn import Learnt, learn
from service.core.parameters import CLASSIFIERS, Parameters, Task, resolve
from service.core.schema import Column, Label, Table, Target
from service.core.validate import Plan, cross_validate
from service.cross_validation import check_plan, read_plan, show_trials
from service.listing import summarize_splits
from service.pruning import describe_pruning, pack_path
from service.retention import pack_data, pack_summary
from service.settings import Settings
from service.store.models import ModelStore
from service.store.records import Claim, ModelDraft, ModelRecord, Retention

FEW_WHOLE = 10
"""A numeric target with so few distinct whole numbers may well be meant as classes: the answer warns."""
LARGEST_TARGET = 1e150
"""Beyond it the square of a target overflows."""


@dataclass(frozen=True)
class TrainingRequest:
    """What to learn from which table."""

    table: Table
    target: str
    features: tuple[str, ...] | None = None
    weight: str | None = None
    task: Task | None = None
    algorithm: str = "cart"
    parameters: Mapping[str, Any] = field(default_factory=dict)
    positive_class: Label | None = None
    missing_target: str = "refuse"
    cross_validation: int | Mapping[str, Any] | None = None
    name: str | None = None
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    retain: Retention | None = None


def train(
    request: TrainingRequest,
    store: ModelStore,
    settings: Settings,
    clock: Callable[[], float] = perf_counter,
    progress: Progress | None = None,
    report: Callable[[float], None] | None = None,
    claim: Claim | None = None,
) -> ModelRecord:
    """Learn a tree and store it with what the audit needs; with a ``claim`` that is the end of a job.

    ``progress`` is told of growth, then ``report`` how much of a cross-validation is done; both end all by raising.
    Raises the core's errors for data, parameters and tasks that do not do, and the store's.
    """
    began = clock()
    ready = prepare(request, settings)
    columns, target, capped = ready.columns, ready.target, ready.capped
    learnt = learn(columns, target, capped, request.positive_class, progress)
    warnings = ready.warnings + _find_warnings(learnt, target, ready.parameters, settings)
    retention = request.retain or settings.retain
    body = _describe(request, ready.parameters, learnt, ready.target_column, warnings)
    if ready.plan is not None:
        trials = cross_validate(columns, target, capped, request.positive_class, ready.plan, report)
        body["metrics"]["cross_validation"] = show_trials(ready.plan, trials)
    sha256 = hash_data([*columns, ready.target_column])
    body["training"] |= {"data_sha256": sha256, "seconds": round(clock() - began, 4)}
    return store.add(
        ModelDraft(
            name=request.name,
            description=request.description,
            tags=dict(request.tags),
            retention=retention,
            body=body,
            tree=learnt.tree.as_arrays() | pack_path(ready.parameters, learnt.pruning),
            data=_retain(retention, learnt, settings),
        ),
        claim,
    )


@dataclass(frozen=True)
class Prepared:
    """A request that can be learnt from: rows without a target or a weight are gone, everything is resolved.

    ``capped`` are the parameters with the depth that the service allows.
    """

    columns: list[Column]
    target: Target
    target_column: Column
    parameters: Parameters
    capped: Parameters
    plan: Plan | None
    warnings: list[str]


def prepare(request: TrainingRequest, settings: Settings) -> Prepared:
    """Everything that comes before learning; raises what `train` raises for a request that does not do."""
    posted = dict(request.parameters)
    columns, target_column, weight_column = _select_columns(request)
    task, warnings = _decide_task(request, target_column, posted)
    parameters = resolve(request.algorithm, posted, task)
    _check_depth(parameters, settings)
    plan = read_plan(request.cross_validation, parameters.seed)
    keep = find_usable_rows(target_column, weight_column, request.missing_target)
    if parameters.criterion == "poisson":
        _check_counts(target_column, keep)
    if not keep.all():
        columns = [take_cells(column, keep) for column in columns]
        target_column = take_cells(target_column, keep)
        weight_column = weight_column and take_cells(weight_column, keep)
    target = _build_target(task, target_column, weight_column, settings)
    if plan is not None:
        warnings += check_plan(plan, target)
    capped = parameters
    if parameters.max_depth != 0:
        capped = replace(parameters, max_depth=min(parameters.max_depth or settings.max_depth, settings.max_depth))
    return Prepared(columns, target, target_column, parameters, capped, plan, warnings)


def _retain(retention: Retention, learnt: Learnt, settings: Settings) -> dict[str, Any] | None:
    if retention == "none":
        return None
    if retention == "data":
        return pack_data(learnt, learnt.target)
    return pack_summary(summarize_splits(learnt, learnt.target, settings.summary_splits))


def _select_columns(request: TrainingRequest) -> tuple[list[Column], Column, Column | None]:
    posted = {column.name: column for column in request.table.columns}
    faults = []

    def check(name: str, place: str) -> None:
        if name not in posted:
            faults.append(Fault(place, f'there is no column "{name}" in the data: {", ".join(list(posted)[:20])}'))

    check(request.target, "/target")
    if request.weight is not None:
        check(request.weight, "/weight")
        if request.weight == request.target:
            faults.append(Fault("/weight", "the target cannot be the weight"))
    reserved = {request.target, request.weight}
    names = request.features if request.features is not None else tuple(n for n in posted if n not in reserved)
    for index, name in enumerate(names):
        check(name, pointer("features", index))
        if name in reserved:
            faults.append(Fault(pointer("features", index), f'"{name}" is the target or the weight, not a feature'))
        if name in names[:index]:
            faults.append(Fault(pointer("features", index), f'"{name}" is named twice'))
    if faults:
        raise InvalidData(faults)
    if request.table.rows == 0:
        raise InvalidData(Fault("/data", "there are no rows: a model needs one at least"))
    weight = None if request.weight is None else posted[request.weight]
    return [posted[name] for name in names], posted[request.target], weight


def _decide_task(request: TrainingRequest, target: Column, posted: Mapping[str, Any]) -> tuple[Task, list[str]]:
    """The task that was asked for or that the criterion, the positive class or the target's kind means."""
    criterion = CRITERIA.get(str(posted.get("criterion")))
    if request.task is not None:
        task: Task = request.task
    elif criterion is not None:
        task = criterion.task
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
    if task == "regression" and target.kind != "numeric":
        raise UnsuitableTask(Fault("/target", f'"{target.name}" is {target.kind}: regression needs numbers'))
    return task, []


def _check_depth(parameters: Parameters, settings: Settings) -> None:
    if parameters.max_depth is not None and parameters.max_depth > settings.max_depth:
        raise InvalidParameters(
            Fault("/parameters/max_depth", f"is more than this service allows ({settings.max_depth})")
        )


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


def _check_counts(column: Column, keep: NDArray[np.bool_]) -> None:
    """Raise InvalidData that names the first of the rows to ``keep`` whose target is below 0, or says that all are."""
    below = keep & (column.values < 0)
    if below.any() or not column.values[keep].any():
        row = int((below if below.any() else keep).argmax())
        message = f'"poisson" needs targets of 0 or more, one of them above 0: row {row} has {column.values[row]:g}'
        raise InvalidData(Fault(pointer("data", "columns", column.name, row), message))


def _build_target(task: Task, column: Column, weight: Column | None, settings: Settings) -> Target:
    weights = None if weight is None else weight.values.astype(np.float64)
    if weights is not None and (weights == 1).all():
        weights = None
    if task == "regression":
        return Target(column.name, values=check_numbers(column), weight=weights)
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


def _code_classes(column: Column) -> tuple[tuple[Label, ...], NDArray[np.integer]]:
    """The classes that occur, in the order of the categories or ascending, and (row,) the class of each row."""
    values, codes = np.unique(column.values, return_inverse=True)
    if column.kind == "numeric":
        return tuple(values.tolist()), codes
    return tuple(column.categories[code] for code in values.tolist()), codes


def _find_warnings(learnt: Learnt, target: Target, parameters: Parameters, settings: Settings) -> list[str]:
    tree = learnt.tree
    if parameters.max_depth is None and int(tree.depth.max()) >= settings.max_depth:
        return [f"growth stopped at depth {settings.max_depth}, the most that this service allows"]
    if tree.nodes > 1 or parameters.max_depth == 0 or parameters.max_leaf_nodes == 1:
        return []
    if len(learnt.leaf) == 1:
        return ["there is only one row: the model is a single leaf"]
    if tree.impurity[0] <= 0:
        return [f'the target "{target.name}" is constant: the model is a single leaf']
    if not tree.features:
        return ["there is no feature to learn from: the model is a single leaf"]
    return ["no split is admissible at the root: the model is a single leaf; its splits tell why"]


def _describe(
    request: TrainingRequest, parameters: Parameters, learnt: Learnt, column: Column,
    warnings: Sequence[str],
) -> dict[str, Any]:  # fmt: skip
    """The JSON-able part of the record."""
    tree, target = learnt.tree, learnt.target
    shown: dict[str, Any] = {"name": target.name, "kind": column.kind if target.is_classification else "numeric"}
    if target.is_classification:
        shown["classes"] = list(target.classes)
        shown["positive_class"] = request.positive_class
    features = []
    for feature in tree.features:
        described: dict[str, Any] = {"name": feature.name, "kind": feature.kind}
        if feature.kind != "numeric":
            described["categories"] = list(feature.categories)
        features.append(described)
    return {
        "algorithm": request.algorithm,
        "task": "classification" if target.is_classification else "regression",
        "parameters": parameters.as_dict(),
        "schema": {"features": features, "target": shown},
        "training": {"rows": len(learnt.leaf), "columns": len(tree.features)},
        "tree": {"nodes": tree.nodes, "leaves": int(tree.is_leaf.sum()), "depth": int(tree.depth.max())},
        "metrics": measure_fit(tree, target, learnt.leaf),
        "pruning": describe_pruning(parameters, learnt.pruning),
        "warnings": list(warnings),
    }


def hash_data(columns: Sequence[Column]) -> str:
    """SHA-256 of the columns as they were learnt from: names, kinds, categories, values in order."""
    digest = hashlib.sha256()
    for column in columns:
        head = [column.name, column.kind, list(column.categories), column.values.dtype.str]
        digest.update(json.dumps(head).encode())
        digest.update(np.ascontiguousarray(column.values).data)
        if column.missing is not None:
            digest.update(np.ascontiguousarray(column.missing).data)
    return digest.hexdigest()
