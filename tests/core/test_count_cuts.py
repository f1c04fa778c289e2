"""Cuts that are rated as they are counted have the reasons and scores that tables have, to the last bit."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core import count_cuts
from service.core.audit import rate_table
from service.core.batch import Batch
from service.core.count_cuts import Rater, can_count
from service.core.judge import count_tried
from service.core.learner import Learner
from service.core.lines import draw_line, walk_cuts
from service.core.listing import score_branches
from service.core.schema import Column
from tests.core.growing import SORTED, make_root
from tests.core.making import classes, numbers

RULES: list[dict[str, Any]] = [
    {},
    {"min_samples_leaf": 7},
    {"min_samples_leaf": 3, "min_weight_leaf": 11.0, "leaf_limit": "two"},
    {"min_weight_leaf": 11.0, "cut_limit": "c45"},
    {"min_gain": 0.01},
    {"cut_penalty": "tried", "cut_limit": "c45", "min_samples_leaf": 2},
    {"cut_penalty": "distinct", "min_samples_leaf": 4},
]
ALTERATIONS: list[dict[str, Any]] = [{}, {"class_weight": "balanced"}, {"priors": {"a": 0.7, "b": 0.3}}]
SELECTIONS = [
    ("gini", "criterion"), ("entropy", "criterion"), ("gain_ratio", "criterion"), ("gain_ratio", "c45"),
    ("gini_gain_ratio", "c45"), ("goodness", "criterion"), ("positive_correctness", "criterion"),
    ("true_positive_rate", "criterion"), ("gini_gain_ratio", "criterion"),
]  # fmt: skip


def make_node(
    seed: int, rows: int, marks: str, digits: int, parameters: dict[str, Any], weight: list[float] | None = None
) -> tuple[Learner, Batch]:
    """One node with three numbers, one of them the class in disguise."""
    source = np.random.default_rng(seed)
    code = source.integers(0, len(marks), rows)
    code[: len(marks)] = np.arange(len(marks))
    cells = [source.normal(size=rows).round(digits), (code + source.normal(size=rows)).round(digits), code * 1.0]
    columns: list[Column] = [numbers(f"x{i}", line.tolist()) for i, line in enumerate(cells)]
    return make_root(columns, classes([marks[c] for c in code.tolist()], weight), parameters, SORTED)


@settings(max_examples=150, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    rows=st.sampled_from([40, 300]),
    marks=st.sampled_from(["ab", "abc", "abcdefghijk"]),
    digits=st.sampled_from([1, 9]),
    how=st.sampled_from(SELECTIONS),
    rules=st.sampled_from(RULES),
    alteration=st.sampled_from(ALTERATIONS),
    spent=st.booleans(),
)
def test_counted_cuts_are_those_of_tables(
    seed: int, rows: int, marks: str, digits: int, how: tuple[str, str], rules: dict[str, Any],
    alteration: dict[str, Any], spent: bool,
) -> None:  # fmt: skip
    """Portion by portion, under every criterion, limit, price and weight of classes; so has every other measure."""
    if len(marks) > 2:
        alteration = {} if "priors" in alteration else alteration
        how = how if "positive" not in how[0] and "true" not in how[0] else ("gini", "criterion")
    if how[0] not in ("entropy", "gain_ratio"):
        rules = {name: value for name, value in rules.items() if name != "cut_penalty"}  # which is in bits
    parameters = {"criterion": how[0], "selection": how[1], **rules, **alteration}
    learner, batch = make_node(seed, rows, marks, digits, parameters)
    if spent:
        batch = replace(batch, used=np.array([[True, False, False]]))
    rater, counted = Rater(learner, batch), []
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(count_cuts, "CELLS", 128)
        for feature in range(3):
            line = draw_line(learner, batch, feature)
            if not can_count(learner, batch, line):
                continue
            counted.append(feature)
            tables = list(walk_cuts(batch, line))
            tried = None
            if learner.parameters.cut_penalty:
                tried = np.sum([count_tried(learner, line.block, table) for table in tables], axis=0)
            parts = [rate_table(learner, batch, line.block, table, tried) for table in tables]
            reason, within, score, gain = (np.concatenate(each) for each in zip(*parts, strict=True))
            for measure in learner.objective.measures():
                rated = rater.rate(line, measure)
                other = np.concatenate(
                    [score_branches(learner.objective, table.branches, table.gone, measure) for table in tables]
                )
                assert np.array_equal(rater.score(line, measure), other, equal_nan=True)
                assert rated.other is not None
                assert np.array_equal(rated.other, other, equal_nan=True)
            assert rated.reason.tolist() == reason.tolist()
            assert np.array_equal(rated.score, score, equal_nan=True)
            assert (rated.within is None) == (how[1] == "criterion")
            if rated.within is not None:
                assert (rated.within == within).all()
                assert (gain == within)[reason == 0].all()
            assert (rated.tried is None) == (tried is None)
            assert tried is None or rated.tried == tried
    assert counted == [0, 1] or (digits == 1 and rows == 40)


def test_what_is_not_counted() -> None:
    """Lines of few cuts, rows that weigh more than 1, and monotonic features are left to tables."""
    learner, batch = make_node(0, 90, "ab", 3, {})
    assert [can_count(learner, batch, draw_line(learner, batch, feature)) for feature in range(3)] == [
        True,
        True,
        False,
    ]
    directed = replace(learner, directions=np.zeros(3, np.int64))
    assert not can_count(directed, batch, draw_line(learner, batch, 0))
    weighted, heavy = make_node(0, 90, "ab", 3, {}, [2.0] * 90)
    assert not can_count(weighted, heavy, draw_line(weighted, heavy, 0))
