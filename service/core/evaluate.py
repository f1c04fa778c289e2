"""How good answers are, for rows whose target is known.

Classes are measured on a table of counts: ``table: (answer, class + 1)`` is the weight of the rows that got an answer,
by their true class; the last column has those whose label training did not have. Each measure is a function of it.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.core.answers import Answers
from service.core.criteria import Floats
from service.core.schema import Label, Target
from service.core.statistics import Ints

EPSILON = float(np.finfo(np.float64).eps)
"""The log loss takes a smaller probability for this one, so that it is finite (as scikit-learn does)."""
LOWER_IS_BETTER = frozenset({"log_loss", "brier", "mae", "rmse", "deviance"})
Metrics = dict[str, float | None]
"""By name; None where undefined."""


@dataclass(frozen=True, slots=True)
class ClassFit:
    """How well classes were told.

    ``confusion: (class + 1, class)`` is the weight by true class (last: unseen labels) and predicted one. The other
    arrays are (class,), NaN where undefined.
    """

    metrics: Metrics
    confusion: Floats
    precision: Floats
    recall: Floats
    f1: Floats
    roc_auc: Floats


def measure_fit(answer: Floats, target: Target) -> Metrics:
    """Accuracy, or R2, mean absolute and root mean squared error, of the answers to training rows: (row,)."""
    if target.codes is not None:
        return {"accuracy": float(np.average(answer == target.codes, weights=target.weight))}
    if target.values is None:
        return {}
    if target.names:
        return measure_outputs(target, answer)
    return _measure_errors(target.values, answer, target.weight)


def _measure_errors(values: Floats, answer: Floats, weight: Floats | None) -> Metrics:
    error = values - answer
    square = float(np.average(error * error, weights=weight))
    offset = values - np.average(values, weights=weight)
    spread = float(np.average(offset * offset, weights=weight))
    return {
        "r2": 1.0 - square / spread if spread > 0 else None,
        "mae": float(np.average(np.abs(error), weights=weight)),
        "rmse": square**0.5,
    }


def measure_outputs(target: Target, answer: Floats) -> Metrics:
    """The means over all outputs of what `by_output` says of each; ``answer: (row, output)``."""
    return average(list(by_output(target, answer).values()))


def average(every: Sequence[Metrics]) -> Metrics:
    """The mean of each measure over all outputs; None where it is undefined for one."""
    mean: Metrics = {}
    for name in every[0]:
        known = [value for each in every if (value := each[name]) is not None]
        mean[name] = sum(known) / len(every) if len(known) == len(every) else None
    return mean


def by_output(target: Target, answer: Floats) -> dict[str, Metrics]:
    """What `measure_fit` says of each output, by its name."""
    values = np.zeros((0, 0)) if target.values is None else target.values
    return {
        name: _measure_errors(values[:, place], answer[:, place], target.weight)
        for place, name in enumerate(target.names)
    }


def measure(answers: Answers, target: Target, positive: int, criterion: str) -> Metrics:
    """Every measure of the answers to the rows of the target; the criterion says which deviance numbers have."""
    if target.codes is not None:
        return measure_classes(answers, target.codes.astype(np.int64), target.weight, positive).metrics
    if target.values is None:
        return {}
    if target.values.ndim > 1:
        return average(measure_each(answers, target.values, target.weight))
    return measure_numbers(answers, target.values, target.weight, criterion == "poisson")


def measure_each(answers: Answers, truth: Floats, weight: Floats | None) -> list[Metrics]:
    """What `measure_numbers` says of each output: ``truth: (row, output)``, predictions (answer, output)."""
    return [
        measure_numbers(replace(answers, prediction=answers.prediction[:, place]), truth[:, place], weight)
        for place in range(truth.shape[1])
    ]


def find_positive(classes: Sequence[Label], positive: Label | None) -> int:
    """The index of the positive class; the last one where none is named."""
    same = [k for k, label in enumerate(classes) if label == positive and type(label) is type(positive)]
    return same[0] if same else len(classes) - 1


def measure_classes(answers: Answers, truth: Ints, weight: Floats | None, positive: int) -> ClassFit:
    """How well ``truth: (row,)`` was told: codes of classes, or the number of classes for a label that is none.

    Of two classes the one with the index ``positive`` has the ROC curve. Weights are above 0; the fit is the same
    for their multiples.
    """
    unit, weight = _scale_weight(weight)
    table = _tabulate(answers, truth, weight, answers.probability.shape[1])
    # only answers that were given: a large tree meets a few rows
    given = np.flatnonzero(table.any(1))
    table, probability = table[given], answers.probability[given]
    prediction = answers.prediction[given].astype(np.int64)
    confusion = _confuse(table, prediction)
    classes = confusion.shape[1]
    hits, support, called = confusion.diagonal(), confusion.sum(1), confusion.sum(0)
    with np.errstate(invalid="ignore"):
        recall = hits / support[:classes]
        precision = hits / called
        f1 = 2 * hits / (support[:classes] + called)
    roc_auc = np.array([_find_auc(table[:, k], table.sum(1) - table[:, k], probability[:, k]) for k in range(classes)])
    total = math.fsum(support)
    # unseen labels together are a class of which nothing was recalled
    present = np.append(recall, 0.0)[support > 0]
    metrics: Metrics = {
        "accuracy": math.fsum(hits) / total,
        "balanced_accuracy": math.fsum(present) / len(present),
        "log_loss": _find_log_loss(table, probability) / total,
        "brier": _find_brier(table, probability) / total,
        **_average_auc(roc_auc, support[:classes], positive),
    }
    return ClassFit(metrics, confusion * unit, precision, recall, f1, roc_auc)


def _scale_weight(weight: Floats | None) -> tuple[float, Floats | None]:
    """A power of two, and the weights divided by it: the largest is then about 1, and no sum overflows."""
    if weight is None:
        return 1.0, None
    unit = float(np.ldexp(1.0, int(np.frexp(weight.max())[1]) - 1))
    return unit, weight / unit


def _tabulate(answers: Answers, truth: Ints, weight: Floats | None, classes: int) -> Floats:
    """(answer, class + 1) the weight of the rows by what they were answered and what they are."""
    columns, given = classes + 1, len(answers.prediction)
    key = answers.index * columns + truth
    counts = np.bincount(key, weights=weight, minlength=given * columns)
    return counts.astype(np.float64).reshape(given, columns)


def _confuse(table: Floats, prediction: Ints) -> Floats:
    """(class + 1, class) the weight by true and predicted class."""
    columns = table.shape[1]
    key = (np.arange(columns) * (columns - 1) + prediction[:, None]).ravel()
    weight: Floats = np.bincount(key, weights=table.ravel(), minlength=columns * (columns - 1)).astype(np.float64)
    return weight.reshape(columns, -1)


def _find_log_loss(table: Floats, probability: Floats) -> float:
    """Sum of weight times -ln p(true class), p being no less than `EPSILON`; an unseen label had no chance at all."""
    known = table[:, :-1] * -np.log(np.maximum(probability, EPSILON))
    return _sum(np.append(known.ravel(), table[:, -1] * -math.log(EPSILON))) + 0.0


def _find_brier(table: Floats, probability: Floats) -> float:
    """Sum of weight times the squared distance of the probabilities from the truth (Brier 1950), of two classes half.

    Half of it is (p(positive) - 1 or 0)^2, which is what the score of two classes is taken for today.
    """
    square = probability * probability
    total = square.sum(1)[:, None]
    miss = 1.0 - probability
    # the true class counts (1 - p)^2, each other one p^2
    known = (total - square) + miss * miss
    distance = _sum(np.append((table[:, :-1] * known).ravel(), table[:, -1:] * (total + 1.0)))
    return distance / 2 if probability.shape[1] == 2 else distance


def _find_auc(positive: Floats, negative: Floats, score: Floats) -> float:
    """The chance that a positive row scores higher than a negative one, ties counting half; NaN without both.

    ``positive``, ``negative``: (answer,) weights. It is the area under the ROC curve (Hanley and McNeil 1982).
    """
    _, group = np.unique(score, return_inverse=True)
    hits, misses = np.bincount(group, weights=positive), np.bincount(group, weights=negative)
    pairs = hits.sum() * misses.sum()
    if pairs <= 0:
        return math.nan
    below = np.cumsum(misses) - misses
    return _sum(hits * (below + misses / 2)) / float(pairs)


def _average_auc(roc_auc: Floats, support: Floats, positive: int) -> Metrics:
    """Of two classes the positive one's; of more the mean of each against the rest, plain and by weight."""
    if len(roc_auc) == 2:
        return {"roc_auc": _defined(float(roc_auc[positive]))}
    if len(roc_auc) < 2 or np.isnan(roc_auc).any():
        return {"roc_auc": None} if len(roc_auc) < 2 else {"roc_auc": None, "roc_auc_weighted": None}
    return {"roc_auc": float(roc_auc.mean()), "roc_auc_weighted": float(np.average(roc_auc, weights=support))}


