"""The cuts that can win: a coarse pass over bins, a bound for each bin, and a sort of what is left.

    count     one count per (node, bin) and class; running sums give the left branch of every bin edge
    score     every edge is a cut, scored as such
    discard   a bin whose bound is below the best edge of its node, of any feature, less the tie tolerance

What is left is looked at closer and sorted (`refine`), and comes out as candidates like any others; `search` judges
and chooses among them as always.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

import numpy as np

from service.core.batch import Batch
from service.core.bins import Binned
from service.core.bounds import BOUNDS
from service.core.candidates import Block, Candidates
from service.core.count_bins import Packed, Stretch, count_lines, lay_out_stretches, pack_squares
from service.core.criteria import Floats
from service.core.cuts import Lacking, build_cuts, build_directed, build_missing, join_cuts
from service.core.deviations import TINY
from service.core.grid import build_grid, score_grid
from service.core.learner import Learner
from service.core.parallel import PARALLEL_CELLS, count_cores, run_parallel
from service.core.refine import Counted, find_cuts
from service.core.screen_grid import can_screen_grid, find_slack, screen_grid
from service.core.statistics import Ints

PORTION = 100_000
"""Features are counted and scored together up to about so many cells, which the processor's cache holds."""


def can_bound(learner: Learner) -> bool:
    """True where bins can be discarded under these parameters; else cuts are found by sorting alone."""
    return (
        learner.objective.criterion.name in BOUNDS
        and learner.objective.criterion.statistic != "vectors"
        and learner.parameters.selection == "criterion"
        and not learner.parameters.has_cut_rules
        and learner.directions is None
    )


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
    nodes, lines = batch.entries.nodes, len(binned.feature)
    block = Block(np.tile(np.arange(nodes), lines), np.repeat(binned.feature, nodes))
    counted = _count_all(learner, batch, binned)
    floor = _find_floors(learner, batch, counted, most)
    found = run_parallel(
        lambda one: find_cuts(learner, batch, binned, one, floor[one.line].ravel(), most == 1), counted
    )
    cuts = join_cuts(found)
    cuts = cuts.take(np.lexsort((cuts.place, cuts.segment)))
    lacking = _join_lacking(counted, nodes)
    if not lacking.rows.any():
        return block, [build_cuts(batch.nodes(), cuts)]
    tables = [build_directed(batch.nodes(), cuts, lacking), build_missing(batch.nodes(), block.node, lacking)]
    return block, [table for table in tables if len(table.segment)]


def bound_lines(learner: Learner, batch: Batch) -> Floats:
    """(line, node) the most that a cut of each feature of ``batch.binned`` can score in each node."""
    if batch.binned is None:
        raise ValueError("the batch has no bins")
    most = np.empty((len(batch.binned.feature), batch.entries.nodes))
    for one in _count_all(learner, batch, batch.binned):
        of_group = np.maximum(one.scores.edge, one.scores.inside).max(1).reshape(len(one.line), -1)
        most[one.line] = of_group + find_slack(learner, batch, screened=one.screened)
    return most


def _count_all(learner: Learner, batch: Batch, binned: Binned) -> list[Counted]:
    screened = can_screen_grid(learner, batch)
    portions = list(_part_lines(learner, binned, batch))
    widths = {portion.width for portion in portions if binned.tables is None}
    stretches = {width: lay_out_stretches(batch, width) for width in widths}
    packed = pack_squares(batch)
    return run_parallel(
        lambda portion: _count(learner, batch, portion, stretches.get(portion.width, []), packed, screened), portions
    )


@dataclass(frozen=True, slots=True)
class Portion:
    """Lines that are counted together: they have bins alike, of ``width`` cells with that of what is missing."""

    line: Ints
    width: int
    single: bool


