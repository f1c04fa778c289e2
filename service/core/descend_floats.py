"""The steps of `descend` where all that a tree reads are floats, the commonest case: every pass over rows counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import Floats
from service.core.guide import Guide
from service.core.statistics import Ints


def begin_floats(guide: Guide, cells: Floats, rows: int) -> tuple[Ints, int]:
    """(row,) The nodes at depth 3, or the root, with that depth.

    Where few nodes ask, whole columns are compared, and nothing is gathered. That needs three levels without a leaf,
    and no missing cell in the seven columns.
    """
    if guide.shallowest < 3:
        return np.zeros(rows, np.int64), 0
    asked = [0, *(inner := _children(guide, [0])), *(lower := _children(guide, inner))]
    right = []
    for node in asked:
        column = cells[guide.column[node] :][:rows]
        if np.isnan(np.minimum.reduce(column)):
            return np.zeros(rows, np.int64), 0
        right.append(np.greater(column, guide.limit[node]))
    first = right[0]
    second = _select(first, right[1], right[2])
    third = _select(first, _select(second, right[3], right[4]), _select(second, right[5], right[6]))
    place = (first.view(np.uint8) << 2) | (second.view(np.uint8) << 1) | third.view(np.uint8)
    return np.array(_children(guide, lower)).take(place), 3


def _children(guide: Guide, nodes: Sequence[int]) -> list[int]:
    """The first two children of each node."""
    return [child for node in nodes for child in (int(guide.first[node]), int(guide.first[node]) + 1)]


def _select(which: NDArray[np.bool_], no: NDArray[np.bool_], yes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """`np.where`, several times as fast on booleans."""
    return no ^ (which & (no ^ yes))


class Buffers:
    """What `step_floats` writes to, again and again: arrays of this size are dear to allocate."""

    def __init__(self, block: int) -> None:
        self.at = np.empty(block, np.int64)
        self.cell = np.empty(block)
        self.limit = np.empty(block)
        self.right = np.empty(block, bool)


def step_floats(guide: Guide, cells: Floats, buffers: Buffers, node: Ints, row: Ints, following: Ints) -> None:
    """What `_step` does where all that is read are floats; here every pass over the entries counts."""
    count = len(node)
    at, cell, limit = buffers.at[:count], buffers.cell[:count], buffers.limit[:count]
    # all indices are right; "clip" only spares `take` a copy of what it writes
    guide.column.take(node, out=at, mode="clip")
    at += row
    cells.take(at, out=cell, mode="clip")
    guide.limit.take(node, out=limit, mode="clip")
    right = np.greater(cell, limit, out=buffers.right[:count])
    lowest = np.minimum.reduce(cell)
    gone = np.flatnonzero(np.isnan(cell)) if np.isnan(lowest) else None
    lost = None if gone is None else node[gone]
    guide.first.take(node, out=following, mode="clip")
    following += right
    if lost is not None:
        following[gone] = guide.first[lost] + guide.missing_branch[lost]
