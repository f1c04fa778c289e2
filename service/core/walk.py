"""All candidates of a number in order, some thousands at a time, by any statistics of their branches."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from functools import partial

import numpy as np

from service.core.batch import Batch
from service.core.branches import APART, adds_up
from service.core.candidates import Block, Candidates
from service.core.criteria import Floats
from service.core.judge import count_tried
from service.core.learner import Learner
from service.core.lines import Line, pick_cuts, pick_directed, pick_sides, walk_cuts, weigh_lack
from service.core.moving import Moving
from service.core.parts import Parts
from service.core.statistics import Ints


def walk_line(
    batch: Batch, line: Line, cut: Ints | None = None, *, scored: bool = False, portions: int = 1
) -> Iterator[Candidates]:
    """The cuts of a line in value order, then what is missing against what is not, if that is a candidate.

    Their branches have all statistics of the batch, or those that are ``scored``; see `walk_cuts`. Or, of a line with
    gaps, some cuts, after the ascending places ``cut``, with all statistics.
    """
    moving = None if batch.tally.ranking is None else Moving(batch.tally, line)
    known, missing = moving.stay() if moving is not None and len(line.missing) else (0.0, 0.0)
    walked = partial(walk_cuts, scored=scored, portions=portions) if cut is None else partial(pick_directed, cut=cut)
    for table in walked(batch, line):
        yield table if moving is None else _set_apart(batch, table, _find_sides(moving, table, missing), known)
    for table in weigh_lack(batch, line):
        yield table if moving is None else _set_apart(batch, table, np.array([[missing], [known]]), known)


def count_tried_cuts(learner: Learner, batch: Batch, line: Line, *, portions: int = 1) -> Floats | None:
    """(1,) how many cuts count in the price of a gain; None where gains have no price."""
    if not learner.parameters.cut_penalty:
        return None
    walked = walk_cuts(batch, line, portions=portions)
    return np.asarray(np.sum([count_tried(learner, line.block, table) for table in walked], axis=0))


def _find_sides(moving: Moving, table: Candidates, missing: float) -> Floats:
    """(branch, candidate) the deviations from the medians of the branches of the next cuts."""
    place, index = np.unique(table.position // 2, return_inverse=True)
    known, whole = (sides.take(index, axis=1) for sides in moving.move(place))
    found = np.where(table.missing_to == np.arange(2)[:, None], whole, known)
    return found if len(table.rows) == 2 else np.concatenate([found, np.full((1, len(index)), missing)])


def _set_apart(batch: Batch, table: Candidates, deviation: Floats, known: float) -> Candidates:
    """The candidates with deviations that do not add up; see `branches`."""
    whole = batch.stats[APART]
    part = whole if table.gone is None else np.array([known])
    branches = np.zeros((len(table.branches) + 1, len(deviation) + 1, deviation.shape[1]))
    branches[:-1, :-1] = table.branches
    branches[APART, :-1], branches[APART, -1] = deviation, part - deviation.sum(0)
    rows = np.concatenate([table.rows, np.zeros_like(table.rows[:1])])
    if table.gone is None:
        return replace(table, branches=branches, rows=rows)
    gone = np.concatenate([table.gone, np.broadcast_to(whole - part, (1, deviation.shape[1]))])
    return replace(table, branches=branches, rows=rows, gone=gone)


class Walk:
    """The tables of a line by several statistics, each made when it is asked for: in their order, as `walk_line`."""

    def __init__(self, line: Line) -> None:
        self.line = line
        self._reached = dict[int, tuple[Iterator[Candidates], int, Candidates]]()

    def weigh(self, batch: Batch, number: int) -> Candidates:
        """The table of that ``number`` by the statistics of a batch, which asked for no later one."""
        if id(batch) not in self._reached:
            tables = walk_line(batch, self.line)
            self._reached[id(batch)] = tables, 0, next(tables)
        tables, at, table = self._reached[id(batch)]
        while at < number:
            table, at = next(tables), at + 1
        self._reached[id(batch)] = tables, at, table
        return table


class Picks:
    """As `Walk`, of some cuts of a line with gaps, whose few tables may be asked for again."""

    def __init__(self, line: Line, cut: Ints) -> None:
        self.line, self._cut = line, cut
        self._told = dict[int, tuple[Batch, list[Candidates]]]()

    def weigh(self, batch: Batch, number: int) -> Candidates:
        """The table of that ``number`` by the statistics of a batch."""
        if id(batch) not in self._told:
            self._told[id(batch)] = batch, list(walk_line(batch, self.line, self._cut))
        return self._told[id(batch)][1][number]


@dataclass(frozen=True)
class Stretch:
    """Where the candidates of a table came from: a ``walk``, in which it has a ``number``."""

    walk: Walk | Picks
    number: int

    def count_bytes(self) -> int:
        """About how much memory it takes."""
        return self.walk.line.count_bytes()


def pick_some(batch: Batch, line: Line, cut: Ints) -> list[tuple[Block, list[Candidates], Parts | Stretch]]:
    """Some cuts of a line, after the places ``cut``, with all statistics of the batch; and what they came from.

    Where something is missing, or medians are asked for, these ascend: each is one or two candidates, and last is what
    is missing against what is not.
    """
    sums = adds_up(batch.tally)
    if sums and not len(line.missing):
        table, parts = pick_cuts(batch, line, cut)
        return [(line.block, [table], parts)]
    if sums and line.ways == 2:
        return [(line.block, [table], parts) for table, parts in pick_sides(batch, line, cut)]
    walk = Picks(line, cut)
    tables = enumerate(walk_line(batch, line, cut))
    return [(line.block, [table], Stretch(walk, number)) for number, table in tables]
