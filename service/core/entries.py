"""Entries: what is routed, and what each adds to the sums of its node, as whole-number parts."""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np

from service.core.criteria import Floats
from service.core.deviations import TINY, rise_above
from service.core.parallel import PARALLEL_CELLS, run_parallel
from service.core.quantities import (
    Ints,
    Quantity,
    Ranking,
    Selection,
    count_runs,
    find_starts,
    rank_targets,
    split_values,
)
from service.core.schema import Statistic, Target


@dataclass(frozen=True, slots=True)
class Entries:
    """What is routed: entry = (row, node, weight), grouped by node in ascending order.

    ``row``, ``node``: (entry,) int64, ``node`` local to the batch of ``nodes`` nodes; ``weight``: (entry,) float64,
    None where all are 1. ``source: (entry,)`` is the place of each in the batch that they were routed from, as long as
    that is asked for.
    """

    row: Ints
    node: Ints
    nodes: int
    weight: Floats | None = None
    source: Ints | None = None

    def take(self, inside: Selection, node: Ints, nodes: int) -> Entries:
        """The entries of some nodes, which keep their order, with their new ``node`` ids."""
        weight = None if self.weight is None else self.weight[inside]
        return Entries(self.row[inside], node, nodes, weight, None if self.source is None else self.source[inside])


@dataclass(frozen=True, slots=True)
class Amounts:
    """What each entry adds: its weight, and the ``quantities`` of its number about the node's ``centre``.

    Scores need the first ``scored`` of them: squares and deviances cancel in gains. ``centre``: (node,), of several
    targets (output, node); ``reach: (2, node)`` the least and the greatest number, from the centre. Where deviances are
    summed ``squares`` stand apart; where medians are asked for, there is a ``ranking``.
    """

    quantities: tuple[Quantity, ...]
    scored: int
    centre: Floats
    reach: Floats
    squares: Quantity | None = None
    ranking: Ranking | None = None

    def take(self, inside: Selection, keep: Selection) -> Amounts:
        """The same of some nodes, ``keep``, with their entries, ``inside``."""
        return Amounts(
            tuple(quantity.take(inside, keep) for quantity in self.quantities),
            self.scored,
            self.centre[..., keep],
            self.reach[:, keep],
            None if self.squares is None else self.squares.take(inside, keep),
            None if self.ranking is None else self.ranking.take(inside),
        )


def find_amounts(target: Target, entries: Entries) -> Amounts:
    """What the entries add to the sums of their nodes, classes apart."""
    nodes = entries.nodes
    weight = Quantity() if entries.weight is None else split_values(entries.weight, entries.node, nodes)
    if target.values is None:
        return Amounts((weight,), 1, np.zeros(nodes), np.zeros((2, nodes)))
    if target.values.ndim == 1:
        return _centre_values(target.values[entries.row], entries, weight, target.statistic)
    # the sum of each output, then the squares of each
    parts = [_centre_values(values[entries.row], entries, weight, target.statistic) for values in target.values.T]
    sums, squares = ([part.quantities[which] for part in parts] for which in (1, 2))
    centre = np.stack([part.centre for part in parts])
    return Amounts((weight, *sums, *squares), 1 + len(parts), centre, np.zeros((2, nodes)))


def _centre_values(values: Floats, entries: Entries, whole_weight: Quantity, statistic: Statistic) -> Amounts:
    """Sums about the node's own mean: a node far from the origin loses no digits to its distance."""
    start = find_starts(entries.node, entries.nodes)
    low, high = np.minimum.reduceat(values, start), np.maximum.reduceat(values, start)
    middle = low / 2 + high / 2
    weight = 1.0 if entries.weight is None else entries.weight
    rows = count_runs(start, len(values))
    offset = values - np.repeat(middle, rows)
    rough = split_values(weight * offset, entries.node, entries.nodes, roughly=True)
    shift = rough.sum_runs(start, len(values)) / whole_weight.sum_runs(start, len(values))
    # rounded to a millionth of the range: short targets then have short offsets, which need one part only
    grain = np.ldexp(1.0, np.maximum(np.frexp(high - low)[1] - 20, -1000))
    # a constant node keeps its value as the centre, so that its spread is exactly 0
    centre = np.where(low == high, low, np.rint((middle + shift) / grain) * grain)
    reach = np.stack([low - centre, high - centre])
    np.subtract(values, np.repeat(centre, rows), out=offset)
    weighted = weight * offset
    first, second = run_parallel(
        lambda power: split_values(weighted if power == 1 else weighted * offset, entries.node, entries.nodes),
        (1, 2),
        worth=len(offset) > PARALLEL_CELLS,
    )
    return _state(Amounts((whole_weight, first, second), 2, centre, reach), values, offset, entries, statistic)


def restate_amounts(amounts: Amounts, target: Target, entries: Entries) -> Amounts:
    """As `find_amounts`, of entries whose ``amounts`` by another statistic of the same target have squares."""
    if target.values is None:
        raise ValueError("classes have one statistic")
    values, squares = target.values[entries.row], amounts.squares or amounts.quantities[2]
    moments = Amounts((*amounts.quantities[:2], squares), 2, amounts.centre, amounts.reach)
    return _state(moments, values, values - amounts.centre[entries.node], entries, target.statistic)


def _state(moments: Amounts, values: Floats, offset: Floats, entries: Entries, statistic: Statistic) -> Amounts:
    """What a statistic of ``values: (entry,)`` needs, that stand at an ``offset`` from their node's centre."""
    if statistic not in ("deviance", "deviations"):
        return moments
    weight, first, squares = moments.quantities
    if statistic == "deviance":
        # instead of squares: how many targets are above 0, and the deviance about the centre
        about = moments.centre[entries.node]
        deviance = rise_above(offset / np.maximum(about, TINY))
        deviance = (1.0 if entries.weight is None else entries.weight) * about * deviance
        positive = Quantity(((values > 0).astype(np.float64),), (np.ones(entries.nodes),))
        summed = weight, first, positive, split_values(deviance, entries.node, entries.nodes)
        return replace(moments, quantities=summed, scored=3, squares=squares)
    return replace(moments, quantities=(weight, first), ranking=rank_targets(values, offset, entries.node))
