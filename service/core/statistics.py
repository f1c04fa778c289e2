"""Sums over groups of entries, exact in any order.

Floats are split once into two whole-number parts whose sums are exact (after Demmel and Nguyen 2015, "Parallel
reproducible summation"), so the statistics do not depend on the order of rows, on how they are grouped or on which
machine adds them up.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import Floats
from service.core.deviations import TINY, rise_above
from service.core.encoding import smallest_unsigned
from service.core.parallel import PARALLEL_CELLS, run_parallel
from service.core.quantities import Quantity, Ranking, count_runs, count_true, find_starts, rank_targets, split_values
from service.core.schema import Statistic, Target

FEW_CLASSES = 8
"""Rows of more are quicker counted all at once than class by class."""
FEW_ENTRIES = 5000
"""So are fewer rows."""
Ints = NDArray[np.int64]
Labels: TypeAlias = NDArray[np.unsignedinteger]
Selection: TypeAlias = slice | NDArray[np.bool_] | NDArray[np.int64]


@dataclass(frozen=True, slots=True)
class Entries:
    """What is routed: entry = (row, node, weight), grouped by node in ascending order.

    ``row``, ``node``: (entry,) int64, ``node`` local to the batch of ``nodes`` nodes; ``weight``: (entry,) float64,
    None where all are 1. ``source: (entry,)`` is the place of each in the batch that they were routed from, as long as
    that is asked for.
    """

    row: Ints
    node: Ints
    nodes: int
    weight: Floats | None = None
    source: Ints | None = None

    def take(self, inside: Selection, node: Ints, nodes: int) -> Entries:
        """The entries of some nodes, which keep their order, with their new ``node`` ids."""
        weight = None if self.weight is None else self.weight[inside]
        return Entries(self.row[inside], node, nodes, weight, None if self.source is None else self.source[inside])


class Tally:
    """The target of a batch of entries, made ready to be summed over any grouping that stays within nodes.

    Sums are lists of whole-number arrays ``(class or 1, group)``, one per quantity and part: they add, subtract and
    accumulate without rounding (int64 wraps, and differences of wrapped sums are right). `combine` makes
    ``stats: (channel, group)`` of them.
    """

    def __init__(self, target: Target, entries: Entries, label: Labels | None = None) -> None:
        self.classes = len(target.classes) if target.is_classification else 0
        self._unit = entries.weight is None
        self._rows, self._entry_row, self._row_label = target.rows, entries.row, target.codes
        self._label = label
        if label is None and target.codes is not None:
            self._label = target.codes[entries.row].astype(smallest_unsigned(len(target.classes)))
        self._whole_weight = (
            Quantity() if entries.weight is None else split_values(entries.weight, entries.node, entries.nodes)
        )
        self.quantities: tuple[Quantity, ...] = (self._whole_weight,)
        self._squares: Quantity | None = None
        self.ranking: Ranking | None = None
        self.pairs = target.pairs
        self._scored, self._has_base = 1, False
        self.centre = np.zeros(entries.nodes)
        self.reach = np.zeros((2, entries.nodes))
        if target.values is not None:
            if target.values.ndim > 1:
                self._centre_vectors(target, entries)
            else:
                self._centre_values(target.values[entries.row], entries, target.statistic)
        self._by_row: list[list[Floats]] | None = None

    def _centre_values(self, values: Floats, entries: Entries, statistic: Statistic) -> None:
        """Sums about the node's own mean: a node far from the origin loses no digits to its distance."""
        start = find_starts(entries.node, entries.nodes)
        low, high = np.minimum.reduceat(values, start), np.maximum.reduceat(values, start)
        middle = low / 2 + high / 2
        weight = 1.0 if entries.weight is None else entries.weight
        rows = count_runs(start, len(values))
        offset = values - np.repeat(middle, rows)
        rough = (self._whole_weight, split_values(weight * offset, entries.node, entries.nodes, roughly=True))
        stats = self._combine(self._sum_stretches(rough, start), rough, np.arange(entries.nodes))
        # rounded to a millionth of the range: short targets then have short offsets, which need one part only
        grain = np.ldexp(1.0, np.maximum(np.frexp(high - low)[1] - 20, -1000))
        # a constant node keeps its value as the centre, so that its spread is exactly 0
        self.centre = np.where(low == high, low, np.rint((middle + stats[1] / stats[0]) / grain) * grain)
        self.reach = np.stack([low - self.centre, high - self.centre])
        np.subtract(values, np.repeat(self.centre, rows), out=offset)
        weighted = weight * offset
        first, second = run_parallel(
            lambda power: split_values(weighted if power == 1 else weighted * offset, entries.node, entries.nodes),
            (1, 2),
            worth=len(offset) > PARALLEL_CELLS,
        )
        self.quantities, self._scored = (self._whole_weight, first, second), 2
        if statistic == "deviance":
            self._add_deviance(values, offset, weight, entries)
        if statistic == "deviations":
            self.quantities, self.ranking = self.quantities[:2], rank_targets(values, offset, entries.node)

    def _centre_vectors(self, target: Target, entries: Entries) -> None:
        """Weight, then the sum of each output, then the squares of each, about the node's own means (output, node)."""
        parts = [Tally(replace(target, values=values), entries) for values in np.asarray(target.values).T]
        sums, squares = ([part.quantities[which] for part in parts] for which in (1, 2))
        self.quantities, self._scored = (self._whole_weight, *sums, *squares), 1 + len(parts)
        self.centre = np.stack([part.centre for part in parts])

    def _add_deviance(self, values: Floats, offset: Floats, weight: Floats | float, entries: Entries) -> None:
        """Instead of squares: how many targets are above 0, and the deviance about the centre."""
        centre = self.centre[entries.node]
        deviance = weight * centre * rise_above(offset / np.maximum(centre, TINY))
        positive = Quantity(((values > 0).astype(np.float64),), (np.ones(entries.nodes),))
        self._squares = self.quantities[2]
        self.quantities = (*self.quantities[:2], positive, split_values(deviance, entries.node, entries.nodes))
        self._scored, self._has_base = 3, True

    def take(self, inside: Selection, keep: Selection, row: Ints | None = None) -> Tally:
        """The same for some nodes: their entries, of which the ``row: (entry,)`` may be at hand, and the nodes."""
        part = copy.copy(self)
        part.quantities = tuple(quantity.take(inside, keep) for quantity in self.quantities)
        part._whole_weight = part.quantities[0]
        part._squares = None if self._squares is None else self._squares.take(inside, keep)
        part.centre, part.reach = self.centre[..., keep], self.reach[:, keep]
        part.ranking = None if self.ranking is None else self.ranking.take(inside)
        part._entry_row = self._entry_row[inside] if row is None else row
        part._label = None if self._label is None else self._label[inside]
        return part

    @property
    def label_entries(self) -> Labels:
        """(entry,) the class of each entry; there are classes."""
        if self._label is None:
            raise ValueError("numbers have no classes")
        return self._label

    @property
    def outputs(self) -> int:
        """How many numbers each row has to be predicted."""
        return self._scored - 1 if self.centre.ndim > 1 else 1

    @property
    def row(self) -> Ints:
        """(entry,) the row of each entry."""
        return self._entry_row

    @property
    def all_rows(self) -> int:
        """How many rows the training data have, in the batch or not."""
        return self._rows

    @property
    def label(self) -> NDArray[np.int32] | None:
        """(row,) the class of each row of the training data; None in regression."""
        return self._row_label

    def accumulate(
        self,
        row: NDArray[np.integer],
        start: Ints,
        cut: Ints,
        segment: Ints,
        last: Ints | None = None,
        *,
        by_entry: bool = False,
        scored: bool = True,
    ) -> tuple[list[Ints], list[Ints] | None]:
        """Running sums along lines of rows, read at flat places ``cut`` of ``row: (line, entry)``.

        Lines are grouped alike: nodes begin at ``start: (node,)``; ``segment: (cut,)`` is line * nodes + node. Sums
        begin anew in every node. With ``by_entry`` lines hold entries of the batch instead of rows, and sums that
        scores do not need are left out unless ``scored`` is False. Also the sums (class or 1, line * nodes) up to the
        places ``last: (line, node)``.
        """
        left, known = [], []
        line = np.arange(len(row))[:, None]
        for plane in self._list_planes(row, by_entry, scored):
            whole = plane.dtype.kind in "bi"
            total = np.cumsum(plane if whole else plane.astype(np.int64), axis=1, dtype=np.int64)
            base = np.where(start > 0, total[:, start - 1], 0).ravel()
            upto_cut = total.ravel().take(cut)
            # in a single node nothing lies before
            left.append(upto_cut - base.take(segment) if len(start) > 1 else upto_cut)
            if last is not None:
                upto = np.where(last >= start, total[line, last], base.reshape(last.shape))
                known.append(upto.ravel() - base)
        rows = max(self.classes, 1)
        parts = len(left) // rows
        stacked = [np.stack(left[p * rows : (p + 1) * rows]) for p in range(parts)]
        if last is None:
            return stacked, None
        return stacked, [np.stack(known[p * rows : (p + 1) * rows]) for p in range(parts)]

    def _list_planes(self, row: NDArray[np.integer], by_entry: bool, scored: bool) -> Iterator[NDArray[Any]]:
        """What each entry adds to each sum: per quantity, part and class an array like ``row``."""
        labels = self._label if by_entry else self._row_label
        label = None if labels is None else labels.take(row)
        quantities = self.quantities[: self.scored] if scored else self.quantities
        summed: Sequence[Sequence[Floats]] = [quantity.parts for quantity in quantities]
        for parts in summed if by_entry else self.spread_over_rows():
            for part in parts or (None,):
                amount = None if part is None else part.take(row)
                if label is None:
                    yield np.ones(row.shape, np.int8) if amount is None else amount
                    continue
                for c in range(self.classes):
                    yield label == c if amount is None else np.where(label == c, amount, 0.0)

    def spread_over_rows(self) -> list[list[Floats]]:
        """Per scored quantity its parts (row,) by row instead of by entry; other rows hold nothing of use."""
        if self._by_row is None:
            scored = self.quantities[: self.scored]
            # only seen by other threads when it is filled
            self._by_row = [[self._spread(part) for part in quantity.parts] for quantity in scored]
        return self._by_row

    def _spread(self, part: Floats) -> Floats:
        by_row = np.empty(self._rows)
        by_row[self._entry_row] = part
        return by_row

    def sum(self, group: Ints, groups: int) -> list[Ints]:
        """Sums over ``group: (..., entry)`` ids, all below ``groups``; leading axes repeat the entries."""
        return self._sum(self.quantities, group, groups)

    def sum_nodes(self, node: Ints, start: Ints) -> list[Ints]:
        """As `sum`, over nodes: ``node: (entry,)``, whose entries begin at ``start: (node,)``."""
        if self.classes > FEW_CLASSES or len(node) < FEW_ENTRIES:
            return self._sum(self.quantities, node, len(start))
        return self._sum_stretches(self.quantities, start)

    def _sum_stretches(self, quantities: Sequence[Quantity], start: Ints) -> list[Ints]:
        sums = []
        for part in (part for quantity in quantities for part in quantity.parts or (None,)):
            if self._label is not None:
                each = [self._label == c for c in range(self.classes)]
                amounts = each if part is None else [np.where(mine, part, 0.0) for mine in each]
                sums.append(np.stack([_add_stretches(amount, start) for amount in amounts]))
            elif part is None:
                sums.append(count_runs(start, len(self._entry_row))[None])
            else:
                sums.append(_add_stretches(part, start)[None])
        return sums

    def _sum(self, quantities: Sequence[Quantity], group: Ints, groups: int) -> list[Ints]:
        return self._sum_keys(quantities, self.key(group, groups), groups)

    def sum_runs(self, entry: Ints, begin: Ints, end: Ints) -> list[Ints]:
        """Sums over unions of runs (run, set) of ``entry: (place,)``, of numbers."""
        sums = []
        for quantity in self.quantities:
            for part in quantity.parts or (np.ones(len(self._entry_row)),):
                upto = np.zeros(len(entry) + 1, np.int64)
                np.cumsum(part[entry].astype(np.int64), out=upto[1:])
                sums.append((upto[end] - upto[begin]).sum(0)[None])
        return sums

    def key(self, group: Ints, groups: int) -> Ints:
        """Class * groups + group: what is counted by."""
        return group if self._label is None else np.multiply(self._label, groups, dtype=np.int64) + group

    def sum_scored(self, key: NDArray[np.integer], groups: int) -> list[Ints]:
        """As `sum`, of the quantities that scores need, by ``key: (entry,)``."""
        return self._sum_keys(self.quantities[: self.scored], key, groups)

    def list_amounts(self) -> list[Floats | None]:
        """What each entry adds to the sums that scores need, None where that is 1: (entry,) whole numbers."""
        return [part for quantity in self.quantities[: self.scored] for part in quantity.parts or (None,)]

    @property
    def squares(self) -> Quantity:
        """The squares of numbers about their node's centre."""
        return self._squares or self.quantities[2]

    def bound_squares(self, sums: Ints | Floats, rows: Ints, node: Ints) -> Floats:
        """At least the sum of squares of each group, of its first part's, with what rounding can have taken away."""
        return np.asarray((sums + rows) * self.squares.units[0][node])

    @property
    def counts_rows(self) -> bool:
        """True where every entry weighs 1, so that sums tell how many there are."""
        return self._unit

    @property
    def scored(self) -> int:
        """How many quantities scores need: of numbers those before the squares or deviances, which cancel in gains."""
        return self._scored

    def combine_scored(self, sums: Sequence[Ints], node: Ints) -> Floats:
        """As `combine`, for sums of the quantities that scores need."""
        return self._combine(sums, self.quantities[: self.scored], node)

    def _sum_keys(self, quantities: Sequence[Quantity], key: NDArray[np.integer], groups: int) -> list[Ints]:
        rows = max(self.classes, 1)
        # converted once here, not by each count
        shape, key = key.shape, key.ravel().astype(np.intp, copy=False)
        sums = []
        for quantity in quantities:
            for part in quantity.parts or (None,):
                weights = None if part is None else np.broadcast_to(part, shape).ravel()
                total = np.bincount(key, weights=weights, minlength=rows * groups)
                sums.append(total.astype(np.int64, copy=False).reshape(rows, groups))
        return sums

    def combine(self, sums: Sequence[Ints], node: Ints) -> Floats:
        """``stats: (channel, group)`` of sums whose groups lie in the given ``node: (group,)``."""
        return self._combine(sums, self.quantities, node)

    def _combine(self, sums: Sequence[Ints], quantities: Sequence[Quantity], node: Ints) -> Floats:
        channels, rest = [], list(sums)
        for quantity in quantities:
            if not quantity.parts:
                channels.append(rest.pop(0).astype(np.float64))
                continue
            total = rest.pop(0) * quantity.units[0][node]
            for unit in quantity.units[1:]:
                total = total + rest.pop(0) * unit[node]
            channels.append(total)
        if self._has_base:
            channels.insert(3, channels[0] * self.centre[node])
        return np.concatenate(channels)

    def count_rows(self, sums: Sequence[Ints], group: NDArray[np.integer], groups: int) -> Ints:
        """(group,) how many entries each group of ``sums`` has, whatever they weigh."""
        if self._unit:
            counts: Ints = sums[0].sum(0)
            return counts
        return np.bincount(group.ravel(), minlength=groups)


def _add_stretches(amount: NDArray[Any], start: Ints) -> Ints:
    """(stretch,) sums of whole numbers, or of True, between one start and the next."""
    if amount.dtype == bool:
        return count_true(amount, start)
    return np.add.reduceat(amount, start).astype(np.int64)
