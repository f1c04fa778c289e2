"""The cuts that can win: a coarse pass over bins, a bound for each bin, and a sort of what is left.

    count     one count per (node, bin) and class; running sums give the left branch of every bin edge
    score     every edge is a cut, scored exactly
    discard   a bin whose bound is below the best edge of its node, of any feature, less the tie tolerance
    look closer   the bins left are counted again in finer bins: score, discard
    sort      the rows of the fine bins left, where every cut becomes a candidate

What comes out are candidates like any others; `search` judges and chooses among them as always.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.core.bins import Binned
from service.core.bounds import BOUNDS
from service.core.candidates import Block, Candidates
from service.core.criteria import Floats
from service.core.cuts import Cuts, Lacking, build_cuts, build_directed, build_missing, join_cuts
from service.core.deviations import TINY
from service.core.encoding import Numbers, argsort_keys, argsort_numbers, smallest_unsigned
from service.core.grid import Codes, Grid, build_grid, lift_grid, score_grid
from service.core.parallel import run_parallel
from service.core.statistics import Ints
from service.core.weigh import Batch, Learner

FINE = 32
"""A bin that is looked at closer is parted into so many, evenly in value."""
FEW_ROWS = 500
"""So few rows are sorted at once."""


def can_bound(learner: Learner) -> bool:
    """True where bins can be discarded under these parameters; else cuts are found by sorting alone."""
    return (
        learner.objective.criterion.name in BOUNDS
        and learner.objective.criterion.statistic != "vectors"
        and learner.parameters.selection == "criterion"
        and not learner.parameters.has_cut_rules
        and learner.directions is None
    )


@dataclass(frozen=True, slots=True)
class Counted:
    """One feature's bins in every node, scored: ``score``, ``bound``: (node, bin), ``best: (node,)``."""

    grid: Grid
    lacking: Lacking
    score: Floats
    bound: Floats
    best: Floats


def weigh_contenders(learner: Learner, batch: Batch, _: Ints) -> tuple[Block, list[Candidates]]:
    """Every cut of the binned features within the tie tolerance of its node's best, and some more.

    The features are those of ``batch.binned``; segments are line * nodes + node.
    """
    return weigh_foremost(learner, batch, 1)


def weigh_foremost(learner: Learner, batch: Batch, most: int) -> tuple[Block, list[Candidates]]:
    """As `weigh_contenders`, every cut that can be among the ``most`` best of its node, or the best of two features.

    More than one are known for certain only where no branch has to have some weight.
    """
    binned = batch.binned
    if binned is None:
        raise ValueError("the batch has no bins")
    nodes, lines = batch.entries.nodes, range(len(binned.feature))
    block = Block(np.tile(np.arange(nodes), len(lines)), np.repeat(binned.feature, nodes))
    counted = count_bins(learner, batch, binned)
    best = np.tile(np.max([line.best for line in counted], axis=0), (len(counted), 1))
    if most > 1:
        best = _find_less(counted, most)
    tolerance = learner.objective.tolerance(batch.stats)
    floor = np.maximum(best - tolerance, learner.objective.baseline(batch.stats) + tolerance / 2)
    raises = most == 1
    found = run_parallel(
        lambda line: _find_cuts(learner, batch, binned, line, counted[line], floor[line], raises), lines
    )
    cuts = join_cuts(found)
    lacking = Lacking(
        [np.concatenate(sums, axis=1) for sums in zip(*(one.lacking.sums for one in counted), strict=True)],
        np.concatenate([one.lacking.rows for one in counted]),
    )
    if not lacking.rows.any():
        return block, [build_cuts(batch.nodes(), cuts)]
    tables = [build_directed(batch.nodes(), cuts, lacking), build_missing(batch.nodes(), block.node, lacking)]
    return block, [table for table in tables if len(table.segment)]


