"""Evaluation: how good a model's answers are on posted rows whose target is known."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from service.core.answers import Answers, answer_rows
from service.core.conform import conform, conform_classes
from service.core.criteria import Floats
from service.core.errors import Fault, InvalidData, pointer
from service.core.evaluate import (
    ClassFit,
    Metrics,
    average,
    find_positive,
    measure_classes,
    measure_each,
    measure_numbers,
)
from service.core.folds import take_cells
from service.core.schema import Column, Label, Table
from service.core.statistics import Ints
from service.errors import InvalidRequest
from service.prediction import Predictor, prepare
from service.rendering.nodes import show_counts, show_number
from service.store.models import ModelStore
from service.store.records import ModelRecord
from service.targets import check_numbers, find_rows

NAMED = 5
"""A warning names so many of the unseen labels."""


@dataclass(frozen=True)
class EvaluationRequest:
    """Rows with their targets, in the columns ``targets`` (None: the names that they had in training)."""

    table: Table
    targets: Sequence[str] | None = None
    weight: str | None = None
    missing_target: str = "refuse"


@dataclass(frozen=True, slots=True)
class Known:
    """Rows of which the target is known, made ready for a model.

    ``columns`` are those of its features; ``truth: (row,)`` are numbers, or codes of its ``classes``, their number for
    a label that is none of them; of several ``targets`` (row, target). ``weight: (row,)``, all above
    0, None where all weigh 1.
    """

    columns: Sequence[Column]
    truth: Floats | Ints
    weight: Floats | None
    classes: Sequence[Label]
    positive: int
    poisson: bool
    targets: Sequence[str]
    warnings: Sequence[str]

    @property
    def rows(self) -> int:
        """How many rows there are."""
        return len(self.truth)

    def measure(self, answers: Answers) -> Metrics:
        """Every measure of the answers to these rows."""
        if self.classes:
            return self.fit(answers).metrics
        if len(self.targets) > 1:
            return average(list(self.measure_each(answers).values()))
        return measure_numbers(answers, self.truth.astype(np.float64), self.weight, self.poisson)

    def measure_each(self, answers: Answers) -> dict[str, Metrics]:
        """Every measure of each of several targets, by its name."""
        each = measure_each(answers, self.truth.astype(np.float64), self.weight)
        return dict(zip(self.targets, each, strict=True))

    def fit(self, answers: Answers) -> ClassFit:
        """How well the answers tell the classes."""
        return measure_classes(answers, self.truth.astype(np.int64), self.weight, self.positive)


def check(record: ModelRecord, request: EvaluationRequest, store: ModelStore) -> None:
    """Raise the errors of `read_known`, of which `evaluate` would die."""
    read_known(record, prepare(record, store), request)


def evaluate(
    record: ModelRecord,
    request: EvaluationRequest,
    store: ModelStore,
    report: Callable[[float], None] = lambda _: None,
) -> dict[str, Any]:
    """Every measure of the model's answers to these rows, and of classes the confusion of each with each.

    ``report`` is told how much is done, and may raise. Raises the errors of `read_known`.
    """
    predictor = prepare(record, store)
    known = read_known(record, predictor, request)
    report(0.25)
    answers = answer_rows(predictor.tree, predictor.guide(known.columns), known.columns, known.rows)
    report(0.5)
    weight = known.rows if known.weight is None else math.fsum(known.weight.tolist())
    shown: dict[str, Any] = {"rows": known.rows, "weight": show_counts([float(weight)])[0]}
    if known.classes:
        shown |= _show_classes(known, known.fit(answers))
    else:
        shown["metrics"] = known.measure(answers)
        if len(known.targets) > 1:
            shown["metrics"] |= {"by_target": known.measure_each(answers)}
    return {**shown, "warnings": list(known.warnings)}


def _show_classes(known: Known, fit: ClassFit) -> dict[str, Any]:
    count = len(known.classes)
    weight = fit.confusion.sum(1)
    return {
        "metrics": fit.metrics,
        "classes": list(known.classes),
        "confusion": [show_counts(row) for row in fit.confusion[:count].tolist()],
        "unseen": show_counts(fit.confusion[count].tolist()) if weight[count] > 0 else None,
        "by_class": [
            {
                "class": label,
                "weight": show_counts([float(weight[k])])[0],
                "precision": show_number(float(fit.precision[k])),
                "recall": show_number(float(fit.recall[k])),
                "f1": show_number(float(fit.f1[k])),
                "roc_auc": show_number(float(fit.roc_auc[k])),
            }
            for k, label in enumerate(known.classes)
        ],
    }


def read_known(record: ModelRecord, predictor: Predictor, request: EvaluationRequest) -> Known:
    """The rows that have a target and a weight above 0.

    Raises `InvalidRequest` for columns that cannot be the target or the weight, `InvalidData` for tables that lack a
    column or, where these are refused, values.
    """
    told = record.body["schema"]["target"]
    if "dissimilarity" in told:
        raise InvalidRequest(
            "a model of dissimilarities has no errors to measure", Fault("/target", "train a model for each target")
        )
    trained = told.get("names") or [told["name"]]
    targets, weight = _select_columns(request, trained, predictor)
    others = tuple(column for column in request.table.columns if column not in (*targets, weight))
    columns, warnings = conform(Table(others, request.table.rows), predictor.tree.features, predictor.missing)
    keep = find_rows(targets, weight, request.missing_target)
    if not keep.all():
        columns = [take_cells(column, keep) for column in columns]
        targets, weight = [take_cells(each, keep) for each in targets], weight and take_cells(weight, keep)
        warnings.append(f"{int((~keep).sum())} rows without a target or weight are left out")
    classes = predictor.tree.classes
    truth = conform_classes(targets[0], classes) if classes else _stack([check_numbers(each) for each in targets])
    if classes:
        warnings += _warn_unseen(targets[0], truth, classes)
    return Known(
        columns,
        truth,
        None if weight is None else weight.values.astype(np.float64),
        classes,
        find_positive(classes, told.get("positive_class")),
        record.body["parameters"]["criterion"] == "poisson",
        trained,
        warnings,
    )


def _stack(values: Sequence[Floats]) -> Floats:
    """(row,) one target, or (row, target) several."""
    return values[0] if len(values) == 1 else np.stack(values, axis=1)


def _select_columns(
    request: EvaluationRequest, trained: Sequence[str], predictor: Predictor
) -> tuple[list[Column], Column | None]:
    """The columns of the targets and of the weight."""
    posted = {column.name: column for column in request.table.columns}
    names = trained if request.targets is None else request.targets
    if len(set(names)) != len(trained) or len(names) != len(trained):
        asked_for = "the model has one target" if len(trained) == 1 else f"the model has {len(trained)} targets"
        raise InvalidRequest(asked_for, Fault("/target", "name a column for each, once"))
    asked = [("/target", name) for name in request.targets or ()]
    asked += [] if request.weight is None else [("/weight", request.weight)]
    for place, name in asked:
        if name in predictor.names:
            raise InvalidRequest(f'"{name}" is a feature of the model', Fault(place, "name another column"))
        if name not in posted:
            raise InvalidRequest(f'there is no column "{name}" in the data', Fault(place, "name one of its columns"))
    if request.weight in names:
        raise InvalidRequest("a target cannot be the weight", Fault("/weight", "name another column"))
    absent = [name for name in names if name not in posted]
    if absent:
        message = 'there is no column "{}" with the true answers: add it, or name another one as "target"'
        raise InvalidData([Fault(pointer("data", "columns", name), message.format(name)) for name in absent])
    return [posted[name] for name in names], None if request.weight is None else posted[request.weight]


def _warn_unseen(target: Column, truth: Floats | Ints, classes: Sequence[Label]) -> list[str]:
    unseen = truth == len(classes)
    if not unseen.any():
        return []
    found = np.unique(target.values[unseen])[:NAMED].tolist()
    labels = found if target.kind == "numeric" else [target.categories[code] for code in found]
    named, known = (", ".join(map(repr, some[:NAMED])) for some in (labels, classes))
    more = ", .." if len(classes) > NAMED else ""
    found_in = f'"{target.name}" has labels that training did not have in {int(unseen.sum())} rows ({named})'
    return [f"{found_in}: they count as wrong; the classes are {known}{more}"]