def _part_lines(learner: Learner, binned: Binned, batch: Batch) -> Iterator[Portion]:
    """Few enough cells for the processor's cache, and work for all cores where it is worth it."""
    widths = np.array(binned.find_widths())
    whole = np.array([learner.features[f].kept.dtype.kind == "i" for f in binned.feature.tolist()])
    cores = count_cores() if len(batch.entries.row) > PARALLEL_CELLS // 4 else 1
    for width in np.unique(widths).tolist():
        for single, kind in product((False, True), (False, True)):
            lines = np.flatnonzero((widths == width) & (binned.single == single) & (whole == kind))
            if not len(lines):
                continue
            parts = max(-(-len(lines) * batch.entries.nodes * width // PORTION), min(cores, len(lines)))
            # features that matter often stand side by side: each portion gets some of them
            yield from (Portion(lines[first::parts], width, single) for first in range(min(parts, len(lines))))


def _count(
    learner: Learner, batch: Batch, portion: Portion, stretches: list[Stretch], packed: Packed | None, screened: bool
) -> Counted:
    binned, nodes, lines = batch.binned, batch.entries.nodes, portion.line
    if binned is None:
        raise ValueError("the batch has no bins")
    roughly = screened and not batch.tally.classes and not _lack_values(learner, binned, lines)
    counts, rows, squares = count_lines(batch, binned, lines, portion.width, stretches, packed, roughly=roughly)
    group = np.arange(len(rows))
    # what is missing has the code after the last bin's
    last = np.repeat(np.array(binned.bins)[lines], nodes)
    lacking = Lacking([part[:, group, last] for part in counts], rows[group, last])
    if lacking.rows.any():
        for part in (*counts, rows):
            part[..., group, last] = 0
    node = np.tile(np.arange(nodes), len(lines))
    grid = build_grid(node, group, counts, rows, squares)
    score = screen_grid if screened else score_grid
    scores = score(learner, batch, grid, lacking, bounded=not portion.single)
    if roughly:
        lacking.sums.extend(np.zeros_like(rows[None, :, 0]) for _ in batch.tally.list_amounts()[2:])
    return Counted(lines, portion.single, grid, lacking, scores, screened)


def _lack_values(learner: Learner, binned: Binned, lines: Ints) -> bool:
    return any(learner.features[f].has_missing for f in binned.feature[lines].tolist())


def _find_floors(learner: Learner, batch: Batch, counted: list[Counted], most: int) -> Floats:
    """(line, node) what a cut has to score at least."""
    screened = counted[0].screened
    least = np.full(batch.entries.nodes, TINY)
    if not screened:
        least = learner.objective.baseline(batch.stats) + learner.objective.tolerance(batch.stats) / 2
    return np.asarray(
        np.maximum(_find_less(batch, counted, most) - find_slack(learner, batch, screened=screened), least)
    )


def _find_less(batch: Batch, counted: list[Counted], most: int) -> Floats:
    """(line, node) what the ``most`` best cuts of a node score at least, for every edge is a cut.

    Of other features than the first, or what seems to be it, also what the best of them score.
    """
    nodes = batch.entries.nodes
    bests = np.empty((sum(len(one.line) for one in counted), nodes))
    for one in counted:
        bests[one.line] = one.scores.best.reshape(-1, nodes)
    if most == 1:
        return np.tile(bests.max(0), (len(bests), 1))
    edges = np.concatenate(
        [one.scores.edge.reshape(len(one.line), nodes, -1).transpose(1, 0, 2).reshape(nodes, -1) for one in counted],
        axis=1,
    )
    foremost = np.sort(edges, axis=1)[:, -min(most, edges.shape[1])]
    floors: Floats = np.tile(np.minimum(foremost, np.sort(bests, axis=0)[-min(2, len(bests))]), (len(bests), 1))
    floors[bests.argmax(0), np.arange(nodes)] = foremost
    return floors


def _join_lacking(counted: list[Counted], nodes: int) -> Lacking:
    """What has no value by segment, line * nodes + node."""
    order = np.argsort(np.concatenate([np.repeat(one.line, nodes) for one in counted]), kind="stable")
    sums = [np.concatenate(part, axis=1)[:, order] for part in zip(*(one.lacking.sums for one in counted), strict=True)]
    return Lacking(sums, np.concatenate([one.lacking.rows for one in counted])[order])