def count_bins(learner: Learner, batch: Batch, binned: Binned) -> list[Counted]:
    """The bins of each line."""
    widths = binned.find_widths()
    cells = {width: _lay_out_cells(batch, width) for width in set(widths)}
    lines = range(len(widths))
    return run_parallel(lambda line: _count_line(learner, batch, line, widths[line], cells[widths[line]]), lines)


def _find_less(counted: list[Counted], most: int) -> Floats:
    """(line, node) what the ``most`` best cuts of a node score at least, for every edge is a cut.

    Of other features than the first, or what seems to be it, also what the best of them score.
    """
    edges = np.concatenate([line.score for line in counted], axis=1)
    bests = np.array([line.best for line in counted])
    foremost = np.sort(edges, axis=1)[:, -min(most, edges.shape[1])]
    floors: Floats = np.tile(np.minimum(foremost, np.sort(bests, axis=0)[-min(2, len(bests))]), (len(bests), 1))
    floors[bests.argmax(0), np.arange(bests.shape[1])] = foremost
    return floors


def _lay_out_cells(batch: Batch, width: int) -> tuple[Codes, Codes]:
    """(entry,) the first cell of each entry's node, and class * cells + that cell, where a node has ``width`` cells.

    In the smallest type that holds them, so that adding a code takes little.
    """
    cells = batch.entries.nodes * width
    first = (batch.entries.node * width).astype(smallest_unsigned(cells))
    key = batch.tally.key(first, cells)
    return first, key.astype(smallest_unsigned(max(batch.tally.classes, 1) * cells), copy=False)


def _count_line(learner: Learner, batch: Batch, line: int, width: int, cells: tuple[Codes, Codes]) -> Counted:
    """``cells``: of each entry the first cell of its node, and class * cells + that cell; a node has ``width``."""
    binned, nodes, tally = batch.binned, batch.entries.nodes, batch.tally
    if binned is None:
        raise ValueError("the batch has no bins")
    (first, start), code, bins = cells, binned.code[line], binned.bins[line]
    # converted once, not by each count
    key = (start + code).astype(np.intp)
    sums = tally.sum_scored(key, nodes * width)
    rows = tally.count_rows(sums, first if tally.counts_rows else first + code, nodes * width)
    squares = None
    if not tally.classes:
        squares = tally.bound_squares(key, rows, np.repeat(np.arange(nodes), width)).reshape(nodes, width)[:, :bins]
    counts, rows = [s.reshape(len(s), nodes, width) for s in sums], rows.reshape(nodes, width)
    # what is missing has the code after the last bin's
    grid = build_grid(np.arange(nodes), [c[..., :bins] for c in counts], rows[:, :bins], squares)
    lacking = Lacking([c[..., bins] for c in counts], rows[:, bins])
    return Counted(grid, lacking, *score_grid(learner, batch, grid, lacking, bounded=not binned.single[line]))


@dataclass(frozen=True, slots=True)
class Crowd:
    """Some entries of a batch: their place in it, row, cell in a grid, and value; everything is (entry,)."""

    entry: Ints
    row: Ints
    cell: Ints
    value: Numbers

    def take(self, which: NDArray[np.bool_] | Ints) -> Crowd:
        """Some of the entries, or the same in another order."""
        if which.dtype == bool:
            which = np.flatnonzero(which)
        return Crowd(self.entry.take(which), self.row.take(which), self.cell.take(which), self.value.take(which))

    def sort(self) -> Crowd:
        """By cell and value."""
        order = argsort_numbers(self.value)
        return self.take(order[argsort_keys(self.cell[order], int(self.cell.max(initial=0)) + 1)])


