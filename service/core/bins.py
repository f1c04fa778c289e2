"""Coarse codes of numeric features: at most 255 bins in value order, roughly equal in count, missing apart.

All that the search asks of bins is that they are monotone; equal counts only make it quick. A fine uniform grid with
a look-up table assigns them several times faster than a binary search; where the values crowd into a few cells of the
grid (heavy tails) the binary search is used after all.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import cast

import numpy as np
from numpy.typing import NDArray

from service.core.encoding import CodedFeature
from service.core.parallel import run_parallel
from service.core.quantities import Selection
from service.core.sorting import Ints, Numbers

BINS = 255
"""The most bins of values; what is missing has a bin of its own after them."""
WIDTHS = (16, 64, 256)
"""A node has so many cells for a feature, the fewest that hold its bins and what is missing."""
GRID = 2**16 - 2
"""Cells of the uniform grid between the outermost edges."""
SAMPLED = 20_000
"""Edges are quantiles of so many values."""
CROWDED = 4
"""A bin with so many times the rows that the fullest should have sends the column to the binary search."""
PORTION = 2**16
"""The bins of so many rows are brought into another order together: the processor's cache holds the order."""
STEP = 2**14
"""Rows are binned so many at a time, which the processor's cache holds."""


@dataclass(frozen=True, slots=True)
class Tables:
    """How many entries of each class each bin has: ``counts[width]: (line, node, class, cell)`` int32, of lines alike.

    ``line[width]`` are the lines that have so many cells, the last of which may be what is missing.
    """

    line: dict[int, Ints]
    counts: dict[int, NDArray[np.int32]]

    def take(self, keep: Selection) -> Tables:
        """The same for some nodes."""
        return Tables(self.line, {width: counts[:, keep] for width, counts in self.counts.items()})

    def read(self, width: int, lines: Ints) -> NDArray[np.int32]:
        """(line, node, class, cell) of some lines that have so many cells."""
        return self.counts[width][np.searchsorted(self.line[width], lines)]


@dataclass(frozen=True, slots=True)
class Binned:
    """Bins of the features ``feature: (line,)``: ``code: (line, entry)`` uint8.

    ``bins``: how many each feature has, which is also the code of a missing value.
    ``edges``: of each feature (bin + 1,) float64 between which the values of a bin lie; only for parting bins further.
    ``single: (line,)`` is True where each bin of the feature is one value, so that its edges are all its cuts.
    ``tables``: how many entries of each node are in each bin, if that is kept up.
    """

    feature: Ints
    code: NDArray[np.uint8]
    bins: list[int]
    edges: list[NDArray[np.float64]]
    single: NDArray[np.bool_]
    tables: Tables | None = None

    def find_widths(self) -> list[int]:
        """(line,) how many cells a node has for each feature."""
        return [next(width for width in WIDTHS if bins < width) for bins in self.bins]

    def count_bytes(self) -> int:
        """About how much memory it takes."""
        return self.code.nbytes + sum(edges.nbytes for edges in self.edges)

    def take(self, inside: Selection, keep: Selection) -> Binned:
        """The same for some nodes, and their entries."""
        return replace(self, code=self.code[:, inside], tables=self.tables and self.tables.take(keep))

    def reorder(self, order: Ints) -> Binned:
        """The bins of some entries in another order; not counted."""
        if len(order) == self.code.shape[1] and (order[1:] > order[:-1]).all():
            return replace(self, tables=None)
        code = np.empty((len(self.code), len(order)), np.uint8)

        def fill(begin: int) -> None:
            some = slice(begin, begin + PORTION)
            for line in range(len(code)):
                np.take(self.code[line], order[some], out=code[line, some], mode="clip")

        run_parallel(fill, range(0, len(order), PORTION))
        return replace(self, code=code, tables=None)


def bin_features(features: Sequence[CodedFeature], which: Ints) -> Binned:
    """The bins of numeric features, for all rows."""
    rows = len(features[which[0]].kept)
    code = np.empty((len(which), rows), np.uint8)

    filled = run_parallel(lambda line: _fill_bins(features[which[line]], code[line]), range(len(which)))
    bins = [count for count, _ in filled]
    single = np.array([edges is None for _, edges in filled])
    return Binned(which, code, bins, [np.empty(0) if edges is None else edges for _, edges in filled], single)


