"""Impurities, measures of a split, and criteria: pure functions of the branches' statistics.

Shapes: ``stats: (channel, ...)`` of a node, ``branches: (channel, branch, ...)`` of a split, float64. The channels are
the weight of each class; or, for numbers, (weight, sum, sum of squares) about a centre near the node's mean, or those
of `deviations`.
A branch without weight contributes nothing. Undefined scores are NaN. Trailing axes are free: nodes, bins, cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

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
from service.core.schema import Statistic

Floats = NDArray[np.float64]
TOLERANCE = 1e-12
"""Scores closer than this, relative to the criterion's scale in the node, are tied."""


def _divide(numerator: Floats, denominator: Floats) -> Floats:
    """Elementwise quotient; 0 / 0 is 0, for what has no weight contributes nothing."""
    return np.asarray(numerator / np.maximum(denominator, TINY))


def _multiply_log(values: Floats) -> Floats:
    """X log2 x elementwise, 0 at 0."""
    return np.asarray(values * np.log2(np.maximum(values, TINY)))


def concentrate_gini(stats: Floats) -> Floats:
    """Sum over classes of n^2 / w; the weight less this is weight times gini (Breiman et al. 1984, section 4.3)."""
    return _divide(np.einsum("k...,k...->...", stats, stats), stats.sum(0))


def concentrate_entropy(stats: Floats) -> Floats:
    """Sum over classes of n log2 n, less w log2 w: minus the weight times the entropy (Quinlan 1986, section 4)."""
    total: Floats = _multiply_log(stats).sum(0)
    return total - _multiply_log(stats.sum(0))


def concentrate_numbers(stats: Floats) -> Floats:
    """s^2 / w; the sum of squares less this is that about the mean (Breiman et al. 1984, section 8.3)."""
    return _divide(stats[1] * stats[1], stats[0])


def gini(stats: Floats) -> Floats:
    """1 - sum p^2; 0 where nothing weighs."""
    weight = stats.sum(0)
    return np.where(weight > 0, np.maximum(1.0 - _divide(concentrate_gini(stats), weight), 0.0), 0.0)


def entropy(stats: Floats) -> Floats:
    """-sum p log2 p, in bits; 0 where nothing weighs."""
    return np.maximum(_divide(-concentrate_entropy(stats), stats.sum(0)), 0.0)


def variance(stats: Floats) -> Floats:
    """Mean square about the mean, never below 0."""
    return np.maximum(_divide(stats[2] - concentrate_numbers(stats), stats[0]), 0.0)


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
VARIANCE = Family(variance, concentrate_numbers, weigh_numbers)
POISSON = Family(poisson, concentrate_poisson, weigh_numbers, has_only_zeros)
RATES = Family(poisson, concentrate_poisson, weigh_numbers)
"""As `POISSON`, where answers are drawn away from 0: a branch without any event is like any other."""
ABSOLUTE = Family(mean_apart, concentrate_apart, weigh_numbers)


Measure = Callable[[Floats, Floats], Floats]
"""Of ``branches: (channel, branch, ...)`` and their ``node: (channel, ...)``, which may broadcast."""


def make_vector_family(outputs: int) -> Family:
    """The mean of the variances of several outputs: weight, the sum of each, then the squares of each."""
    sums, squares = slice(1, 1 + outputs), slice(1 + outputs, 1 + 2 * outputs)

    def concentrate(stats: Floats) -> Floats:
        total: Floats = (stats[sums] * stats[sums]).sum(0)
        return _divide(total, stats[0]) / outputs

    def impurity(stats: Floats) -> Floats:
        total: Floats = stats[squares].sum(0)
        return np.maximum(_divide(total / outputs - concentrate(stats), stats[0]), 0.0)

    return Family(impurity, concentrate, weigh_numbers)


def find_variances(stats: Floats, outputs: int) -> Floats:
    """(output, ...) the variance of each output, never below 0; see `make_vector_family`."""
    sums, squares = stats[1 : 1 + outputs], stats[1 + outputs : 1 + 2 * outputs]
    return np.maximum(_divide(squares - _divide(sums * sums, stats[0]), stats[0]), 0.0)


