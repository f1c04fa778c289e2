"""Rows that lack a value go to every branch, with a part of their weight each (Quinlan 1993, section 3.2).

The part that comes to a child is its share of the known weight. A row is then several entries, in nodes that have
nothing else in common.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np

from service.core.batch import Batch
from service.core.criteria import Floats
from service.core.entries import Entries
from service.core.sorting import argsort_keys
from service.core.statistics import Ints, Tally


def part_entries(batch: Batch, child: Ints, lost: Ints, parent: Ints) -> tuple[Entries, Floats]:
    """The entries of the children, grouped, and (child,) the share of the parent's known weight in each.

    ``child: (entry,)``, -1 for what goes nowhere; ``lost`` are the entries that go to all children of their node;
    ``parent: (child,)`` ascending. Children without weight get none of them.
    """
    share = find_shares(batch.tally, batch.entries.node, child, parent)
    count = np.bincount(parent, minlength=batch.entries.nodes)
    first = np.cumsum(count) - count
    node = batch.entries.node[lost]
    index, to = spread(lost, first[node], count[node])
    known = np.flatnonzero(child >= 0)
    entries = batch.entries
    weight = entries.weight
    if len(lost):
        whole = np.ones(len(entries.row)) if weight is None else weight
        weight = np.concatenate([whole[known], whole[index] * share[to]])
    elif weight is not None:
        weight = weight[known]
    index, to = np.concatenate([known, index]), np.concatenate([child[known], to])
    if weight is not None and not weight.all():
        some = weight > 0
        index, to, weight = index[some], to[some], weight[some]
    order = argsort_keys(to, max(len(parent), 1))
    weight = None if weight is None else weight[order]
    return Entries(entries.row[index[order]], to[order], len(parent), weight), share


def find_shares(tally: Tally, node: Ints, child: Ints, parent: Ints) -> Floats:
    """(child,) how much of its parent's known weight each has; NaN where nothing is known.

    ``node``, ``child`` (-1: unknown): (entry,), ``parent: (child,)`` ascending. ``tally`` has the weights.
    """
    children, nodes = len(parent), tally.centre.shape[-1]
    # sums stay within nodes: what goes nowhere is summed apart
    group = np.where(child >= 0, child, children + node)
    of = np.concatenate([parent, np.arange(nodes)])
    stats = tally.combine(tally.sum(group, len(of)), of)[:, :children]
    weight = stats.sum(0) if tally.classes else stats[0]
    with np.errstate(invalid="ignore"):
        return np.asarray(weight / np.bincount(parent, weights=weight, minlength=nodes)[parent])


def spread(index: Ints, first: Ints, count: Ints) -> tuple[Ints, Ints]:
    """Each of ``index: (entry,)`` ``count`` times, with ``first``, ``first + 1``, .. beside it."""
    repeated = np.repeat(index, count)
    to = np.arange(len(repeated)) - np.repeat(np.cumsum(count) - count, count) + np.repeat(first, count)
    return repeated, to


def drop_lines(batch: Batch) -> Batch:
    """The batch without what knows its entries by their rows."""
    return replace(batch, ordered=None, binned=None)
