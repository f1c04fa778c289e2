"""How many candidates of a large node score more than one of them: counted, not listed, a feature at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial
from itertools import pairwise

import numpy as np

from service.core.audit import Audited, rebuild_batch, weigh_run
from service.core.batch import Batch
from service.core.bins import Binned
from service.core.candidates import Block, Candidates
from service.core.coarse import bound_lines
from service.core.encoding import argsort_numbers, smallest_unsigned
from service.core.judge import judge
from service.core.learner import Learner
from service.core.lines import can_line, draw_line, walk_cuts
from service.core.listing import SIDE_BY_SIDE
from service.core.parallel import run_parallel
from service.core.statistics import Ints
from service.core.weigh import list_blocks

PORTION = 2**16
"""So many cuts x classes are scored at a time, which the processor's cache holds."""


def count_surpassing(audited: Audited, node: int, score: float, bins: Binned) -> int:
    """How many admissible candidates of a node score more than an admissible one that has this ``score``.

    For models of classes of which `foremost.tells_foremost` is True: there what scores more is admissible, too, if its
    branches have rows enough. ``bins``: see `foremost.bin_numbers`.
    """
    learner = audited.learner
    batch = rebuild_batch(audited, np.array([node]))
    batch.tally.spread_over_rows()  # once, for all threads share it
    plain = [f for f in bins.feature.tolist() if can_line(learner, batch, f)]
    apart = np.setdiff1d(np.arange(len(learner.features)), plain)
    runs = list(list_blocks(learner, apart, len(batch.entries.row)))
    promising = np.intersect1d(_find_promising(learner, batch, score, bins), plain).tolist()
    count = partial(_count_line, learner, batch, score)
    if batch.tally.classes and batch.tally.counts_rows:
        here = np.zeros(audited.target.rows, bool)
        here[batch.entries.row] = True
        count = partial(_count_cuts, learner, batch, score, np.flatnonzero(here))  # in order they are read fastest
    return sum(run_parallel(count, promising) + run_parallel(partial(_count_run, learner, batch, score), runs))


def _find_promising(learner: Learner, batch: Batch, score: float, bins: Binned) -> Ints:
    """The binned features that may have a cut of more than ``score``."""
    batch = replace(batch, binned=bins.reorder(batch.entries.row))
    return np.asarray(bins.feature[bound_lines(learner, batch)[:, 0] > score])


def _count_line(learner: Learner, batch: Batch, score: float, feature: int) -> int:
    """Of a number that no row lacks."""
    line = draw_line(learner, batch, feature)
    return sum(_count_judged(learner, batch, score, line.block, table) for table in walk_cuts(batch, line))


def _count_cuts(learner: Learner, batch: Batch, score: float, row: Ints, feature: int) -> int:
    """The same in half the time, where each ``row`` weighs 1 and has a class: running sums are enough."""
    if batch.used is not None and batch.used[0, feature]:
        return 0
    numbers, label = learner.features[feature].numbers[row], np.asarray(batch.tally.label)[row]
    order = argsort_numbers(numbers)
    numbers, label = numbers[order], label.astype(smallest_unsigned(batch.tally.classes))[order]
    entries, least = len(row), learner.parameters.min_samples_leaf
    cuts = np.zeros(entries, bool)
    np.not_equal(numbers[1:], numbers[:-1], out=cuts[:-1])
    cuts[: least - 1] = cuts[entries - least :] = False
    classes, whole, before = np.arange(batch.tally.classes)[:, None], batch.stats, np.zeros_like(batch.stats)
    known, count = learner.objective.alter(whole), 0
    portions = max(1, min(entries * len(classes) // PORTION, entries // SIDE_BY_SIDE))
    for begin, end in pairwise([entries * i // portions for i in range(portions + 1)]):
        left = before + np.cumsum(label[begin:end] == classes, axis=1)
        before = left[:, -1:]
        branches = learner.objective.alter(np.stack([left, whole - left], axis=1))
        with np.errstate(invalid="ignore", divide="ignore"):
            better = learner.objective.score(branches, known) > score
        count += int(np.count_nonzero(better & cuts[begin:end]))
    return count


def _count_run(learner: Learner, batch: Batch, score: float, run: Ints) -> int:
    """Of any features: their candidates, as they are listed."""
    block, tables, _ = weigh_run(learner, batch, run)
    return sum(_count_judged(learner, batch, score, block, table) for table in tables)


def _count_judged(learner: Learner, batch: Batch, score: float, block: Block, table: Candidates) -> int:
    judged = judge(learner, batch, block, table)
    return int(np.count_nonzero((judged.reason == 0) & (judged.within > score)))
