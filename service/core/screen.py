"""The cuts that can win among rows in value order: one number for every cut, candidates of the few that come near.

Where every row weighs 1, a cut that leaves n of a node's N rows on the left gains

    sum over k of d_k^2 / (n (N - n))        d_k: rows of class k on the left, less n times the class's share

of Gini impurity; and of variance with a single d, the left branch's sum less n times the node's mean. At a place of a
line n is what it is in every other line, and d is a running sum less what the place alone tells. So a cut is scored in
a few operations on whole lines. The number is rounded: what is within the tie tolerance, and what rounding can do, of
the best of its node becomes a candidate with exact sums, and goes the way of all candidates.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import Block, Candidates
from service.core.criteria import TOLERANCE, Floats
from service.core.cuts import Cuts, build_cuts
from service.core.deviations import TINY
from service.core.scan import Ordered
from service.core.statistics import Ints, Tally
from service.core.weigh import Batch, Learner

SCREENED = frozenset({"gini", "variance"})
"""The criteria whose gain has this form."""
OFFSET_BITS = 40
"""Targets are rounded to so many bits."""
MOST_ENTRIES = 2**22
"""So many of them add up within 63 bits."""


def can_screen(learner: Learner, batch: Batch) -> bool:
    """True where the number is the criterion's, and a better cut is never forbidden where a worse one is allowed."""
    return (
        batch.tally.counts_rows
        and learner.objective.criterion.name in SCREENED
        and learner.objective.alteration is None
        and learner.parameters.min_weight_leaf == 0
        and not learner.parameters.has_cut_rules
        and learner.directions is None
        and len(batch.entries.row) <= MOST_ENTRIES
    )


def weigh_near(learner: Learner, batch: Batch, features: Ints) -> tuple[Block, list[Candidates]]:
    """The cuts within the tie tolerance of their node's best among ``features``, which lack no values, and some more.

    The features have lines in ``batch.ordered``; segments are line * nodes + node.
    """
    ordered = batch.pick_lines(features)
    nodes, entries = batch.entries.nodes, len(batch.entries.row)
    block = Block(np.tile(np.arange(nodes), len(features)), np.repeat(ordered.feature, nodes))
    near, left = _find_near(learner, batch, ordered)
    line = near // entries
    place = near - line * entries
    node, left = batch.entries.node[place], left[place]
    row = ordered.row.ravel()
    lower, upper = row[near].astype(np.int64), row[near + 1].astype(np.int64)
    cuts = Cuts(line * nodes + node, node, near, _sum_left(batch, row, near, node, left), left, lower, upper)
    return block, [build_cuts(batch.nodes(), cuts)]


def _find_near(learner: Learner, batch: Batch, ordered: Ordered) -> tuple[Ints, Ints]:
    """(cut,) flat places in (line, entry) after which the cuts lie, and (entry,) how many rows are left of a place."""
    start, node = batch.starts(), batch.entries.node
    left = np.arange(1, len(node) + 1) - start[node]
    right = batch.rows[node] - left
    score = _sum_deviations(batch, ordered, left)
    least = max(learner.parameters.min_samples_leaf, 1)
    allowed = (left >= least) & (right >= least)
    score *= np.where(allowed, _find_scale(batch)[node] / np.maximum(left * right, 1), 0.0)
    score[:, :-1] *= ordered.code[:, 1:] != ordered.code[:, :-1]
    best = np.maximum.reduceat(score.max(0), start)
    floor = np.maximum(best - _find_margin(learner, batch), TINY)
    return np.flatnonzero(score >= floor[node]), left


def _sum_deviations(batch: Batch, ordered: Ordered, left: Ints) -> Floats:
    """(line, entry) the sum of d^2 after each entry, where ``left: (entry,)`` rows are left."""
    node = batch.entries.node
    total: Floats | None = None
    for amount, whole in _list_planes(batch, ordered):
        expected = (np.cumsum(whole) - whole)[node] + (whole / batch.rows)[node] * left
        running: Ints = np.cumsum(amount, axis=1, dtype=np.int64 if amount.dtype == np.int64 else np.int32)
        deviation = running - expected
        deviation *= deviation
        total = deviation if total is None else np.add(total, deviation, out=total)
    return np.zeros(ordered.row.shape) if total is None else total


