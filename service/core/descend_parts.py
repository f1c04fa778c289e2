"""Rows down all branches where their value is missing: each ends in several leaves, by shares that add up to 1.

As in C4.5 (Quinlan 1993, section 3.3) what a row is answered is the sum of its leaves' distributions by share. A
category that a node did not see says nothing there, like a missing value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from service.core.candidates import NO_ROUTE
from service.core.criteria import Floats
from service.core.descend import fill_cells, read_branches
from service.core.guide import Guide
from service.core.parting import spread
from service.core.schema import Column
from service.core.statistics import Ints

ROWS = 2048
"""Rows that go down together: each may come to many leaves."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of rows in nodes, ordered by row and node: (entry,)."""

    row: Ints
    node: Ints
    share: Floats

    def find_heaviest(self, rows: int) -> Ints:
        """(row,) the node with the greatest share, the first of equals."""
        order = np.lexsort((self.node, -self.share, self.row))
        first = order[np.diff(self.row[order], prepend=-1) != 0]
        heaviest = np.zeros(rows, np.int64)
        heaviest[self.row[first]] = self.node[first]
        return heaviest

    def mix(self, values: Floats, rows: int) -> Floats:
        """(row, ...) the sum of ``values: (node, ...)`` by share."""
        if values.ndim == 1:
            return np.bincount(self.row, self.share * values[self.node], rows).astype(np.float64, copy=False)
        return np.stack([self.mix(column, rows) for column in values.T], axis=1) if values.size else values[:rows]


def descend_parts(
    guide: Guide, columns: Sequence[Column], rows: int, weight: Floats | None = None, *, inner: bool = False
) -> Parts:
    """The leaves that each row comes to; with ``inner`` all nodes that it goes through.

    Shares begin at 1, or at ``weight: (row,)``. What is passed on is multiplied on the way down, as growth does it.
    """
    used = [columns[f] for f in guide.used]
    found = [
        _descend_block(guide, used, slice(begin, min(begin + ROWS, rows)), weight, inner)
        for begin in range(0, rows, ROWS)
    ]
    none = np.empty(0, np.int64)
    row, node = (np.concatenate([part[i] for part in found] or [none]) for i in range(2))
    share = np.concatenate([part[2] for part in found] or [none.astype(np.float64)])
    order = np.lexsort((node, row))
    return Parts(row[order], node[order], share[order])


def _descend_block(
    guide: Guide, columns: Sequence[Column], rows: slice, weight: Floats | None, inner: bool
) -> tuple[Ints, Ints, Floats]:
    """Row, node and share of the block's parts."""
    count = rows.stop - rows.start
    cells = fill_cells(np.empty((len(columns), guide.block), np.int64), columns, rows)
    node, row = np.zeros(count, np.int64), np.arange(count)
    share = np.ones(count) if weight is None else weight[rows].astype(np.float64)
    passed: list[tuple[Ints, Ints, Floats]] = []
    while len(node):
        ended = guide.is_leaf[node]
        kept = slice(None) if inner else ended
        passed.append((row[kept] + rows.start, node[kept], share[kept]))
        node, row, share = node[~ended], row[~ended], share[~ended]
        branch = read_branches(guide, cells, node, row)
        lost = np.flatnonzero(branch == NO_ROUTE)
        known = np.flatnonzero(branch != NO_ROUTE)
        index, child = spread(lost, guide.first[node[lost]], guide.branches[node[lost]])
        part = share[index] * guide.share[child]
        some = part > 0
        node = np.concatenate([guide.first[node[known]] + branch[known], child[some]])
        row = np.concatenate([row[known], row[index[some]]])
        share = np.concatenate([share[known], part[some]])
    row, node = (np.concatenate([part[i] for part in passed]) for i in range(2))
    return row, node, np.concatenate([part[2] for part in passed])
