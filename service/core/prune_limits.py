"""How many errors a leaf would make on other cases, at most, with some confidence (Quinlan 1993, chapter 4)."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np

from service.core.criteria import Floats

_TAILS = (0.0, 0.001, 0.005, 0.01, 0.05, 0.10, 0.20, 0.40, 1.00)
_DEVIATES = (4.0, 3.09, 2.58, 2.33, 1.65, 1.28, 0.84, 0.25, 0.00)
"""C4.5 release 8 interpolates the normal deviate of a tail between these."""
FEWEST = {"c45": 0.9999, "weka": 1.0}
"""Below so many errors the limit is interpolated between that of none and that of one."""


def find_deviate(confidence: float, limit: str) -> float:
    """The normal deviate beyond which the share ``confidence`` lies, as C4.5's table has it or exactly (Weka)."""
    if limit == "weka":
        return NormalDist().inv_cdf(1.0 - confidence)
    return float(np.interp(confidence, _TAILS, _DEVIATES))


def estimate_errors(weight: Floats, errors: Floats, confidence: float, limit: str) -> Floats:
    """(leaf,) the errors of leaves that hold ``weight`` with so many ``errors``, at the upper confidence limit.

    ``limit``: "c45" as release 8 of C4.5 (AddErrs of stats.c), "weka" as Weka (Stats.addErrs): both approximate the
    binomial by the normal distribution with a correction for continuity, and differ in the deviate and near the ends.
    """
    held = np.where(weight > 0, weight, 1.0)
    none = held * -np.expm1(np.log(confidence) / held)
    one = _add_many(held, np.ones_like(held), confidence, limit)
    few = none + errors * (one - none)
    extra = np.where(errors < FEWEST[limit], few, _add_many(held, errors, confidence, limit))
    return np.where(weight > 0, errors + extra, 0.0)


def _add_many(weight: Floats, errors: Floats, confidence: float, limit: str) -> Floats:
    """What is added to one error or more."""
    deviate = find_deviate(confidence, limit)
    square = deviate * deviate
    past = errors + 0.5
    # (f + z^2/2N + z sqrt(f/N - f^2/N + z^2/4N^2)) / (1 + z^2/N), f = (e + .5) / N, times N
    spread = np.sqrt(np.maximum(square * (past * (1.0 - past / weight) + square / 4.0), 0.0))
    upper = weight * (past + square / 2.0 + spread) / (weight + square)
    left = np.maximum(weight - errors, 0.0)
    return np.where(past >= weight, left if limit == "weka" else 0.67 * left, upper - errors)
