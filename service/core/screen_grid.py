"""The edges and bounds of a grid in few operations, where one number tells the score: see `screen`.

Where every row weighs 1, having n of a node's N rows on the left gains

    f d^2 / (n (N - n))        d: the left branch's sum, less n times the node's mean

For two classes the sum is the number of rows of the second class, and f is 2; in regression it is that of the targets,
and f is 1. The number is convex in (n, d). A bin that adds c rows and D to d adds with a part of its rows what lies in
a parallelogram from (0, 0) to (c, D), whose other corners are

    the rows with the greatest targets first, or last        (w, h): how many they are, what they add to d

with targets as far apart as any in the node (two classes: 0 and 1). In regression a strip bounds it too, see
`bounds.bound_numbers`.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from service.core.batch import Batch
from service.core.criteria import Floats
from service.core.cuts import Lacking
from service.core.deviations import TINY
from service.core.grid import Grid, Scores
from service.core.learner import Learner
from service.core.screen import find_margin, tells_score
from service.core.statistics import Ints

LITTLE = 1e-15
"""Added to n (N - n), so that it is never 0."""
RAISE = 1 + 1e-6
"""Bounds by squares are raised by what rounding may have taken."""


def can_screen_grid(learner: Learner, batch: Batch) -> bool:
    """True where the number is the criterion's: two classes or regression, and what `tells_score` asks."""
    return batch.tally.classes in (0, 2) and tells_score(learner, batch)


def find_slack(learner: Learner, batch: Batch, *, screened: bool) -> Floats:
    """(node,) how far below the best score a cut may be found that wins, or is tied with what does.

    Of targets the first part alone may be summed.
    """
    tolerance = learner.objective.tolerance(batch.stats)
    if not screened:
        return tolerance
    return find_margin(tolerance, batch.rows, None if batch.tally.classes else batch.tally.quantities[1].units[0])


@dataclass(frozen=True, slots=True)
class Bins:
    """What the bins of a grid add: ``rows`` c, ``sum`` D, and of the greatest targets ``most`` w and ``most_sum`` h.

    All are (group, bin). ``squares`` of the targets about the node's mean; None for classes.
    """

    rows: Floats
    sum: Floats
    most: Floats
    most_sum: Floats
    squares: Floats | None


def screen_grid(learner: Learner, batch: Batch, grid: Grid, lacking: Lacking, *, bounded: bool) -> Scores:
    """As `grid.score_grid`, rounded, and 0 instead of -inf."""
    least = max(learner.parameters.min_samples_leaf, 1)
    total, mean = batch.rows[grid.node, None].astype(np.float64), _find_means(batch)[grid.node, None]
    rows, deviation = grid.rows_upto.astype(np.float64), _read_sums(batch, grid.upto, grid.node)
    deviation -= rows * mean
    bins = _describe_bins(batch, grid, mean) if bounded else None
    edges = (grid.rows > 0) & (grid.rows_upto < grid.rows_upto[:, -1:])
    many = grid.rows > 1
    edge, inside = np.zeros(rows.shape), np.zeros(rows.shape)
    for joins in (True, False) if lacking.rows.any() else (False,):
        left, d = rows, deviation
        if joins:
            away = lacking.rows[grid.segment, None].astype(np.float64)
            moved = _read_sums(batch, [part[:, grid.segment, None] for part in lacking.sums], grid.node)
            left, d = rows + away, deviation + (moved - away * mean)
        right = total - left
        per_row = 1 / (left * right + LITTLE)
        allowed = right >= least
        allowed &= left >= least
        allowed &= edges
        np.maximum(edge, d * d * per_row * allowed, out=edge)
        if bins is not None:
            bound = _bound_fan(bins, left, d, total)
            if bins.squares is not None:
                np.minimum(bound, _bound_strip(bins, bins.squares, left, d, total, per_row, bound), out=bound)
            np.maximum(inside, bound * (many & (left >= least) & (right + bins.rows >= least)), out=inside)
    if batch.tally.classes:
        edge *= 2
        inside *= 2
    return Scores(edge, inside, edge.max(1))


def _bound_fan(bins: Bins, left: Floats, d: Floats, total: Floats) -> Floats:
    """(group, bin) the greater number at the two corners where the greatest targets come first, and last."""

    def rate(rows: Floats, total_sum: Floats) -> Floats:
        n, at = left - rows, d - total_sum
        at *= at
        at /= n * (total - n) + LITTLE
        return at

    last = rate(bins.most, bins.most_sum)
    return np.maximum(last, rate(bins.rows - bins.most, bins.sum - bins.most_sum), out=last)


def _bound_strip(
    bins: Bins, squares: Floats, left: Floats, d: Floats, total: Floats, per_row: Floats, fan: Floats
) -> Floats:
    """(group, bin) what the bin's squares leave possible; raises the ``fan`` to the ends of the parallelogram."""
    stray = np.sqrt(np.maximum(squares * bins.rows - bins.sum * bins.sum, 0.0))
    stray *= RAISE / 2
    below, at = left - bins.rows, np.abs(d - bins.sum)
    per_row_below = 1 / (below * (total - below) + LITTLE)
    np.maximum(fan, np.maximum(d * d * per_row, at * at * per_row_below), out=fan)
    at += stray
    stray += np.abs(d)
    strip = np.maximum(stray * stray * per_row, at * at * per_row_below)
    # one branch lies within an outermost bin: its s^2 / w is at most its squares, and its s at most sqrt(q w)
    outermost = squares * (RAISE * (1 + bins.rows / np.maximum(total - bins.rows, 1.0)) / total)
    return np.where((below <= 0) | (left >= total), outermost, strip)


def _find_means(batch: Batch) -> Floats:
    """(node,) the share of the second class, or the mean target from the node's centre."""
    return np.asarray(batch.stats[1] / batch.rows)


def _read_sums(batch: Batch, sums: list[Ints], node: Ints) -> Floats:
    """(group, ...) rows of the second class, or the sum of targets about the node's centre, of what parts there are."""
    if batch.tally.classes:
        return np.asarray(sums[0][1], np.float64)
    units = batch.tally.quantities[1].units
    total: Floats = sums[1][0] * units[0][node, None]
    for part, unit in zip(sums[2:], units[1:], strict=False):
        total += part[0] * unit[node, None]
    return total


def _describe_bins(batch: Batch, grid: Grid, mean: Floats) -> Bins:
    """``mean``: (group, 1)."""
    rows = grid.rows.astype(np.float64)
    own = _read_sums(batch, grid.own, grid.node)
    if grid.squares is None:
        return Bins(rows, own - rows * mean, own, own * (1 - mean), None)
    squares = grid.squares - mean * own
    own -= rows * mean
    squares -= mean * own
    low, high = batch.tally.reach[:, grid.node, None] - mean
    # rows with the greatest and the least target in the node that add up to the same
    most = (own - low * rows) / np.maximum(high - low, TINY)
    np.clip(most, 0.0, rows, out=most)
    return Bins(rows, own, most, most * high, squares)
