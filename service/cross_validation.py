"""What a training asks of cross-validation, and how its record shows what came out."""

from __future__ import annotations

import math
import statistics
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from service.core.errors import Fault, pointer
from service.core.schema import Target
from service.core.validate import Plan, Trial
from service.errors import InvalidRequest

PLACE = "/cross_validation"
MOST_TRIALS = 1000
"""Folds times repeats: each is a training."""
_LEAST = {"folds": 2, "seed": 0, "repeats": 1}


def read_plan(posted: int | Mapping[str, Any] | None, seed: int | None) -> Plan | None:
    """The plan of a request: folds, or an object of folds, seed and repeats; ``seed`` stands in for one not given.

    Raises `InvalidRequest` with a fault for each part that cannot be used.
    """
    if posted is None:
        return None
    if not isinstance(posted, Mapping):
        return _make_plan({"folds": posted}, seed, dict.fromkeys(_LEAST, PLACE))
    unknown = [Fault(PLACE + pointer(name), f"must be one of {', '.join(_LEAST)}") for name in posted.keys() - _LEAST]
    if unknown:
        raise InvalidRequest("The cross-validation has unknown parts.", unknown)
    return _make_plan(posted, seed, {name: PLACE + pointer(name) for name in _LEAST})


def _make_plan(posted: Mapping[str, Any], seed: int | None, places: Mapping[str, str]) -> Plan:
    asked = {"folds": posted.get("folds"), "seed": posted.get("seed"), "repeats": posted.get("repeats")}
    asked = {"seed": seed or 0, "repeats": 1} | {name: value for name, value in asked.items() if value is not None}
    faults = [
        Fault(places[name], f"must be a whole number, {least} or more")
        for name, least in _LEAST.items()
        if not isinstance(asked.get(name), int) or isinstance(asked[name], bool) or asked[name] < least
    ]
    if not faults and Plan(**asked).trials > MOST_TRIALS:
        faults = [Fault(places["folds"], f"folds times repeats may be {MOST_TRIALS} at most: each is a training")]
    if faults:
        raise InvalidRequest("The cross-validation cannot be done.", faults)
    return Plan(**asked)


def check_plan(plan: Plan, target: Target) -> list[str]:
    """A warning where some folds will lack a class. Raises `InvalidRequest` where there are fewer rows than folds."""
    if plan.folds > target.rows:
        message = f"{plan.folds} folds need as many rows with a target and a weight above 0; there are {target.rows}"
        raise InvalidRequest("The cross-validation cannot be done.", Fault(PLACE, message))
    if target.codes is None:
        return []
    counts = np.bincount(target.codes, minlength=len(target.classes))
    rare = [target.classes[k] for k in np.flatnonzero(counts < plan.folds)]
    if not rare:
        return []
    named = ", ".join(map(repr, rare[:5]))
    return [f"some folds of the cross-validation lack classes that have fewer rows than there are folds ({named})"]


def show_trials(plan: Plan, trials: Sequence[Trial]) -> dict[str, Any]:
    """What the record says: of each measure the mean, the standard deviation and the value in each fold."""
    return {
        "folds": plan.folds,
        "repeats": plan.repeats,
        "seed": plan.seed,
        "rows": [trial.rows for trial in trials],
        "leaves": [trial.leaves for trial in trials],
        "metrics": {name: _summarize([trial.metrics[name] for trial in trials]) for name in trials[0].metrics},
    }


def _summarize(values: Sequence[float | None]) -> dict[str, Any]:
    """Over the folds where it is defined; the deviation is that of a sample."""
    known = [value for value in values if value is not None]
    return {
        "mean": math.fsum(known) / len(known) if known else None,
        "standard_deviation": statistics.stdev(known) if len(known) > 1 else None,
        "values": list(values),
    }
