"""Targets of which only pairwise dissimilarities are known: sums over all pairs of any union of runs of entries.

The impurity of rows with weights w is half their mean dissimilarity, sum of w_i w_j d_ij / (2 W^2) over all ordered
pairs; with squared distances it is the variance. Sums over pairs come from running sums along both axes of the matrix,
its rows in the order of a feature's cuts:

    set of runs  [b1, e1) + [b2, e2)      sum over pairs of runs of  C[e, e'] - C[b, e'] - C[e, b'] + C[b, b']

A node of n rows takes n^2 steps and 8 n^2 bytes for each feature, so the number of rows has to be limited.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.parallel import PARALLEL_CELLS, run_parallel

Floats = NDArray[np.float64]
Ints = NDArray[np.int64]
CELLS = 4_000_000
"""Matrices are gathered together up to about so many cells; a larger one is alone."""
TIED = 1e-12
"""Medoids whose sums differ by less, relative to the least, are equals."""


class Pairs:
    """Dissimilarities ``distance: (row, row)`` of the training rows, and what each row is predicted by: ``answers``.

    ``weight: (row,)``, None where all weigh 1. ``order: (row,)``: of equal medoids the one that comes first in it.
    """

    def __init__(
        self, distance: Floats, weight: Floats | None = None, answers: Sequence[Any] = (), order: Ints | None = None
    ) -> None:
        self.distance, self.weight, self.answers = distance, weight, answers
        self.order = np.arange(len(distance)) if order is None else order

    def __len__(self) -> int:
        """How many rows there are."""
        return len(self.distance)

    @cached_property
    def parts(self) -> list[tuple[float, Ints]]:
        """Weighted dissimilarities as whole numbers (row, row) by their units, whose sums are exact in any order."""
        weight = np.ones(len(self)) if self.weight is None else self.weight
        whole = weight[:, None] * weight * self.distance
        bits = 61 - 2 * int(np.ceil(np.log2(len(self) + 1)))
        largest = float(whole.max(initial=0.0))
        if largest < 2.0**bits and (np.rint(whole) == whole).all():
            return [(1.0, whole.astype(np.int64))]
        unit = float(np.ldexp(1.0, max(int(np.frexp(largest)[1]) - bits, -1000)))
        high = np.rint(whole / unit)
        low = np.rint((whole - high * unit) / (unit * 2.0**-bits))
        found = [(unit, high.astype(np.int64)), (unit * 2.0**-bits, low.astype(np.int64))]
        return found if low.any() else found[:1]

    def take_answers(self, rows: Ints) -> tuple[Any, ...]:
        """What the given rows are predicted by."""
        return tuple(self.answers[row] for row in rows.tolist()) if len(self.answers) else tuple(rows.tolist())

    def sum_sets(self, row: Ints, spans: tuple[Ints, Ints], begin: Ints, end: Ints) -> Floats:
        """(set,) sums of weighted dissimilarities over all ordered pairs of each union of runs (run, set).

        ``row: (place,)``; ``spans``: (segment,) where each segment begins and ends, ascending; a set lies in one.
        """
        total = np.zeros(begin.shape[1])
        first, last = spans
        filled = np.flatnonzero((end > begin).any(0))
        lowest = np.where(end > begin, begin, np.iinfo(np.int64).max).min(0)
        own = np.flatnonzero(last > first)
        segment = own[np.searchsorted(first[own], lowest[filled], side="right") - 1]
        for chunk, rows, inside in _gather(row, first, last, np.unique(segment)):
            here = np.isin(segment, chunk)
            mine, which = filled[here], np.searchsorted(chunk, segment[here])
            runs = begin[:, mine] - first[chunk[which]], end[:, mine] - first[chunk[which]]
            for (unit, _), sums in zip(self.parts, self._sum_parts(rows, inside, which, runs), strict=True):
                total[mine] += unit * sums
        return total

    def _sum_parts(self, rows: Ints, inside: NDArray[np.bool_], which: Ints, runs: tuple[Ints, Ints]) -> list[Ints]:
        """(set,) of each part the sums over pairs of runs, the parts side by side."""
        return run_parallel(
            lambda part: _read_sets(_accumulate(part[1], rows, inside), which, *runs),
            self.parts,
            worth=rows.shape[0] * rows.shape[1] ** 2 > PARALLEL_CELLS,
        )

    def sum_blocks(self, row: Ints, edges: Ints) -> Floats:
        """(block, block) sums over pairs of rows of two blocks; ``row: (place,)``, blocks lie between ``edges``."""
        whole = np.ones((1, len(row)), bool)
        total = np.zeros((len(edges) - 1, len(edges) - 1))
        for unit, part in self.parts:
            upto = _accumulate(part, row[None], whole)[0][np.ix_(edges, edges)]
            total += unit * np.diff(np.diff(upto, axis=0), axis=1)
        return total

    def find_medoids(self, row: Ints, rows: Ints) -> tuple[Floats, Floats]:
        """(node,) the sum over all pairs of each node, and the row whose weighted sum of dissimilarities is least.

        ``row: (entry,)`` grouped by node; ``rows: (node,)`` says how many each has.
        """
        last = np.cumsum(rows)
        total, medoid = np.zeros(len(rows)), np.zeros(len(rows))
        weight = np.ones(len(self)) if self.weight is None else self.weight
        for chunk, members, inside in _gather(row, last - rows, last, np.arange(len(rows))):
            sums = np.zeros(members.shape)
            for unit, part in self.parts:
                along = _take(part, members, inside).sum(2)
                total[chunk] += unit * along.sum(1)
                sums += unit * along
            sums = np.where(inside, sums / weight[members], np.inf)
            least = sums.min(1, keepdims=True)
            rank = np.where(sums <= least + TIED * np.abs(least), self.order[members], len(self))
            medoid[chunk] = members[np.arange(len(members)), rank.argmin(1)]
        return total, medoid


def _gather(row: Ints, first: Ints, last: Ints, segments: Ints) -> Iterator[tuple[Ints, Ints, NDArray[np.bool_]]]:
    """Segments in chunks of like size: their ids (ascending), rows (segment, place), and which places are real."""
    size = (last - first)[segments]
    for width in _list_widths(size):
        alike = segments[(size <= width) & (size > width // 2)]
        for chunk in np.array_split(alike, len(alike) * width * width // CELLS + 1):
            if len(chunk):
                widest = int((last - first)[chunk].max())
                place = first[chunk][:, None] + np.arange(widest)
                inside = place < last[chunk][:, None]
                yield chunk, row[np.where(inside, place, 0)], inside


def _list_widths(size: Ints) -> list[int]:
    """Powers of two, each size being above half of one and not above it."""
    exponents: list[int] = np.unique(np.ceil(np.log2(np.maximum(size, 1))).astype(np.int64)).tolist()
    return [1 << exponent for exponent in exponents]


def _take(part: Ints, rows: Ints, inside: NDArray[np.bool_]) -> Ints:
    """(segment, place, place) the cells of each segment's rows, 0 where a place is not real."""
    if len(rows) == 1:
        return np.asarray(part.take(rows[0], axis=0).take(rows[0], axis=1)[None])
    cells = part[rows[:, :, None], rows[:, None, :]]
    if not inside.all():
        cells *= inside[:, :, None] & inside[:, None, :]
    return cells


