"""Where the order of rows sends them is where their values do."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.core.candidates import Form
from service.core.route import route_entries
from service.core.schema import Column
from service.core.search import search
from tests.core.growing import SORTED, make_root, random_columns, random_target


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("count", [2, 5, 0])
def test_entries_go_where_their_values_send_them(count: int, gaps: bool) -> None:
    """The branch that the order of rows tells is the one that comparing values gives, in nodes without a split too."""
    source = np.random.default_rng(3)
    columns = random_columns(source, 900, gaps=gaps)
    target = random_target(source, columns, count, "none")
    node = np.repeat(np.arange(30), 30)
    node[:2] = 30
    if gaps:  # a column that tells the target by lacking values
        told = target.values > 0 if target.values is not None else np.asarray(target.codes) == 0
        columns.append(Column("told", "numeric", np.where((node < 5) & told, np.nan, source.random(900))))
    learner, batch = make_root(columns, target, {"min_samples_leaf": 2}, SORTED, node.tolist())
    splits = search(learner, batch)
    assert splits.side is not None
    assert splits.side.any()
    assert -1 in splits.feature
    if gaps:
        assert {0, 1} <= set(splits.missing_to.tolist())
        assert {Form.LEAF, Form.THRESHOLD, Form.MISSING} == set(splits.form.tolist())
    assert splits.side.tolist() == route_entries(learner, batch, replace(splits, side=None)).tolist()
