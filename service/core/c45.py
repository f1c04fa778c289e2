"""What C4.5 release 8 asks of numeric cuts and of features, and Weka's J48 after it.

A numeric cut is one of many: its gain pays for the choice among them, and its branches need more rows than others'
(Quinlan 1996, "Improved use of continuous attributes in C4.5", section 2, and `contin.c` of release 8). Only features
whose gain is near the mean of all useful ones compete by gain ratio (Quinlan 1993, section 2.2.2, and `build.c`).
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import Candidates, Form
from service.core.criteria import Floats
from service.core.encoding import CodedFeature
from service.core.statistics import Ints

USEFUL_MARGIN = 1e-3
"""A feature competes whose gain is the mean useful gain less this, or more."""
MANY_VALUES = 0.3
"""A nominal feature with this share of the training rows as categories, or more, has no part in the mean."""
CUT_SHARE = 0.1
"""Each branch of a numeric cut needs this share of the mean weight of a class."""
CUT_MOST = 25.0
"""But never more than this weight."""
ROUNDING = 1e-12
"""A weight that falls short of a limit by this share meets it: sums of fractions are rounded."""


def find_short_cuts(rows: Ints, known: Floats, classes: int) -> NDArray[np.bool_]:
    """(candidate,) True where a branch of a numeric cut weighs too little.

    ``known: (branch, candidate)`` the weight of the ``rows`` whose value is known. At least a tenth of the mean weight
    of a class, or 25 where that is less.
    """
    least = np.minimum(CUT_SHARE * known.sum(0) / classes, CUT_MOST) * (1 - ROUNDING)
    occupied = rows > 0
    return np.asarray((occupied & (known < least)).any(0))


def price_cuts(weight: Floats, tried: Floats) -> Floats:
    """(...) the bits that a numeric cut pays: log2 of how many cuts of its feature were ``tried``, by weight.

    ``weight`` is that of the node, rows without a value included. With missing values on either side a cut counts
    twice, for it is two candidates. A feature without one that counts pays nothing.
    """
    return np.asarray(np.log2(np.maximum(tried, 1.0)) / weight)


def charge(score: Floats, price: Floats | None, content: Floats | None = None) -> Floats:
    """A gain less its price; or a ratio whose gain paid it, given the information ``content`` that divides the gain."""
    if price is None:
        return score
    if content is None:
        return score - price
    with np.errstate(invalid="ignore", divide="ignore"):
        return score - np.where(content > 0, price / content, 0.0)


def is_cut(table: Candidates, features: Sequence[CodedFeature], feature: Ints) -> NDArray[np.bool_]:
    """(candidate,) True for the cuts of numbers; ``feature: (candidate,)``."""
    numeric = np.array([coded.feature.kind == "numeric" for coded in features], bool)
    return numeric[feature] & (table.form == Form.THRESHOLD)


def find_many_valued(features: Sequence[CodedFeature], rows: int) -> NDArray[np.bool_]:
    """(feature,) True for categories so many that their gain says little, unless all features are such."""
    many = np.array([c.feature.kind != "numeric" and c.levels >= MANY_VALUES * rows for c in features], bool)
    return many & ~many.all()


def find_useful(gain: Floats, many_valued: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """(node, feature) True for the features that compete by ratio.

    ``gain: (node, feature)`` of the best candidate of each: 0 where a nominal feature meets the limits and gains
    nothing, for it counts in the mean, -inf where a feature has nothing to offer.
    """
    counted = np.isfinite(gain) & ~many_valued
    number = counted.sum(1)
    mean = np.where(counted, gain, 0.0).sum(1) / np.maximum(number, 1)
    mean[number == 0] = np.inf
    return np.asarray(gain >= mean[:, None] - USEFUL_MARGIN)
