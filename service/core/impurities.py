"""Impurities with what they are made of: pure functions of a node's or its branches' statistics.

Shapes: ``stats: (channel, ...)`` of a node, ``branches: (channel, branch, ...)`` of a split, float64. The channels are
the weight of each class; or, for numbers, (weight, sum, sum of squares) about a centre near the node's mean, or those
of `deviations`.
A branch without weight contributes nothing. Trailing axes are free: nodes, bins, cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.deviations import (
    TINY,
    concentrate_apart,
    concentrate_poisson,
    has_only_zeros,
    mean_apart,
    poisson,
)

Floats = NDArray[np.float64]


def divide(numerator: Floats, denominator: Floats) -> Floats:
    """Elementwise quotient; 0 / 0 is 0, for what has no weight contributes nothing."""
    return np.asarray(numerator / np.maximum(denominator, TINY))


def _multiply_log(values: Floats) -> Floats:
    """X log2 x elementwise, 0 at 0."""
    result = np.asarray(np.maximum(values, TINY))
    np.log2(result, out=result)  # in place, which leaves twice as much of the cache to others
    result *= values
    return result


def concentrate_gini(stats: Floats) -> Floats:
    """Sum over classes of n^2 / w; the weight less this is weight times gini (Breiman et al. 1984, section 4.3)."""
    return divide(np.einsum("k...,k...->...", stats, stats), stats.sum(0))


def concentrate_entropy(stats: Floats) -> Floats:
    """Sum over classes of n log2 n, less w log2 w: minus the weight times the entropy (Quinlan 1986, section 4)."""
    total: Floats = _multiply_log(stats).sum(0)
    return total - _multiply_log(stats.sum(0))


def concentrate_numbers(stats: Floats) -> Floats:
    """s^2 / w; the sum of squares less this is that about the mean (Breiman et al. 1984, section 8.3)."""
    return divide(stats[1] * stats[1], stats[0])


def gini(stats: Floats) -> Floats:
    """1 - sum p^2; 0 where nothing weighs, and without rounding where one class has all the weight."""
    weight = stats.sum(0)
    mixed = weight > stats.max(0)
    return np.asarray(np.maximum(mixed - divide(concentrate_gini(stats), weight), 0.0))


def entropy(stats: Floats) -> Floats:
    """-sum p log2 p, in bits; 0 where nothing weighs."""
    return np.maximum(divide(-concentrate_entropy(stats), stats.sum(0)), 0.0)


def variance(stats: Floats) -> Floats:
    """Mean square about the mean, never below 0."""
    return np.maximum(divide(stats[2] - concentrate_numbers(stats), stats[0]), 0.0)


def weigh_classes(stats: Floats) -> Floats:
    """(...) the weight of each node or branch whose channels are classes."""
    total: Floats = stats.sum(0)
    return total


def weigh_numbers(stats: Floats) -> Floats:
    """(...) the weight of each node or branch whose channels are weight, sum and sum of squares."""
    return np.asarray(stats[0])


@dataclass(frozen=True, slots=True)
class Family:
    """An impurity with what it is made of.

    ``concentrate`` is convex and grows by what a split gains: gain = (sum over branches - node) / weight, but for
    ``branches`` that are ``undefined``: then it is NaN.
    """

    impurity: Callable[[Floats], Floats]
    concentrate: Callable[[Floats], Floats]
    weigh: Callable[[Floats], Floats]
    undefined: Callable[[Floats], NDArray[np.bool_]] | None = None

    def gain(self, branches: Floats, node: Floats) -> Floats:
        """(...) the node's impurity less the branches', each by its share of the weight."""
        parts: Floats = self.concentrate(branches).sum(0)
        gain = np.asarray((parts - self.concentrate(node)) / self.weigh(node))
        return gain if self.undefined is None else np.where(self.undefined(branches), np.nan, gain)

    def cost(self, branches: Floats, node: Floats) -> Floats:
        """(...) the branches' impurities, each by its share of the weight."""
        mean: Floats = (self.weigh(branches) * self.impurity(branches)).sum(0)
        return np.asarray(mean / self.weigh(node))

    def pairwise_gain(self, branches: Floats, node: Floats) -> Floats:
        """(...) the gain with squared shares, the encyclopaedia's variance reduction to the letter.

        Written out, its sums over pairs within a branch are divided by the square of the *node's* size.
        """
        share = self.weigh(branches) / self.weigh(node)
        within: Floats = (share * share * self.impurity(branches)).sum(0)
        return self.impurity(node) - within

    def information_content(self, branches: Floats, node: Floats) -> Floats:  # noqa: ARG002 - as all measures
        """(...) -sum share log2 share over the branches (Quinlan 1986, "IV"; 1993, "split info")."""
        return entropy(self.weigh(branches))

    def gain_ratio(self, branches: Floats, node: Floats) -> Floats:
        """(...) gain by information content; NaN where all the weight is in one branch (Quinlan 1986, section 7)."""
        content = self.information_content(branches, node)
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(content > 0, self.gain(branches, node) / content, np.nan)


GINI = Family(gini, concentrate_gini, weigh_classes)
ENTROPY = Family(entropy, concentrate_entropy, weigh_classes)


def look_up_entropy(most: int) -> Family:
    """`ENTROPY` of counts, int64, up to ``most``: logarithms are looked up, and gains are the same to the last bit."""
    table = _multiply_log(np.arange(most + 1.0))

    def concentrate(counts: NDArray[Any]) -> Floats:
        return np.asarray(table.take(counts).sum(0) - table.take(counts.sum(0)))

    return replace(ENTROPY, concentrate=concentrate)


VARIANCE = Family(variance, concentrate_numbers, weigh_numbers)
POISSON = Family(poisson, concentrate_poisson, weigh_numbers, has_only_zeros)
RATES = Family(poisson, concentrate_poisson, weigh_numbers)
"""As `POISSON`, where answers are drawn away from 0: a branch without any event is like any other."""
ABSOLUTE = Family(mean_apart, concentrate_apart, weigh_numbers)


def make_vector_family(outputs: int) -> Family:
    """The mean of the variances of several outputs: weight, the sum of each, then the squares of each."""
    sums, squares = slice(1, 1 + outputs), slice(1 + outputs, 1 + 2 * outputs)

    def concentrate(stats: Floats) -> Floats:
        total: Floats = (stats[sums] * stats[sums]).sum(0)
        return divide(total, stats[0]) / outputs

    def impurity(stats: Floats) -> Floats:
        total: Floats = stats[squares].sum(0)
        return np.maximum(divide(total / outputs - concentrate(stats), stats[0]), 0.0)

    return Family(impurity, concentrate, weigh_numbers)


def find_variances(stats: Floats, outputs: int) -> Floats:
    """(output, ...) the variance of each output, never below 0; see `make_vector_family`."""
    sums, squares = stats[1 : 1 + outputs], stats[1 + outputs : 1 + 2 * outputs]
    return np.maximum(divide(squares - divide(sums * sums, stats[0]), stats[0]), 0.0)