def _accumulate(part: Ints, rows: Ints, inside: NDArray[np.bool_]) -> Ints:
    """(segment, place + 1, place + 1) running sums along both axes, from 0 on."""
    segments, width = rows.shape
    upto = np.zeros((segments, width + 1, width + 1), np.int64)
    inner = upto[:, 1:, 1:]
    cells = _take(part, rows, inside)
    np.cumsum(cells, axis=2, out=cells)
    # turned round, for sums along the last axis are several times as quick: the matrix is the same both ways
    inner[:] = cells.transpose(0, 2, 1)
    np.cumsum(inner, axis=2, out=inner)
    return upto


def _read_sets(upto: Ints, which: Ints, begin: Ints, end: Ints) -> Ints:
    """(set,) the sums over pairs of runs; ``which: (set,)`` is the matrix of each."""
    total = np.zeros(len(which), np.int64)
    # a run that is none begins and ends at its segment's first place
    real = end > begin
    begin, end = np.where(real, begin, 0), np.where(real, end, 0)
    for b, e in zip(begin, end, strict=True):
        for other_b, other_e in zip(begin, end, strict=True):
            total += upto[which, e, other_e] - upto[which, b, other_e]
            total += upto[which, b, other_b] - upto[which, e, other_b]
    return total


@dataclass(frozen=True, slots=True)
class Categories:
    """Categories of one segment: sums over pairs of them (category, category), and ``weight: (category,)``."""

    sums: Floats
    weight: Floats


def order_categories(categories: Categories) -> Floats:
    """(category,) places on a line: the first principal coordinate of the mean dissimilarities (Gower 1966)."""
    mean = categories.sums / np.outer(categories.weight, categories.weight)
    share = categories.weight / categories.weight.sum()
    square = mean * mean
    within = square - square @ share
    centred = -(within - share @ within) / 2
    root = np.sqrt(share)
    vector = np.linalg.eigh(root[:, None] * (centred + centred.T) / 2 * root)[1][:, -1] / root
    sign = np.sign(vector[np.abs(vector).argmax()]) or 1.0
    return np.asarray(np.round(vector * sign, 12))
