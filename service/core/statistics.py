"""Sums over groups of entries, exact in any order.

Floats are split once into two whole-number parts whose sums are exact (after Demmel and Nguyen 2015, "Parallel
reproducible summation"), so the statistics do not depend on the order of rows, on how they are grouped or on which
machine adds them up.
"""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import Floats
from service.core.encoding import smallest_unsigned
from service.core.entries import Entries, find_amounts, restate_amounts
from service.core.quantities import Quantity, Ranking, Selection, count_runs, count_true
from service.core.schema import Target

FEW_CLASSES = 8
"""Rows of more are quicker counted all at once than class by class."""
FEW_ENTRIES = 5000
"""So are fewer rows."""
Ints = NDArray[np.int64]
Labels: TypeAlias = NDArray[np.unsignedinteger]


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
        self._amounts = find_amounts(target, entries)
        self.pairs = target.pairs
        self._by_row: list[list[Floats]] | None = None

    def take(self, inside: Selection, keep: Selection, row: Ints | None = None) -> Tally:
        """The same for some nodes: their entries, of which the ``row: (entry,)`` may be at hand, and the nodes."""
        part = copy.copy(self)
        part._amounts = self._amounts.take(inside, keep)
        part._entry_row = self._entry_row[inside] if row is None else row
        part._label = None if self._label is None else self._label[inside]
        return part

    def restate(self, target: Target, entries: Entries) -> Tally:
        """The same entries by another statistic of their numbers; this one sums squares, too, or deviances."""
        other = copy.copy(self)
        other._amounts = restate_amounts(self._amounts, target, entries)
        return other

    @property
    def quantities(self) -> tuple[Quantity, ...]:
        """What is summed."""
        return self._amounts.quantities

    @property
    def centre(self) -> Floats:
        """(node,) or (output, node): about what numbers are summed."""
        return self._amounts.centre

    @property
    def reach(self) -> Floats:
        """(2, node) the least and the greatest number, from the centre."""
        return self._amounts.reach

    @property
    def ranking(self) -> Ranking | None:
        """The numbers in their order, where medians are asked for."""
        return self._amounts.ranking

    @property
    def label_entries(self) -> Labels:
        """(entry,) the class of each entry; there are classes."""
        if self._label is None:
            raise ValueError("numbers have no classes")
        return self._label

    @property
    def outputs(self) -> int:
        """How many numbers each row has to be predicted."""
        return self.scored - 1 if self.centre.ndim > 1 else 1

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
        return self._sum_keys(self.quantities, self.key(group, groups), groups)

    def sum_nodes(self, node: Ints, start: Ints) -> list[Ints]:
        """As `sum`, over nodes: ``node: (entry,)``, whose entries begin at ``start: (node,)``."""
        if self.classes > FEW_CLASSES or len(node) < FEW_ENTRIES:
            return self.sum(node, len(start))
        sums = []
        for part in (part for quantity in self.quantities for part in quantity.parts or (None,)):
            if self._label is not None:
                each = [self._label == c for c in range(self.classes)]
                amounts = each if part is None else [np.where(mine, part, 0.0) for mine in each]
                sums.append(np.stack([_add_stretches(amount, start) for amount in amounts]))
            elif part is None:
                sums.append(count_runs(start, len(self._entry_row))[None])
            else:
                sums.append(_add_stretches(part, start)[None])
        return sums

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
        return self._amounts.squares or self.quantities[2]

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
        return self._amounts.scored

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
        rest = iter(sums)
        channels = [quantity.join([next(rest) for _ in quantity.parts or (None,)], node) for quantity in quantities]
        if self._amounts.squares is not None:
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
