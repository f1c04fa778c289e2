"""Training: a table becomes a stored model."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from time import perf_counter
from typing import Any

from service.core.counterfactual import SPANS, measure_spans
from service.core.criteria import CRITERIA
from service.core.errors import Fault, InvalidParameters, UnsuitableTask
from service.core.evaluate import by_output, measure_fit
from service.core.folds import take_cells
from service.core.grow import Progress
from service.core.learn import Learnt, learn
from service.core.parameters import Parameters, resolve
from service.core.schema import Column, Target
from service.core.validate import Plan, cross_validate
from service.cross_validation import check_plan, read_plan, show_trials
from service.dissimilarities import build_pairs
from service.provenance import describe_origin, hash_training
from service.pruning import describe_pruning, pack_path
from service.retention import pack_data, pack_summary
from service.settings import Settings
from service.store.models import ModelStore
from service.store.records import Claim, KeyClaim, ModelDraft, ModelRecord, Retention
from service.summarizing import summarize_splits
from service.targets import (
    TrainingRequest,
    build_target,
    check_counts,
    decide_task,
    find_rows,
    select_columns,
)


def train(
    request: TrainingRequest,
    store: ModelStore,
    settings: Settings,
    clock: Callable[[], float] = perf_counter,
    progress: Progress | None = None,
    report: Callable[[float], None] | None = None,
    claim: Claim | None = None,
    key: KeyClaim | None = None,
) -> ModelRecord:
    """Learn a tree and store it with what the audit needs; with a ``claim`` that is the end of a job.

    ``progress`` is told of growth, then ``report`` how much of a cross-validation is done; both end all by raising.
    ``key``: that of the request, if it may be repeated.
    Raises the core's errors for data, parameters and tasks that do not do, and the store's.
    """
    began = clock()
    ready = prepare(request, settings)
    columns, target, capped = ready.columns, ready.target, ready.capped
    learnt = learn(columns, target, capped, request.positive_class, progress)
    warnings = ready.warnings + _find_warnings(learnt, target, ready.parameters, settings)
    retention = decide_retention(request, learnt, settings, warnings)
    body = _describe(request, ready.parameters, learnt, ready.targets, warnings)
    if ready.plan is not None:
        trials = cross_validate(columns, target, capped, request.positive_class, ready.plan, report)
        body["metrics"]["cross_validation"] = show_trials(ready.plan, trials)
    body["training"] |= {"data_sha256": ready.hash(request), "seconds": round(clock() - began, 4)}
    return store.add(
        ModelDraft(
            name=request.name,
            description=request.description,
            tags=dict(request.tags),
            retention=retention,
            body=body,
            tree={
                **learnt.tree.as_arrays(),
                **pack_path(ready.parameters, learnt.pruning),
                SPANS: measure_spans(columns),
            },
            data=_retain(retention, learnt, request.summary_splits or settings.summary_splits),
        ),
        claim,
        key,
    )


@dataclass(frozen=True)
class Prepared:
    """A request that can be learnt from: rows without a target or a weight are gone, everything is resolved.

    ``capped`` are the parameters with the depth that the service allows.
    """

    columns: list[Column]
    target: Target
    targets: list[Column]
    parameters: Parameters
    capped: Parameters
    weight: Column | None
    plan: Plan | None
    warnings: list[str]

    def hash(self, request: TrainingRequest) -> str:
        """The SHA-256 of the data in their canonical form."""
        matrix = "matrix" in (request.dissimilarity or {})
        return hash_training(self.columns, self.targets, self.weight, self.target, matrix)


def prepare(request: TrainingRequest, settings: Settings) -> Prepared:
    """Everything that comes before learning; raises what `train` raises for a request that does not do."""
    posted = dict(request.parameters)
    columns, targets, weight_column = select_columns(request)
    task, warnings = decide_task(request, targets, posted)
    parameters = resolve(request.algorithm, posted, task)
    _check_depth(parameters, settings)
    plan = read_plan(request.cross_validation, parameters.seed)
    if request.dissimilarity is not None and task != "dissimilarity":
        raise UnsuitableTask(Fault("/dissimilarity", 'is for the criterion "dissimilarity"'))
    if task == "dissimilarity":
        _check_held_out(parameters, plan)
    keep = find_rows(targets, weight_column, request.missing_target)
    if parameters.criterion == "poisson":
        check_counts(targets[0], keep)
    target = None
    if task == "dissimilarity":
        target = build_pairs(request.dissimilarity, targets, weight_column, keep, settings)
    if not keep.all():
        columns = [take_cells(column, keep) for column in columns]
        targets = [take_cells(each, keep) for each in targets]
        weight_column = weight_column and take_cells(weight_column, keep)
    target = target or build_target(task, targets, weight_column, settings)
    if plan is not None:
        warnings += check_plan(plan, target)
    capped = cap_depth(parameters, settings)
    return Prepared(columns, target, targets, parameters, capped, weight_column, plan, warnings)


def cap_depth(parameters: Parameters, settings: Settings) -> Parameters:
    """The parameters with the depth that the service allows."""
    if parameters.max_depth == 0:
        return parameters
    return replace(parameters, max_depth=min(parameters.max_depth or settings.max_depth, settings.max_depth))


def decide_retention(request: TrainingRequest, learnt: Learnt, settings: Settings, warnings: list[str]) -> Retention:
    """What to keep for the audit; a warning is added where that is less than was asked for."""
    asked = request.retain or settings.retain
    pairs = learnt.target.rows if learnt.target.pairs is not None else 0
    rows = len(learnt.leaf) + learnt.pruning.held_out
    cells = rows * max(len(learnt.tree.features) + pairs, 1)
    if asked != "data" or cells <= settings.max_retained_cells:
        return asked
    warnings.append(
        f"the data were not kept, a summary was: {cells:,} rows x columns are more than {settings.max_retained_cells:,}"
        " (TREEWRIGHT_MAX_RETAINED_CELLS); the audit lists the best splits of each feature in each node"
    )
    return "summary"


def _retain(retention: Retention, learnt: Learnt, summary_splits: int) -> dict[str, Any] | None:
    if retention == "none":
        return None
    if retention == "data":
        return pack_data(learnt, learnt.target)
    return pack_summary(summarize_splits(learnt, learnt.target, summary_splits))


def _check_held_out(parameters: Parameters, plan: Plan | None) -> None:
    """Raise InvalidParameters for what measures held-out rows: their errors would need more dissimilarities."""
    held_out = parameters.pruning == "reduced_error" or parameters.pruning_folds is not None
    asked = {"/parameters/pruning": held_out, "/cross_validation": plan is not None}
    message = 'holds rows out, whose errors are unknown under "dissimilarity"; to prune there are "alpha" and "cp"'
    faults = [Fault(place, message) for place, is_asked in asked.items() if is_asked]
    if faults:
        raise InvalidParameters(faults)


def _check_depth(parameters: Parameters, settings: Settings) -> None:
    if parameters.max_depth is not None and parameters.max_depth > settings.max_depth:
        raise InvalidParameters(
            Fault("/parameters/max_depth", f"is more than this service allows ({settings.max_depth})")
        )


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
    request: TrainingRequest, parameters: Parameters, learnt: Learnt, columns: Sequence[Column],
    warnings: Sequence[str],
) -> dict[str, Any]:  # fmt: skip
    """The JSON-able part of the record."""
    tree, target = learnt.tree, learnt.target
    kind = "numeric" if target.values is not None else columns[0].kind
    shown: dict[str, Any] = {"name": target.name, "kind": kind}
    metrics: dict[str, Any] = {**measure_fit(learnt.prediction, target)}
    if target.names:
        shown["names"] = list(target.names)
    if target.pairs is not None:
        shown["dissimilarity"] = _name_metric(request.dissimilarity, columns)
    elif target.names:
        metrics["by_target"] = by_output(target, learnt.prediction)
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
        "task": CRITERIA[parameters.criterion].task,
        "parameters": parameters.as_dict(),
        "schema": {"features": features, "target": shown},
        "training": {
            "rows": len(learnt.leaf),
            "columns": len(tree.features),
            "weight": request.weight,
            "missing_target": request.missing_target,
        },
        "tree": {"nodes": tree.nodes, "leaves": int(tree.is_leaf.sum()), "depth": int(tree.depth.max())},
        "metrics": metrics,
        "pruning": describe_pruning(parameters, learnt.pruning),
        "provenance": describe_origin(),
        "warnings": list(warnings),
    }


def _name_metric(dissimilarity: Mapping[str, Any] | None, columns: Sequence[Column]) -> str:
    """The metric, or that there was a matrix."""
    if dissimilarity is not None:
        return str(dissimilarity.get("metric", "matrix"))
    return "euclidean" if all(column.kind == "numeric" for column in columns) else "hamming"