def measure_numbers(answers: Answers, truth: Floats, weight: Floats | None, poisson: bool = False) -> Metrics:
    """R2, mean absolute and root mean squared error, and the mean deviance, of ``truth: (row,)``.

    The deviance is the squared error, with ``poisson`` Poisson's 2 (y ln(y / m) - y + m), which is undefined for
    targets below 0 and infinite where 0 was predicted and more came; both are None. R2 is None for equal targets.
    The order of rows changes nothing.
    """
    predicted = answers.prediction[answers.index]
    _, weight = _scale_weight(weight)
    error_unit, error = _scale(truth - predicted)
    unit, scaled = _scale(truth)
    square = _average(error * error, weight)
    offset = scaled - _average(scaled, weight)
    spread = _average(offset * offset, weight)
    mean_square = square * error_unit * error_unit
    ratio = error_unit / unit
    return {
        "r2": None if truth.min() == truth.max() or spread <= 0 else 1.0 - square / spread * ratio * ratio,
        "mae": _average(np.abs(error), weight) * error_unit,
        "rmse": math.sqrt(square) * error_unit,
        "deviance": _find_poisson_deviance(truth, predicted, weight) if poisson else mean_square,
    }


def _scale(values: Floats) -> tuple[float, Floats]:
    """A power of two, and the values divided by it, none of which is above 1: squares of them add up to anything."""
    unit = float(np.ldexp(1.0, int(np.frexp(np.abs(values).max())[1])))
    return unit, values / unit


