"""Deviances of numbers are those of exact arithmetic, however near or far the targets are."""

from __future__ import annotations

import math
from dataclasses import replace
from decimal import Decimal, localcontext

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.deviations import rise_above
from service.core.entries import Entries
from service.core.statistics import Tally
from tests.core.making import grow, numbers, values

LEAST = 1e-280
"""Of smaller targets some digits lie below the least number that has all of them."""
COUNTS = st.lists(
    st.sampled_from([0.0, 0.25, 1.0, 3.0, 7.5, LEAST, 1e-6, 1e6]) | st.floats(LEAST, 1e3), min_size=1, max_size=20
)


@given((st.floats(-1, 1e6) | st.floats(-0.5, 0.5) | st.floats(-1e-9, 1e-9)).filter(lambda u: u == 0 or abs(u) > 1e-30))
def test_rise_above(step: float) -> None:
    """(1 + u) log(1 + u) - u has nearly all digits of exact arithmetic, where the difference would lose them."""
    with localcontext() as context:
        context.prec = 120
        whole = 1 + Decimal(step)
        exact = (whole * whole.ln() if whole else Decimal(0)) - Decimal(step)
    assert float(rise_above(np.array([step]))[0]) == pytest.approx(float(exact), rel=1e-13, abs=1e-300)


@given(COUNTS.filter(any), st.sampled_from([0.0, 1e6]))
def test_impurity_is_the_mean_of_y_log_ratios(targets: list[float], offset: float) -> None:
    """A node's impurity is the mean of y log(y / mean), to the digits that 60-digit arithmetic gives."""
    targets = [target + offset for target in targets]
    with localcontext() as context:
        context.prec = 60
        exact = [Decimal(target) for target in targets]
        mean = sum(exact) / len(exact)
        deviance = sum(y * (y / mean).ln() for y in exact if y) / len(exact)
    tree = grow([numbers("x", [1.0] * len(targets))], values(targets), {"criterion": "poisson"}).tree
    assert tree.impurity[0] == pytest.approx(float(deviance), rel=1e-9, abs=1e-12 * float(mean) * 1e-6)
    assert tree.mean[0] == pytest.approx(math.fsum(targets) / len(targets), rel=1e-12)


@given(COUNTS, st.randoms(use_true_random=False))
def test_order_changes_no_bit(targets: list[float], source: object) -> None:
    """The deviance of a node is the same to the last bit whatever the order of its rows."""
    zeros = np.zeros(len(targets), np.int64)

    def total(drawn: list[float]) -> bytes:
        tally = Tally(replace(values(drawn), statistic="deviance"), Entries(np.arange(len(drawn)), zeros, 1))
        return tally.combine(tally.sum(zeros, 1), zeros[:1]).tobytes()

    expected = total(targets)
    source.shuffle(targets)  # type: ignore[attr-defined] # a random.Random
    assert total(targets) == expected
