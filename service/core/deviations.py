"""Impurities of numbers other than the variance: pure functions of the branches' statistics, as in `criteria`.

Poisson deviance     ``stats``: weight, sum about the node's centre c, rows above 0, weight times c, deviance about c
absolute deviation   ``stats``: weight, sum about the node's centre, total deviation from the median; this does not add
                     up, and an empty branch has what is left (see `branches`)
dissimilarity        ``stats``: weight, weight times half the mean dissimilarity; likewise
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TINY = 1e-300
"""Stands in for a weight of 0 in denominators, whose numerators are 0 too."""
ROUNDED = 1e-13
"""A branch's deviance below this share of its deviance about the node's centre is rounding, and shown as 0."""
_TERMS = 12
"""Of the series of `rise_above`; the next is below 1e-17 where it is used."""


def rise_above(step: Floats) -> Floats:
    """(1 + u) log(1 + u) - u elementwise, to a few units in the last place; 1 for u = -1 and anything below.

    Near 0 the difference would be rounding: with r = u / (2 + u), log(1 + u) = 2 (r + r^3 / 3 + r^5 / 5 + ...)
    (Abramowitz and Stegun 1964, 4.1.27), and so it is u r + 2 (1 + u) r^3 (1 / 3 + r^2 / 5 + ...).
    """
    step = np.maximum(step, -1.0)
    ratio = step / (2.0 + step)
    square = ratio * ratio
    series = np.zeros_like(square)
    for term in range(_TERMS, 0, -1):
        series = series * square + 1.0 / (2 * term + 1)
    near = step * ratio + 2.0 * (1.0 + step) * ratio * square * series
    whole = 1.0 + step
    far = whole * np.log(np.maximum(whole, TINY)) - step
    return np.where(np.abs(step) < 0.3, near, far)


def concentrate_poisson(stats: Floats) -> Floats:
    """S log(s / (w c)) - s + w c for the sum s of the targets: what the branch's own mean takes off the deviance."""
    base = stats[3]
    return np.asarray(base * rise_above(stats[1] / np.maximum(base, TINY)))


def poisson(stats: Floats) -> Floats:
    """Half the mean Poisson deviance about the mean, mean of y log(y / mean), never below 0.

    As scikit-learn defines it (user guide, "Decision trees: regression criteria").
    """
    own = stats[4] - concentrate_poisson(stats)
    own = np.where(own <= ROUNDED * stats[4], 0.0, own)
    return np.asarray(own / np.maximum(stats[0], TINY))


def has_only_zeros(branches: Floats) -> NDArray[np.bool_]:
    """(...) True where some branch with weight has no target above 0: its deviance would be that of a rate of 0."""
    return np.asarray(((branches[0] > 0) & (branches[2] <= 0)).any(0))


def concentrate_apart(stats: Floats) -> Floats:
    """Minus the total deviation, of what has weight: what grows by the gain of a split."""
    return np.where(stats[0] > 0, -stats[-1], 0.0)


def mean_apart(stats: Floats) -> Floats:
    """The mean deviation from the weighted median (Breiman et al. 1984, section 8.11), or half that of pairs."""
    heavy = stats[0] > 0
    # what has no weight may hold what does not add up, and is not divided by next to nothing
    return np.where(heavy, np.maximum(stats[-1], 0.0) / np.where(heavy, stats[0], 1.0), 0.0)
