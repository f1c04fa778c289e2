"""Upper bounds on what any cut inside a coarse bin can score.

Inside a bin every left branch lies in the box between the statistics below the bin and those up to its end. A gain is
convex in the left branch, so over the box it is greatest at a corner (the idea is that of CLOUDS, Alsabti, Ranka and
Singh 1998, and of the boundary points of Fayyad and Irani 1992).

Shapes: ``below``, ``upto``: (channel, node, bin), altered; ``node``: (channel, node, 1), altered.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from service.core.criteria import Floats
from service.core.deviations import TINY
from service.core.impurities import ENTROPY
from service.core.objective import Objective

Spread = tuple[Floats, Floats]
"""Of the target about the node's centre: (2, node) least and greatest, and (node, bin) sum of squares in each bin."""

UNDERFLOW = 1e-280
"""Sums of squares below this have lost digits."""

Bound = Callable[[Objective, Floats, Floats, Floats, Spread | None], Floats]


def bound_classes(objective: Objective, below: Floats, upto: Floats, node: Floats, _: Spread | None) -> Floats:
    """Gini or information gain: two classes by corners, more by the range of the gradient."""
    if len(below) == 2:
        corners = (np.stack([upto[0], below[1]]), np.stack([below[0], upto[1]]))
        return np.asarray(np.maximum(*(_gain(objective, corner, node) for corner in corners)))
    return _bound_by_gradient(objective, below, upto, node)


def _gain(objective: Objective, left: Floats, node: Floats) -> Floats:
    gain: Floats = objective.criterion.family.gain(np.stack([left, node - left], axis=1), node)
    return gain


def _bound_by_gradient(objective: Objective, below: Floats, upto: Floats, node: Floats) -> Floats:
    """Convex f satisfies f(x) <= f(a) + sum of d max(0, g), with g the greatest gradient in the box and d its sides.

    The same from the upper end; the lesser of the two bounds.
    """
    slope_low, slope_high = _range_gradient(objective, below, upto, node)
    weight = node.sum(0)
    side = upto - below
    with np.errstate(invalid="ignore"):
        rise = np.where(side > 0, side * np.maximum(slope_high, 0.0), 0.0).sum(0)
        fall = np.where(side > 0, side * np.maximum(-slope_low, 0.0), 0.0).sum(0)
    bound: Floats = np.minimum(
        _gain(objective, below, node) + rise / weight, _gain(objective, upto, node) + fall / weight
    )
    return bound


def _range_shares(low: Floats, high: Floats) -> tuple[Floats, Floats]:
    """(class, node, bin) least and greatest class shares of a branch whose class weights lie in a box."""
    least = low / np.maximum(low + (high.sum(0) - high), TINY)
    greatest = high / np.maximum(high + (low.sum(0) - low), TINY)
    return least, np.minimum(greatest, 1.0)


def _range_gradient(objective: Objective, below: Floats, upto: Floats, node: Floats) -> tuple[Floats, Floats]:
    """Least and greatest derivative of the summed concentration by each class weight moved to the left."""
    left_low, left_high = _range_shares(below, upto)
    right_low, right_high = _range_shares(node - upto, node - below)
    if objective.criterion.family is ENTROPY:
        with np.errstate(divide="ignore", invalid="ignore"):
            return np.log2(left_low) - np.log2(right_high), np.log2(left_high) - np.log2(right_low)
    left, right = (left_low**2).sum(0), (right_low**2).sum(0)
    left_most, right_most = np.minimum((left_high**2).sum(0), 1.0), np.minimum((right_high**2).sum(0), 1.0)
    return (
        2 * left_low - left_most - 2 * right_high + right,
        2 * left_high - left - 2 * right_low + right_most,
    )


def bound_ratio(objective: Objective, below: Floats, upto: Floats, node: Floats, spread: Spread | None) -> Floats:
    """The gain's bound by the least information content, which is concave and so least at an end; inf beside 0."""
    gain = bound_classes(objective, below, upto, node, spread)
    family = objective.criterion.family
    content = np.minimum(
        *(family.information_content(np.stack([end, node - end], axis=1), node) for end in (below, upto))
    )
    return np.where(content > 0, np.maximum(gain, 0.0) / np.maximum(content, TINY), np.inf)


