"""Many rows down a tree, level by level: a handful of numpy calls for each level, whatever the number of nodes.

Rows go in blocks whose cells fit the second-level cache. In a block every cell is 8 bytes, floats by their bits, so
that one gather serves columns of both kinds:

    cells: (column, BLOCK)     cell of entry e  =  cells.ravel()[column[node[e]] + row[e]]

A leaf is a node whose test sends every row back to it.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import IntEnum
from functools import partial

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import NO_ROUTE, Form
from service.core.criteria import Floats
from service.core.parallel import count_cores, run_parallel
from service.core.schema import MISSING, Column, Feature
from service.core.statistics import Ints
from service.core.tree import Tree, find_heaviest_branches

BLOCK = 8192
"""Rows that go down together: 64 KiB of cells for each feature that the tree asks for."""
SHARES = 4
"""Each core takes its rows in so many shares, so that none waits long for another."""
Step = Callable[[Ints, Ints, Ints], None]
"""Sends entries, by their nodes and rows, to what follows."""
_LARGEST = np.iinfo(np.int64).max


class Reading(IntEnum):
    """How a node reads a cell."""

    FLOAT = 0
    WHOLE = 1
    ORDER = 2
    ROUTES = 3
    PRESENT = 4


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
class Guide:
    """A tree laid out for columns of some kinds; arrays are (node,), but for ``routes`` and ``used``.

    ``used: (column,)`` are the features that some node asks for, and ``column`` is where the cells of the node's own
    begin in a block of them; ``missing_branch`` is where missing cells go, be it learnt or the heaviest; ``readings``
    are those that occur, so that a single one needs no sorting of rows; ``shallowest`` is the depth of the first leaf.
    """

    reading: NDArray[np.int8]
    column: Ints
    limit: Floats
    whole: Ints
    first: Ints
    missing_branch: Ints
    start: Ints
    routes: Ints
    used: Ints
    readings: tuple[Reading, ...]
    floats: tuple[bool, ...]
    is_leaf: NDArray[np.bool_]
    shallowest: int


@dataclass(frozen=True, slots=True)
class Cells:
    """A block: ``cells: (column * BLOCK,)`` int64, and where any is missing, which: ``missing: (column * BLOCK,)``."""

    cells: Ints
    missing: NDArray[np.bool_] | None


def descend(tree: Tree, columns: Sequence[Column], rows: int) -> Descent:
    """Send every row down; ``columns`` are those of ``tree.features``, in that order.

    A missing value takes the branch learnt for it, else the heaviest; a category that the node did not see in
    training stops there, for the node's own distribution is what was known before asking.
    """
    return follow(lay_out(tree, are_floats(columns)), columns, rows)


def are_floats(columns: Sequence[Column]) -> tuple[bool, ...]:
    """Which columns hold float64, which a guide has to be made for."""
    return tuple(column.values.dtype.kind == "f" for column in columns)


def follow(guide: Guide, columns: Sequence[Column], rows: int) -> Descent:
    """What `descend` does, by a guide that was made for such columns."""
    node = np.empty(rows, np.int64) if len(guide.used) else np.zeros(rows, np.int64)
    used = [columns[f] for f in guide.used]
    size = max(BLOCK, -(-rows // (count_cores() * SHARES)))
    # a small table is not worth waking another thread
    shares = [slice(begin, min(begin + size, rows)) for begin in range(0, rows, size)]
    run_parallel(partial(_descend_share, guide, used, node), shares if used else ())
    return Descent(node, guide.is_leaf)


def lay_out(tree: Tree, floats: Sequence[bool]) -> Guide:
    """The guide through a tree for columns that `are_floats` where ``floats`` is True."""
    leaf = tree.is_leaf
    used = np.unique(tree.feature[~leaf])
    kinds = np.array([_kind_of(feature, is_float) for feature, is_float in zip(tree.features, floats, strict=True)])
    reading = kinds[tree.feature] if len(kinds) else np.zeros(tree.nodes, np.int8)
    reading = np.where((reading == Reading.ORDER) & (tree.form == Form.MULTIWAY), Reading.ROUTES, reading)
    reading = np.where(tree.form == Form.MISSING, Reading.PRESENT, reading)
    # A leaf reads as other nodes do. Whatever the cell, it is within its limit: branch 0, which is itself.
    comparing = [kind for kind in (Reading.FLOAT, Reading.WHOLE) if (reading[~leaf] == kind).any()]
    reading[leaf] = comparing[0] if comparing else Reading.WHOLE
    learnt = np.where(tree.form == Form.MISSING, 0, tree.missing_to)
    # the multiway split of a model that gives missing values a branch has none where nothing was missing
    fallback = np.where(learnt == NO_ROUTE, find_heaviest_branches(tree), learnt)
    return Guide(
        reading=reading.astype(np.int8),
        column=np.where(leaf, 0, np.searchsorted(used, tree.feature)) * BLOCK,
        limit=np.where(leaf, np.inf, tree.threshold),
        whole=np.where(leaf, _LARGEST, tree.whole),
        first=np.where(leaf, np.arange(tree.nodes), tree.first_child),
        missing_branch=np.where(leaf, 0, fallback),
        start=tree.category_start,
        routes=tree.category_branch,
        is_leaf=leaf,
        shallowest=int(tree.depth[leaf].min()),
        used=used,
        floats=tuple(floats),
        readings=tuple(Reading(kind) for kind in np.unique(reading)),
    )


def _kind_of(feature: Feature, is_float: bool) -> Reading:
    if feature.kind == "numeric":
        return Reading.FLOAT if is_float else Reading.WHOLE
    return Reading.ORDER if feature.kind == "ordinal" else Reading.ROUTES


def _descend_share(guide: Guide, columns: Sequence[Column], node: Ints, share: slice) -> None:
    """Write where the rows of a share end into ``node``."""
    space = np.empty((len(columns), BLOCK), np.int64)
    buffers = Buffers()
    only_floats = guide.readings == (Reading.FLOAT,)
    for begin in range(share.start, share.stop, BLOCK):
        rows = slice(begin, min(begin + BLOCK, share.stop))
        if only_floats:
            floats = space.view(np.float64)
            for place, column in enumerate(columns):
                floats[place, : rows.stop - begin] = column.values[rows]
            step: Step = partial(_step_floats, guide, floats.reshape(-1), buffers)
        else:
            step = partial(_step, guide, _fill(space, columns, rows))
        node[rows] = _descend_block(step, guide.shallowest, rows.stop - begin)


def _descend_block(step: Step, shallowest: int, rows: int) -> Ints:
    """(row,) the node in which each row of the block ends; none does before the depth ``shallowest``."""
    node, row = np.zeros(rows, np.int64), np.arange(rows)
    for _ in range(shallowest):
        step(node, row, node)
    ended = np.empty(rows, np.int64)
    following = np.empty(rows, np.int64)
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


class Buffers:
    """What `_step_floats` writes to, again and again: arrays of this size are dear to allocate."""

    def __init__(self) -> None:
        self.at = np.empty(BLOCK, np.int64)
        self.cell = np.empty(BLOCK)
        self.limit = np.empty(BLOCK)
        self.right = np.empty(BLOCK, bool)


def _step_floats(guide: Guide, cells: Floats, buffers: Buffers, node: Ints, row: Ints, following: Ints) -> None:
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


def _fill(space: Ints, columns: Sequence[Column], rows: slice) -> Cells:
    """The cells of a block; ``space: (column, BLOCK)`` is used again by the next one."""
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
    at = guide.column.take(node)
    at += row
    branch = _read_each(guide, cells.cells.take(at), node)
    if cells.missing is not None:
        gone = np.flatnonzero(cells.missing.take(at))
        branch[gone] = guide.missing_branch.take(node[gone])
    following[:] = np.where(branch == NO_ROUTE, node, guide.first.take(node) + branch)


def _read_each(guide: Guide, cell: Ints, node: Ints) -> Ints:
    """(entry,) the branch of every entry, each cell read as its node does."""
    if len(guide.readings) == 1:
        return _READ[guide.readings[0]](guide, cell, node).astype(np.int64)
    branch = np.empty(len(node), np.int64)
    reading = guide.reading.take(node)
    for kind in guide.readings:
        mine = np.flatnonzero(reading == kind)
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
