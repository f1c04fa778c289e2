"""The least change of one feature that alters what a row is answered, found by trying every value that could.

While all other cells stay, the answer is constant between the thresholds that the row can meet. So it is enough to try,
for each of them, the nearest value on its other side; of categories each one is tried. What is told was answered.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.answers import Answers, answer_rows
from service.core.candidates import NO_ROUTE
from service.core.criteria import TOLERANCE, Floats
from service.core.descend import read_branches
from service.core.errors import Fault, InvalidData
from service.core.explain import How, decide, read_cells
from service.core.folds import take_cells
from service.core.guide import Guide, Reading, are_floats, lay_out
from service.core.parting import spread
from service.core.schema import Column, Feature
from service.core.statistics import Ints
from service.core.tree import Tree

SPANS = "spans"
"""Where a model's file has what `measure_spans` found in training; older ones lack it."""
MOST_TRIED = 5_000_000
"""In one request at most so many values are tried, in seconds; each counts for every node that its row ends in."""
_BLOCK = 1 << 17
_WAYS = 1 << 17
"""Rows look for thresholds together as long as they do not come to more nodes at a time."""


@dataclass(frozen=True, slots=True)
class Changes:
    """The least changes of one feature; (change,), at most one for each row.

    ``cells`` are the new cells, ``distance`` is Gower's (1971): that of numbers by the feature's range in training, of
    ordered categories by the number of levels, 1 for other categories and where there was no value. ``prediction:
    (change,)`` or (change, output) is the new answer, a code for classes; ``leaf`` where the row would end.
    """

    feature: int
    row: Ints
    cells: Column
    distance: Floats
    prediction: Floats
    leaf: Ints


@dataclass(frozen=True, slots=True)
class _Tried:
    """Values to try: for each the row, the cell that it would have, and how far that is."""

    row: Ints
    cells: Column
    distance: Floats


def find_changes(
    tree: Tree, guide: Guide, columns: Sequence[Column], answers: Answers, spans: Floats, ends: Ints
) -> Iterator[Changes]:
    """For each feature that the tree asks for, the least change that alters the answer of each row, where there is one.

    ``answers`` are those of the rows, ``ends: (row,)`` in how many nodes each ends; ``spans: (3, feature)``: see
    `measure_spans`. Raises `InvalidData` where more than `MOST_TRIED`
    values would have to be tried.
    """
    budget = MOST_TRIED
    for f in guide.used.tolist():
        tried = _list_values(tree, guide, columns, f, ends, spans[:, f], budget)
        budget -= int(ends[tried.row].sum())
        if len(tried.row):
            yield _try_values(guide, tree, columns, answers, f, tried, ends)


def find_spans(tree: Tree) -> Floats:
    """(3, feature) as `measure_spans`, of the training values that the tree knows of, those beside its thresholds."""
    columns = []
    for f, feature in enumerate(tree.features):
        known = (tree.feature == f) & np.isfinite(tree.beside)
        values = (tree.beside_whole if feature.integer else tree.beside)[known]
        columns.append(Column(feature.name, feature.kind, values))
    return measure_spans(columns)


def measure_spans(columns: Sequence[Column]) -> Floats:
    """(3, column) the least and the greatest finite number, and half of how far they are apart, exact for whole ones.

    NaN for categories, and where there is no number.
    """
    spans = np.full((3, len(columns)), np.nan)
    for place, column in enumerate(columns):
        if column.kind != "numeric":
            continue
        values = column.values if column.missing is None else column.values[~column.missing]
        if not len(values):
            continue
        # both leave out NaN, and only infinities are worth a copy
        low, high = np.fmin.reduce(values), np.fmax.reduce(values)
        if np.isinf(low) or np.isinf(high):
            values = values[np.isfinite(values)]
            low, high = (values.min(), values.max()) if len(values) else (np.nan, np.nan)
        spans[:, place] = low, high, _halve_gap(np.asarray(high), np.asarray(low))
    return spans


