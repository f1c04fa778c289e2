"""Sums do not depend on the order of rows, and whole weights give whole counts."""

from __future__ import annotations

import math
from random import Random

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.core.criteria import Floats
from service.core.entries import Entries
from service.core.schema import Target
from service.core.statistics import Tally
from tests.core.making import classes, values

MESSY = st.floats(-1e6, 1e6, allow_subnormal=False) | st.sampled_from([0.1, 0.2, 0.3, 1 / 3, 1e-9, 1e12])
HEAVY = st.sampled_from([0.1, 0.7, 1.0, 3.3, 1e-3, 1e5])
ROWS = st.integers(1, 30)


def total(target: Target, order: list[int]) -> Floats:
    """(channel,) the statistics of all rows as one node, in the given order, about the node's centre."""
    row = np.array(order)
    weight = None if target.weight is None else target.weight[row]
    tally = Tally(target, Entries(row, np.zeros(len(row), np.int64), 1, weight))
    stats = tally.combine(tally.sum(np.zeros(len(row), np.int64), 1), np.zeros(1, np.int64))[:, 0]
    return np.append(stats, tally.centre)


@given(st.lists(st.tuples(MESSY, HEAVY), min_size=1, max_size=30), st.randoms(use_true_random=False))
def test_order_changes_no_bit(rows: list[tuple[float, float]], source: Random) -> None:
    """Weighted sums and squares of any numbers are the same to the last bit in another order."""
    target = values([value for value, _ in rows], [weight for _, weight in rows])
    order = list(range(len(rows)))
    expected = total(target, order)
    source.shuffle(order)
    assert total(target, order).tobytes() == expected.tobytes()


@given(st.lists(st.tuples(MESSY, HEAVY), min_size=1, max_size=30))
def test_sums_are_accurate(rows: list[tuple[float, float]]) -> None:
    """The mean and the variance of a node are those of exactly rounded sums."""
    weight, mean, square, centre = total(values([v for v, _ in rows], [w for _, w in rows]), list(range(len(rows))))
    heavy = math.fsum(w for _, w in rows)
    exact = math.fsum(v * w for v, w in rows) / heavy
    spread = math.fsum(w * (v - exact) ** 2 for v, w in rows) / heavy
    largest = max(abs(v) for v, _ in rows)
    assert math.isclose(weight, heavy, rel_tol=1e-14)
    assert math.isclose(centre + mean / weight, exact, rel_tol=1e-12, abs_tol=1e-14 * largest)
    assert math.isclose(square / weight - (mean / weight) ** 2, spread, rel_tol=1e-9, abs_tol=1e-26 * largest**2)


@given(st.lists(st.tuples(st.sampled_from("abc"), HEAVY, st.integers(0, 3)), min_size=1, max_size=30))
def test_parts_add_up(rows: list[tuple[str, float, int]]) -> None:
    """Sums of groups add up, as whole numbers, to exactly the sum of all: a branch and its sibling make the node."""
    target = classes([label for label, _, _ in rows], [weight for _, weight, _ in rows])
    count = len(rows)
    tally = Tally(target, Entries(np.arange(count), np.zeros(count, np.int64), 1, target.weight))
    parts = tally.sum(np.array([group for *_, group in rows]), 4)
    for part, whole in zip(parts, tally.sum(np.zeros(count, np.int64), 1), strict=True):
        assert part.sum(1).tolist() == whole[:, 0].tolist()


@given(st.lists(st.tuples(st.sampled_from("ab"), st.integers(1, 9)), min_size=1, max_size=30))
def test_whole_weights_are_counted(rows: list[tuple[str, int]]) -> None:
    """With whole weights the weights of the classes are exact, and need one part only."""
    target = classes(["a", "b", *(label for label, _ in rows)], [1, 1, *(weight for _, weight in rows)])
    stats = total(target, list(range(len(rows) + 2)))
    assert stats[:2].tolist() == [1 + sum(w for label, w in rows if label == name) for name in "ab"]


@given(MESSY, ROWS, HEAVY)
def test_a_constant_node_has_no_spread(value: float, rows: int, weight: float) -> None:
    """A node of equal targets has a sum of squares of exactly 0 about its centre, which is the target."""
    _, mean, square, centre = total(values([value] * rows, [weight] * rows), list(range(rows)))
    assert (mean, square, centre) == (0, 0, value)