def _find_cuts(
    learner: Learner, batch: Batch, binned: Binned, line: int, one: Counted, floor: Floats, raises: bool
) -> Cuts:
    """The cuts of one feature that score no less than ``floor: (node,)``, which cuts that are found may raise."""
    numbers = learner.features[int(binned.feature[line])].numbers
    edge, alive = np.flatnonzero(one.score >= floor[:, None]), one.bound >= floor[:, None]
    beside = _find_neighbours(one.grid, edge)
    bins = binned.bins[line]
    wanted = np.zeros((len(floor), bins + 1), bool)
    wanted[:, :bins] = alive
    wanted[np.divmod(beside.ravel(), bins)] = True
    if not wanted.any():
        return _sort_cuts(line * len(floor), [_read_edges(one.grid, edge, beside, Crowd(edge, edge, edge, edge))])
    entry = _find_entries(batch, binned.code[line], wanted)
    node, bin_ = batch.entries.node[entry], binned.code[line][entry].astype(np.int64)
    row = batch.entries.row[entry]
    crowd = Crowd(entry, row, node * bins + bin_, numbers[row])
    parts = [_read_edges(one.grid, edge, beside, crowd, single=bool(binned.single[line]))]
    if binned.single[line]:
        return _sort_cuts(line * len(floor), parts)
    crowd = crowd.take(alive[node, bin_])
    if len(crowd.row) > FEW_ROWS:
        parts += _look_closer(learner, batch, binned.edges[line], one, alive, crowd, floor, raises)
    elif len(crowd.row):
        parts.append(_sort_cells(learner, batch, one.grid, one.lacking, crowd, floor))
    return _sort_cuts(line * len(floor), parts)


def _find_entries(batch: Batch, code: NDArray[np.uint8], wanted: NDArray[np.bool_]) -> Ints:
    """The entries in the ``wanted: (node, bin)`` cells; nodes without any, most of them, are passed over."""
    starts = batch.starts()
    found = []
    for node in np.flatnonzero(wanted.any(1)).tolist():
        begin, end = int(starts[node]), int(starts[node] + batch.rows[node])
        found.append(np.flatnonzero(wanted[node][code[begin:end]]) + begin)
    return np.concatenate(found)


def _find_neighbours(grid: Grid, edge: Ints) -> Ints:
    """(2, edge) the cells on both sides of the edges after the flat cells ``edge``; the next has rows."""
    occupied = np.flatnonzero(grid.rows)
    after = occupied[np.searchsorted(occupied, edge, side="right")] if len(edge) else edge
    return np.stack([edge, after])


def _read_edges(grid: Grid, edge: Ints, beside: Ints, crowd: Crowd, *, single: bool = False) -> Cuts:
    """The edges as cuts; their neighbours are the last row of one cell and the first of the next.

    ``single``: the rows of a cell have one value.
    """
    group, bin_ = np.divmod(edge, grid.rows.shape[1])
    near = np.zeros(grid.rows.size, bool)
    near[beside.ravel()] = True
    crowd = crowd.take(near[crowd.cell])
    if not single:
        crowd = crowd.sort()
    # of several rows in a cell the last that is written stays
    last, first = np.zeros(grid.rows.size, np.int64), np.zeros(grid.rows.size, np.int64)
    last[crowd.cell], first[crowd.cell[::-1]] = crowd.row, crowd.row[::-1]
    lower, upper = last[beside[0]], first[beside[1]]
    node, rows = grid.node[group], grid.rows_upto[group, bin_]
    return Cuts(node, node, rows, [upto[:, group, bin_] for upto in grid.upto], rows, lower, upper)