def _fill_bins(coded: CodedFeature, out: NDArray[np.uint8]) -> tuple[int, NDArray[np.float64] | None]:
    """Write the bins of one feature; returns how many there are and their edges, None where each is one value."""
    numbers = coded.numbers
    missing = coded.is_missing() if coded.has_missing else None
    rows = _draw_rows(len(numbers), missing)
    sample = cast("Numbers", np.sort(numbers[rows]))
    first = np.ones(len(sample), bool)
    np.not_equal(sample[1:], sample[:-1], out=first[1:])
    values = sample[first]
    single = len(values) <= BINS // 2 and _fill_singles(numbers, values, missing, out)
    edges = _choose_edges(sample, values)
    bins = len(edges) + 1
    if not single and len(values) > BINS // 2:
        _fill_by_grid(numbers, edges, out)
        # of the rows drawn, which tell as much as all
        fullest = np.diff(np.searchsorted(sample, edges, side="right"), prepend=0, append=len(sample)).max()
        if np.bincount(out[rows]).max() > CROWDED * fullest:
            out[:] = np.searchsorted(edges, numbers, side="left")
    if missing is not None:
        # no code is greater; several times as fast as an assignment by mask
        np.maximum(out, missing.view(np.uint8) * np.uint8(bins), out=out)
    return bins, None if single else _widen(edges, numbers)


def _draw_rows(count: int, missing: NDArray[np.bool_] | None) -> Ints:
    """Some of the rows with a value, always the same ones; drawn, since evenly spaced rows may all be alike."""
    rows = np.arange(count) if count <= SAMPLED else np.random.default_rng(0).integers(0, count, SAMPLED)
    return rows if missing is None else rows[~missing[rows]]


def _widen(edges: Numbers, numbers: Numbers) -> NDArray[np.float64]:
    """(bin + 1,) the edges between the least and the greatest number."""
    return np.concatenate([[np.fmin.reduce(numbers)], edges, [np.fmax.reduce(numbers)]]).astype(np.float64)


def _choose_edges(sample: Numbers, values: Numbers) -> Numbers:
    """Up to 254 values of the ascending ``sample``: a bin holds what is above one edge and not above the next."""
    if len(values) <= BINS:
        return values[:-1]
    return cast("Numbers", np.unique(sample[np.linspace(0, len(sample), BINS + 1)[1:-1].astype(np.int64)]))


def _fill_singles(numbers: Numbers, values: Numbers, missing: NDArray[np.bool_] | None, out: NDArray[np.uint8]) -> bool:
    """A bin for each of few ``values``; True where no others occur."""
    if not len(values):
        out[:] = 0
        return False
    _fill_by_grid(numbers, values[:-1], out)
    for exact in (False, True):
        if exact:
            out[:] = np.searchsorted(values[:-1], numbers, side="left")
        same = values[out] == numbers
        if bool((same if missing is None else same | missing).all()):
            return True
    return False


def _fill_by_grid(numbers: Numbers, edges: Numbers, out: NDArray[np.uint8]) -> None:
    """Bins by way of a uniform grid: monotone whatever rounding does, since each step is."""
    low, high = (float(edges[0]), float(edges[-1])) if len(edges) else (0.0, 0.0)
    with np.errstate(over="ignore", invalid="ignore"):
        # the last cell is for what lies above all edges
        scale = (GRID - 1) / (high - low) if high > low else 0.0
    if not (0 < scale < np.inf and np.isfinite(low)):
        out[:] = np.searchsorted(edges, numbers, side="left")
        return

    def find_cells(values: Numbers) -> NDArray[np.uint16]:
        with np.errstate(over="ignore", invalid="ignore"):
            cell = values.astype(np.float64, copy=False) - low
            cell *= scale
            # cell 0 lies below the first edge; NaN, which is missing, is overwritten by the caller
            np.fmax(cell, -1.0, out=cell)
            np.minimum(cell, GRID, out=cell)
            cell += 1.0
            return cell.astype(np.uint16)

    table = np.searchsorted(find_cells(edges), np.arange(GRID + 2), side="left").astype(np.uint8)
    for begin in range(0, len(numbers), STEP):
        out[begin : begin + STEP] = table.take(find_cells(numbers[begin : begin + STEP]))
