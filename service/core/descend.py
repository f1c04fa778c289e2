"""Many rows down a tree, level by level: a handful of numpy calls for each level, whatever the number of nodes.

Rows go in blocks whose cells fit the second-level cache. In a block every cell is 8 bytes, floats by their bits, so
that one gather serves columns of both kinds:

    cells: (column, block)     cell of entry e  =  cells.ravel()[column[node[e]] + row[e]]

A leaf is a node whose test sends every row back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import NO_ROUTE
from service.core.descend_floats import Buffers, begin_floats, step_floats
from service.core.guide import Guide, Reading, are_floats, lay_out
from service.core.parallel import count_cores, run_parallel
from service.core.schema import MISSING, Column
from service.core.statistics import Ints
from service.core.tree import Tree

SHARES = 4
"""Each core takes its rows in so many shares, so that none waits long for another."""
Step = Callable[[Ints, Ints, Ints], None]
"""Sends entries, by their nodes and rows, to what follows."""


@dataclass(frozen=True, slots=True)
class Descent:
    """Where rows ended: ``node: (row,)``, mostly leaves."""

    node: Ints
    is_leaf: NDArray[np.bool_]

    @property
    def stopped(self) -> NDArray[np.bool_]:
        """(row,) True where the way was unknown from the node on."""
        return ~self.is_leaf[self.node]


@dataclass(frozen=True, slots=True)
class Cells:
    """A block: ``cells: (column * block,)`` int64, and where any is missing, which: ``missing: (column * block,)``."""

    cells: Ints
    missing: NDArray[np.bool_] | None


def descend(tree: Tree, columns: Sequence[Column], rows: int) -> Descent:
    """Send every row down; ``columns`` are those of ``tree.features``, in that order.

    A missing value takes the branch learnt for it, else the heaviest; a category that the node did not see in
    training stops there, for the node's own distribution is what was known before asking. Where a tree has surrogates
    they are asked in both cases, and then the majority.
    """
    return follow(lay_out(tree, are_floats(columns)), columns, rows)


def follow(guide: Guide, columns: Sequence[Column], rows: int) -> Descent:
    """What `descend` does, by a guide that was made for such columns."""
    node = np.empty(rows, np.int64) if len(guide.used) else np.zeros(rows, np.int64)
    used = [columns[f] for f in guide.used]
    size = max(guide.block, -(-rows // (count_cores() * SHARES)))
    # a small table is not worth waking another thread
    shares = [slice(begin, min(begin + size, rows)) for begin in range(0, rows, size)]
    run_parallel(partial(_descend_share, guide, used, node), shares if used else ())
    return Descent(node, guide.is_leaf)


def _descend_share(guide: Guide, columns: Sequence[Column], node: Ints, share: slice) -> None:
    """Write where the rows of a share end into ``node``."""
    space = np.empty((len(columns), guide.block), np.int64)
    buffers = Buffers(guide.block)
    only_floats = guide.readings == (Reading.FLOAT,)
    unlike = guide.stays or guide.stands is not None
    for begin in range(share.start, share.stop, guide.block):
        rows = slice(begin, min(begin + guide.block, share.stop))
        if only_floats and not (unlike and any(_find_missing(column, rows) is not None for column in columns)):
            floats = space.view(np.float64)
            for place, column in enumerate(columns):
                floats[place, : rows.stop - begin] = column.values[rows]
            begun = begin_floats(guide, floats.reshape(-1), buffers, rows.stop - begin)
            step: Step = partial(step_floats, guide, floats.reshape(-1), buffers)
        else:
            begun = np.zeros(rows.stop - begin, np.int64), 0
            step = partial(_step, guide, fill_cells(space, columns, rows))
        node[rows] = begun[0] if begun[1] == guide.deepest else _descend_block(step, *begun, guide.shallowest)


def _descend_block(step: Step, node: Ints, depth: int, shallowest: int) -> Ints:
    """(row,) the node in which each row of the block ends; they stand at ``node: (row,)``.

    The rows are at ``depth`` or have ended, and none ends before the depth ``shallowest``.
    """
    row = np.arange(len(node))
    for _ in range(depth, shallowest):
        step(node, row, node)
    ended = np.empty_like(node)
    following = np.empty_like(node)
    while True:
        step(node, row, following)
        goes = following != node
        moved = np.count_nonzero(goes)
        if 2 * moved < len(node):
            # most have ended: only the others go on
            ended[row] = following
            node, row = following[goes], row[goes]
            following = following[:moved]
        else:
            node, following = following, node
        if moved == 0:
            return ended


def fill_cells(space: Ints, columns: Sequence[Column], rows: slice) -> Cells:
    """The cells of a block; ``space: (column, block)`` is used again by the next one."""
    missing: NDArray[np.bool_] | None = None
    count = rows.stop - rows.start
    for place, column in enumerate(columns):
        values = column.values[rows]
        to = space[place] if values.dtype.kind == "i" else space[place].view(np.float64)
        to[:count] = values
        gone = _find_missing(column, rows)
        if gone is not None:
            missing = np.zeros(space.shape, bool) if missing is None else missing
            missing[place, :count] = gone
    return Cells(space.reshape(-1), None if missing is None else missing.reshape(-1))


def _find_missing(column: Column, rows: slice) -> NDArray[np.bool_] | None:
    """(row,) which cells are missing; None where none is, which costs one pass: a NaN makes the minimum NaN."""
    values = column.values[rows]
    if column.kind != "numeric":
        return values == MISSING if values.min() < 0 else None
    if values.dtype.kind == "f":
        return np.isnan(values) if np.isnan(values.min()) else None
    return None if column.missing is None else column.missing[rows]


def _step(guide: Guide, cells: Cells, node: Ints, row: Ints, following: Ints) -> None:
    """Write into ``following: (entry,)`` the child that each entry goes to, or its node where it ends."""
    if guide.stands is None:
        at = guide.column.take(node)
        at += row
        branch = _read_each(guide, cells.cells.take(at), node)
        if cells.missing is not None:
            gone = np.flatnonzero(cells.missing.take(at))
            branch[gone] = guide.missing_branch.take(node[gone])
    else:
        branch = read_branches(guide, cells, node, row)
        gone = np.flatnonzero(branch == NO_ROUTE)
        branch[gone] = _stand_in(guide, guide.stands, cells, node[gone], row[gone])
    lost = np.flatnonzero(branch == NO_ROUTE)
    stay = node[lost]  # `following` may be the same array
    guide.first.take(node, out=following, mode="clip")
    following += branch
    following[lost] = stay


def read_branches(guide: Guide, cells: Cells, node: Ints, row: Ints) -> Ints:
    """(entry,) the branch that each entry's cell says, `NO_ROUTE` where it is missing or its category was not seen."""
    at = guide.column.take(node) + row
    branch = _read_each(guide, cells.cells.take(at), node)
    if cells.missing is not None:
        branch[cells.missing.take(at)] = NO_ROUTE
    return branch


