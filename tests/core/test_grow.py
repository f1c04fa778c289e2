"""Growth: hard weights, ties, cores, the order of rows, what leaves say, what is told and kept on the way."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from service.core import upkeep
from service.core.bins import Binned, bin_features
from service.core.encoding import CodedFeature
from service.core.learn import learn
from service.core.learner import Sizes
from service.core.parallel import count_cores
from service.core.schema import Column, Target
from service.core.statistics import Ints
from service.core.tree import LeafReason
from tests.core.growing import (
    BINNED,
    CLASS_CRITERIA,
    SORTED,
    assert_bins_change_nothing,
    assert_same_growth,
    grow_by,
    random_columns,
    random_target,
    resolved,
)
from tests.core.making import classes, numbers


@pytest.mark.parametrize("sizes", [SORTED, BINNED], ids=["sorted", "binned"])
def test_a_light_row_does_not_hide_a_tie(sizes: Sizes) -> None:
    """A cut amid rows of one class is tied with the run's end where the row between weighs next to nothing."""
    target = classes(list("aaabbb"), [1, 1, 1e-14, 1, 1, 1])
    tree = grow_by(sizes, [numbers("x", [1, 2, 3, 4, 5, 6])], target, {"max_depth": 1}).tree
    assert tree.threshold[0] == 2.5


@pytest.mark.parametrize("sizes", [SORTED, BINNED], ids=["sorted", "binned"])
@pytest.mark.parametrize("columns", [1, 2])
def test_ties_reach_once_below_the_best(sizes: Sizes, columns: int) -> None:
    """Tied are scores within the tolerance of the best, not of another that is tied with it."""
    # goodness in units of its tolerance: 2.8, 3.6, 4.56
    target = classes(list("bbba"), [0.7, 0.2, 0.24, 1e12])
    cells = [numbers(f"x{i}", [1, 2, 3, 4]) for i in range(columns)]
    tree = grow_by(sizes, cells, target, {"criterion": "goodness", "max_depth": 1}).tree
    assert (tree.feature[0], tree.threshold[0]) == (0, 2.5)


def test_an_edge_just_too_light_is_no_measure() -> None:
    """An edge that misses the weight limit by less than rounding might does not outbid the cuts that keep it."""
    target = classes(list("bbbaaaab"), [1, 1, 1 - 5e-10, 1, 1, 1, 1, 1])
    learnt = assert_bins_change_nothing([numbers("x", list(range(8)))], target, {"min_weight_leaf": 3})
    assert learnt.tree.threshold[0] == 3.5


@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
def test_a_branch_without_weight(criterion: str) -> None:
    """A row too light for the sums gives its branch no score, and takes none from other cuts."""
    target = classes(list("bbbaaaaa"), [1e-40, 1, 1, 1, 1, 1, 1, 1])
    learnt = assert_bins_change_nothing([numbers("x", list(range(8)))], target, {"criterion": criterion})
    assert learnt.tree.threshold[0] == 2.5


@pytest.fixture
def one_core() -> Iterator[None]:
    """This thread may use one core only."""
    cores = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {min(cores)})
    yield
    os.sched_setaffinity(0, cores)


def make_large(classes_: int) -> tuple[list[Column], Target]:
    """Enough cells that other threads are woken."""
    source = np.random.default_rng(21)
    columns = random_columns(source, 21_000, gaps=True)
    return columns, random_target(source, columns, classes_, "real")


@pytest.mark.parametrize(("count", "criterion"), [(3, "gini"), (0, "variance")])
@pytest.mark.parametrize("sizes", [Sizes(), SORTED], ids=["binned", "sorted"])
def test_cores_change_nothing(count: int, criterion: str, sizes: Sizes, request: pytest.FixtureRequest) -> None:
    """One core and several give the same tree, every time."""
    columns, target = make_large(count)
    parameters = {"criterion": criterion, "max_depth": 3}
    several = [grow_by(sizes, columns, target, parameters) for _ in range(20 if sizes != SORTED else 3)]
    request.getfixturevalue("one_core")
    assert count_cores() == 1
    alone = grow_by(sizes, columns, target, parameters)
    for again in several:
        assert_same_growth(alone, again)


