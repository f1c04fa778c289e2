"""Where some scores stand among very many: the best few, and how many come before one; all others are not sorted."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import Floats
from service.core.parallel import run_parallel
from service.core.statistics import Ints

Flags = NDArray[np.bool_]
FEW = 8
"""Stretches of fewer scores are no help."""


def find_highest(score: Floats, most: int | None) -> Ints:
    """The places of the ``most`` highest scores, ascending, none of them NaN; of equal ones the first are taken."""
    if most is None or most >= len(score):
        return np.arange(len(score))
    if most <= 0:
        return np.empty(0, np.int64)
    near = _find_near(score, most)
    among = score[near]
    level = np.partition(among, len(among) - most)[len(among) - most]
    above = np.flatnonzero(among > level)
    return np.asarray(near[np.sort(np.concatenate([above, np.flatnonzero(among == level)[: most - len(above)]]))])


def _find_near(score: Floats, most: int) -> Ints:
    """Places of the ``most`` highest scores, and of some more: of what reaches the peak of so many stretches."""
    stretch = math.isqrt(len(score) // most)
    if stretch < FEW:
        return np.arange(len(score))
    peak = score[: len(score) // stretch * stretch].reshape(-1, stretch).max(1)
    return np.flatnonzero(score >= np.partition(peak, len(peak) - most)[len(peak) - most])


def count_before(
    scores: Sequence[Floats], highest: Floats, begin: Ints, counts: Callable[[int], Flags], score: Floats, place: Ints
) -> Ints:
    """How many candidates come before each of some, at ``place``: with a higher ``score``, or an equal one further up.

    All ``scores`` are given by feature, whose candidates begin at ``begin: (feature + 1,)``; ``counts`` says which of a
    feature's are counted, none of which is above its ``highest``.
    """
    levels, level = np.unique(score, return_inverse=True)

    def count(feature: int) -> tuple[Ints, Ints]:
        if highest[feature] < levels[0]:
            return np.zeros(len(levels), np.int64), np.empty(0, np.int64)
        part, counted = scores[feature], counts(feature)
        over = part > levels[-1]
        higher = int(np.count_nonzero(counted & over))
        near = np.flatnonzero(counted & (part >= levels[0]) & ~over)
        above = np.searchsorted(levels, part[near])
        equal = part[near] == levels[above]
        below = np.bincount(above, minlength=len(levels))
        # of those at the level i or beneath it, all that are not beneath i are above the level before
        more = higher + np.cumsum(below[::-1])[::-1] - below
        return more, above[equal] * begin[-1] + near[equal] + begin[feature]

    found = run_parallel(count, range(len(scores)))
    higher = np.sum([more for more, _ in found], axis=0)
    # level by level, in order of position
    equal = np.sort(np.concatenate([keys for _, keys in found]))
    first = level * begin[-1]
    return np.asarray(higher[level] + np.searchsorted(equal, first + place) - np.searchsorted(equal, first))
