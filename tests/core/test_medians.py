"""Deviations from medians of any sets of rows are those of plain sorting, whole numbers to the last bit."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core import medians
from service.core.entries import Entries
from service.core.medians import find_medians, find_middles
from service.core.statistics import Tally
from tests.core.making import values
from tests.oracle.naive_tree import absolute, median

TARGET = st.integers(-9, 9).map(float) | st.sampled_from([0.1, 1e6, -1e-3, 7.25])
HEAVY = st.sampled_from([1.0, 2.0, 5.0]) | st.sampled_from([0.1, 0.7, 3.3])
ROWS = st.lists(st.tuples(TARGET, HEAVY), min_size=1, max_size=20)


def rank(rows: list[tuple[float, float]], node: list[int], unit: bool) -> Tally:
    """The targets made ready, in nodes."""
    target = values([y for y, _ in rows], None if unit else [w for _, w in rows])
    entries = Entries(np.arange(len(rows)), np.array(node), max(node) + 1, target.weight)
    return Tally(replace(target, statistic="deviations"), entries)


def exactly(rows: list[tuple[float, float]], unit: bool) -> list[tuple[Fraction, Fraction]]:
    """(weight, target) of each row as fractions."""
    return [(Fraction(1) if unit else Fraction(w), Fraction(y)) for y, w in rows]


@given(ROWS, st.lists(st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)), min_size=3, max_size=3), min_size=1),
       st.booleans(), st.randoms(use_true_random=False))  # fmt: skip
def test_unions_of_runs(
    rows: list[tuple[float, float]], sets: list[list[tuple[int, int]]], unit: bool, source: object
) -> None:
    """The deviation of a union of runs is the least weighted sum of distances to one of its targets."""
    tally = rank(rows, [0] * len(rows), unit)
    place = list(range(len(rows)))
    source.shuffle(place)  # type: ignore[attr-defined] # a random.Random
    begin, end = np.zeros((2, 3, len(sets)), np.int64)
    chosen: list[list[int]] = []
    for index, runs in enumerate(sets):
        cuts = sorted(min(edge, len(rows)) for run in runs for edge in run)
        begin[:, index], end[:, index] = cuts[::2], cuts[1::2]
        chosen.append([place[i] for low, high in zip(cuts[::2], cuts[1::2], strict=True) for i in range(low, high)])
    found = find_middles(tally, np.array(place), (begin, end), np.zeros(len(sets), np.int64))[0]
    rounding = 1e-15 * max(abs(y) * w for y, w in rows) * len(rows)
    for index, members in enumerate(chosen):
        moments = exactly([rows[row] for row in members], unit)
        expected = absolute(moments) * sum(weight for weight, _ in moments)
        assert found[index] == pytest.approx(float(expected), rel=1e-12, abs=rounding * bool(members))


@pytest.mark.parametrize("unit", [True, False])
def test_of_few_sets_most_entries_are_left_out(unit: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few sets of many entries, overlapping, apart or empty, have the middles that they have among many sets."""
    source = np.random.default_rng(4)
    rows = [
        (float(y), float(w)) for y, w in zip(source.normal(size=3000).round(2), source.uniform(1, 2, 3000), strict=True)
    ]
    tally, place = rank(rows, [0] * 1500 + [1] * 1500, unit), source.permutation(1500)
    edges = np.sort(source.integers(0, 1500, (2, 2, 9)).reshape(4, 9), axis=0)
    edges[1:, 4] = edges[0, 4]
    found = []
    for few_of in (8, 10**9):
        monkeypatch.setattr(medians, "FEW_OF", few_of)
        found.append(find_middles(tally, place, (edges[::2], edges[1::2]), np.zeros(9, np.int64)))
        found.append(find_medians(tally, np.array([1500, 1500])))
    assert [each.tolist() for each in (*found[0], *found[1])] == [each.tolist() for each in (*found[2], *found[3])]


@given(st.lists(ROWS, min_size=1, max_size=4), st.booleans())
def test_nodes(groups: list[list[tuple[float, float]]], unit: bool) -> None:
    """The median of a node is the middle of two targets where these share the weight evenly; its deviation is exact."""
    node = [index for index, group in enumerate(groups) for _ in group]
    rows = [row for group in groups for row in group]
    deviation, middle = find_medians(rank(rows, node, unit), np.bincount(node))
    for index, group in enumerate(groups):
        moments = exactly(group, unit)
        total = sum(weight for weight, _ in moments)
        assert deviation[index] == pytest.approx(float(absolute(moments) * total), rel=1e-12, abs=1e-10)
        if unit or all(w == int(w) for _, w in group):
            assert middle[index] == pytest.approx(float(median(moments)), rel=1e-15)


@given(st.lists(st.tuples(st.integers(-99, 99), st.integers(1, 9)), min_size=2, max_size=20))
def test_whole_numbers_are_exact(rows: list[tuple[int, int]]) -> None:
    """Of whole targets and weights the deviation is the whole number that it is, and equal targets have none."""
    tally = rank([(float(y), float(w)) for y, w in rows], [0] * len(rows), unit=False)
    runs = np.array([[0, *range(len(rows))]]), np.array([[len(rows), *range(1, len(rows) + 1)]])
    found = find_middles(tally, np.arange(len(rows)), runs, np.zeros(len(rows) + 1, np.int64))[0]
    moments = [(Fraction(w), Fraction(y)) for y, w in rows]
    assert found[0] == absolute(moments) * sum(w for _, w in rows)
    assert not found[1:].any()
