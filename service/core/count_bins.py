"""Bins counted: sums of a batch's entries by feature, node, class and bin.

Entries, which are grouped by node, are counted a stretch at a time, so that the processor's cache holds their keys:

    ((node - the first node of the stretch) * classes + class) * width + bin

Where rows weigh 1 and have classes, these tables are kept up from level to level: of two siblings only that with fewer
rows is counted, and the other one is what their parent has more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.bins import Binned, Tables
from service.core.criteria import Floats
from service.core.encoding import smallest_unsigned
from service.core.parallel import PARALLEL_CELLS, count_cores, run_parallel
from service.core.statistics import Ints

STRETCH = 2**18
"""About so many entries are counted together, more where they have many classes."""
FILL = 16
"""Entries that are counted together are at least so many times the cells of a node."""
ROOM = 0.5
"""Tables are kept up while they take no more than so many times the memory of the bins."""


LEAST_BITS = 10
"""Squares that are counted together with rows keep at least so many bits."""
STEP = 2**14
"""Squares are packed so many at a time, which the processor's cache holds."""


@dataclass(frozen=True, slots=True)
class Stretch:
    """Entries ``inside`` the batch: ``key: (entry,)`` without the bin, and the ``cells`` that they are counted in.

    In the smallest type that holds them, so that adding a bin takes little.
    """

    inside: slice
    key: NDArray[np.integer]
    cells: slice


