"""Bins counted: sums of a batch's entries by feature, node, class and bin.

Entries, which are grouped by node, are counted a stretch at a time, so that the processor's cache holds their keys:

    ((node - the first node of the stretch) * classes + class) * width + bin
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from service.core.bins import Binned
from service.core.encoding import smallest_unsigned
from service.core.statistics import Ints
from service.core.weigh import Batch

STRETCH = 2**18
"""About so many entries are counted together, more where they have many classes."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Entries ``inside`` the batch: ``key: (entry,)`` without the bin, and the ``cells`` that they are counted in.

    In the smallest type that holds them, so that adding a bin takes little.
    """

    inside: slice
    key: NDArray[np.integer]
    cells: slice


def lay_out_stretches(batch: Batch, width: int) -> list[Stretch]:
    """The stretches of a batch where each class of a node has ``width`` cells."""
    classes = max(batch.tally.classes, 1)
    most = max(STRETCH, 16 * classes * width)
    ends = np.cumsum(batch.rows)
    of_stretch = (ends - 1) // most
    last = np.flatnonzero(np.diff(of_stretch, append=of_stretch[-1] + 1))
    stretches, begin = [], 0
    for first, node in zip([0, *(last[:-1] + 1).tolist()], last.tolist(), strict=True):
        cells = slice(first * classes * width, (node + 1) * classes * width)
        kind = smallest_unsigned(cells.stop - cells.start)
        end = int(ends[node])
        while begin < end:
            inside = slice(begin, min(begin + most, end) if end - begin > 2 * most else end)
            group = (batch.entries.node[inside] - first) * classes
            if batch.tally.classes:
                group += batch.tally.label_entries[inside]
            group *= width
            stretches.append(Stretch(inside, group.astype(kind), cells))
            begin = inside.stop
    return stretches


def count_lines(
    batch: Batch, binned: Binned, lines: Ints, width: int, stretches: list[Stretch]
) -> tuple[list[Ints], Ints, Ints | None]:
    """Whole-number sums (class or 1, group, cell) of the quantities that scores need; groups are line * nodes + node.

    Also how many rows there are, and in regression the sums that `Tally.bound_squares` takes: (group, cell).
    """
    tally, classes, nodes = batch.tally, max(batch.tally.classes, 1), batch.entries.nodes
    amounts = tally.list_amounts()
    sums = [np.zeros((len(lines), nodes * classes * width), np.int64 if a is None else np.float64) for a in amounts]
    for stretch in stretches:
        some = [None if amount is None else amount[stretch.inside] for amount in amounts]
        for place, line in enumerate(lines.tolist()):
            # converted once, not by each count
            key = (stretch.key + binned.code[line, stretch.inside]).astype(np.intp)
            for total, amount in zip(sums, some, strict=True):
                total[place, stretch.cells] += np.bincount(key, amount, stretch.cells.stop - stretch.cells.start)
    # (line * node, class, cell) -> (class, line * node, cell)
    each = [s.astype(np.int64, copy=False).reshape(-1, classes, width).transpose(1, 0, 2) for s in sums]
    squares = None if tally.classes else each.pop()[0]
    rows = (each[0] if tally.counts_rows else each.pop()).sum(0)
    return each, rows, squares
