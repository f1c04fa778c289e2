"""Entries of one large node in the order of a number: any of its cuts, weighed when it is asked for.

    line      5  2  8  9  0  3  1  ...      entries, ascending by value; those without one are missing from it
    ends      .  |  |  .  |  |  |           a cut lies after the last entry of each value

Running sums along the line are the left branches, so no cut needs more than a place in it to be found again.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.branches import adds_up
from service.core.candidates import (
    NO_ROUTE,
    Block,
    Candidates,
    Form,
    Lack,
    Totals,
    weigh_missing,
)
from service.core.cuts import Cuts, build_cuts
from service.core.learner import Learner
from service.core.parts import Parts, part_line
from service.core.sorting import sort_numbers
from service.core.statistics import Ints

STEP = 2**14
"""Cuts are weighed so many at a time, which the processor's cache holds."""
PORTIONS = 4
"""Where features share the cores it is so many times as many: threads take turns for the interpreter between calls."""
ZERO = np.zeros(1, np.int64)


@dataclass(frozen=True, slots=True)
class Line:
    """A numeric ``feature``: ``entry: (place,)`` int32, ``ends: (place,)``; ``missing: (any,)`` entries lack it."""

    feature: int
    entry: NDArray[np.int32]
    ends: NDArray[np.bool_]
    missing: NDArray[np.int32]
    lack: Lack

    @property
    def block(self) -> Block:
        """The one segment of its candidates."""
        return Block(ZERO, np.array([self.feature]))

    def count_candidates(self) -> int:
        """Cuts; where what is missing goes either way twice as many, and what is missing against what is not."""
        return self.ways * int(np.count_nonzero(self.ends)) + (len(self.missing) > 0 and self.lack is not Lack.APART)

    def find_cuts(self) -> Ints:
        """(cut,) the places after which cuts lie."""
        return np.flatnonzero(self.ends)

    @property
    def ways(self) -> int:
        """How many candidates each cut is."""
        return 2 if len(self.missing) and self.lack is Lack.DIRECTED else 1

    def count_bytes(self) -> int:
        """About how much memory it takes."""
        return self.entry.nbytes + self.ends.nbytes + self.missing.nbytes


def can_line(learner: Learner, batch: Batch, feature: int) -> bool:
    """True where a line of a batch of one node is all that scores need: nothing is missing, and statistics add up."""
    coded = learner.features[feature]
    return coded.feature.kind == "numeric" and not coded.has_missing and adds_up(batch.tally)


def can_walk(learner: Learner, batch: Batch, feature: int) -> bool:
    """True where all candidates of a batch of one node are found along a line, whatever is missing or summed."""
    return learner.features[feature].feature.kind == "numeric" and batch.tally.pairs is None


def draw_line(learner: Learner, batch: Batch, feature: int) -> Line:
    """The entries of a batch of one node in the order of a numeric feature."""
    coded, row = learner.features[feature], batch.entries.row
    missing, known = np.empty(0, np.int32), None
    if coded.has_missing and (gone := coded.is_missing(row)).any():
        missing, known = (np.flatnonzero(some).astype(np.int32) for some in (gone, ~gone))
    order, ends = sort_numbers(coded.pick(row if known is None else row[known]))
    return Line(feature, order.astype(np.int32) if known is None else known[order], ends, missing, learner.lack)


