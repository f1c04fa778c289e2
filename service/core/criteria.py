"""Impurities, measures of a split, and criteria: pure functions of the branches' statistics.

Shapes: ``stats: (channel, ...)`` of a node, ``branches: (channel, branch, ...)`` of a split, float64. The channels are
the weight of each class; or, for numbers, (weight, sum, sum of squares) about a centre near the node's mean.
A branch without weight contributes nothing. Undefined scores are NaN. Trailing axes are free: nodes, bins, cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]
TOLERANCE = 1e-12
"""Scores closer than this, relative to the criterion's scale in the node, are tied."""


def _divide(numerator: Floats, denominator: Floats, otherwise: float = 0.0) -> Floats:
    """Elementwise quotient, ``otherwise`` where the denominator is 0."""
    numerator, denominator = np.broadcast_arrays(numerator, denominator)
    out = np.full(numerator.shape, otherwise)
    quotient: Floats = np.divide(numerator, denominator, out=out, where=denominator > 0)
    return quotient


def gini(stats: Floats) -> Floats:
    """1 - sum p^2 (Breiman, Friedman, Olshen and Stone 1984, section 4.3); 0 where nothing weighs."""
    weight = stats.sum(0)
    return np.where(weight > 0, 1.0 - (_divide(stats, weight) ** 2).sum(0), 0.0)


def entropy(stats: Floats) -> Floats:
    """-sum p log2 p, in bits (Quinlan 1986, section 4); 0 where nothing weighs."""
    share = _divide(stats, stats.sum(0))
    bits: Floats = -(share * np.log2(share, out=np.zeros_like(share), where=share > 0)).sum(0)
    return bits + 0.0  # no -0.0


def variance(stats: Floats) -> Floats:
    """Mean square about the mean (Breiman et al. 1984, section 8.3), never below 0."""
    mean = _divide(stats[1], stats[0])
    return np.maximum(_divide(stats[2], stats[0]) - mean * mean, 0.0)


Impurity = Callable[[Floats], Floats]


def weigh_classes(stats: Floats) -> Floats:
    """(...) the weight of each node or branch whose channels are classes."""
    total: Floats = stats.sum(0)
    return total


def weigh_numbers(stats: Floats) -> Floats:
    """(...) the weight of each node or branch whose channels are weight, sum and sum of squares."""
    return np.asarray(stats[0])


@dataclass(frozen=True, slots=True)
class Family:
    """An impurity with the way to read a weight from the same statistics."""

    impurity: Impurity
    weigh: Callable[[Floats], Floats]

    def cost(self, branches: Floats) -> Floats:
        """(...) the branches' impurities, each by its share of the weight."""
        weight = self.weigh(branches)
        return _divide((weight * self.impurity(branches)).sum(0), weight.sum(0))

    def gain(self, branches: Floats) -> Floats:
        """(...) the node's impurity less the cost of the split."""
        return self.impurity(branches.sum(1)) - self.cost(branches)

    def pairwise_gain(self, branches: Floats) -> Floats:
        """(...) the same with squared shares, the encyclopaedia's variance reduction to the letter.

        Written out, its sums over pairs within a branch are divided by the square of the *node's* size.
        """
        weight = self.weigh(branches)
        share = _divide(weight, weight.sum(0))
        within: Floats = (share * share * self.impurity(branches)).sum(0)
        return self.impurity(branches.sum(1)) - within

    def information_content(self, branches: Floats) -> Floats:
        """(...) -sum share log2 share over the branches (Quinlan 1986, "IV"; 1993, "split info")."""
        return entropy(self.weigh(branches))

    def gain_ratio(self, branches: Floats) -> Floats:
        """(...) gain by information content; NaN where all the weight is in one branch (Quinlan 1986, section 7)."""
        return _divide(self.gain(branches), self.information_content(branches), np.nan)


GINI = Family(gini, weigh_classes)
ENTROPY = Family(entropy, weigh_classes)
VARIANCE = Family(variance, weigh_numbers)


def _only_binary(score: Floats, branches: Floats) -> Floats:
    """``score`` where the first two branches hold something and no other does, NaN elsewhere."""
    occupied = branches.sum(0) > 0
    return np.where(occupied[:2].all(0) & ~occupied[2:].any(0), score, np.nan)


def _class_distance(branches: Floats) -> tuple[Floats, Floats]:
    """PL PR and sum_j abs(P(j/L) - P(j/R)) of the first two branches."""
    weight = branches[:, :2].sum(0)
    share = _divide(branches[:, :2], weight)
    total = weight.sum(0)
    product = _divide(weight[0], total) * _divide(weight[1], total)
    return product, np.abs(share[:, 0] - share[:, 1]).sum(0)


def goodness(branches: Floats) -> Floats:
    """2 PL PR sum_j abs(P(j/L) - P(j/R)) (Larose and Larose 2014, section 8.2: phi), NaN unless there are two."""
    product, distance = _class_distance(branches)
    return _only_binary(2.0 * product * distance, branches)


def twoing(branches: Floats) -> Floats:
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
    return _only_binary(_divide(true_positive, total, np.nan), branches)


Measure = Callable[[Floats], Floats]

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
NUMBER_MEASURES: dict[str, Measure] = {
    "variance_cost": VARIANCE.cost,
    "variance_reduction": VARIANCE.gain,
    "pairwise_variance_reduction": VARIANCE.pairwise_gain,
    "information_content": VARIANCE.information_content,
}
LOWER_IS_BETTER = frozenset({"gini_cost", "entropy_cost", "variance_cost"})

Scale = Literal["impurity", "one", "weight"]


@dataclass(frozen=True, slots=True)
class Criterion:
    """What a learner maximizes.

    ``measure`` is the score's name; ``scale`` is what `TOLERANCE` is relative to; ``within`` is the measure that
    chooses each feature's cut under C4.5's selection; ``tie_break`` decides among tied scores.
    """

    name: str
    task: Literal["classification", "regression"]
    measure: str
    family: Family
    scale: Scale = "impurity"
    binary: bool = False
    within: str | None = None
    tie_break: str | None = None

    @property
    def needs_positive(self) -> bool:
        """True where one class has to be named positive."""
        return self.measure in POSITIVE_MEASURES


CRITERIA: dict[str, Criterion] = {
    criterion.name: criterion
    for criterion in (
        Criterion("gini", "classification", "gini_gain", GINI),
        Criterion("entropy", "classification", "information_gain", ENTROPY),
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
    )
}
