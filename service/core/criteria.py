"""Measures of a split, and criteria: pure functions of the branches' statistics.

Shapes: ``branches: (channel, branch, ...)`` of a split and ``node: (channel, ...)``, float64, channels as in
`impurities`. A branch without weight contributes nothing. Undefined scores are NaN. Trailing axes are free: nodes,
bins, cuts.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.core.impurities import ABSOLUTE, ENTROPY, GINI, POISSON, RATES, VARIANCE, Family, divide
from service.core.schema import Statistic

Floats = NDArray[np.float64]
TOLERANCE = 1e-12
"""Scores closer than this, relative to the criterion's scale in the node, are tied."""
TIE_RULE = 1
"""The version of the rule which of tied candidates, classes and routes is taken: raised when a tree could change."""


Measure = Callable[[Floats, Floats], Floats]
"""Of ``branches: (channel, branch, ...)`` and their ``node: (channel, ...)``, which may broadcast."""


def list_number_measures(family: Family) -> dict[str, Measure]:
    """The measures of the variance, by the family that tells it."""
    return {
        "variance_cost": family.cost,
        "variance_reduction": family.gain,
        "pairwise_variance_reduction": family.pairwise_gain,
        "information_content": family.information_content,
    }


def _only_binary(score: Floats, weight: Floats) -> Floats:
    """``score`` where of the branches, of ``weight: (branch, ...)``, the first two hold something alone; else NaN."""
    occupied = weight > 0
    binary = occupied[:2].all(0) & ~occupied[2:].any(0)
    return score if binary.all() else np.where(binary, score, np.nan)


def _class_distance(branches: Floats, weight: Floats) -> tuple[Floats, Floats]:
    """PL PR and sum_j abs(P(j/L) - P(j/R)) of the first two branches, of ``weight: (branch, ...)``."""
    weight = weight[:2]
    share = divide(branches[:, :2], weight)
    total = weight.sum(0)
    distance: Floats = np.abs(share[:, 0] - share[:, 1]).sum(0)
    return divide(weight[0], total) * divide(weight[1], total), distance


def goodness(branches: Floats, node: Floats) -> Floats:  # noqa: ARG001 - as all measures
    """2 PL PR sum_j abs(P(j/L) - P(j/R)) (Larose and Larose 2014, section 8.2: phi), NaN unless there are two."""
    weight = branches.sum(0)
    product, distance = _class_distance(branches, weight)
    return _only_binary(2.0 * product * distance, weight)


def twoing(branches: Floats, node: Floats) -> Floats:  # noqa: ARG001 - as all measures
    """PL PR / 4 (sum_j abs(P(j/L) - P(j/R)))^2 (Breiman et al. 1984, section 4.3), NaN unless there are two."""
    weight = branches.sum(0)
    product, distance = _class_distance(branches, weight)
    return _only_binary(product / 4.0 * distance * distance, weight)


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
    return _only_binary(true_positive - false_positive, branches.sum(0))


def true_positive_rate(branches: Floats, positive: int) -> Floats:
    """TP / (TP + FN); NaN without two branches or positives."""
    true_positive, _, total = _confusion(branches, positive)
    return _only_binary(np.where(total > 0, divide(true_positive, total), np.nan), branches.sum(0))


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
TIE_BREAKS = {criterion.measure: criterion.tie_break for criterion in CRITERIA.values() if criterion.tie_break}
"""By measure, what decides among candidates that it ties."""
RATE_CRITERION = replace(CRITERIA["poisson"], family=RATES)
"""What ``poisson`` is with a prior."""
