"""Numbers of entries as whole-number parts, whose sums are exact in any order, and their order within nodes.

Floats are split once into two parts (after Demmel and Nguyen 2015, "Parallel reproducible summation").
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import Floats
from service.core.sorting import argsort_keys, sort_numbers

Ints = NDArray[np.int64]
Selection: TypeAlias = slice | NDArray[np.bool_] | NDArray[np.int64]


LONG = 2000
"""Entries of runs that are counted one by one."""
STEP = 2**14
"""Values are split so many at a time, which the processor's cache holds."""


@dataclass(frozen=True, slots=True)
class Quantity:
    """A number per entry as sum over parts of ``parts[i] * unit[i][node]``.

    ``parts``: (entry,) float64 that hold whole numbers; ``units``: (node,) powers of two. No parts at all: every
    entry counts 1.
    """

    parts: tuple[Floats, ...] = ()
    units: tuple[Floats, ...] = ()

    def take(self, inside: Selection, keep: Selection) -> Quantity:
        """The same of some nodes, ``keep``, with their entries, ``inside``."""
        return Quantity(tuple(part[inside] for part in self.parts), tuple(unit[keep] for unit in self.units))

    def sum_runs(self, start: Ints, entries: int) -> Floats:
        """(node,) the sum of each node, whose entries begin at ``start: (node,)``."""
        sums = [np.add.reduceat(part, start).astype(np.int64) for part in self.parts] or [count_runs(start, entries)]
        return self.join(sums, np.arange(len(start)))

    def join(self, sums: Sequence[Ints], node: Ints) -> Floats:
        """What ``sums: (..., group)`` of the parts add up to, one of each, in groups of ``node: (group,)``."""
        if not self.parts:
            return sums[0].astype(np.float64)
        total = sums[0] * self.units[0][node]
        for amount, unit in zip(sums[1:], self.units[1:], strict=True):
            total = total + amount * unit[node]
        return total


@dataclass(frozen=True, slots=True)
class Ranking:
    """The targets in their order: ``rank`` among the distinct ones of the node, ``value``, ``offset`` from its centre.

    These are (entry,). ``order: (entry,)`` are the entries of each node by rank, node by node.
    """

    rank: NDArray[np.int32]
    value: Floats
    offset: Floats
    order: Ints

    def take(self, inside: Selection) -> Ranking:
        """The same for some nodes, whose entries are ``inside``."""
        at = np.arange(len(self.order))[inside]
        # entries of a node stand side by side, so that all of it moves by as much
        order = self.order[at] + (np.arange(len(at)) - at)
        return Ranking(self.rank[at], self.value[at], self.offset[at], order)


def rank_targets(value: Floats, offset: Floats, node: Ints) -> Ranking:
    """The targets ``value: (entry,)`` ranked within nodes; entries of one ``node: (entry,)`` stand side by side."""
    order, differs = sort_numbers(value)
    nodes = int(node[-1]) + 1
    start = find_starts(node, nodes)
    if nodes > 1:
        order = order.take(argsort_keys(node.take(order), nodes))
        ordered = value.take(order)
        differs = np.append(ordered[1:] != ordered[:-1], False)
    first = np.ones(len(order), bool)
    first[1:] = differs[:-1]
    first[start] = True
    distinct = np.cumsum(first, dtype=np.int32)
    distinct -= distinct[start].repeat(count_runs(start, len(order)))
    rank = np.empty_like(distinct)
    rank[order] = distinct
    return Ranking(rank, value, offset, order)


def find_starts(node: Ints, nodes: int) -> Ints:
    """(node,) where each node's run begins in grouped ``node: (entry,)``; every node has an entry."""
    return node.searchsorted(np.arange(nodes)).astype(np.int64, copy=False)


def count_runs(start: Ints, end: int) -> Ints:
    """(node,) how long the runs are that begin at ``start: (node,)``, the last of which ends at ``end``."""
    ends = np.empty_like(start)
    ends[:-1], ends[-1] = start[1:], end
    return ends - start


def count_true(mask: NDArray[np.bool_], start: Ints) -> Ints:
    """(run,) how many are True in each run of ``mask: (entry,)``; runs begin at ``start: (run,)``, none is empty."""
    if len(mask) < LONG * len(start):
        return np.add.reduceat(mask, start, dtype=np.int64)
    # many times as fast for each entry, and called for each run
    ends = [*start[1:].tolist(), len(mask)]
    return np.array([np.count_nonzero(mask[begin:end]) for begin, end in zip(start.tolist(), ends, strict=True)])


def split_values(values: Floats, node: Ints, nodes: int, *, roughly: bool = False) -> Quantity:
    """Whole-number parts of ``values: (entry,)``: 2 x (51 - log2 n) bits below the node's largest are kept.

    Each node has its own unit, a power of two that lets n entries add up below 2^52. ``roughly``: the first part only.
    """
    start = find_starts(node, nodes)
    rows = count_runs(start, len(values))
    largest = np.maximum(np.maximum.reduceat(values, start), -np.minimum.reduceat(values, start))
    if (largest * rows < 2.0**52).all() and _are_whole(values):
        return Quantity((values,), (np.ones(nodes),))
    bits = 51 - np.ceil(np.log2(rows + 1)).astype(np.int64)
    coarse = np.ldexp(1.0, np.maximum(np.frexp(largest)[1] - bits, -1000))
    fine = np.ldexp(coarse, -bits)
    high, low = np.empty(len(values)), np.empty(0 if roughly else len(values))
    for begin in range(0, len(values), STEP):
        some = slice(begin, begin + STEP)
        value, unit = values[some], coarse.take(node[some])
        # dividing and multiplying by powers of two rounds nothing
        np.rint(np.divide(value, unit, out=high[some]), out=high[some])
        if not roughly:
            unit *= high[some]
            rest = np.subtract(value, unit, out=unit)
            rest /= fine.take(node[some])
            np.rint(rest, out=low[some])
    if not low.any():
        return Quantity((high,), (coarse,))
    return Quantity((high, low), (coarse, fine))


def sum_weights(weight: Floats | None, group: Ints, groups: int) -> Floats:
    """(group,) the sums of ``weight: (entry,)``, None where all are 1: the same in any order."""
    if weight is None or not len(weight):
        return np.bincount(group, minlength=groups).astype(np.float64)
    quantity = split_values(weight, np.zeros(len(weight), np.int64), 1)
    sums = [np.bincount(group, part, groups).astype(np.int64) for part in quantity.parts]
    return quantity.join(sums, np.zeros(groups, np.int64))


def _are_whole(values: Floats) -> bool:
    some = values[:STEP]
    return bool((np.rint(some) == some).all() and (np.rint(values) == values).all())
