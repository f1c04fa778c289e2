"""What leaves answer where their own rows are not all that counts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.assemble import shrink_rates
from service.core.errors import InvalidParameters
from service.core.prune_cost import Costs, find_risks
from tests.core.making import grow, numbers, values

EVENTS = st.lists(st.tuples(st.integers(0, 3), st.integers(1, 4), st.integers(0, 3)), min_size=2, max_size=12).filter(
    lambda rows: any(events for _, _, events in rows)
)
"""Rows of x, exposure and events, some of which happened."""


@given(EVENTS, st.sampled_from([0.5, 1.0, 3.0]))
@settings(max_examples=100, deadline=None)
def test_rates_are_drawn_towards_the_roots(rows: list[tuple[int, int, int]], prior: float) -> None:
    """Each node answers (e + 1/k²) / (t + 1/(k² r)), and its risk is half the deviance of its rows about that."""
    x, exposure, events = (np.array(column, float) for column in zip(*rows, strict=True))
    target = values((events / exposure).tolist(), exposure.tolist())
    learnt = grow([numbers("x", x.tolist())], target, {"criterion": "poisson", "rate_prior": prior})
    tree, rate = learnt.tree, events.sum() / exposure.sum()
    risks = find_risks(tree, learnt.learner.objective, Costs(), "error")
    for leaf in np.unique(learnt.leaf).tolist():
        mine = learnt.leaf == leaf
        e, t = events[mine].sum(), exposure[mine].sum()
        answer = (e + 1 / prior**2) / (t + 1 / (prior**2 * rate))
        assert tree.prediction[leaf] == pytest.approx(answer, rel=1e-9)
        deviance = sum(
            (n * math.log(n / (answer * time)) if n else 0) - n + answer * time
            for n, time in zip(events[mine], exposure[mine], strict=True)
        )
        assert risks.cost[leaf] == pytest.approx(deviance, rel=1e-7, abs=1e-7)
    assert tree.prediction[0] == pytest.approx(rate, rel=1e-12)


def test_rparts_rates() -> None:
    """Of 146 patients with 54 events, 9 of 61 and 45 of 85: rates 1, .3634439 and 1.61486 (stagec, rpart 4.1.19)."""
    exposure = np.array([54.0, 26.514562949018753, 27.485437050981243])
    shrunk = shrink_rates(exposure, np.array([54.0, 9.0, 45.0]) / exposure, 1.0)
    assert [f"{rate:.7g}" for rate in shrunk] == ["1", "0.3634439", "1.61486"]


def test_a_branch_without_events() -> None:
    """Ten rows of which the first five saw nothing: with a prior they are cut off, without it no branch is."""
    columns, target = [numbers("x", list(range(10)))], values([0.0] * 5 + [1.0] * 5)
    drawn = grow(columns, target, {"criterion": "poisson", "rate_prior": 1}).tree
    assert drawn.rows[drawn.is_leaf].tolist() == [5, 5]
    assert drawn.prediction[1:].tolist() == pytest.approx([1 / 7, 6 / 7])
    bold = grow(columns, target, {"criterion": "poisson"}).tree
    assert bold.rows[bold.is_leaf].tolist() == [6, 4]


def test_a_prior_is_for_rates() -> None:
    """Of variance, and beside monotonic features, it is refused."""
    columns, target = [numbers("x", [1, 2])], values([1, 2])
    for parameters in ({"criterion": "variance"}, {"criterion": "poisson", "monotonic": {"x": "up"}}):
        with pytest.raises(InvalidParameters) as caught:
            grow(columns, target, parameters | {"rate_prior": 1})
        assert caught.value.faults[0].place == "/parameters/rate_prior"
