"""How many candidates of a large node score more than one of them: counted, not listed, a feature at a time."""

from __future__ import annotations

from dataclasses import replace
from functools import partial

import numpy as np

from service.core.audit import Audited, rebuild_batch, weigh_run
from service.core.batch import Batch
from service.core.bins import Binned
from service.core.candidates import Block, Candidates
from service.core.coarse import bound_lines
from service.core.count_cuts import Rater, can_count
from service.core.judge import judge
from service.core.learner import Learner
from service.core.lines import PORTIONS, can_line, draw_line, walk_cuts
from service.core.parallel import run_parallel
from service.core.statistics import Ints
from service.core.weigh import list_blocks


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
    count = partial(_count_line, learner, batch, score, Rater(learner, batch))
    return sum(run_parallel(count, promising) + run_parallel(partial(_count_run, learner, batch, score), runs))


def _find_promising(learner: Learner, batch: Batch, score: float, bins: Binned) -> Ints:
    """The binned features that may have a cut of more than ``score``."""
    batch = replace(batch, binned=bins.reorder(batch.entries.row))
    return np.asarray(bins.feature[bound_lines(learner, batch)[:, 0] > score])


def _count_line(learner: Learner, batch: Batch, score: float, rater: Rater, feature: int) -> int:
    """Of a number that no row lacks."""
    line = draw_line(learner, batch, feature)
    if can_count(learner, batch, line):
        rated = rater.rate(line)
        return int(np.count_nonzero((rated.reason == 0) & (rated.score > score)))
    tables = walk_cuts(batch, line, portions=PORTIONS)
    return sum(_count_judged(learner, batch, score, line.block, table) for table in tables)


def _count_run(learner: Learner, batch: Batch, score: float, run: Ints) -> int:
    """Of any features: their candidates, as they are listed."""
    block, tables, _ = weigh_run(learner, batch, run)
    return sum(_count_judged(learner, batch, score, block, table) for table in tables)


def _count_judged(learner: Learner, batch: Batch, score: float, block: Block, table: Candidates) -> int:
    judged = judge(learner, batch, block, table)
    return int(np.count_nonzero((judged.reason == 0) & (judged.within > score)))