def _average(values: Floats, weight: Floats | None) -> float:
    """The weighted mean."""
    if weight is None:
        return _sum(values) / len(values)
    return _sum(values * weight) / _sum(weight)


def _sum(values: Floats) -> float:
    """A sum that does not depend on the order: of whole multiples of 2^-60 of the largest value."""
    unit, scaled = _scale(values)
    high = np.rint(scaled * 2.0**30)
    low = np.rint((scaled - high * 2.0**-30) * 2.0**60)
    # whole numbers as floats would be rounded past 2^53, as int64 they are not
    total = (int(high.astype(np.int64).sum()) << 30) + int(low.astype(np.int64).sum())
    return total / 2**60 * unit


def _find_poisson_deviance(truth: Floats, predicted: Floats, weight: Floats | None) -> float | None:
    """The mean of 2 (y ln(y / m) - y + m), 0 where both are 0 (McCullagh and Nelder 1989, section 2.3)."""
    if (truth < 0).any() or ((predicted <= 0) & (truth > 0)).any():
        return None
    count = truth > 0
    ratio = np.divide(truth, predicted, out=np.ones_like(truth), where=count)
    return 2.0 * _average(truth * np.log(ratio) - (truth - predicted), weight)


def _defined(value: float) -> float | None:
    return None if math.isnan(value) else value