def complete_spans(spans: Floats) -> Floats:
    """(3, feature) what `measure_spans` gives; models of earlier releases have two rows of it."""
    return spans if len(spans) == 3 else np.concatenate([spans, [spans[1] / 2 - spans[0] / 2]])


def _halve_gap(a: NDArray[Any], b: NDArray[Any]) -> Floats:
    """Half of how far numbers are apart, which no numbers make too large; whole ones are not rounded before."""
    with np.errstate(invalid="ignore", over="ignore"):
        if a.dtype.kind == b.dtype.kind == "i":
            # differences of 64 bits, which may be too large for a sign; below 0 they go around, and come out right
            return np.asarray((np.maximum(a, b).astype(np.uint64) - np.minimum(a, b).astype(np.uint64)) / 2)
        return np.asarray(np.abs(a / 2 - b / 2))


def _try_values(
    guide: Guide, tree: Tree, columns: Sequence[Column], answers: Answers, feature: int, tried: _Tried, ends: Ints
) -> Changes:
    before = answers.prediction[answers.index]
    found, leaf = [before[:0]], [answers.leaf[:0]]
    part_of = np.cumsum(ends[tried.row]) // _BLOCK
    for part in np.split(np.arange(len(tried.row)), np.flatnonzero(np.diff(part_of)) + 1):
        rows = tried.row[part]
        table = [take_cells(column, rows) for column in columns]
        table[feature] = take_cells(tried.cells, part)
        if guide.floats != are_floats(table):
            guide = lay_out(tree, are_floats(table))
        told = answer_rows(tree, guide, table, len(rows))
        found.append(told.prediction[told.index])
        leaf.append(told.leaf)
    after = np.concatenate(found)
    mine = np.flatnonzero(_differ(tree, before[tried.row], after))
    # the nearest of each row, the first in the order of values among equals
    order = mine[np.lexsort((tried.cells.values[mine], tried.distance[mine], tried.row[mine]))]
    best = order[np.diff(tried.row[order], prepend=-1) != 0]
    return Changes(
        feature, tried.row[best], take_cells(tried.cells, best), tried.distance[best], after[best],
        np.concatenate(leaf)[best],
    )  # fmt: skip


def _differ(tree: Tree, before: Floats, after: Floats) -> NDArray[np.bool_]:
    """(change,) whether answers are others; numbers that differ by rounding only are the same."""
    if tree.classes or tree.answers:
        return np.asarray(before != after)
    apart = np.abs(after - before) > TOLERANCE * np.maximum(np.abs(after), np.abs(before))
    return np.asarray(apart if apart.ndim == 1 else apart.any(1))


