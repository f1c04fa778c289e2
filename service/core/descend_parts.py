"""Rows down all branches where their value is missing: each ends in several leaves, by shares that add up to 1.

As in C4.5 (Quinlan 1993, section 3.3) what a row is answered is the sum of its leaves' distributions by share. A
category that a node did not see says nothing there, like a missing value.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import NO_ROUTE
from service.core.criteria import Floats
from service.core.descend import fill_cells, read_branches
from service.core.encoding import CodedFeature
from service.core.entries import Entries
from service.core.guide import Guide, are_floats, lay_out
from service.core.parting import find_shares, spread
from service.core.schema import Column, Target
from service.core.statistics import Ints, Tally
from service.core.tree import Tree

Flags: TypeAlias = NDArray[np.bool_]

ROWS = 2048
"""Rows that go down together: each may come to many leaves."""


@dataclass(frozen=True, slots=True)
class Parts:
    """Parts of rows in nodes: (entry,)."""

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


def share_anew(tree: Tree, features: Sequence[CodedFeature], weight: Floats | None, renewed: Flags) -> Tree:
    """The tree with the rows of ``renewed: (node,)`` nodes and the shares of their children, by the training rows.

    Raised branches have other rows than those that they were grown with.
    """
    columns = [coded.as_column() for coded in features]
    rows = len(columns[0].values)
    guide = lay_out(tree, are_floats(columns))
    guide = replace(guide, column=guide.column // guide.block * rows, block=rows)
    used = [columns[f] for f in guide.used]
    cells = fill_cells(np.empty((len(used), rows), np.int64), used, slice(0, rows))
    share = guide.share.copy()
    guide = replace(guide, share=share)
    parts = Parts(np.arange(rows), np.zeros(rows, np.int64), np.ones(rows) if weight is None else weight)
    came = np.bincount(parts.node, minlength=tree.nodes)
    while len(inner := np.flatnonzero(~guide.is_leaf[parts.node])):
        parts = Parts(parts.row[inner], parts.node[inner], parts.share[inner])
        branch = read_branches(guide, cells, parts.node, parts.row)
        _renew_shares(guide, parts, branch, rows, renewed)
        parts = step_down(guide, parts, branch)
        came += np.bincount(parts.node, minlength=tree.nodes)
    return replace(tree, share=share, rows=np.where(renewed, came, tree.rows))


def _renew_shares(guide: Guide, parts: Parts, branch: Ints, rows: int, renewed: Flags) -> None:
    """Write the shares of the children of the renewed nodes that ``parts``, in the order of nodes, are in."""
    mine = np.flatnonzero(renewed[parts.node])
    if not len(mine):
        return
    nodes, node = np.unique(parts.node[mine], return_inverse=True)
    count = guide.branches[nodes]
    parent, child = spread(np.arange(len(nodes)), guide.first[nodes], count)
    first = np.cumsum(count) - count
    to = np.where(branch[mine] >= 0, first[node] + branch[mine], -1)
    entries = Entries(parts.row[mine], node, len(nodes), parts.share[mine])
    one_class = Target("parts", ("any",), np.zeros(rows, np.int32))
    found = find_shares(Tally(one_class, entries), node, to, parent)
    guide.share[child] = np.where(np.isnan(found), guide.share[child], found)


def step_down(guide: Guide, parts: Parts, branch: Ints) -> Parts:
    """The parts at the children, by node, of parts at inner nodes; `NO_ROUTE` goes to all children by their shares."""
    known, lost = np.flatnonzero(branch != NO_ROUTE), np.flatnonzero(branch == NO_ROUTE)
    node = parts.node[lost]
    index, child = spread(lost, guide.first[node], guide.branches[node])
    part = parts.share[index] * guide.share[child]
    some = part > 0
    to = np.concatenate([guide.first[parts.node[known]] + branch[known], child[some]])
    row = np.concatenate([parts.row[known], parts.row[index[some]]])
    order = np.lexsort((row, to))
    return Parts(row[order], to[order], np.concatenate([parts.share[known], part[some]])[order])


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
        below = step_down(guide, Parts(row, node, share), read_branches(guide, cells, node, row))
        node, row, share = below.node, below.row, below.share
    row, node = (np.concatenate([part[i] for part in passed]) for i in range(2))
    return row, node, np.concatenate([part[2] for part in passed])
