"""Cuts of ordered features without sorting again: entries stay in value order, feature by feature.

`Ordered.row` has a line per ordered feature; a line holds the entries of all open nodes, grouped by node and, within a
node, by value, so the groups stand at the same places in every line:

    node      0 0 0 0 0 | 1 1 1 | 2 2 2 2
    age       4 1 9 0 3 | 5 2 8 | 7 6 11 10      row numbers, ascending by age within each node
    income    9 4 0 3 1 | 8 5 2 | 6 7 10 11

Running sums along a line give the left branch of every cut. A split keeps the order: the rows of the smaller children
are looked out and put first, as their parents stand, then those of the larger.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import Block, Candidates
from service.core.cuts import Cuts, Lacking, Nodes, build_cuts, build_directed, build_missing
from service.core.encoding import CodedFeature
from service.core.entries import Entries
from service.core.parallel import run_parallel
from service.core.quantities import Selection
from service.core.sorting import FEW_TURNS, argsort_keys, argsort_numbers, list_turns
from service.core.statistics import Ints, Tally

STRICT_ROWS = 100_000
"""Up to so many rows in a node no cut amid rows of one class comes within the tolerance of its run's better end."""
LACKING = 2**31 - 1
"""The code of a missing value: after all others."""


@dataclass(frozen=True, slots=True)
class Ordered:
    """Rows in value order: ``row``, ``code``: (line, entry) int32; ``feature: (line,)`` says whose each line is.

    Equal codes are equal values; `LACKING` is no value.
    """

    feature: Ints
    row: NDArray[np.int32]
    code: NDArray[np.int32]

    def take(self, inside: Selection) -> Ordered:
        """The same for some nodes: ``inside`` are the same places in every line."""
        return Ordered(self.feature, self.row[:, inside], self.code[:, inside])

    def take_lines(self, lines: Ints) -> Ordered:
        """Some of the lines."""
        return Ordered(self.feature[lines], self.row[lines], self.code[lines])

    def regroup(self, entries: Entries, parent: Ints, rows: int) -> Ordered:
        """The lines grouped as ``entries`` are, nodes in turns (`list_turns`); so far by their ``parent: (node,)``.

        ``rows`` counts those of the training data; those without an entry are left out.
        """
        if self.row.size < SORTED_CELLS:
            return self._sort_by(entries, rows)
        turn = list_turns(parent)
        return self._look_out(entries, turn, rows) if turn[-1] < FEW_TURNS else self._sort_by(entries, rows)

    def _look_out(self, entries: Entries, turn: Ints, rows: int) -> Ordered:
        """The lines of each ``turn: (node,)``, looked out of those so far, which have its nodes in the same order."""
        turns, kept = int(turn[-1]) + 1, len(entries.row)
        of_row = np.full(rows, turns, np.uint8)
        of_row[entries.row] = turn.astype(np.uint8)[entries.node]
        edges = [*np.searchsorted(entries.node, np.flatnonzero(np.diff(turn, prepend=-1))).tolist(), kept]
        row, code = np.empty((len(self.row), kept), np.int32), np.empty((len(self.row), kept), np.int32)

        def fill(lines: slice) -> None:
            old_row, old_code, count = self.row[lines].ravel(), self.code[lines].ravel(), len(self.row[lines])
            of_entry = of_row.take(old_row)
            for which, (begin, end) in enumerate(pairwise(edges)):
                at = np.flatnonzero(of_entry == which)
                row[lines, begin:end] = old_row.take(at).reshape(count, -1)
                code[lines, begin:end] = old_code.take(at).reshape(count, -1)

        step = max(1, PORTION // self.row.shape[1])
        portions = [slice(begin, begin + step) for begin in range(0, len(row), step)]
        run_parallel(fill, portions, worth=self.row.size > WORTH_CELLS)
        return Ordered(self.feature, row, code)

    def _sort_by(self, entries: Entries, rows: int) -> Ordered:
        """The lines sorted by node, whatever groups they had."""
        kept = len(entries.row)
        lines, before = self.row.shape
        row, code = np.empty((lines, kept), np.int32), np.empty((lines, kept), np.int32)
        # what is left out comes last in its line
        keys = entries.nodes + 1
        of_row = np.full(rows, entries.nodes, np.int32)
        of_row[entries.row] = entries.node
        step = max(1, PORTION // max(before, 1))
        apart = np.arange(min(step, lines))[:, None] * keys

        def fill(some: slice) -> None:
            old_row, old_code = self.row[some], self.code[some]
            key = of_row.take(old_row) + apart[: len(old_row)]
            order = argsort_keys(key.ravel(), len(old_row) * keys).reshape(key.shape)[:, :kept]
            row[some], code[some] = old_row.ravel().take(order), old_code.ravel().take(order)

        portions = [slice(begin, begin + step) for begin in range(0, lines, step)]
        run_parallel(fill, portions, worth=self.row.size > WORTH_CELLS)
        return Ordered(self.feature, row, code)


SORTED_CELLS = 5_000
"""So few entries of all lines are sorted by child in one go: that takes a third of the steps."""
PORTION = 120_000
"""Lines are parted several at once, up to about so many entries: the cache holds them, and calls are long enough
that two threads seldom wait for each other's turn with the interpreter."""
WORTH_CELLS = 400_000
"""Lines with fewer entries are dealt with before another thread has helped."""


def arrange(features: Sequence[CodedFeature], which: Ints, rows: Ints) -> Ordered:
    """The given ``rows``, of one node, in the order of each of the features ``which: (line,)``."""
    row = np.empty((len(which), len(rows)), np.int32)
    code = np.empty((len(which), len(rows)), np.int32)

    def fill(line: int) -> None:
        coded = features[which[line]]
        keys = coded.pick(rows) if coded.feature.kind == "numeric" else coded.codes[rows].astype(np.int64)
        known, count = rows, len(rows)
        if coded.has_missing:
            missing = np.isnan(keys) if keys.dtype.kind == "f" else coded.is_missing(rows)
            present = np.flatnonzero(~missing)
            known, keys, count = rows.take(present), keys.take(present), len(present)
            row[line, count:] = rows.take(np.flatnonzero(missing))
        order = argsort_numbers(keys)
        row[line, :count], ascending = known.take(order), keys.take(order)
        code[line, :1] = 0
        np.cumsum(ascending[1:] != ascending[:-1], out=code[line, 1:count])
        code[line, count:] = LACKING

    run_parallel(fill, range(len(which)), worth=row.size > WORTH_CELLS)
    return Ordered(which, row, code)


@dataclass(frozen=True, slots=True)
class Grouping:
    """How the entries of every line stand: ``node: (entry,)``, and ``start``, ``rows``: (node,)."""

    node: Ints
    start: Ints
    rows: Ints


def scan_cuts(nodes: Nodes, ordered: Ordered, grouping: Grouping, *, strict: bool) -> tuple[Block, list[Candidates]]:
    """Every cut of every line in every node, as `weigh_block` gives them; segments are line * nodes + node.

    With ``strict`` the criterion is strictly convex and nothing limits branches: then cuts amid single rows of one
    class, which cannot win, are left out.
    """
    tally, count, entries = nodes.tally, len(grouping.start), ordered.row.shape[1]
    lines = len(ordered.feature)
    block = Block(np.tile(np.arange(count), lines), np.repeat(ordered.feature, count))
    lacking = count_missing(ordered.code, grouping.start)
    cut = np.flatnonzero(_find_cuts(tally, ordered, grouping, strict, lacking is not None))
    line = cut // entries
    node = grouping.node[cut - line * entries]
    segment = line * count + node
    last = None if lacking is None else grouping.start + grouping.rows - lacking - 1
    left, known = tally.accumulate(ordered.row, grouping.start, cut, segment, last)
    below = cut - line * entries - grouping.start[node] + 1
    row = ordered.row.ravel()
    lower, upper = row[cut].astype(np.int64), row[cut + 1].astype(np.int64)
    cuts = Cuts(segment, node, cut, left, below, lower, upper)
    if lacking is None or known is None:
        return block, [build_cuts(nodes, cuts)]
    # the sums that scores do not need come last in a node and are left out
    gone = [np.tile(total, lines) - part for total, part in zip(nodes.sums, known, strict=False)]
    missing = Lacking(gone, lacking.ravel())
    tables = [build_directed(nodes, cuts, missing), build_missing(nodes, block.node, missing)]
    return block, [table for table in tables if len(table.segment)]


def _find_cuts(tally: Tally, ordered: Ordered, grouping: Grouping, strict: bool, lacking: bool) -> NDArray[np.bool_]:
    """(line, entry) True where a cut lies after the entry."""
    code = ordered.code
    ends = np.empty(code.shape, bool)  # the entry is the last of its value in its node
    np.not_equal(code[:, :-1], code[:, 1:], out=ends[:, :-1])
    ends[:, grouping.start[1:] - 1] = True
    ends[:, -1:] = True
    cuts = ends.copy()
    cuts[:, grouping.start[1:] - 1] = False
    cuts[:, -1:] = False
    if lacking:
        cuts[:, :-1] &= code[:, 1:] != LACKING
    label = tally.label
    if strict and label is not None and int(grouping.rows.max(initial=0)) <= STRICT_ROWS:
        of_entry = label[ordered.row]
        amid = of_entry[:, :-1] == of_entry[:, 1:]
        amid &= ends[:, :-1] & ends[:, 1:]
        amid[:, 1:] &= ends[:, :-2]
        cuts[:, :-1] &= ~amid
    return cuts


def count_missing(code: NDArray[np.int32], start: Ints) -> Ints | None:
    """(line, node) how many rows lack a value; None where none does. Nodes begin at ``start: (node,)``."""
    # they stand last in their node
    if not (code[:, start - 1] == LACKING).any():
        return None
    missing = np.flatnonzero(code == LACKING)
    edges = np.arange(len(code))[:, None] * code.shape[1] + start
    counts: Ints = np.diff(np.searchsorted(missing, edges.ravel()), append=len(missing))
    return counts.reshape(edges.shape)
