"""Bins of some groups of rows: counted, their edges scored, and what cuts inside them can score at the most.

A *group* is one feature's bins in one node, or one of these bins looked at closer. A *cell* is one bin of one group:
``cell = group * bins + bin``.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.bounds import BOUNDS
from service.core.criteria import Floats
from service.core.cuts import Lacking
from service.core.learner import Learner
from service.core.statistics import Ints


@dataclass(frozen=True, slots=True)
class Grid:
    """Bins in every group; ``node``, ``segment``: (group,) are the node, and the feature in it, that a group is of.

    ``own``: whole-number sums (class or 1, group, bin) of each bin, ``upto`` with everything of the node below it;
    ``rows``, ``rows_upto``: (group, bin) likewise. ``squares: (group, bin)`` bounds the targets' squares in regression.
    """

    node: Ints
    segment: Ints
    own: list[Ints]
    upto: list[Ints]
    rows: Ints
    rows_upto: Ints
    squares: Floats | None


@dataclass(frozen=True, slots=True)
class Scores:
    """Of a grid: ``edge``, ``inside``: (group, bin), ``best: (group,)``; see `score_grid`."""

    edge: Floats
    inside: Floats
    best: Floats


def build_grid(node: Ints, segment: Ints, counts: Sequence[Ints], rows: Ints, squares: Floats | None) -> Grid:
    """A grid of counted bins (class or 1, group, bin) that begin with the first rows of their nodes."""
    return Grid(node, segment, list(counts), [_add_up(c) for c in counts], rows, _add_up(rows), squares)


def _add_up(counts: Ints) -> Ints:
    """Running sums along the last axis; of all at once, less what was before: numpy lets other threads run in that."""
    total = np.ascontiguousarray(counts).ravel().cumsum().reshape(counts.shape)
    total -= total[..., :1] - counts[..., :1]
    return total


def lift_grid(grid: Grid, sums: list[Ints], rows: Ints) -> Grid:
    """The grid with ``sums`` (class or 1, group) and ``rows: (group,)`` of the node below each group."""
    upto = [part + below[..., None] for part, below in zip(grid.upto, sums, strict=True)]
    return Grid(grid.node, grid.segment, grid.own, upto, grid.rows, grid.rows_upto + rows[:, None], grid.squares)


def score_grid(learner: Learner, batch: Batch, grid: Grid, lacking: Lacking, *, bounded: bool) -> Scores:
    """The score of the edge after each bin, and the bound on what cuts inside it score; -inf for none.

    Also the best score of an edge that is surely within the limits.

    Where values are missing, ``lacking`` by segment, the better of having them on the left and on the right. The last
    edge of a group is none: it is the node's end, or an edge between groups.
    """
    score, bound = np.full(grid.rows.shape, -np.inf), np.full(grid.rows.shape, -np.inf)
    best = np.full(len(grid.node), -np.inf)
    least = max(learner.parameters.min_samples_leaf, 1)
    find_bound = BOUNDS[learner.objective.criterion.name]
    spread = None if grid.squares is None else (batch.tally.reach[:, grid.node], grid.squares)
    for joins in (True, False) if lacking.rows.any() else (False,):
        upto = _read_stats(learner, batch, grid, grid.upto, lacking, joins)
        node = learner.objective.alter(batch.stats)[: len(upto), grid.node, None]
        left = grid.rows_upto + lacking.rows[grid.segment, None] * joins
        right = batch.rows[grid.node, None] - left
        edge = (grid.rows > 0) & (grid.rows_upto < grid.rows_upto[:, -1:]) & (left >= least) & (right >= least)
        edge &= _is_heavy(learner, upto, -1) & _is_heavy(learner, node - upto, -1)
        sure = _is_heavy(learner, upto, 1) & _is_heavy(learner, node - upto, 1)
        with np.errstate(invalid="ignore", divide="ignore", over="ignore"):
            scored = learner.objective.score(np.stack([upto, node - upto], axis=1), node)
            np.fmax(score, scored, out=score, where=edge)  # undefined where a branch weighs nothing
            np.fmax(best, np.fmax.reduce(np.where(edge & sure, scored, -np.inf), axis=1), out=best)
            if bounded:
                low = _read_below(learner, batch, grid, lacking, joins, upto)
                inside = (grid.rows > 1) & (left >= least) & (right + grid.rows >= least)
                np.fmax(bound, find_bound(learner.objective, low, upto, node, spread), out=bound, where=inside)
    return Scores(score, bound, best)


def _is_heavy(learner: Learner, stats: Floats, sign: int) -> NDArray[np.bool_] | bool:
    """Whether branches meet the weight limit: by -1 perhaps, by 1 surely; the judge decides what lies between."""
    least = learner.parameters.min_weight_leaf
    if least <= 0:
        return True
    if learner.objective.alteration is not None:
        stats = stats / learner.objective.alteration[:, None, None]
    return np.asarray(learner.objective.criterion.family.weigh(stats) >= least * (1 + sign * 1e-9))


def _read_stats(learner: Learner, batch: Batch, grid: Grid, sums: list[Ints], lacking: Lacking, joins: bool) -> Floats:
    """Altered statistics (channel, group, bin) of sums, with what is missing if that ``joins``."""
    if joins:
        sums = [s + away[:, grid.segment, None] for s, away in zip(sums, lacking.sums, strict=True)]
    shape = sums[0].shape[1:]
    flat = [s.reshape(len(s), -1) for s in sums]
    stats = batch.tally.combine_scored(flat, np.repeat(grid.node, shape[1]))
    return learner.objective.alter(stats.reshape(-1, *shape))


def _read_below(learner: Learner, batch: Batch, grid: Grid, lacking: Lacking, joins: bool, upto: Floats) -> Floats:
    """Altered statistics (channel, group, bin) below each bin: up to the bin before; in the first the group's base."""
    base = [(part - own)[..., :1] for part, own in zip(grid.upto, grid.own, strict=True)]
    first = _read_stats(learner, batch, grid, base, lacking, joins)
    return np.concatenate([first, upto[..., :-1]], axis=-1)