def walk_cuts(batch: Batch, line: Line, *, scored: bool = True, portions: int = 1) -> Iterator[Candidates]:
    """All cuts in value order, about ``portions`` times `STEP` at a time, without the rows beside them.

    Their branches have the statistics that are ``scored``, or all; all where something is missing.
    """
    cut, total = line.find_cuts(), _total(batch, line)
    scored = scored and total is None
    first, before = 0, list[Ints]()
    for part in np.array_split(cut, max(1, len(cut) // (portions * STEP))):
        if not len(part):
            continue
        # up to the part's last cut, whose left branch is what the next part begins with
        run = line.entry[None, first : int(part[-1]) + 1]
        left = batch.tally.accumulate(run, ZERO, part - first, np.zeros_like(part), by_entry=True, scored=scored)[0]
        if before:
            left = [sums + more for sums, more in zip(left, before, strict=True)]
        first, before = int(part[-1]) + 1, [sums[:, -1:] for sums in left]
        yield _build(batch, line, total, part, left, scored=scored)


def add_neighbours(batch: Batch, line: Line, table: Candidates) -> Candidates:
    """Cuts with the rows beside them."""
    cut = table.position // 2
    lower, upper = (batch.entries.row[line.entry[place]] for place in (cut, cut + 1))
    return replace(table, lower=lower, upper=upper)


def pick_cuts(batch: Batch, line: Line, cut: Ints) -> tuple[Candidates, Parts]:
    """Some cuts of a line without gaps, after the places ``cut: (candidate,)``, with all statistics."""
    parts = part_line(line.entry, cut)
    return add_neighbours(batch, line, _build(batch, line, None, cut, parts.sum(batch.tally), scored=False)), parts


def pick_directed(batch: Batch, line: Line, cut: Ints) -> list[Candidates]:
    """All candidates of some cuts of a line with gaps, after the places ``cut``; no table where there are none."""
    if not len(cut):
        return []
    left = batch.tally.accumulate(line.entry[None], ZERO, cut, np.zeros_like(cut), by_entry=True, scored=False)[0]
    both = _build(batch, line, _total(batch, line), cut, left, scored=False)
    return [add_neighbours(batch, line, both)]


def pick_sides(batch: Batch, line: Line, cut: Ints) -> list[tuple[Candidates, Parts]]:
    """As `pick_cuts`, of a line with gaps, whose candidates send what is missing left or right, and that alone.

    On the left it lies before all values, and on the right behind them: that makes two lines without gaps.
    """
    gone, picked = len(line.missing), list[tuple[Candidates, Parts]]()
    before = part_line(np.concatenate([line.missing, line.entry]), np.concatenate([[gone - 1], cut + gone]))
    if len(cut):
        behind = part_line(np.concatenate([line.entry, line.missing]), cut)
        sums = before.sum(batch.tally)
        for side, parts in enumerate((replace(before, cut=before.cut[1:]), behind)):
            left = [part[:, 1:] - side * part[:, :1] for part in sums]
            table = _build(batch, line, None, cut + gone * (1 - side), left, scored=False)
            table = replace(table, position=2 * cut + side, missing_to=np.full(len(cut), side))
            picked.append((add_neighbours(batch, line, table), parts))
    return [*picked, *((table, replace(before, cut=before.cut[:1])) for table in weigh_lack(batch, line))]


def weigh_lack(batch: Batch, line: Line) -> list[Candidates]:
    """What is missing against what is not, where that is a candidate."""
    total = _total(batch, line)
    return [] if total is None or line.lack is Lack.APART else [weigh_missing(total, batch.tally, line.block)]


def _build(batch: Batch, line: Line, total: Totals | None, cut: Ints, left: list[Ints], *, scored: bool) -> Candidates:
    """Without the rows beside the cuts, which scores do not need."""
    if total is not None:
        return total.set_apart(_build_gapped(batch, total, cut, left), batch.tally, line.block)
    node, none = np.zeros_like(cut), np.empty(0, np.int64)
    candidates = build_cuts(batch.nodes(), Cuts(node, node, cut, left, cut + 1, none, none))
    if scored or batch.tally.classes:
        return candidates
    right = [np.take(whole, node, axis=1) - part for whole, part in zip(batch.sums, left, strict=True)]
    branches = np.stack([batch.tally.combine(left, node), batch.tally.combine(right, node)], axis=1)
    return replace(candidates, branches=branches)


def _build_gapped(batch: Batch, total: Totals, cut: Ints, left: list[Ints]) -> Candidates:
    """As `candidates.build_binary`, of one segment where something is missing."""
    node = np.zeros_like(cut)
    # rows are counted as one sum more
    known, left = [*total.known, total.known_rows[None]], [*left, cut[None] + 1]
    gone = [np.broadcast_to(part, (len(part), len(cut))) for part in (*total.missing, total.missing_rows[None])]
    right = [whole - part for whole, part in zip(known, left, strict=True)]
    if total.lack is Lack.DIRECTED:
        joined = [[part + away for part, away in zip(side, gone, strict=True)] for side in (left, right)]
        ways, to = [[joined[0], right], [left, joined[1]]], [0, 1]
    else:
        ways, to = ([[left, right, gone]], [2]) if total.lack is Lack.BRANCH else ([[left, right]], [NO_ROUTE])
    stats = np.array([[batch.tally.combine(side[:-1], node) for side in way] for way in ways])
    rows = np.array([[side[-1][0] for side in way] for way in ways])
    channels, branches = stats.shape[2], stats.shape[1]
    position = np.add.outer(2 * cut, np.arange(len(ways))).ravel()
    return Candidates(
        Form.THRESHOLD, np.zeros_like(position), position, np.tile(to, len(cut)),
        np.moveaxis(rows, 0, -1).reshape(branches, -1), stats.transpose(2, 1, 3, 0).reshape(channels, branches, -1),
    )  # fmt: skip


def _total(batch: Batch, line: Line) -> Totals | None:
    """What is known and what is missing; None where nothing is."""
    rows = np.array([len(line.missing)])
    if not rows[0]:
        return None
    missing = batch.tally.accumulate(line.missing[None], ZERO, rows - 1, ZERO, by_entry=True, scored=False)[0]
    known = [whole - part for whole, part in zip(batch.sums, missing, strict=True)]
    return Totals(known, np.array([len(line.entry)]), missing, rows, line.lack)
