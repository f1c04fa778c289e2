"""Branches of candidates by statistics that are no sums over slots, or not those that the search has summed.

What does not add up over branches, such as the deviation from a median, is told by one more branch, an empty one: it
holds what the deviations of the others fall short of the deviation of all, so that sums over branches are the whole's.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from service.core.candidates import Block, Candidates, Slots
from service.core.criteria import Floats
from service.core.deviations import TINY
from service.core.medians import find_middles
from service.core.pairs import Categories, Pairs, order_categories
from service.core.runs import Layout, Runs, list_runs
from service.core.statistics import Ints, Tally

APART = -1
"""The channel of what does not add up, the last."""


def weigh_runs(
    tally: Tally, stats: Floats, layout: Layout, table: Candidates, place: Ints, node: Ints
) -> tuple[Floats, Floats | None]:
    """The branches (channel, branch, candidate) of candidates at ``place`` of a table, by the statistics of ``tally``.

    Also what is in none of them (channel, candidate), None if that is nothing. ``stats: (channel, node)`` are the
    nodes', ``node: (candidate,)`` is that of each candidate.
    """
    branches = _measure(tally, layout, list_runs(layout, table, place), node)
    segment = table.segment[place]
    gone = None if table.gone is None else _measure_whole(tally, layout, layout.missing[:, segment], node)
    if adds_up(tally):
        return branches, gone
    known = stats[APART, node]
    if gone is not None and table.gone_rows is not None:
        part = _measure_whole(tally, layout, layout.known[:, segment], node)[APART]
        # where all is known it is the node's, to the last digit
        known = np.where(table.gone_rows[place] > 0, part, known)
        gone[APART] = stats[APART, node] - known
    rest = np.zeros((len(branches), 1, len(place)))
    rest[APART, 0] = known - branches[APART].sum(0)
    return np.concatenate([branches, rest], axis=1), gone


def weigh_apart(tally: Tally, stats: Floats, layout: Layout, table: Candidates, node: Ints) -> Candidates:
    """A whole table with the statistics that are no sums over slots."""
    branches, gone = weigh_runs(tally, stats, layout, table, np.arange(len(table.segment)), node)
    rows = np.concatenate([table.rows, np.zeros((1, len(table.segment)), np.int64)])
    return replace(table, branches=branches, rows=rows, gone=gone)


def adds_up(tally: Tally) -> bool:
    """True where the statistics of branches add up to the node's."""
    return tally.ranking is None and tally.pairs is None


def _measure(tally: Tally, layout: Layout, runs: Runs, node: Ints) -> Floats:
    """(channel, branch, candidate) of unions of runs: (run, branch, candidate)."""
    begin, end = runs
    shape = begin.shape[1:]
    runs = begin.reshape(len(begin), -1), end.reshape(len(end), -1)
    nodes = np.broadcast_to(node, shape).ravel()
    stats = tally.combine(tally.sum_runs(layout.entry, *runs), nodes)
    if not adds_up(tally):
        stats = np.concatenate([stats, _find_apart(tally, layout, runs, nodes, stats[0])[None]])
    return stats.reshape(-1, *shape)


def _find_apart(tally: Tally, layout: Layout, runs: Runs, node: Ints, weight: Floats) -> Floats:
    """(set,) what does not add up: the deviation from the median, or the weight times half the mean dissimilarity."""
    if tally.pairs is None:
        return find_middles(tally, layout.entry, runs, node)[0]
    total = tally.pairs.sum_sets(tally.row[layout.entry], layout.list_spans(), *runs)
    return total / (2.0 * np.maximum(weight, TINY))


def _measure_whole(tally: Tally, layout: Layout, run: Ints, node: Ints) -> Floats:
    """(channel, candidate) of one run (2, candidate) each."""
    return _measure(tally, layout, (run[0][None, None], run[1][None, None]), node)[:, 0]


def find_typical(tally: Tally, layout: Layout, known: Slots, block: Block, exhaustive: int) -> Floats:
    """(slot,) what orders categories where there are more than ``exhaustive``: the median of each, or a coordinate."""
    if tally.pairs is not None:
        return _find_coordinates(tally, tally.pairs, layout, known, block, exhaustive)
    return find_middles(tally, layout.entry, (layout.begin[None], layout.end[None]), block.node[known.segment])[1]


def _find_coordinates(
    tally: Tally, pairs: Pairs, layout: Layout, known: Slots, block: Block, exhaustive: int
) -> Floats:
    """(slot,) the first principal coordinate of each category among those of its segment; 0 where these are few."""
    place = np.zeros(len(known.segment))
    count = np.diff(layout.start, append=len(known.segment))
    weight = tally.combine(known.sums, block.node[known.segment])[0]
    for segment in np.flatnonzero(count > exhaustive).tolist():
        slots = np.arange(layout.start[segment], layout.start[segment] + count[segment])
        edges = np.append(layout.begin[slots], layout.end[slots[-1]])
        sums = pairs.sum_blocks(tally.row[layout.entry[edges[0] : edges[-1]]], edges - edges[0])
        place[slots] = order_categories(Categories(sums, weight[slots]))
    return place