def bound_goodness(_: Objective, below: Floats, upto: Floats, node: Floats, __: Spread | None) -> Floats:
    """2 / W^2 sum_j abs(l_j W - N_j w): each term is linear in the left branch, so its range is that of the box."""
    weight = node.sum(0)
    others_low, others_high = below.sum(0) - below, upto.sum(0) - upto
    greatest = upto * (weight - node) - node * others_low
    least = below * (weight - node) - node * others_high
    total: Floats = np.maximum(np.abs(greatest), np.abs(least)).sum(0)
    return np.asarray(2.0 * total / (weight * weight))


def bound_numbers(objective: Objective, below: Floats, upto: Floats, node: Floats, spread: Spread | None) -> Floats:
    """The lesser of two bounds on the concentration over the (w, s) that part of a bin can add; it is convex in them.

    Each row adds between the node's least and greatest target: a parallelogram. And sums stray from their share of
    the bin's by at most sqrt(q w (B - w) / B) for the bin's weight B and squares q about its mean: a strip.
    """
    if spread is None:
        return np.full(below.shape[1:], np.inf)
    concentrate = objective.criterion.family.concentrate
    base = node[3] / node[0] if len(node) > 2 else None

    def score(weight: Floats, total: Floats) -> Floats:
        return _concentrate_both(concentrate, weight, total, node, base)

    (low, high), squares = spread
    low, high = low[:, None], high[:, None]
    weight, total = upto[0] - below[0], upto[1] - below[1]
    part = np.clip((total - low * weight) / np.maximum(high - low, TINY), 0.0, weight)
    corners = ((part, high * part), (weight - part, total - high * part))
    fan = np.maximum(*(score(below[0] + w, below[1] + s) for w, s in corners))
    ends = np.maximum(*(score(end[0], end[1]) for end in (below, upto)))
    inner = np.maximum(squares - total * total / np.maximum(weight, TINY), 0.0)
    stray = np.sqrt(inner * weight) / 2 * (1 + 1e-6)
    edges = [score(end[0], end[1] + sign * stray) for end in (below, upto) for sign in (-1, 1)]
    strip = np.maximum(np.maximum(edges[0], edges[1]), np.maximum(edges[2], edges[3]))
    if base is None:
        # one branch lies within an outermost bin: its s^2 / w is at most its squares, and its s at most sqrt(q w)
        rest = (np.abs(node[1]) + np.sqrt(squares * weight)) ** 2 / np.maximum(node[0] - weight, TINY)
        outermost = (below[0] <= 0) | (upto[0] >= node[0])
        strip = np.where(outermost, (squares + rest) * (1 + 1e-6), strip)
    else:
        # below a sum of 0 there is no deviance, and a corner there says nothing of the edges that lead to it
        inside = (below[1] + base * below[0] >= stray) & (node[1] - upto[1] + base * (node[0] - upto[0]) >= stray)
        strip = np.where(inside & (squares > UNDERFLOW), strip, np.inf)
    best = np.minimum(np.maximum(fan, ends), strip)
    return np.asarray((best - concentrate(node)) / node[0])


def _concentrate_both(
    concentrate: Callable[[Floats], Floats], weight: Floats, total: Floats, node: Floats, base: Floats | None
) -> Floats:
    """Of both branches, the left one with that weight and sum; ``base`` is the centre where its share is a channel."""
    if base is None:
        right = (node[1] - total) ** 2 / np.maximum(node[0] - weight, TINY)
        return np.asarray(total * total / np.maximum(weight, TINY) + right)
    left = np.stack([weight, total, weight, base * weight])
    return np.asarray(concentrate(left) + concentrate(node[:4] - left))


BOUNDS: dict[str, Bound] = {
    "gini": bound_classes,
    "entropy": bound_classes,
    "gain_ratio": bound_ratio,
    "gini_gain_ratio": bound_ratio,
    "goodness": bound_goodness,
    "variance": bound_numbers,
    "poisson": bound_numbers,
}
"""By criterion. Positive correctness and true positive rate change branches with the sign of a difference: no bound."""
