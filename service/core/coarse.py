"""The cuts that can win: a coarse pass over bins, a bound for each bin, and a sort of what is left.

    count     one count per (node, bin) and class; running sums give the left branch of every bin edge
    score     every edge is a cut, scored exactly
    discard   a bin whose bound is below the best edge of its node, of any feature, less the tie tolerance
    refine    the rows of the bins left are sorted, and every cut in them becomes a candidate

What comes out are candidates like any others; `search` judges and chooses among them as always.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.bins import BINS, MISSING_BIN, Binned
from service.core.bounds import BOUNDS
from service.core.candidates import Block, Candidates
from service.core.criteria import Floats
from service.core.cuts import Cuts, Lacking, build_cuts, build_directed, build_missing
from service.core.encoding import argsort_keys
from service.core.parallel import run_parallel
from service.core.statistics import Ints
from service.core.weigh import Batch, Learner

WIDTH = BINS + 1
EDGE = 2**32
"""Within a bin cuts are placed by their row; its edge comes after all of them."""


def can_bound(learner: Learner) -> bool:
    """True where bins can be discarded under these parameters; else cuts are found by sorting alone."""
    return (
        learner.objective.criterion.name in BOUNDS
        and learner.parameters.selection == "criterion"
        and learner.directions is None
    )


@dataclass(frozen=True, slots=True)
class Line:
    """One feature's bins in every node of a batch.

    ``own``: whole-number sums (class or 1, node, bin) of each bin, ``upto`` with those of the bins below it; ``rows``
    and ``rows_upto``: (node, bin) likewise; ``lacking``: what has no value, by node. ``squares: (node, bin)`` bounds
    the targets' sum of squares, in regression.
    """

    own: list[Ints]
    upto: list[Ints]
    rows: Ints
    rows_upto: Ints
    lacking: Lacking
    squares: Floats | None


def weigh_contenders(learner: Learner, batch: Batch, _: Ints) -> tuple[Block, list[Candidates]]:
    """Every cut of the binned features within the tie tolerance of its node's best, and some more.

    The features are those of ``batch.binned``; segments are line * nodes + node.
    """
    binned = _read_bins(batch)
    nodes, lines = batch.entries.nodes, range(len(binned.feature))
    block = Block(np.tile(np.arange(nodes), len(lines)), np.repeat(binned.feature, nodes))
    group = batch.entries.node * WIDTH
    key = batch.tally.key(group, nodes * WIDTH)

    def count(line: int) -> tuple[Line, Floats, Floats]:
        counted = _count_bins(batch, key + binned.code[line], group + binned.code[line])
        return counted, *_score_bins(learner, batch, counted, bool(binned.single[line]))

    counted = run_parallel(count, lines)
    best = np.max([score.max(1) for _, score, _ in counted], axis=0)
    tolerance = learner.objective.tolerance(batch.stats)
    floor = np.maximum(best - tolerance, learner.objective.baseline(batch.stats) + tolerance / 2)

    def list_line(line: int) -> list[Candidates]:
        counts, score, bound = counted[line]
        edge, alive = np.flatnonzero(score >= floor[:, None]), bound >= floor[:, None]
        cuts = _find_cuts(learner, batch, line, counts, group + binned.code[line], edge, alive)
        if not counts.lacking.rows.any():
            return [build_cuts(batch.nodes(), cuts)]
        lacking = _shift_segments(counts.lacking, line, len(lines))
        return [build_directed(batch.nodes(), cuts, lacking), build_missing(batch.nodes(), block.node, lacking)]

    tables = run_parallel(list_line, lines)
    return block, [table for part in tables for table in part if len(table.segment)]


def _read_bins(batch: Batch) -> Binned:
    if batch.binned is None:
        raise ValueError("the batch has no bins")
    return batch.binned


def _shift_segments(lacking: Lacking, line: int, lines: int) -> Lacking:
    """What is lacking by segment of all lines, of which the others lack nothing."""
    nodes = len(lacking.rows)

    def place(values: Ints) -> Ints:
        out = np.zeros((*values.shape[:-1], lines * nodes), np.int64)
        out[..., line * nodes : (line + 1) * nodes] = values
        return out

    return Lacking([place(s) for s in lacking.sums], place(lacking.rows))


def _count_bins(batch: Batch, key: Ints, group: Ints) -> Line:
    nodes, tally = batch.entries.nodes, batch.tally
    sums = tally.sum_scored(key, nodes * WIDTH)
    rows = tally.count_rows(sums, group, nodes * WIDTH).reshape(nodes, WIDTH)
    counts = [s.reshape(len(s), nodes, WIDTH) for s in sums]
    own = [c[..., :BINS] for c in counts]
    squares = None if tally.classes else tally.bound_squares(group, nodes * WIDTH).reshape(nodes, WIDTH)[:, :BINS]
    return Line(
        own,
        [np.cumsum(c, axis=-1) for c in own],
        rows[:, :BINS],
        np.cumsum(rows[:, :BINS], axis=-1),
        Lacking([c[..., MISSING_BIN] for c in counts], rows[:, MISSING_BIN]),
        squares,
    )


def _score_bins(learner: Learner, batch: Batch, line: Line, single: bool) -> tuple[Floats, Floats]:
    """(node, bin) the score of the edge after each bin, and the bound on what cuts inside it score; -inf for none.

    Where values are missing, the better of having them on the left and on the right.
    """
    score, bound = np.full(line.rows.shape, -np.inf), np.full(line.rows.shape, -np.inf)
    least = max(learner.parameters.min_samples_leaf, 1)
    bounded = BOUNDS[learner.objective.criterion.name]
    for joins in (True, False) if line.lacking.rows.any() else (False,):
        below, upto, node = _read_stats(learner, batch, line, joins)
        gone = line.lacking.rows[:, None] * joins
        left = line.rows_upto + gone
        right = batch.rows[:, None] - left
        edge = (line.rows > 0) & (line.rows_upto < line.rows_upto[:, -1:]) & (left >= least) & (right >= least)
        edge &= _is_heavy(learner, upto) & _is_heavy(learner, node - upto)
        with np.errstate(invalid="ignore"):
            scored = learner.objective.score(np.stack([upto, node - upto], axis=1), node)
            np.maximum(score, scored, out=score, where=edge)
            if single:
                continue
            inside = (line.rows > 1) & (left >= least) & (right + line.rows >= least)
            spread = None if line.squares is None else (batch.tally.reach, line.squares)
            np.fmax(bound, bounded(learner.objective, below, upto, node, spread), out=bound, where=inside)
    return score, bound


def _is_heavy(learner: Learner, stats: Floats) -> NDArray[np.bool_] | bool:
    least = learner.parameters.min_weight_leaf
    if least <= 0:
        return True
    if learner.objective.alteration is not None:
        stats = stats / learner.objective.alteration[:, None, None]
    # what lies within rounding of the limit is left to the judge
    return np.asarray(learner.objective.criterion.family.weigh(stats) >= least * (1 - 1e-9))


def _read_stats(learner: Learner, batch: Batch, line: Line, joins: bool) -> tuple[Floats, Floats, Floats]:
    """Altered statistics (channel, node, bin) below each bin and up to its end, and (channel, node, 1) of the node."""
    tally, shape = batch.tally, line.rows.shape
    of_cell = np.repeat(np.arange(shape[0]), shape[1])

    def combine(sums: list[Ints]) -> Floats:
        if joins:
            sums = [s + away[..., None] for s, away in zip(sums, line.lacking.sums, strict=True)]
        stats = tally.combine_scored([s.reshape(len(s), -1) for s in sums], of_cell)
        return learner.objective.alter(stats.reshape(-1, *shape))

    upto = combine(line.upto)
    below = combine([s - own for s, own in zip(line.upto, line.own, strict=True)])
    return below, upto, learner.objective.alter(batch.stats)[: len(upto), :, None]


def _find_cuts(
    learner: Learner, batch: Batch, line: int, counts: Line, group: Ints, edge: Ints, alive: NDArray[np.bool_]
) -> Cuts:
    """The edges at the flat (node, bin) places ``edge``, and every cut inside the bins ``alive: (node, bin)``.

    Rows are sorted in the bins that are alive and on both sides of an edge: its neighbours are the last and the first.
    """
    feature = int(_read_bins(batch).feature[line])
    nodes = len(counts.rows)
    occupied = np.flatnonzero(counts.rows)
    after = occupied[np.searchsorted(occupied, edge, side="right")] if len(edge) else edge
    wanted = np.zeros((nodes, WIDTH), bool)
    wanted[:, :BINS] = alive
    wanted[np.divmod(np.concatenate([edge, after]), BINS)] = True
    row, run = _sort_rows(learner, batch, feature, group, wanted)
    start = np.flatnonzero(np.diff(run, prepend=-1))
    end = np.append(start[1:], len(run))
    cell = np.divmod(np.flatnonzero(wanted), WIDTH)  # of each run
    numbers = learner.features[feature].numbers
    inside = alive[cell]
    cut = np.flatnonzero((run[1:] == run[:-1]) & (numbers[row[1:]] != numbers[row[:-1]]) & inside[run[:-1]])
    at = tuple(c[run[cut]] for c in cell)
    left = batch.tally.accumulate(row[None], start, cut, run[cut], None)[0]
    left = [part + (upto - own)[:, at[0], at[1]] for part, upto, own in zip(left, counts.upto, counts.own, strict=True)]
    below = (counts.rows_upto - counts.rows)[at]
    of_cell = np.zeros(wanted.shape, np.int64)
    of_cell[wanted] = np.arange(len(start))
    on, beyond = np.divmod(edge, BINS), np.divmod(after, BINS)
    return _order_cuts(
        line * nodes,
        Cuts(at[0], at[0], at[1] * (2 * EDGE) + cut, left, below + cut - start[run[cut]] + 1, row[cut], row[cut + 1]),
        Cuts(
            on[0],
            on[0],
            on[1] * (2 * EDGE) + EDGE,
            [upto[:, on[0], on[1]] for upto in counts.upto],
            counts.rows_upto[on],
            row[end[of_cell[on]] - 1],
            row[start[of_cell[beyond]]],
        ),
    )


def _sort_rows(
    learner: Learner, batch: Batch, feature: int, group: Ints, wanted: NDArray[np.bool_]
) -> tuple[Ints, Ints]:
    """The rows in the ``wanted: (node, bin)`` cells, by cell and value, and (row,) which of these cells each is in."""
    entry = np.flatnonzero(wanted.ravel()[group])
    row = batch.entries.row[entry]
    run = (np.cumsum(wanted) - 1)[group[entry]]
    order = np.argsort(learner.features[feature].numbers[row], kind="stable")
    order = order[argsort_keys(run[order], int(wanted.sum()))]
    return row[order], run[order]


def _order_cuts(first_segment: int, inside: Cuts, edges: Cuts) -> Cuts:
    """Cuts inside bins and at edges as one, in value order; segments begin at ``first_segment``."""
    both = Cuts(
        np.concatenate([inside.segment, edges.segment]) + first_segment,
        np.concatenate([inside.node, edges.node]),
        np.concatenate([inside.place, edges.place]),
        [np.concatenate(parts, axis=1) for parts in zip(inside.left, edges.left, strict=True)],
        np.concatenate([inside.rows, edges.rows]),
        np.concatenate([inside.lower, edges.lower]),
        np.concatenate([inside.upper, edges.upper]),
    )
    return both.take(np.lexsort((both.place, both.segment)))
