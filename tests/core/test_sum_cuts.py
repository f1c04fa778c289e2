"""Cuts that are scored as their numbers are summed have the scores and reasons of cuts in tables, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core import sum_cuts
from service.core.audit import rate_table
from service.core.batch import Batch
from service.core.count_cuts import Rater, can_count, can_rate
from service.core.learner import Learner
from service.core.lines import draw_line, walk_cuts
from service.core.listing import score_branches
from service.core.schema import Target
from service.core.sum_cuts import Plane, Sums, pack_parts
from tests.core.growing import SORTED, make_root
from tests.core.making import numbers


def make_node(
    seed: int, rows: int, digits: int, parameters: dict[str, Any], weight: np.ndarray[Any, Any] | None = None
) -> tuple[Learner, Batch]:
    """One node with three numbers, of which one has few values."""
    source = np.random.default_rng(seed)
    cells = [source.normal(size=rows), source.normal(size=rows).round(1), source.integers(0, 3, rows)]
    answers = (cells[0] + source.normal(size=rows)).round(digits)
    columns = [numbers(f"x{i}", line.tolist()) for i, line in enumerate(cells)]
    return make_root(
        columns, Target("y", values=answers, weight=weight), {"criterion": "variance", **parameters}, SORTED
    )


@settings(max_examples=60, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    rows=st.sampled_from([40, 300]),
    digits=st.sampled_from([0, 1, 12]),
    rules=st.sampled_from(
        [{}, {"min_samples_leaf": 7}, {"min_samples_leaf": 3, "min_weight_leaf": 11.0}, {"min_gain": 0.01}]
    ),
    spent=st.booleans(),
)
def test_summed_cuts_are_those_of_tables(seed: int, rows: int, digits: int, rules: dict[str, Any], spent: bool) -> None:
    """Portion by portion, under every limit, of whole targets and others; so has every measure of the variance."""
    learner, batch = make_node(seed, rows, digits, rules)
    if spent:
        batch = replace(batch, used=np.array([[True, False, False]]))
    rater, counted = Rater(learner, batch), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(sum_cuts, "STEP", 64)
        for feature in range(3):
            line = draw_line(learner, batch, feature)
            if not can_count(learner, batch, line):
                continue
            counted.append(feature)
            parts = [rate_table(learner, batch, line.block, table) for table in walk_cuts(batch, line)]
            reason, _, score, _ = (np.concatenate(each) for each in zip(*parts, strict=True))
            tables = list(walk_cuts(batch, line, scored=False))
            walked = [branches for _, branches, _ in Sums(batch).walk(line, scored=False)]
            assert (np.concatenate(walked, axis=2) == np.concatenate([t.branches for t in tables], axis=2)).all()
            for measure in learner.objective.measures():
                rated = rater.rate(line, measure)
                other = np.concatenate([score_branches(learner.objective, t.branches, t.gone, measure) for t in tables])
                for found in (rated.other, rater.score(line, measure)):
                    assert found is not None
                    assert np.array_equal(found, other, equal_nan=True)
            for told in (rated, rater.rate(line)):
                assert told.reason.tolist() == reason.tolist()
                assert np.array_equal(told.score, score, equal_nan=True)
                assert told.within is None
    assert 0 in counted


@given(
    st.lists(st.tuples(st.integers(-(2**31), 2**31 - 1), st.integers(-(2**31), 2**31 - 1)), min_size=1), st.booleans()
)
def test_two_parts_are_fetched_as_one(pairs: list[tuple[int, int]], wide: bool) -> None:
    """Whatever 32 bits hold comes out as it was; what they do not hold stays apart."""
    parts = tuple(np.array(part, float) for part in zip(*[*pairs, (2**31 * wide, 0)], strict=True))
    plane = Plane(pack_parts(parts), [1.0, 0.5], [0.0, 0.0])
    assert len(plane.amounts) == 1 + wide
    entry = np.arange(len(pairs))[::-1]
    assert [found.tolist() for found in plane.fetch(entry)] == [part[entry].tolist() for part in parts]


def test_what_is_not_summed() -> None:
    """Other criteria, several targets, rules of cuts and rows that weigh more than 1 are left to tables."""
    learner, batch = make_node(0, 90, 3, {})
    assert can_count(learner, batch, draw_line(learner, batch, 0))
    assert not can_rate(*make_node(0, 90, 3, {"criterion": "absolute_error"}))
    assert not can_rate(*make_node(0, 90, 3, {"reuse_features": "never"}))
    heavy = make_node(0, 90, 3, {}, np.full(90, 2.0))
    assert not can_count(*heavy, draw_line(*heavy, 0))