def list_number_measures(family: Family) -> dict[str, Measure]:
    """The measures of the variance, by the family that tells it."""
    return {
        "variance_cost": family.cost,
        "variance_reduction": family.gain,
        "pairwise_variance_reduction": family.pairwise_gain,
        "information_content": family.information_content,
    }


def _only_binary(score: Floats, branches: Floats) -> Floats:
    """``score`` where the first two branches hold something and no other does, NaN elsewhere."""
    occupied = branches.sum(0) > 0
    return np.where(occupied[:2].all(0) & ~occupied[2:].any(0), score, np.nan)


def _class_distance(branches: Floats) -> tuple[Floats, Floats]:
    """PL PR and sum_j abs(P(j/L) - P(j/R)) of the first two branches."""
    weight = branches[:, :2].sum(0)
    share = _divide(branches[:, :2], weight)
    total = weight.sum(0)
    distance: Floats = np.abs(share[:, 0] - share[:, 1]).sum(0)
    return _divide(weight[0], total) * _divide(weight[1], total), distance


def goodness(branches: Floats, node: Floats) -> Floats:  # noqa: ARG001 - as all measures
    """2 PL PR sum_j abs(P(j/L) - P(j/R)) (Larose and Larose 2014, section 8.2: phi), NaN unless there are two."""
    product, distance = _class_distance(branches)
    return _only_binary(2.0 * product * distance, branches)


def twoing(branches: Floats, node: Floats) -> Floats:  # noqa: ARG001 - as all measures
    """PL PR / 4 (sum_j abs(P(j/L) - P(j/R)))^2 (Breiman et al. 1984, section 4.3), NaN unless there are two."""
    product, distance = _class_distance(branches)
    return _only_binary(product / 4.0 * distance * distance, branches)


def _confusion(branches: Floats, positive: int) -> tuple[Floats, Floats, Floats]:
    """TP, FP and P when the branch with the higher share of positives (the first if equal) is called positive."""
    hits = branches[positive, :2]
    misses = branches[:, :2].sum(0) - hits
    first = hits[0] * misses[1] >= hits[1] * misses[0]
    total: Floats = hits.sum(0)
    return np.where(first, hits[0], hits[1]), np.where(first, misses[0], misses[1]), total


def positive_correctness(branches: Floats, positive: int) -> Floats:
    """TP - FP; NaN unless there are two branches."""
    true_positive, false_positive, _ = _confusion(branches, positive)
    return _only_binary(true_positive - false_positive, branches)


def true_positive_rate(branches: Floats, positive: int) -> Floats:
    """TP / (TP + FN); NaN without two branches or positives."""
    true_positive, _, total = _confusion(branches, positive)
    return _only_binary(np.where(total > 0, _divide(true_positive, total), np.nan), branches)