def _list_values(
    tree: Tree, guide: Guide, columns: Sequence[Column], f: int, ends: Ints, span: Floats, budget: int
) -> _Tried:
    """The values of a feature that may alter the answer of each row."""
    feature, rows = tree.features[f], len(ends)
    found, count = [(np.empty(0, np.int64), np.empty(0, np.int64))], 0
    stands = tree.surrogates
    tests = int((tree.feature == f).sum()) + (0 if stands is None else int((stands.feature == f).sum()))
    ways = tree.nodes if guide.parted else min(tree.nodes, 1 + int(tree.branches.max()) * tests)
    together = max(1, min(guide.block, _WAYS // ways))
    for begin in range(0, rows, together):
        row, test = _meet_tests(tree, guide, columns, f, slice(begin, min(begin + together, rows)))
        if feature.kind != "numeric":
            row = np.unique(row)
            row, test = spread(row, np.zeros_like(row), np.full(len(row), len(feature.categories)))
        found.append((row, test))
        count += int(ends[row].sum())
        if count > budget:
            message = (
                f"these rows and this tree leave too many values to try (over {MOST_TRIED}): "
                'send fewer rows, or say "counterfactuals": false'
            )
            raise InvalidData(Fault("/data", message))
    row, test = (np.concatenate(each) for each in zip(*found, strict=True))
    if feature.kind == "numeric":
        return _list_numbers(feature, guide, take_cells(columns[f], row), row, test, span)
    return _list_categories(feature, columns[f].values[row].astype(np.int64), row, test)


def _meet_tests(tree: Tree, guide: Guide, columns: Sequence[Column], f: int, rows: slice) -> tuple[Ints, Ints]:
    """(met,) rows and tests on the feature that they come to, whatever its value; surrogates stand behind the nodes."""
    cells = read_cells(guide, columns, rows)
    stands, on_it = guide.stands, np.empty(0, np.int64)
    if stands is not None and tree.surrogates is not None:
        on_it = np.flatnonzero(tree.surrogates.feature == f)
    begins = np.zeros(tree.nodes + 1, np.int64) if tree.surrogates is None else tree.surrogates.start
    first, last = np.searchsorted(on_it, begins[:-1]), np.searchsorted(on_it, begins[1:])
    row, node = np.arange(rows.stop - rows.start), np.zeros(rows.stop - rows.start, np.int64)
    met: list[tuple[Ints, Ints]] = []
    while len(node := node[going := ~guide.is_leaf[node]]):
        row = row[going]
        own = tree.feature[node] == f
        met.append((row[own], node[own]))
        free = own
        if len(on_it):
            # one that is asked after others may not be asked at all: to try too much does no harm
            lost = np.flatnonzero(~own & (first[node] < last[node]))
            lost = lost[read_branches(guide, cells, node[lost], row[lost]) == NO_ROUTE]
            index, at = spread(lost, first[node[lost]], (last - first)[node[lost]])
            met.append((row[index], tree.nodes + on_it[at]))
            free = own.copy()
            free[lost] = True
        told = decide(tree, guide, cells, node, row)
        free = free | (told.how == How.PARTS)
        index, child = spread(np.flatnonzero(free), guide.first[node[free]], guide.branches[node[free]])
        only = np.flatnonzero(~free & (told.how != How.STOPPED))
        row = np.concatenate([row[index], row[only]])
        node = np.concatenate([child, guide.first[node[only]] + told.branch[only]])
    none = np.empty(0, np.int64)
    found, test = (np.concatenate([each[i] for each in met] or [none]) for i in range(2))
    return found + rows.start, test


def _list_numbers(feature: Feature, guide: Guide, cells: Column, row: Ints, test: Ints, span: Floats) -> _Tried:
    """Beside each threshold the nearest number on the other side of it, or on both sides where there is no value."""
    missing = cells.is_missing()
    # a test for a value at all is passed by any
    present = guide.reading[test] == Reading.PRESENT
    kept = np.flatnonzero(missing | ~present)
    row, test, missing, present, cells = row[kept], test[kept], missing[kept], present[kept], take_cells(cells, kept)
    low, _, half = np.nan_to_num(span).tolist()
    limit: Floats | Ints = guide.whole[test] if feature.integer else guide.limit[test]
    limit = np.where(present, int(low) if feature.integer else low, limit)
    above = limit + 1 if feature.integer else np.nextafter(limit, np.inf)
    whole = cells.values.dtype.kind == "i"
    below_it = cells.values <= (guide.whole[test] if whole else guide.limit[test])
    twice = np.flatnonzero(missing)
    value = np.concatenate([np.where(below_it & ~missing, above, limit), above[twice]])
    gone = np.concatenate([missing, missing[twice]])
    distance = _halve_gap(value, np.concatenate([cells.values, cells.values[twice]])) / (half if half > 0 else 0.5)
    kept = np.flatnonzero(np.isfinite(value.astype(np.float64)))
    distance = np.where(gone, 1.0, distance)[kept]
    return _Tried(np.concatenate([row, row[twice]])[kept], Column(feature.name, "numeric", value[kept]), distance)


def _list_categories(feature: Feature, old: Ints, row: Ints, code: Ints) -> _Tried:
    """Every other category."""
    kept = np.flatnonzero(code != old)
    old, row, code = old[kept], row[kept], code[kept]
    distance = np.ones(len(code))
    if feature.kind == "ordinal":
        distance = np.where(old >= 0, np.abs(code - old) / max(len(feature.categories) - 1, 1), 1.0)
    return _Tried(row, Column(feature.name, feature.kind, code.astype(np.int32), feature.categories), distance)
