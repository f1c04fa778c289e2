"""What the coarse pass leaves: edges made into cuts, bins that may hold the winner looked at closer, the rest sorted.

look closer   the bins left are counted again in finer bins: score, discard
sort          the rows of the fine bins left, where every cut becomes a candidate
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.bins import Binned
from service.core.criteria import Floats
from service.core.cuts import Cuts, Lacking, join_cuts
from service.core.deviations import TINY
from service.core.grid import Grid, Scores, build_grid, lift_grid, score_grid
from service.core.learner import Learner
from service.core.screen_grid import find_slack, screen_grid
from service.core.sorting import Numbers, argsort_keys, argsort_numbers
from service.core.statistics import Ints

FINE = (16, 256)
"""A bin that is looked at closer is parted into so many at least and at most, evenly in value,"""
FINE_ROWS = 32
"""so that each has about so many rows."""
FEW_ROWS = 500
"""So few rows are sorted at once."""


@dataclass(frozen=True, slots=True)
class Counted:
    """The bins of some lines of ``batch.binned`` in every node, scored; a group is line * nodes + node.

    ``single``: each bin is one value. ``lacking`` is by group. ``screened``: scores are rounded, see `screen_grid`.
    """

    line: Ints
    single: bool
    grid: Grid
    lacking: Lacking
    scores: Scores
    screened: bool


@dataclass(frozen=True, slots=True)
class Crowd:
    """Some entries of a batch: their place in it, row, cell in a grid, and value; everything is (entry,).

    ``spot`` is the cell and the share of its width that the value lies in: it does not fall where values rise.
    """

    entry: Ints
    row: Ints
    cell: Ints
    value: Numbers
    spot: Floats

    def take(self, which: Ints) -> Crowd:
        """Some of the entries, or the same in another order."""
        return Crowd(
            self.entry.take(which), self.row.take(which), self.cell.take(which), self.value.take(which),
            self.spot.take(which),
        )  # fmt: skip

    def sort(self) -> Crowd:
        """By cell and value."""
        crowd = self.take(argsort_numbers(self.spot))
        # rounding may give one spot to several values
        if ((crowd.spot[1:] == crowd.spot[:-1]) & (crowd.value[1:] < crowd.value[:-1])).any():
            order = argsort_numbers(self.value)
            return self.take(order.take(argsort_keys(self.cell.take(order), int(self.cell.max()) + 1)))
        return crowd


def find_cuts(learner: Learner, batch: Batch, binned: Binned, one: Counted, floor: Floats, raises: bool) -> Cuts:
    """The cuts that score no less than ``floor: (group,)``, which cuts that are found may raise.

    Segments are those of all lines, line * nodes + node.
    """
    grid, scores, nodes = one.grid, one.scores, batch.entries.nodes
    edge, alive = np.flatnonzero(scores.edge >= floor[:, None]), scores.inside >= floor[:, None]
    if len(grid.own) < len(batch.tally.list_amounts()):
        grid = _add_parts(batch, binned, one, np.flatnonzero((scores.edge >= floor[:, None]).any(1) | alive.any(1)))
        one = replace(one, grid=grid)
    beside = _find_neighbours(grid, edge)
    near = np.zeros(alive.shape, bool)
    near.reshape(-1)[beside.ravel()] = True
    parts = [_read_edges(grid, edge, beside, _gather_crowd(learner, batch, binned, one, near), single=one.single)]
    if alive.any():
        crowd = _gather_crowd(learner, batch, binned, one, alive)
        if len(crowd.row) > FEW_ROWS:
            parts += _look_closer(learner, batch, one, alive, crowd, floor, raises)
        else:
            parts.append(_sort_cells(learner, batch, grid, one.lacking, crowd, floor))
    cuts = join_cuts(parts)
    line, node = np.divmod(cuts.segment, nodes)
    return replace(cuts, segment=one.line[line] * nodes + node)


def _add_parts(batch: Batch, binned: Binned, one: Counted, groups: Ints) -> Grid:
    """The grid with the parts of sums that were not counted: of some groups, the others are not asked for any more."""
    grid, nodes = one.grid, batch.entries.nodes
    own, upto = list(grid.own), list(grid.upto)
    edges = [*batch.starts().tolist(), len(batch.entries.row)]
    for amount in batch.tally.list_amounts()[len(grid.own) :]:
        counts, total = np.zeros((2, 1, *grid.rows.shape), np.int64)
        for group in groups.tolist():
            inside = slice(edges[group % nodes], edges[group % nodes + 1])
            weights = None if amount is None else amount[inside]
            counts[0, group] = np.bincount(binned.code[one.line[group // nodes], inside], weights, grid.rows.shape[1])
        total[0, groups] = counts[0, groups].cumsum(axis=1)
        own.append(counts)
        upto.append(total)
    return replace(grid, own=own, upto=upto)


def _gather_crowd(learner: Learner, batch: Batch, binned: Binned, one: Counted, wanted: NDArray[np.bool_]) -> Crowd:
    """The entries in the ``wanted: (group, bin)`` cells; groups without any, most of them, are passed over."""
    starts, nodes, width = [*batch.starts().tolist(), len(batch.entries.row)], batch.entries.nodes, wanted.shape[1]
    groups = np.flatnonzero(wanted.any(1)).tolist()
    entry, bin_ = [], []
    for at in groups:
        begin, end = starts[at % nodes], starts[at % nodes + 1]
        found, bins_found = _find_entries(binned.code[one.line[at // nodes], begin:end], wanted[at])
        entry.append(found + begin)
        bin_.append(bins_found)
    if not groups:
        none = np.empty(0, np.int64)
        return Crowd(none, none, none, none, np.empty(0))
    entries, bins, group = np.concatenate(entry), np.concatenate(bin_), np.repeat(groups, [len(e) for e in entry])
    row, line = batch.entries.row.take(entries), group // nodes
    ends = np.searchsorted(line, np.arange(len(one.line) + 1)).tolist()
    value: list[Numbers] = []
    spot = []
    for which, begin, end in zip(one.line.tolist(), ends, ends[1:], strict=False):
        numbers = learner.features[int(binned.feature[which])].pick(row[begin:end])
        value.append(numbers)
        spot.append(_place_inside(numbers, binned.edges[which], bins[begin:end]))
    cell = group * width + bins
    # numbers of a kind, since lines that are counted together have such
    values = cast("Numbers", np.concatenate(value))
    return Crowd(entries, row, cell, values, cell + np.concatenate(spot))


def _find_entries(code: NDArray[np.uint8], wanted: NDArray[np.bool_]) -> tuple[Ints, NDArray[np.uint8]]:
    """The places of ``code: (entry,)`` in the ``wanted: (bin,)`` bins, mostly a few neighbours; and their bins."""
    bins = np.flatnonzero(wanted)
    first, last = int(bins[0]), int(bins[-1])
    # what lies below the first wraps around and is more than the last
    entry = np.flatnonzero(np.subtract(code, np.uint8(first)) <= np.uint8(last - first))
    found = code.take(entry)
    if last - first >= len(bins):
        inside = np.flatnonzero(wanted.take(found))
        entry, found = entry.take(inside), found.take(inside)
    return entry, found


def _place_inside(numbers: Numbers, edges: Floats, bins: NDArray[np.uint8]) -> Floats:
    """(entry,) how far inside its bin each number lies, from 0 to nearly 1."""
    if not len(edges):
        return np.zeros(len(numbers))
    low, span = edges[:-1], np.maximum(np.diff(edges), TINY)
    with np.errstate(invalid="ignore", over="ignore"):
        share = (numbers - low.take(bins)) * (1 / span).take(bins)
    # NaN comes of infinite edges only, and then of all values in the bin alike
    return np.nan_to_num(np.clip(share, 0.0, 1 - 1 / 2**20), nan=0.0)


def _find_neighbours(grid: Grid, edge: Ints) -> Ints:
    """(2, edge) the cells on both sides of the edges after the flat cells ``edge``; the next has rows."""
    width = grid.rows.shape[1]
    group, bin_ = np.divmod(edge, width)
    occupied = (grid.rows[group] > 0) & (np.arange(width) > bin_[:, None])
    return np.stack([edge, group * width + occupied.argmax(1)])


def _read_edges(grid: Grid, edge: Ints, beside: Ints, crowd: Crowd, *, single: bool = False) -> Cuts:
    """The edges as cuts; their neighbours are the last row of one cell and the first of the next.

    ``crowd``: the rows of the cells ``beside: (2, edge)`` them. ``single``: the rows of a cell have one value.
    """
    group, bin_ = np.divmod(edge, grid.rows.shape[1])
    cells = np.unique(beside)
    if not single:
        crowd = crowd.sort()
    # of several rows in a cell the last that is written stays
    place = np.searchsorted(cells, crowd.cell)
    last, first = np.zeros((2, len(cells)), np.int64)
    last[place], first[place[::-1]] = crowd.row, crowd.row[::-1]
    lower, upper = last[np.searchsorted(cells, beside[0])], first[np.searchsorted(cells, beside[1])]
    rows = grid.rows_upto[group, bin_]
    left = [upto[:, group, bin_] for upto in grid.upto]
    return Cuts(grid.segment[group], grid.node[group], rows, left, rows, lower, upper)


def _look_closer(
    learner: Learner, batch: Batch, one: Counted, alive: NDArray[np.bool_], crowd: Crowd, floor: Floats, raises: bool
) -> list[Cuts]:
    """Part the ``alive: (group, bin)`` bins, whose rows are the ``crowd``, into finer ones."""
    group, bin_ = np.nonzero(alive)
    fine = int(np.clip(2 ** np.ceil(np.log2(len(crowd.row) / len(group) / FINE_ROWS)), *FINE))
    node = one.grid.node[group]
    run = (np.cumsum(alive) - 1).take(crowd.cell)
    spot = run * fine + (crowd.spot - crowd.cell) * fine
    crowd = replace(crowd, cell=spot.astype(np.int64), spot=spot)
    tally, cells = batch.tally.take(crowd.entry, slice(None)), len(node) * fine
    sums = tally.sum_scored(tally.key(crowd.cell, cells), cells)
    rows = tally.count_rows(sums, crowd.cell, cells).reshape(-1, fine)
    squares = None
    if not tally.classes:
        total = np.bincount(crowd.cell, tally.squares.parts[0], cells).reshape(-1, fine)
        squares = tally.bound_squares(total, rows, node[:, None])
    grid = build_grid(node, group, [s.reshape(len(s), -1, fine) for s in sums], rows, squares)
    below = [(upto - own)[:, group, bin_] for upto, own in zip(one.grid.upto, one.grid.own, strict=True)]
    grid = lift_grid(grid, below, (one.grid.rows_upto - one.grid.rows)[group, bin_])
    score = screen_grid if one.screened else score_grid
    scores = score(learner, batch, grid, one.lacking, bounded=True)
    if raises:
        floor = _raise_floor(learner, batch, one, grid, scores, floor)
    reach = floor[group, None]
    edge = np.flatnonzero(scores.edge >= reach)
    beside, near = _find_neighbours(grid, edge), np.zeros(grid.rows.size, bool)
    near[beside] = True
    found = [_read_edges(grid, edge, beside, crowd.take(np.flatnonzero(near.take(crowd.cell))))]
    crowd = crowd.take(np.flatnonzero((scores.inside >= reach).ravel().take(crowd.cell)))
    return [*found, _sort_cells(learner, batch, grid, one.lacking, crowd, floor)]


def _raise_floor(learner: Learner, batch: Batch, one: Counted, grid: Grid, scores: Scores, floor: Floats) -> Floats:
    """(group,) of `Counted` what cuts have to score, of all features of a node: what its best fine edge tells."""
    best = np.full(batch.entries.nodes, -np.inf)
    np.maximum.at(best, grid.node, scores.best)
    return np.asarray(np.maximum(floor, (best - find_slack(learner, batch, screened=one.screened))[one.grid.node]))


def _sort_cells(learner: Learner, batch: Batch, grid: Grid, lacking: Lacking, crowd: Crowd, floor: Floats) -> Cuts:
    """Every cut amid the crowd of each cell that scores no less than the floor of its segment."""
    crowd = crowd.sort()
    start = np.flatnonzero(np.diff(crowd.cell, prepend=-1))
    run = np.repeat(np.arange(len(start)), np.diff(start, append=len(crowd.row)))
    cut = np.flatnonzero((run[1:] == run[:-1]) & (crowd.value[1:] != crowd.value[:-1]))
    group, bin_ = np.divmod(crowd.cell[cut], grid.rows.shape[1])
    node, segment = grid.node[group], grid.segment[group]
    left = batch.tally.accumulate(crowd.entry[None], start, cut, run[cut], by_entry=True)[0]
    left = [
        part + upto[:, group, bin_] - own[:, group, bin_]
        for part, upto, own in zip(left, grid.upto, grid.own, strict=True)
    ]
    best = np.full(len(cut), -np.inf)
    for joins in (True, False) if lacking.rows.any() else (False,):
        moved = [part + away[:, segment] * joins for part, away in zip(left, lacking.sums, strict=True)]
        stats = learner.objective.alter(batch.tally.combine_scored(moved, node))
        whole = learner.objective.alter(batch.stats)[: len(stats), node]
        with np.errstate(invalid="ignore", divide="ignore"):
            np.fmax(best, learner.objective.score(np.stack([stats, whole - stats], axis=1), whole), out=best)
    below = grid.rows_upto[group, bin_] - grid.rows[group, bin_] + cut - start[run[cut]] + 1
    cuts = Cuts(segment, node, below, left, below, crowd.row[cut], crowd.row[cut + 1])
    return cuts.take(np.flatnonzero(best >= floor[segment]))