CLASS_MEASURES: dict[str, Measure] = {
    "gini_cost": GINI.cost,
    "gini_gain": GINI.gain,
    "entropy_cost": ENTROPY.cost,
    "information_gain": ENTROPY.gain,
    "information_content": ENTROPY.information_content,
    "gain_ratio": ENTROPY.gain_ratio,
    "gini_gain_ratio": GINI.gain_ratio,
    "goodness": goodness,
    "twoing": twoing,
}
POSITIVE_MEASURES: dict[str, Callable[[Floats, int], Floats]] = {
    "positive_correctness": positive_correctness,
    "true_positive_rate": true_positive_rate,
}
NUMBER_MEASURES = list_number_measures(VARIANCE)
DEVIANCE_MEASURES: dict[str, Measure] = {
    "poisson_deviance_cost": POISSON.cost,
    "poisson_deviance_reduction": POISSON.gain,
    "information_content": POISSON.information_content,
}
RATE_MEASURES: dict[str, Measure] = DEVIANCE_MEASURES | {"poisson_deviance_reduction": RATES.gain}
PAIR_MEASURES: dict[str, Measure] = {
    "dissimilarity_cost": ABSOLUTE.cost,
    "dissimilarity_reduction": ABSOLUTE.gain,
    "information_content": ABSOLUTE.information_content,
}
DEVIATION_MEASURES: dict[str, Measure] = {
    "absolute_error_cost": ABSOLUTE.cost,
    "absolute_error_reduction": ABSOLUTE.gain,
    "information_content": ABSOLUTE.information_content,
}
MEASURES_OF: dict[Statistic, dict[str, Measure]] = {
    "moments": NUMBER_MEASURES,
    "deviance": DEVIANCE_MEASURES,
    "deviations": DEVIATION_MEASURES,
    "pairs": PAIR_MEASURES,
}
"""The measures that each kind of statistics of numbers is enough for."""
COSTS: dict[str, Family] = {
    "gini_cost": GINI,
    "entropy_cost": ENTROPY,
    "variance_cost": VARIANCE,
    "poisson_deviance_cost": POISSON,
    "absolute_error_cost": ABSOLUTE,
    "dissimilarity_cost": ABSOLUTE,
}
"""Measures that are what impurity a split leaves, with the impurity."""
LOWER_IS_BETTER = frozenset(COSTS)
RATIOS: dict[str, Family] = {"gain_ratio": ENTROPY, "gini_gain_ratio": GINI}
"""Gains by the information content."""
GAINS = frozenset(
    {
        "gini_gain",
        "information_gain",
        "goodness",
        "twoing",
        "variance_reduction",
        "pairwise_variance_reduction",
        "poisson_deviance_reduction",
        "absolute_error_reduction",
        "dissimilarity_reduction",
    }
)
"""Measures that are by the node's weight: of a part of the node they count by its share."""

Task = Literal["classification", "regression", "dissimilarity"]
Scale = Literal["impurity", "one", "weight"]


@dataclass(frozen=True, slots=True)
class Criterion:
    """What a learner maximizes.

    ``measure`` is the score's name; ``scale`` is what `TOLERANCE` is relative to; ``strict`` says that the score is
    strictly convex in the left branch's class weights; ``within`` is the measure that
    chooses each feature's cut under C4.5's selection; ``tie_break`` decides among tied scores; ``statistic`` is what
    it needs to know of numbers.
    """

    name: str
    task: Task
    measure: str
    family: Family
    scale: Scale = "impurity"
    strict: bool = False
    binary: bool = False
    within: str | None = None
    tie_break: str | None = None
    statistic: Statistic = "moments"

    @property
    def adds_up(self) -> bool:
        """True where the statistics of slots add up to those of branches."""
        return self.statistic not in ("deviations", "pairs")

    @property
    def predicts_mean(self) -> bool:
        """True where leaves answer by the mean of a number, or by the shares of classes."""
        return self.adds_up

    @property
    def needs_positive(self) -> bool:
        """True where one class has to be named positive."""
        return self.measure in POSITIVE_MEASURES


CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion
    for criterion in (
        Criterion("gini", "classification", "gini_gain", GINI, strict=True),
        Criterion("entropy", "classification", "information_gain", ENTROPY, strict=True),
        Criterion("gain_ratio", "classification", "gain_ratio", ENTROPY, "one", within="information_gain"),
        Criterion("gini_gain_ratio", "classification", "gini_gain_ratio", GINI, "one", within="gini_gain"),
        Criterion("goodness", "classification", "goodness", GINI, "one", binary=True),
        Criterion("positive_correctness", "classification", "positive_correctness", GINI, "weight", binary=True),
        Criterion(
            "true_positive_rate",
            "classification",
            "true_positive_rate",
            GINI,
            "one",
            binary=True,
            tie_break="positive_correctness",
        ),
        Criterion("variance", "regression", "variance_reduction", VARIANCE),
        Criterion("poisson", "regression", "poisson_deviance_reduction", POISSON, statistic="deviance"),
        Criterion("absolute_error", "regression", "absolute_error_reduction", ABSOLUTE, statistic="deviations"),
        Criterion("dissimilarity", "dissimilarity", "dissimilarity_reduction", ABSOLUTE, statistic="pairs"),
    )
}
RATE_CRITERION = replace(CRITERIA["poisson"], family=RATES)
"""What ``poisson`` is with a prior."""
