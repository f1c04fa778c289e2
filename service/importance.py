"""Importance: what a model owes to each of its features."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import count
from typing import Any

import numpy as np

from service.core.answers import Answers, answer_rows
from service.core.criteria import Floats
from service.core.errors import Fault
from service.core.evaluate import LOWER_IS_BETTER
from service.core.importance import credit_features, credit_surrogates, find_gains, permute_features
from service.core.learn import restore_objective
from service.core.parameters import Parameters
from service.core.tree import Tree
from service.errors import InvalidRequest
from service.evaluation import EvaluationRequest, Known, read_known
from service.prediction import prepare
from service.rendering.nodes import show_number
from service.store.models import ModelStore
from service.store.records import ModelRecord

REPEATS = 5
MOST_REPEATS = 100
"""Each is a prediction of all rows for each feature."""


@dataclass(frozen=True)
class PermutationRequest:
    """Rows with their targets, and how to mix them up; ``metric`` None is the accuracy or R2."""

    rows: EvaluationRequest
    metric: str | None = None
    repeats: int = REPEATS
    seed: int = 0


def weigh_gains(record: ModelRecord, store: ModelStore, surrogates: bool = False) -> dict[str, Any]:
    """What the splits on each feature gained: its sum, and its share of all, the largest first.

    With ``surrogates`` those that stand in for a split share in its gain; raises `InvalidRequest` where there are none.
    """
    tree = Tree.from_arrays(store.load_tree(record))
    parameters = Parameters(**record.body["parameters"])
    objective, _ = restore_objective(tree, parameters, record.body["schema"]["target"].get("positive_class"))
    gains = find_gains(tree, objective)
    gain = credit_features(tree, gains)
    if surrogates:
        if tree.surrogates is None:
            raise InvalidRequest(
                "the model has no surrogate splits", Fault("?surrogates", 'train it with "missing": "surrogate"')
            )
        gain = gain + credit_surrogates(tree.surrogates, gains, len(tree.features))
    total = float(gain.sum())
    share = gain / total if total > 0 else gain
    return {
        "method": "gain",
        "criterion": parameters.criterion,
        "surrogates": surrogates,
        "features": [
            {"feature": tree.features[f].name, "gain": float(gain[f]), "share": float(share[f])} for f in _rank(gain)
        ],
    }


def permute(
    record: ModelRecord,
    request: PermutationRequest,
    store: ModelStore,
    report: Callable[[float], None] = lambda _: None,
) -> dict[str, Any]:
    """By how much the metric gets worse where the cells of one feature are dealt to the rows at random.

    ``report`` is told how much is done, after each permutation and from any thread, and may raise.
    Raises the errors of `read_known`, and `InvalidRequest` for a metric that there is not or that is undefined.
    """
    predictor = prepare(record, store)
    known = read_known(record, predictor, request.rows)
    metric = ("accuracy" if known.classes else "r2") if request.metric is None else request.metric
    guide = predictor.guide(known.columns)
    baseline = _measure(known, metric, answer_rows(predictor.tree, guide, known.columns, known.rows))

    measured, most = count(), 1 + len(predictor.tree.features) * request.repeats

    def measure(answers: Answers) -> float | None:
        report(next(measured) / most)
        return known.measure(answers)[metric]

    mixed = permute_features(predictor.tree, guide, known.columns, measure, request.repeats, request.seed)
    worse = (mixed - baseline if metric in LOWER_IS_BETTER else baseline - mixed) + 0.0
    mean = worse.mean(1)
    return {
        "method": "permutation",
        "metric": metric,
        "baseline": baseline,
        "rows": known.rows,
        "repeats": request.repeats,
        "seed": request.seed,
        "features": [
            {
                "feature": predictor.tree.features[f].name,
                "mean": show_number(float(mean[f])),
                "standard_deviation": _deviate(worse[f]),
                "values": [show_number(value) for value in worse[f].tolist()],
            }
            for f in _rank(mean)
        ],
        "warnings": list(known.warnings),
    }


def _measure(known: Known, metric: str, answers: Answers) -> float:
    """The metric of the rows as they are."""
    metrics = known.measure(answers)
    if metric not in metrics:
        raise InvalidRequest(
            f'there is no metric "{metric}" for this model', Fault("/metric", f"must be one of {', '.join(metrics)}")
        )
    value = metrics[metric]
    if value is None:
        raise InvalidRequest(
            f'"{metric}" is undefined on these rows', Fault("/metric", "choose another one, or send other rows")
        )
    return value


def _rank(worth: Floats) -> Sequence[int]:
    """The features by falling worth, equal ones in their own order, undefined ones last."""
    order: list[int] = np.argsort(-worth, kind="stable").tolist()
    return order


def _deviate(values: Floats) -> float | None:
    """The standard deviation of a sample; None of fewer than two or where one is undefined."""
    if len(values) < 2 or np.isnan(values).any():
        return None
    return float(statistics.stdev(values.tolist()))