def _stand_in(guide: Guide, stands: Ints, cells: Cells, node: Ints, row: Ints) -> Ints:
    """(entry,) what the first surrogate says that can, or what is left after them."""
    branch = np.full(len(node), NO_ROUTE)
    which, last = stands[node], stands[node + 1]
    lost = np.arange(len(node))
    while len(lost := lost[(branch[lost] == NO_ROUTE) & (which[lost] < last[lost])]):
        asked = which[lost]
        branch[lost] = read_branches(guide, cells, asked, row[lost])
        which[lost] += 1
        if guide.flipped is not None:
            turned = guide.flipped[asked - stands[0]] & (branch[lost] != NO_ROUTE)
            branch[lost] ^= turned
    return np.where(branch == NO_ROUTE, guide.missing_branch.take(node), branch)


def _read_each(guide: Guide, cell: Ints, node: Ints) -> Ints:
    """(entry,) the branch of every entry, each cell read as its node does."""
    # one way of reading is tried on all, which is cheaper than picking those that it is for; routes are of some nodes
    usual = next((kind for kind in guide.readings if kind != Reading.ROUTES), Reading.ROUTES)
    branch = _READ[usual](guide, cell, node).astype(np.int64)
    if len(guide.readings) > 1:
        reading = guide.reading.take(node)
        for kind in guide.readings:
            mine = np.flatnonzero(reading == kind) if kind != usual else ()
            if len(mine):
                branch[mine] = _READ[kind](guide, cell[mine], node[mine])
    return branch


def _read_float(guide: Guide, cell: Ints, node: Ints) -> NDArray[np.bool_]:
    return np.greater(cell.view(np.float64), guide.limit.take(node))


def _read_whole(guide: Guide, cell: Ints, node: Ints) -> NDArray[np.bool_]:
    return np.greater(cell, guide.whole.take(node))


def _read_order(guide: Guide, cell: Ints, node: Ints) -> Ints:
    return np.where(cell < 0, NO_ROUTE, cell > guide.whole.take(node))


def _read_routes(guide: Guide, cell: Ints, node: Ints) -> Ints:
    return np.where(cell < 0, NO_ROUTE, guide.routes.take(guide.start.take(node) + np.maximum(cell, 0)))


def _read_present(guide: Guide, cell: Ints, node: Ints) -> Ints:  # noqa: ARG001 - the missing ones are set apart later
    return np.ones(len(cell), np.int64)


_READ = {
    Reading.FLOAT: _read_float,
    Reading.WHOLE: _read_whole,
    Reading.ORDER: _read_order,
    Reading.ROUTES: _read_routes,
    Reading.PRESENT: _read_present,
}
"""(entry,) The branch by each reading of ``cell: (entry,)`` at ``node: (entry,)``; of missing ones it says nothing."""