def _look_closer(
    learner: Learner, batch: Batch, edges: Floats, one: Counted, alive: NDArray[np.bool_], crowd: Crowd, floor: Floats,
    raises: bool,
) -> list[Cuts]:  # fmt: skip
    """Part the ``alive: (node, bin)`` bins into finer ones; ``crowd`` are their rows, ``edges`` those of all bins."""
    node, bin_ = np.nonzero(alive)
    run = (np.cumsum(alive) - 1)[crowd.cell]
    low, high = edges[bin_], edges[bin_ + 1]
    with np.errstate(invalid="ignore", over="ignore"):
        part = (crowd.value - low[run]) * (FINE / np.maximum(high - low, TINY))[run]
    # NaN comes of infinite edges only, and then of all values in the bin alike
    part = np.nan_to_num(np.clip(part, 0, FINE - 1), nan=0.0).astype(np.int64)
    crowd = Crowd(crowd.entry, crowd.row, run * FINE + part, crowd.value)
    tally, cells = batch.tally.take(crowd.entry, slice(None)), len(node) * FINE
    sums = tally.sum_scored(tally.key(crowd.cell, cells), cells)
    rows = tally.count_rows(sums, crowd.cell, cells)
    squares = None if tally.classes else tally.bound_squares(crowd.cell, rows, np.repeat(node, FINE))
    grid = build_grid(
        node,
        [s.reshape(len(s), -1, FINE) for s in sums],
        rows.reshape(-1, FINE),
        None if squares is None else squares.reshape(-1, FINE),
    )
    below = [(upto - own)[:, node, bin_] for upto, own in zip(one.grid.upto, one.grid.own, strict=True)]
    grid = lift_grid(grid, below, (one.grid.rows_upto - one.grid.rows)[node, bin_])
    score, bound, best = score_grid(learner, batch, grid, one.lacking, bounded=True)
    floor = floor.copy()
    if raises:
        np.maximum.at(floor, node, best - learner.objective.tolerance(batch.stats)[node])
    edge = np.flatnonzero(score >= floor[node, None])
    found = [_read_edges(grid, edge, _find_neighbours(grid, edge), crowd)]
    crowd = crowd.take((bound >= floor[node, None]).ravel()[crowd.cell])
    return [*found, _sort_cells(learner, batch, grid, one.lacking, crowd, floor)] if len(crowd.row) else found


def _sort_cells(learner: Learner, batch: Batch, grid: Grid, lacking: Lacking, crowd: Crowd, floor: Floats) -> Cuts:
    """Every cut amid the crowd of each cell that scores no less than the floor."""
    crowd = crowd.sort()
    start = np.flatnonzero(np.diff(crowd.cell, prepend=-1))
    run = np.repeat(np.arange(len(start)), np.diff(start, append=len(crowd.row)))
    cut = np.flatnonzero((run[1:] == run[:-1]) & (crowd.value[1:] != crowd.value[:-1]))
    group, bin_ = np.divmod(crowd.cell[cut], grid.rows.shape[1])
    node = grid.node[group]
    left = batch.tally.accumulate(crowd.entry[None], start, cut, run[cut], by_entry=True)[0]
    left = [
        part + upto[:, group, bin_] - own[:, group, bin_]
        for part, upto, own in zip(left, grid.upto, grid.own, strict=True)
    ]
    best = np.full(len(cut), -np.inf)
    for joins in (True, False) if lacking.rows.any() else (False,):
        moved = [part + away[:, node] * joins for part, away in zip(left, lacking.sums, strict=True)]
        stats = learner.objective.alter(batch.tally.combine_scored(moved, node))
        whole = learner.objective.alter(batch.stats)[: len(stats), node]
        with np.errstate(invalid="ignore", divide="ignore"):
            np.fmax(best, learner.objective.score(np.stack([stats, whole - stats], axis=1), whole), out=best)
    below = grid.rows_upto[group, bin_] - grid.rows[group, bin_] + cut - start[run[cut]] + 1
    cuts = Cuts(node, node, below, left, below, crowd.row[cut], crowd.row[cut + 1])
    return cuts.take(np.flatnonzero(best >= floor[node]))


def _sort_cuts(first_segment: int, parts: list[Cuts]) -> Cuts:
    """Cuts of one feature found in several ways, in value order; segments begin at ``first_segment``."""
    joined = join_cuts(parts)
    joined = joined.take(np.lexsort((joined.place, joined.segment)))
    return replace(joined, segment=joined.segment + first_segment)
