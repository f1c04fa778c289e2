"""The steps of `descend` where all that a tree reads are floats, the commonest case: every pass over rows counts."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import Floats
from service.core.guide import Guide
from service.core.statistics import Ints

ASKED = 3
"""Levels of which so few nodes ask that whole columns are compared, and nothing is gathered."""


class Buffers:
    """What the steps write to, again and again: arrays of this size are dear to allocate."""

    def __init__(self, block: int) -> None:
        self.row = np.arange(block)
        self.slot = np.empty(block, np.int64)
        self.at = np.empty(block, np.int64)
        self.cell = np.empty(block)
        self.limit = np.empty(block)
        self.right = np.empty(block, bool)


def begin_floats(guide: Guide, cells: Floats, buffers: Buffers, rows: int) -> tuple[Ints, int]:
    """(row,) The nodes at the foot of the ladder, with how many levels that is; the root where a cell is missing."""
    ladder = guide.ladder
    lowest = np.minimum.reduce(cells.reshape(-1, guide.block)[:, :rows], axis=1)
    if not ladder.levels or np.isnan(lowest).any():
        return np.zeros(rows, np.int64), 0
    slot, row, at = buffers.slot[:rows], buffers.row[:rows], buffers.at[:rows]
    cell, limit = buffers.cell[:rows], buffers.limit[:rows]
    slot[:] = _ask_columns(ladder.levels[:ASKED], cells, rows)
    for columns, limits in ladder.levels[ASKED:]:
        # all indices are right; "clip" only spares `take` a copy of what it writes
        columns.take(slot, out=at, mode="clip")
        at += row
        cells.take(at, out=cell, mode="clip")
        limits.take(slot, out=limit, mode="clip")
        right = np.greater(cell, limit, out=buffers.right[:rows])
        slot += slot
        slot += right
    return ladder.foot.take(slot), len(ladder.levels)


def _ask_columns(levels: Sequence[tuple[Ints, Floats]], cells: Floats, rows: int) -> NDArray[np.uint8]:
    """(row,) The slots below the first levels: every node there is asked for every row, and bits say whose answer."""
    bits: list[NDArray[np.bool_]] = []
    for columns, limits in levels:
        answers = [
            np.greater(cells[column:][:rows], limit)
            for column, limit in zip(columns.tolist(), limits.tolist(), strict=True)
        ]
        for bit in reversed(bits):
            answers = [_select(bit, no, yes) for no, yes in zip(answers[::2], answers[1::2], strict=True)]
        bits += answers
    slot = np.zeros(rows, np.uint8)
    for bit in bits:
        slot += slot
        slot |= bit.view(np.uint8)
    return slot


def _select(which: NDArray[np.bool_], no: NDArray[np.bool_], yes: NDArray[np.bool_]) -> NDArray[np.bool_]:
    """`np.where`, several times as fast on booleans."""
    return no ^ (which & (no ^ yes))


def step_floats(guide: Guide, cells: Floats, buffers: Buffers, node: Ints, row: Ints, following: Ints) -> None:
    """What `_step` does where all that is read are floats; here every pass over the entries counts."""
    count = len(node)
    at, cell, limit = buffers.at[:count], buffers.cell[:count], buffers.limit[:count]
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
