"""The best split of each node: the first of the tied, whichever nodes and features are searched together."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.core.candidates import Form
from service.core.learner import Sizes
from service.core.parallel import list_runs
from service.core.search import RUN_BINS, Splits, join_splits, search
from tests.core.growing import SORTED, make_root, random_columns, random_target
from tests.core.making import classes, labels, numbers

NAMES = ("feature", "form", "score", "branches", "missing_to", "lower", "upper")
WAYS = pytest.mark.parametrize("sizes", [SORTED, Sizes(coarse=1)], ids=["sorted", "binned"])


@WAYS
@pytest.mark.parametrize("criterion", ["gini", "gain_ratio", "goodness", "entropy"])
def test_nodes_do_not_meet(criterion: str, sizes: Sizes) -> None:
    """Hundreds of nodes searched together get the splits that they get one by one."""
    source = np.random.default_rng(2)
    nodes = 3 * RUN_BINS // 256 + 5
    columns = [*random_columns(source, 3000, gaps=True), labels("n", [f"c{i}" for i in source.integers(0, 8, 3000)])]
    target = random_target(source, columns, 3, "real")
    node = np.r_[np.arange(nodes), source.integers(0, nodes, 3000 - nodes)].tolist()
    learner, batch = make_root(columns, target, {"criterion": criterion}, sizes, node)
    together = search(learner, batch)
    assert (together.feature >= 0).any()
    for at in range(0, nodes, 17):
        alone, mine = search(learner, batch.run(at, at + 1)), together.take_node(at)
        for name in NAMES:
            assert getattr(alone, name).tolist() == getattr(mine, name).tolist(), (at, name)
        assert alone.category.tolist() == mine.category.tolist()


@WAYS
@pytest.mark.parametrize("criterion", ["gini", "entropy", "gain_ratio", "gini_gain_ratio", "goodness"])
def test_the_first_of_equal_features_wins(criterion: str, sizes: Sizes) -> None:
    """Copies of a feature, turned round or stretched, are tied, and the first in order is taken."""
    source = np.random.default_rng(5)
    cells = source.permutation(60)
    weak = source.permutation(60)
    target = classes(
        [("a", "b")[int(cell > 20) ^ int(flip < 0.2)] for cell, flip in zip(cells, source.random(60), strict=True)]
    )
    good = [cells, -cells, cells * 1000, cells + 2**60]
    for first in range(3):
        features = [weak] * first + good
        columns = [numbers(f"x{i}", each.tolist()) for i, each in enumerate(features)]
        learner, batch = make_root(columns, target, {"criterion": criterion}, sizes)
        assert search(learner, batch).feature.tolist() == [first]


@WAYS
def test_the_first_of_equal_cuts_wins(sizes: Sizes) -> None:
    """Of two cuts of one score the lower threshold is taken, and with missing values their left side first."""
    learner, batch = make_root([numbers("x", [1, 2, 3, 4])], classes(list("abba")), {}, sizes)
    splits = search(learner, batch)
    assert (splits.lower.tolist(), splits.upper.tolist(), splits.missing_to.tolist()) == ([0], [1], [-1])
    learner, batch = make_root([numbers("x", [1, 2, None])], classes(list("aac")), {}, sizes)
    assert search(learner, batch).form.tolist() == [Form.MISSING]
    learner, batch = make_root([numbers("x", [1, 1, 2, 2, None, None])], classes(list("aabbab")), {}, sizes)
    assert search(learner, batch).missing_to.tolist() == [0]


@WAYS
@pytest.mark.parametrize(
    "parameters",
    [{"min_samples_leaf": 3}, {"min_gain": 0.6}, {"min_weight_leaf": 3.5}, {"criterion": "goodness", "min_gain": 1.1}],
)
def test_nothing_admissible(parameters: dict[str, Any], sizes: Sizes) -> None:
    """Where no candidate is admissible, or none improves, a node has no split."""
    learner, batch = make_root([numbers("x", [1, 2, 3, 4, 5])], classes(list("aabbb")), parameters, sizes)
    splits = search(learner, batch)
    assert (splits.feature.tolist(), splits.score.tolist()) == ([-1], [-np.inf])
    learner, batch = make_root([numbers("x", [1, 1, 2, 2])], classes(list("abab")), {}, sizes)
    assert search(learner, batch).feature.tolist() == [-1]


def test_no_features() -> None:
    """Without features no node has a split."""
    learner, batch = make_root([], classes(list("ab")), {}, SORTED)
    assert search(learner, batch).feature.tolist() == [-1]


def test_runs_cover_all_nodes() -> None:
    """Runs follow one another, hold about the cells asked for, and a large node is a run of its own."""
    assert list_runs(np.array([5, 5, 5, 5]), 10) == [(0, 2), (2, 4)]
    assert list_runs(np.array([1, 100, 1]), 10)[-1][1] == 3
    source = np.random.default_rng(0)
    cells = source.integers(1, 30, 200)
    runs = list_runs(cells, 50)
    assert [first for first, _ in runs] == [0, *(last for _, last in runs[:-1])]
    assert runs[-1][1] == 200
    assert all(cells[first:last].sum() < 50 + 30 for first, last in runs)


def test_joining_is_undone_by_taking() -> None:
    """Splits of runs of nodes, joined, are found again node by node, categories included."""

    def make(node: int, categories: int) -> Splits:
        one = np.array([node])
        pairs = np.stack([np.zeros(categories, int), np.arange(categories), np.arange(categories) % 2])
        return Splits(one, one, one * 0.5, one, one, one, one, pairs)

    parts = [make(i, size) for i, size in enumerate((2, 0, 3))]
    joined = join_splits(parts, [(0, 1), (1, 2), (2, 3)])
    for i, part in enumerate(parts):
        taken = joined.take_node(i)
        assert taken.category.tolist() == part.category.tolist()
        assert [getattr(taken, name).tolist() for name in NAMES] == [getattr(part, name).tolist() for name in NAMES]