def lay_out_stretches(batch: Batch, width: int, nodes: NDArray[np.bool_] | None = None) -> list[Stretch]:
    """The stretches of a batch where each class of a node has ``width`` cells; only of some ``nodes``, if these say."""
    classes = max(batch.tally.classes, 1)
    most = max(STRETCH, FILL * classes * width)
    counted = np.ones(len(batch.rows), bool) if nodes is None else nodes
    # a stretch ends where enough entries are together, and where nodes follow that are not counted
    stretch = np.where(counted, np.cumsum(batch.rows * counted) // most, -1)
    first = np.flatnonzero(counted & (np.diff(stretch, prepend=-1) != 0)).tolist()
    last = np.flatnonzero(counted & (np.diff(stretch, append=-1) != 0)).tolist()
    return [piece for run in zip(first, last, strict=True) for piece in _cut(batch, width, most, *run)]


def _cut(batch: Batch, width: int, most: int, first: int, last: int) -> Iterator[Stretch]:
    """The nodes from ``first`` to ``last``, which are one stretch, or a large one that is several."""
    classes, ends = max(batch.tally.classes, 1), np.cumsum(batch.rows)
    begin, end = int(ends[first] - batch.rows[first]), int(ends[last])
    cells = slice(first * classes * width, (last + 1) * classes * width)
    kind = smallest_unsigned(cells.stop - cells.start)
    pieces = max(1, (end - begin) // most)
    edges = [begin + (end - begin) * piece // pieces for piece in range(pieces + 1)]
    for inside in map(slice, edges, edges[1:]):
        group = (batch.entries.node[inside] - first) * classes
        if batch.tally.classes:
            group += batch.tally.label_entries[inside]
        group *= width
        yield Stretch(inside, group.astype(kind), cells)


def keep_up(batch: Batch, above: Batch | None = None, parent: Ints | None = None) -> Batch:
    """The batch with tables of its bins, if they are to be kept up: see above.

    ``parent: (node,)`` are the nodes of ``above``, which has tables, that they are children of.
    """
    binned, tally, nodes = batch.binned, batch.tally, batch.entries.nodes
    if binned is None or not tally.classes or not tally.counts_rows:
        return batch
    widths = np.array(binned.find_widths())
    if int(widths.sum()) * nodes * tally.classes * np.dtype(np.int32).itemsize > ROOM * binned.code.nbytes:
        return batch
    base = None if above is None or above.binned is None else above.binned.tables
    sibling, rest = np.empty((2, 0), np.int64)
    if above is not None and parent is not None and base is not None:
        sibling, rest = _pair_siblings(above.rows, batch.rows, parent)
    counted = np.ones(nodes, bool)
    counted[rest] = False
    lines = {width: np.flatnonzero(widths == width) for width in np.unique(widths).tolist()}
    counts = {}
    for width, some in lines.items():
        table = np.zeros((len(some), nodes * tally.classes * width), np.int32)
        _count(batch, binned, some, lay_out_stretches(batch, width, counted), [None], [table])
        counts[width] = table.reshape(len(some), nodes, tally.classes, width)
        if base is not None and parent is not None:
            counts[width][:, rest] = base.counts[width][:, parent[rest]] - counts[width][:, sibling]
    return replace(batch, binned=replace(binned, tables=Tables(lines, counts)))


def _pair_siblings(above: Ints, rows: Ints, parent: Ints) -> tuple[Ints, Ints]:
    """Nodes that are all the children of theirs, by twos: (pair,) those with fewer rows, and (pair,) the others.

    ``rows: (node,)``, and of the nodes that ``parent: (node,)`` is in ``above``.
    """
    order = np.lexsort((rows, parent))
    less, more = order[:-1], order[1:]
    pair = (parent[less] == parent[more]) & (rows[less] + rows[more] == above[parent[less]])
    return less[pair], more[pair]


def _count(
    batch: Batch, binned: Binned, lines: Ints, stretches: list[Stretch], amounts: list[Floats | None],
    sums: list[NDArray[Any]],
) -> None:  # fmt: skip
    """Add ``amounts``, None for 1, to ``sums``: (line, cell) each."""

    def add(places: Ints) -> None:
        for stretch in stretches:
            some = [None if amount is None else amount[stretch.inside] for amount in amounts]
            for place in places.tolist():
                # converted once, not by each count
                key = (stretch.key + binned.code[lines[place], stretch.inside]).astype(np.intp)
                for total, amount in zip(sums, some, strict=True):
                    total[place, stretch.cells] += np.bincount(key, amount, stretch.cells.stop - stretch.cells.start)

    tasks = np.array_split(np.arange(len(lines)), min(count_cores(), len(lines)))
    run_parallel(add, tasks, worth=len(lines) * len(batch.entries.row) > PARALLEL_CELLS)


@dataclass(frozen=True, slots=True)
class Packed:
    """Rows and squares in one number: ``amount: (entry,)`` is 2^shift and the square in units of 2^grain, cut off.

    No sum of them over rows of a node loses a digit. ``grain: (node,)``.
    """

    amount: Floats
    shift: int
    grain: Ints

    def unpack(self, total: Floats, node: Ints) -> tuple[Ints, Floats]:
        """How many rows are in sums ``total``, and their squares, less what was cut off: below one unit each."""
        rows = np.floor(total * 2.0**-self.shift)
        return rows.astype(np.int64), np.ldexp(total - rows * 2.0**self.shift, self.grain[node])


def pack_squares(batch: Batch) -> Packed | None:
    """For numbers whose rows weigh 1, unless a node has so many rows that little were left of squares."""
    tally = batch.tally
    if tally.classes or not tally.counts_rows:
        return None
    bits = int(batch.rows.max()).bit_length()
    shift, room = 53 - bits, 53 - 2 * bits
    if room < LEAST_BITS:
        return None
    squares = tally.squares.parts[0]
    grain = np.maximum(np.frexp(np.maximum.reduceat(squares, batch.starts()))[1] - room, 0)
    unit, amount = np.ldexp(1.0, -grain), np.empty(len(squares))
    for begin in range(0, len(amount), STEP):
        some = slice(begin, begin + STEP)
        np.floor(np.multiply(squares[some], unit.take(batch.entries.node[some]), out=amount[some]), out=amount[some])
        amount[some] += 2.0**shift
    return Packed(amount, shift, grain)


def count_lines(
    batch: Batch,
    binned: Binned,
    lines: Ints,
    width: int,
    stretches: list[Stretch],
    packed: Packed | None = None,
    *,
    roughly: bool = False,
) -> tuple[list[Ints], Ints, Floats | None]:
    """Whole-number sums (class or 1, group, cell) of the quantities that scores need; groups are line * nodes + node.

    Also how many rows there are, and in regression the bound on their squares: (group, cell). ``roughly``: of numbers
    without weights their first part only.
    """
    tally, classes, nodes = batch.tally, max(batch.tally.classes, 1), batch.entries.nodes
    if binned.tables is not None:
        # (line * node, class, cell) -> (class, line * node, cell)
        counts = binned.tables.read(width, lines).reshape(-1, classes, width).transpose(1, 0, 2).astype(np.int64)
        return [counts], counts.sum(0), None
    amounts = tally.list_amounts()[: 2 if roughly else None]
    if packed is not None:
        amounts[0] = packed.amount  # instead of rows, each of which weighs 1
    elif not tally.classes:
        amounts.append(tally.squares.parts[0])
    if not tally.counts_rows:
        amounts.append(None)
    sums = [np.zeros((len(lines), nodes * classes * width), np.int64 if a is None else np.float64) for a in amounts]
    _count(batch, binned, lines, stretches, amounts, sums)
    each = [s.reshape(-1, classes, width).transpose(1, 0, 2) for s in sums]
    node = np.tile(np.arange(nodes), len(lines))[:, None]
    if packed is not None:
        rows, squares = packed.unpack(each[0][0], node)
        whole = [rows[None], *(s.astype(np.int64) for s in each[1:])]
        return whole, rows, tally.bound_squares(squares, np.ldexp(rows, packed.grain[node]), node)
    rows = (each[0] if tally.counts_rows else each.pop()).sum(0).astype(np.int64)
    bound = None if tally.classes else tally.bound_squares(each.pop()[0], rows, node)
    return [s.astype(np.int64, copy=False) for s in each], rows, bound