def _list_planes(batch: Batch, ordered: Ordered) -> Iterator[tuple[NDArray[Any], Ints]]:
    """For each d what entries add: (line, entry) whole numbers, and (node,) their sums."""
    label = batch.tally.label
    if label is None:
        offset = _round_offsets(batch)
        by_row = np.empty(batch.tally.all_rows, np.int64)
        by_row[batch.entries.row] = offset
        yield by_row.take(ordered.row), np.add.reduceat(offset, batch.starts())
    elif batch.tally.classes == 2:
        # what one class has too much the other has too little
        yield label.take(ordered.row), batch.sums[0][1]
    else:
        labels = label.take(ordered.row)
        for index, whole in enumerate(batch.sums[0]):
            yield labels == index, whole


def _find_scale(batch: Batch) -> Floats:
    """(node,) the gain by sum of d^2 / (n (N - n))."""
    if batch.tally.classes:
        return np.full(batch.entries.nodes, 2.0 if batch.tally.classes == 2 else 1.0)
    return np.square(_find_units(batch))


def _round_offsets(batch: Batch) -> Ints:
    """(entry,) how far each target lies from its node's centre, in whole units."""
    node, quantity = batch.entries.node, batch.tally.quantities[1]
    offset = sum(part * unit[node] for part, unit in zip(quantity.parts, quantity.units, strict=True))
    return np.asarray(np.rint(offset / _find_units(batch)[node]), np.int64)


def _find_units(batch: Batch) -> Floats:
    """(node,) powers of two, of which the largest offset has at most 2^OFFSET_BITS."""
    low, high = batch.tally.reach
    exponent = np.frexp(np.maximum(-low, high))[1]
    return np.asarray(np.ldexp(1.0, np.maximum(exponent, -900) - OFFSET_BITS))


def _find_margin(learner: Learner, batch: Batch) -> Floats:
    """(node,) how far below the best computed gain the true winner, or a tie with it, can have been computed.

    An error e of d is one of at most 2 e impurity, since d^2 / (n (N - n)) is at most the impurity, which for classes
    is at least 1 / N: e is rounding of what is expected, of the order of the entries. Numbers are rounded to units of
    2^-OFFSET_BITS of the largest, whose square is at most N times the variance: N of them are off by half of one.
    """
    rounding = 0.0 if batch.tally.classes else 4 * 2.0**-OFFSET_BITS
    error = TOLERANCE + len(batch.entries.row) * 2.0**-50 + batch.rows * rounding
    return np.asarray(error * learner.objective.impurity(batch.stats))


def _sum_left(batch: Batch, row: NDArray[np.int32], cut: Ints, node: Ints, left: Ints) -> list[Ints]:
    """Exact sums (class or 1, cut) left of the flat places ``cut`` of ``row``: of the shorter side, or the rest."""
    right = batch.rows[node] - left
    length = np.minimum(left, right)
    first = np.where(left <= right, cut + 1 - left, cut + 1)
    end = np.cumsum(length)
    inside = np.repeat(first - (end - length), length) + np.arange(end[-1] if len(end) else 0)
    group, row = np.repeat(np.arange(len(cut)), length), row.take(inside)
    short = _sum_rows(batch.tally, row, group, len(cut))
    return [
        np.where(left <= right, part, whole[:, node] - part) for part, whole in zip(short, batch.sums, strict=False)
    ]


def _sum_rows(tally: Tally, row: NDArray[np.int32], group: Ints, groups: int) -> Iterator[Ints]:
    """The scored sums (class or 1, group) of training rows: ``row``, ``group``: (any,)."""
    classes = max(tally.classes, 1)
    key = group if tally.label is None else tally.label.take(row) * np.int64(groups) + group
    for parts in tally.spread_over_rows():
        for part in parts or (None,):
            weights = None if part is None else part.take(row)
            total = np.bincount(key, weights, classes * groups)
            yield total.astype(np.int64, copy=False).reshape(classes, groups)
