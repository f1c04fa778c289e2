"""What a run maximizes: the criterion with its positive class and altered class weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.core.c45 import charge
from service.core.criteria import (
    CLASS_MEASURES,
    COSTS,
    GAINS,
    MEASURES_OF,
    POSITIVE_MEASURES,
    RATE_MEASURES,
    RATIOS,
    TOLERANCE,
    Criterion,
    Floats,
    Measure,
    list_number_measures,
)
from service.core.impurities import RATES


def bind_positive(positive: int) -> dict[str, Measure]:
    """The measures that need a positive class, given its index."""
    return {
        name: lambda branches, _, measure=measure: measure(branches, positive)  # type: ignore[misc]  # a default binds it
        for name, measure in POSITIVE_MEASURES.items()
    }


@dataclass(frozen=True, slots=True)
class Objective:
    """A criterion made ready for one target.

    ``positive``: the index of the positive class. ``alteration: (class,)`` multiplies class weights before anything is
    scored (class weights, priors and losses all come to that: Breiman et al. 1984, section 4.4); None means 1.
    ``unknown_branch``: to the information content what lacks a value is a branch of its own (Quinlan 1993, section
    3.1).
    """

    criterion: Criterion
    positive: int | None = None
    alteration: Floats | None = None
    unknown_branch: bool = False

    def alter(self, stats: Floats) -> Floats:
        """``stats: (channel, ...)`` as they are scored."""
        if self.alteration is None:
            return stats
        return stats * self.alteration.reshape(-1, *[1] * (stats.ndim - 1))

    def alter_gone(self, gone: Floats | None) -> Floats | None:
        """As `alter`, of what may be nothing."""
        return None if gone is None else self.alter(gone)

    def measures(self) -> dict[str, Measure]:
        """Every measure that applies, by name; each takes altered branches and their altered node."""
        if self.criterion.family is RATES:
            return RATE_MEASURES
        if self.criterion.statistic == "vectors":
            return list_number_measures(self.criterion.family)
        if self.criterion.task != "classification":
            return MEASURES_OF[self.criterion.statistic]
        if self.positive is None:
            return CLASS_MEASURES
        return CLASS_MEASURES | bind_positive(self.positive)

    def list_measures(self) -> list[str]:
        """The names of the measures that listings show: of numbers also those that `rescore` works out."""
        if self.criterion.task != "regression" or self.criterion.statistic == "vectors":
            return list(self.measures())
        single = [measures for statistic, measures in MEASURES_OF.items() if statistic != "pairs"]
        return list(dict.fromkeys(name for measures in single for name in measures))

    def rate(self, measure: str, branches: Floats, known: Floats, gone: Floats | None = None) -> Floats:
        """(...) a measure of altered ``branches`` that part ``known``; ``gone`` is what of the node is in no branch.

        Gains of a part of the node count by its share of the weight (Quinlan 1993, section 3.1; rpart's ``improve`` is
        n times that), and a cost is what a gain leaves of the node's impurity. NaN where undefined.
        """
        value = self.measures()[measure](branches, known)
        if gone is None:
            return value
        weigh = self.criterion.family.weigh
        share = weigh(known) / weigh(known + gone)
        if measure in GAINS:
            return value * share
        if measure in COSTS:
            vectors = self.criterion.statistic == "vectors"
            impurity = (self.criterion.family if vectors else COSTS[measure]).impurity
            # where nothing is gone no digit may depend on candidates beside it of which something is
            return np.where(share < 1.0, impurity(known + gone) - (impurity(known) - value) * share, value)
        if measure in RATIOS or measure == "information_content":
            return self._rate_content(measure, branches, known, gone, share)
        return value

    def _rate_content(self, measure: str, branches: Floats, known: Floats, gone: Floats, share: Floats) -> Floats:
        family = RATIOS.get(measure, self.criterion.family)
        parts = np.concatenate([branches, gone[:, None]], axis=1) if self.unknown_branch else branches
        content = family.information_content(parts, known)
        if measure == "information_content":
            return content
        with np.errstate(invalid="ignore", divide="ignore"):
            return np.where(content > 0, family.gain(branches, known) * share / content, np.nan)

    def score(self, branches: Floats, known: Floats, gone: Floats | None = None, price: Floats | None = None) -> Floats:
        """(...) the criterion of altered ``branches``, see `rate`; its gain less ``price``."""
        score = self.rate(self.criterion.measure, branches, known, gone)
        if price is None or self.criterion.within is None:
            return charge(score, price)
        return charge(score, price, self.rate("information_content", branches, known, gone))

    def score_ratio(self, gain: Floats, content: Floats, price: Floats | None = None) -> Floats:
        """(...) as `score`, of a criterion that is a ratio, given the gain and the information content."""
        positive = content > 0
        with np.errstate(invalid="ignore", divide="ignore"):
            ratio = gain / content
            if price is not None:
                ratio -= price / content
        return ratio if positive.all() else np.where(positive, ratio, np.nan)

    def score_within(
        self, branches: Floats, known: Floats, selection: str, gone: Floats | None = None, price: Floats | None = None
    ) -> Floats:
        """(...) what chooses a feature's candidate: as `score`, or under C4.5's selection the gain less ``price``."""
        if selection == "c45" and self.criterion.within:
            return charge(self.rate(self.criterion.within, branches, known, gone), price)
        return self.score(branches, known, gone, price)

    def break_ties(self, branches: Floats, known: Floats, gone: Floats | None = None) -> Floats | None:
        """(...) what decides among tied scores, if anything but the order does; see `rate`."""
        name = self.criterion.tie_break
        return self.rate(name, branches, known, gone) if name else None

    def impurity(self, stats: Floats) -> Floats:
        """(...) the impurity of nodes or branches, ``stats: (channel, ...)`` unaltered."""
        return self.criterion.family.impurity(self.alter(stats))

    def tolerance(self, stats: Floats, selection: str = "criterion", impurity: Floats | None = None) -> Floats:
        """(node,) how close to the best a score is tied with it; for C4.5's selection, the score within a feature.

        ``impurity: (node,)``, where it is known already.
        """
        if self.criterion.scale == "impurity" or (selection == "c45" and self.criterion.within):
            return TOLERANCE * (self.impurity(stats) if impurity is None else impurity)
        weight = self.criterion.family.weigh(self.alter(stats))
        return TOLERANCE * (weight if self.criterion.scale == "weight" else np.ones_like(weight))

    def baseline(self, stats: Floats) -> Floats:
        """(node,) the score of not splitting: what a candidate has to beat."""
        if self.criterion.measure != "positive_correctness" or self.positive is None:
            return np.zeros(stats.shape[1:])
        altered = self.alter(stats)
        positive = altered[self.positive]
        return np.asarray(np.maximum(0.0, 2 * positive - altered.sum(0)))


def alter_classes(
    weight: Floats, class_weight: Floats | None, priors: Floats | None, loss: Sequence[Sequence[float]] | None
) -> tuple[Floats | None, Floats | None]:
    """The factors of class weights that scores see, and those that probabilities see; (class,) or None for all 1.

    ``weight: (class,)`` are the training weights. Class weights multiply; priors replace the classes' shares of the
    total weight; a loss matrix multiplies a class by the sum of its row (altered priors, Breiman et al. 1984,
    section 4.4.3, as in rpart) in scores only, for in a leaf the loss itself chooses the answer.
    """
    shown = class_weight
    if priors is not None:
        current = weight if shown is None else weight * shown
        present = current > 0  # a class that these rows do not have, as in a fold, leaves its share to the others
        share = priors / priors[present].sum() * current.sum()
        factor = np.divide(share, current, out=np.ones_like(current), where=present)
        shown = factor if shown is None else shown * factor
    if loss is None:
        return shown, shown
    row = np.asarray(loss, float).sum(1)
    base = weight if shown is None else weight * shown
    scored = row * base.sum() / (row * base).sum()
    return scored if shown is None else shown * scored, shown