@pytest.mark.parametrize("parameters", [{}, {"class_weight": "balanced"}], ids=["plain", "balanced"])
def test_the_order_of_rows_changes_nothing(parameters: dict[str, Any]) -> None:
    """Shuffled rows give the same tree by bins, though their edges come from other rows."""
    source = np.random.default_rng(8)
    columns = random_columns(source, 22_000, gaps=True)
    target = random_target(source, columns, 3, "real")
    order = source.permutation(22_000)
    assert target.codes is not None
    assert target.weight is not None
    moved = [Column(column.name, "numeric", column.values[order]) for column in columns]
    shuffled = Target("y", target.classes, target.codes[order], weight=target.weight[order])
    tree = grow_by(Sizes(), columns, target, {"max_depth": 4, **parameters}).tree
    other = grow_by(Sizes(), moved, shuffled, {"max_depth": 4, **parameters}).tree
    for name in ("feature", "threshold", "missing_to", "rows", "counts", "score", "probability"):
        assert np.array_equal(getattr(tree, name), getattr(other, name), equal_nan=True), name


def test_progress_is_told() -> None:
    """After each batch growth tells the depth and the entries still open: fewer at every level."""
    source = np.random.default_rng(1)
    columns = random_columns(source, 500, gaps=False)
    told: list[tuple[int, int]] = []
    target = random_target(source, columns, 2, "none")
    learn(columns, target, resolved(target, {"max_depth": 4}), progress=lambda *seen: told.append(seen))
    assert [depth for depth, _ in told] == [1, 2, 3]
    assert all(one >= other for (_, one), (_, other) in pairwise(told))


@pytest.mark.parametrize("sizes", [SORTED, Sizes(coarse=1, scan=0)], ids=["sorted", "binned"])
@pytest.mark.parametrize("parameters", [{}, {"class_weight": "balanced"}], ids=["plain", "balanced"])
def test_pure_nodes_are_leaves(parameters: dict[str, Any], sizes: Sizes) -> None:
    """Real weights make no pure node look mixed: whatever is split has two classes."""
    source = np.random.default_rng(47)
    columns = random_columns(source, 600, gaps=False)
    tree = grow_by(sizes, columns, random_target(source, columns, 10, "real"), parameters).tree
    assert ((tree.counts > 0).sum(0)[~tree.is_leaf] > 1).all()


def test_leaves_say_why() -> None:
    """Each leaf has the reason that ended it, by bins as by sorting."""
    source = np.random.default_rng(6)
    columns = random_columns(source, 800, gaps=False)
    target = random_target(source, columns, 2, "none")
    learnt = assert_bins_change_nothing(columns, target, {"max_depth": 3, "min_samples_split": 30})
    tree = learnt.tree
    for node in np.flatnonzero(tree.is_leaf).tolist():
        reason = LeafReason(tree.reason[node])
        if reason == LeafReason.PURE:
            assert (tree.counts[:, node] > 0).sum() == 1
        elif reason == LeafReason.MIN_SAMPLES_SPLIT:
            assert tree.rows[node] < 30
        else:
            assert (reason, tree.depth[node]) == (LeafReason.MAX_DEPTH, 3)


def test_nothing_outlives_its_level(monkeypatch: pytest.MonkeyPatch) -> None:
    """When a level has been grown, the bins of the one above are gone: memory is for two levels at the most."""
    codes: list[weakref.ref[Any]] = []

    def note(features: Sequence[CodedFeature], which: Ints) -> Binned:
        binned = bin_features(features, which)
        codes.append(weakref.ref(binned.code))
        return binned

    monkeypatch.setattr(upkeep, "bin_features", note)
    alive: list[bool] = []
    column, target = numbers("x", range(400)), classes([row * row % 13 % 2 for row in range(400)])
    parameters = resolved(target, {"max_depth": 4})
    learn([column], target, parameters, progress=lambda *_: alive.append(codes[0]() is not None), sizes=BINNED)
    assert len(codes) == 1
    assert alive == [False] * 3
