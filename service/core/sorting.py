"""Keys, turns and numbers in order, faster than numpy sorts them: by counting their digits."""

from __future__ import annotations

from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

Ints: TypeAlias = NDArray[np.int64]
Numbers: TypeAlias = NDArray[np.float64] | NDArray[np.int64]


def argsort_keys(keys: NDArray[np.integer], bound: int) -> NDArray[np.int64]:
    """Stable order of ``keys: (entry,)``, all in [0, bound).

    Least significant digit first, 16 bits at a time: numpy sorts uint16 by counting, several times faster than
    it sorts int64.
    """
    order = keys.astype(np.uint16).argsort(kind="stable")
    shift = 16
    while (bound - 1) >> shift:
        digit = (keys >> shift).astype(np.uint16).take(order)
        order = order.take(digit.argsort(kind="stable"))
        shift += 16
    return order


FEW_TURNS = 8
"""Up to so many groups it is quicker to look each of them out than to sort."""


def argsort_turns(turn: NDArray[np.unsignedinteger], turns: int) -> Ints:
    """Stable order of ``turn: (entry,)``; what has none, which is ``turns``, is left out."""
    if turns <= FEW_TURNS:
        return np.concatenate([(turn == one).nonzero()[0] for one in range(turns)])
    return argsort_keys(turn, turns + 1)[: np.count_nonzero(turn < turns)]


def list_turns(parent: Ints) -> Ints:
    """(node,) the turn in which each node comes, the first being 0: within a turn their ``parent: (node,)`` ascend."""
    return np.cumsum(np.diff(parent, prepend=-1) <= 0)


SORTED_BY_CELL = 1500
"""From so many on it pays to sort numbers by cells first."""
CELL_BITS = 16
"""Cells for fewer numbers than half of 2^16 are 2^16, and 2^32 for more."""
WINDOW = 256
"""So few numbers numpy sorts without parting them, five times as fast as twice as many."""


def argsort_numbers(numbers: Numbers) -> Ints:
    """Stable order of numbers without NaN."""
    if len(numbers) < SORTED_BY_CELL:
        return numbers.argsort(kind="stable")
    return sort_numbers(numbers)[0]


def sort_numbers(numbers: Numbers) -> tuple[Ints, NDArray[np.bool_]]:
    """Stable order of numbers without NaN, and (entry,) whether the next in order is another; the last is False.

    By cells of a uniform grid, which is counting, then those that share one: numpy is quick where most are in order
    already, as many equal numbers are. Where there is no such grid, the numbers themselves are sorted.
    """
    if not len(numbers):
        return np.empty(0, np.int64), np.empty(0, bool)
    if numbers.dtype.kind == "i" and int(numbers.max()) - int(numbers.min()) < 2**CELL_BITS:
        whole = (numbers - numbers.min()).astype(np.uint16)
        order = np.argsort(whole, kind="stable")
        whole = whole.take(order)
        return order, np.append(whole[1:] != whole[:-1], False)
    cell, bits = _find_cells(numbers)
    if cell is not None:
        order, ascending = _sort_cells(cell, bits)
        alike = np.zeros(len(cell), bool)
        np.equal(ascending[1:], ascending[:-1], out=alike[:-1])
        shared = alike.copy()
        shared[1:] |= alike[:-1]
        place = np.flatnonzero(shared)
        part = numbers.take(order[place])
        if (part[1:] < part[:-1]).any():
            again = np.argsort(part, kind="stable")
            order[place], part = order[place].take(again), part.take(again)
        turns = ~alike
        # numbers of one cell stand side by side there, too
        turns[place] |= np.append(part[1:] != part[:-1], True)
        turns[-1] = False
        return order, turns
    order = np.argsort(numbers, kind="stable")
    numbers = numbers.take(order)
    return order, np.append(numbers[1:] != numbers[:-1], False)


def _sort_cells(cell: NDArray[np.uint32], bits: int) -> tuple[Ints, NDArray[np.integer]]:
    """Stable order of cells below 2^bits, and the cells in it.

    Where the upper halves of the cells put few in one place they are all that is counted. Windows that hold what shares
    an upper half are sorted then, and windows between these for what two of them share.
    """
    if bits == CELL_BITS or np.bincount(cell[::4] >> CELL_BITS).max() > WINDOW // 2:
        order = argsort_keys(cell, 2**bits)
        return order, cell.take(order)
    order = (cell >> CELL_BITS).astype(np.uint16).argsort(kind="stable")
    key = cell.take(order).astype(np.uint64)
    key <<= 32
    key |= order.view(np.uint64)
    for begin in (0, WINDOW // 2):
        end = begin + (len(key) - begin) // WINDOW * WINDOW
        key[begin:end].reshape(-1, WINDOW).sort(axis=1)
        key[end:].sort()
    if (key[1:] < key[:-1]).any():
        key.sort(kind="stable")  # what is nearly in order is merged quickly
    np.bitwise_and(key, 2**32 - 1, out=order.view(np.uint64))
    key >>= 32
    return order, key


def _find_cells(numbers: Numbers) -> tuple[NDArray[np.uint32] | None, int]:
    """The cell of each number on a uniform grid of 2^bits, and these bits; None where there is no such grid."""
    if len(numbers) < SORTED_BY_CELL:
        return None, 0
    low, high = numbers.min(), numbers.max()
    bits = CELL_BITS if len(numbers) < 2 ** (CELL_BITS - 1) else 2 * CELL_BITS
    span = float(high) - float(low)
    scale = (2.0**bits - 1) / span if span > 0 else 0.0
    if not (0 < scale < np.inf and np.isfinite(float(low))):
        return None, 0
    # each step is monotone, whatever rounding does
    scaled = numbers.astype(np.float64, copy=False) - float(low)
    scaled *= scale
    return scaled.astype(np.uint32), bits
