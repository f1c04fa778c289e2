"""Sums over pairs of rows are those of plain loops, whole numbers to the last bit, and so is the medoid."""

from __future__ import annotations

import random
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.pairs import Categories, Pairs, order_categories

ROWS = st.integers(1, 12)


def make_pairs(seed: int, rows: int, *, whole: bool, weighted: bool) -> Pairs:
    """Random symmetric dissimilarities."""
    draw = random.Random(seed)  # noqa: S311 - a fixed sequence, not a secret
    distance = np.zeros((rows, rows))
    for i, j in product(range(rows), range(rows)):
        if i < j:
            distance[i, j] = distance[j, i] = draw.randrange(9) if whole else draw.choice([0.1, 1 / 3, 7e3, 1e-3, 0])
    choices = [1, 2, 5] if whole else [0.1, 2.7, 1]
    return Pairs(distance, np.array([float(draw.choice(choices)) for _ in range(rows)]) if weighted else None)


def add_up(pairs: Pairs, members: list[int]) -> Fraction:
    """The sum of w_i w_j d_ij over all ordered pairs."""
    weight = [1.0] * len(pairs) if pairs.weight is None else pairs.weight.tolist()
    distance = pairs.distance.tolist()
    return sum(
        (Fraction(weight[i]) * Fraction(weight[j]) * Fraction(distance[i][j]) for i, j in product(members, members)),
        Fraction(0),
    )


@settings(deadline=None)
@given(
    st.integers(0, 10**6),
    st.lists(ROWS, min_size=1, max_size=4),
    st.booleans(),
    st.booleans(),
    st.lists(
        st.lists(st.tuples(st.integers(0, 12), st.integers(0, 12)), min_size=2, max_size=2), min_size=1, max_size=6
    ),
)
def test_unions_of_runs(
    seed: int, sizes: list[int], whole: bool, weighted: bool, sets: list[list[tuple[int, int]]]
) -> None:
    """In segments of any sizes the pairs of two runs, within each and between them, are all counted once."""
    draw = random.Random(seed)  # noqa: S311 - a fixed sequence, not a secret
    pairs = make_pairs(seed, 12, whole=whole, weighted=weighted)
    row = [r for size in sizes for r in draw.sample(range(12), size)]
    last = np.cumsum(sizes)
    begin, end = np.zeros((2, 2, len(sets)), np.int64)
    members: list[list[int]] = []
    for index, runs in enumerate(sets):
        segment = draw.randrange(len(sizes))
        first = int(last[segment]) - sizes[segment]
        cuts = [first + edge for edge in sorted(min(edge, sizes[segment]) for run in runs for edge in run)]
        begin[:, index], end[:, index] = cuts[::2], cuts[1::2]
        members.append([row[i] for low, high in zip(cuts[::2], cuts[1::2], strict=True) for i in range(low, high)])
    found = pairs.sum_sets(np.array(row), (last - np.array(sizes), last), begin, end)
    for total, inside in zip(found.tolist(), members, strict=True):
        exact = add_up(pairs, inside)
        assert total == exact if whole else total == pytest.approx(float(exact), rel=1e-10)


@settings(deadline=None)
@given(st.integers(0, 10**6), st.lists(ROWS, min_size=1, max_size=4), st.booleans(), st.booleans())
def test_medoids(seed: int, sizes: list[int], whole: bool, weighted: bool) -> None:
    """A node's medoid is the member of least weighted sum of dissimilarities, the first of equals in the order."""
    draw = random.Random(seed)  # noqa: S311 - a fixed sequence, not a secret
    pairs = make_pairs(seed, 12, whole=whole, weighted=weighted)
    pairs.order = np.array(draw.sample(range(12), 12))
    nodes = [draw.sample(range(12), size) for size in sizes]
    total, medoid = pairs.find_medoids(np.array([r for node in nodes for r in node]), np.array(sizes))
    weight = [1.0] * 12 if pairs.weight is None else pairs.weight.tolist()
    for index, node in enumerate(nodes):
        assert total[index] == pytest.approx(float(add_up(pairs, node)), rel=1e-10)
        sums = {i: sum(Fraction(weight[j]) * Fraction(pairs.distance[i, j]) for j in node) for i in node}
        least = min(sums.values())
        tied = [i for i in node if sums[i] <= least * (1 + Fraction(1, 10**12))]
        assert medoid[index] == min(tied, key=lambda i: int(pairs.order[i]))


def test_categories_on_a_line_are_ordered_along_it() -> None:
    """Dissimilarities that are distances on a line give the order of the line, from one end or the other."""
    place = np.array([3.0, -1, 7, 0.5, 2])
    weight = np.array([1.0, 2, 1, 3, 1])
    sums = np.abs(place[:, None] - place) * np.outer(weight, weight)
    order = np.argsort(order_categories(Categories(sums, weight))).tolist()
    assert order in ([1, 3, 4, 0, 2], [2, 0, 4, 3, 1])
