"""Resamples search the nodes of a tree as growth would: a twin draws the same rows and grows a stump in each node."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.audit import prepare_audit
from service.core.descend import descend
from service.core.folds import take_rows
from service.core.learn import Learnt, learn
from service.core.parameters import resolve
from service.core.schema import Column, Target
from service.core.stability import NO_ROWS, NO_SPLIT, Stability, resample

RESAMPLES = 4


def make_columns(rows: int, seed: int, gaps: bool) -> list[Column]:
    """A whole, a real and a nominal column, few distinct values each."""
    random = np.random.default_rng(seed)
    whole = Column("whole", "numeric", random.integers(0, 5, rows))
    real = random.integers(0, 9, rows) / 4
    if gaps:
        real[random.random(rows) < 0.2] = np.nan
    kind = Column("kind", "nominal", random.integers(0, 4, rows).astype(np.int32), ("a", "b", "c", "d"))
    return [whole, Column("real", "numeric", real), kind]


def make_target(columns: list[Column], seed: int, task: str, weighted: bool) -> Target:
    """A target that leans on the columns."""
    random = np.random.default_rng(seed + 1)
    rows = len(columns[0].values)
    signal = columns[0].values + np.nan_to_num(columns[1].values) + (columns[2].values == 1)
    noisy = signal + random.integers(0, 4, rows)
    weight = random.integers(1, 4, rows).astype(float) if weighted else None
    if task == "classification":
        return Target("y", ("n", "y"), (noisy > np.median(noisy)).astype(np.int32), weight=weight)
    return Target("y", values=noisy.astype(float), weight=weight)


def grow(columns: list[Column], target: Target, **posted: Any) -> Learnt:  # noqa: ANN401 - parameters of every kind
    """A tree by the cart preset."""
    task = "classification" if target.is_classification else "regression"
    return learn(columns, target, resolve("cart", posted, task))


def audit(learnt: Learnt) -> Any:  # noqa: ANN401 - as it is made
    """What stability needs of a tree."""
    return prepare_audit(learnt.learner, learnt.target, learnt.tree, learnt.leaf)


@settings(max_examples=25, deadline=None)
@given(
    rows=st.integers(20, 120),
    seed=st.integers(0, 1000),
    task=st.sampled_from(["classification", "regression"]),
    gaps=st.booleans(),
    weighted=st.booleans(),
    parameters=st.sampled_from([{}, {"min_samples_leaf": 3}, {"min_samples_split": 15}, {"nominal": "multiway"}]),
)
def test_stumps_of_the_drawn_rows(
    rows: int, seed: int, task: str, gaps: bool, weighted: bool, parameters: dict[str, Any]
) -> None:
    """In every node the resample chooses what a tree of depth one chooses that is grown from the rows drawn there."""
    columns = make_columns(rows, seed, gaps)
    target = make_target(columns, seed, task, weighted)
    learnt = grow(columns, target, max_depth=3, **parameters)
    tree = learnt.tree
    found = resample(audit(learnt), None, RESAMPLES, seed)
    for number in range(RESAMPLES):
        draw = np.sort(np.random.default_rng([seed, number]).integers(0, rows, rows))
        drawn, of_drawn = take_rows(columns, target, draw)
        leaf = descend(tree, drawn, rows).node
        for node in np.flatnonzero(~tree.is_leaf).tolist():
            here = [row for row in range(rows) if is_below(tree.parent, int(leaf[row]), node)]
            if not here:
                assert found.feature[number, node] == NO_ROWS
                continue
            stump = grow(*take_rows(drawn, of_drawn, np.array(here)), max_depth=1, **parameters).tree
            expected = NO_SPLIT if stump.nodes == 1 else int(stump.feature[0])
            assert found.feature[number, node] == expected
            if expected in (0, 1) and not np.isnan(stump.threshold[0]):
                assert found.threshold[number, node] == stump.threshold[0]


def is_below(parent: np.ndarray[Any, Any], node: int, top: int) -> bool:
    """Whether a node is another one or stands below it."""
    while node != top and node >= 0:
        node = int(parent[node])
    return node == top


@pytest.mark.parametrize("missing", ["fractional", "surrogate", "branch"])
def test_every_way_for_missing_values(missing: str) -> None:
    """Resamples run with rows that are parted, led by surrogates or given a branch, and mostly agree on the root."""
    columns = make_columns(400, 3, gaps=True)
    learnt = grow(columns, make_target(columns, 3, "classification", weighted=False), max_depth=3, missing=missing)
    found = resample(audit(learnt), None, 10, 1)
    assert (found.feature[:, 0] == learnt.tree.feature[0]).mean() > 0.5
    inner = ~learnt.tree.is_leaf
    assert (found.feature[:, ~inner] == NO_ROWS).all()


def test_seeds() -> None:
    """The same seed gives the same answer, and more resamples only add to it; another seed gives another."""
    columns = make_columns(100, 5, gaps=False)
    audited = audit(grow(columns, make_target(columns, 5, "regression", weighted=False), max_depth=3))
    few, many, other = (resample(audited, None, n, seed) for n, seed in ((5, 1), (8, 1), (5, 2)))
    assert (many.feature[:5] == few.feature).all()
    np.testing.assert_array_equal(many.threshold[:5], few.threshold)
    assert not np.array_equal(other.threshold, few.threshold, equal_nan=True)


def test_a_split_that_is_certain() -> None:
    """Where one feature tells the classes all by itself, every resample takes it, and its categories part alike."""
    kind = Column("kind", "nominal", np.arange(60, dtype=np.int32) % 3, ("a", "b", "c"))
    noise = Column("noise", "numeric", np.random.default_rng(1).random(60))
    learnt = grow([noise, kind], Target("y", ("n", "y"), (kind.values == 2).astype(np.int32)))
    found = resample(audit(learnt), None, 20, 0)
    assert (found.feature[:, 0] == 1).all()
    assert found.same[:, 0].all()


def test_other_categories() -> None:
    """A resample that parts the categories otherwise is not the same split, though it is the same feature."""
    kind = Column("kind", "nominal", np.repeat([0, 1, 2], 20).astype(np.int32), ("a", "b", "c"))
    codes = np.r_[np.zeros(20), np.tile([0, 1], 10), np.ones(20)].astype(np.int32)
    learnt = grow([kind], Target("y", ("n", "y"), codes), max_depth=1)
    found: Stability = resample(audit(learnt), None, 60, 0)
    assert (found.feature[:, 0] == 0).all()
    assert 0 < found.same[:, 0].mean() < 1
