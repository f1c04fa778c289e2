"""The tree grown by bins is the one that sorting finds, node for node, and the one that plain counting finds."""

from __future__ import annotations

import os
import weakref
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import pairwise
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.core import grow, upkeep
from service.core.batch import Batch
from service.core.bins import Binned, bin_features
from service.core.bounds import BOUNDS
from service.core.criteria import CRITERIA
from service.core.encoding import CodedFeature
from service.core.learn import Learnt, learn
from service.core.learner import Sizes
from service.core.parallel import count_cores
from service.core.schema import Column, Target
from service.core.statistics import Ints
from service.core.tree import LeafReason
from service.core.upkeep import pass_on
from tests.core.growing import SORTED, assert_same_growth, grow_by, random_columns, random_target, resolved
from tests.core.making import classes, labels, numbers, values
from tests.oracle import naive_tree as naive

CLASS_CRITERIA = [name for name in BOUNDS if CRITERIA[name].task == "classification"]
BINNED = Sizes(coarse=1, scan=2, portion=100)
"""Bins wherever two rows are left."""
CALM = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])


def assert_bins_change_nothing(
    columns: list[Column], target: Target, parameters: dict[str, Any], sizes: Sizes = BINNED, algorithm: str = "cart"
) -> Learnt:
    """Growth by bins gives the tree of growth by sorting, which is returned."""
    by_rows = grow_by(SORTED, columns, target, parameters, algorithm)
    by_bins = grow_by(sizes, columns, target, parameters, algorithm)
    assert_same_growth(by_rows, by_bins, (parameters, sizes))
    return by_rows


LIMITS: list[dict[str, Any]] = [
    {},
    {"min_samples_leaf": 20},
    {"min_samples_split": 50},
    {"max_leaf_nodes": 12},
    {"min_weight_leaf": 7.3},
    {"min_gain": 0.02},
    {"max_leaf_nodes": 9, "min_samples_leaf": 5},
    {"class_weight": "balanced"},
    {"reuse_features": False},
    {"reuse_features": "never"},
    {"threshold_value": "data"},
]


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
def test_trees_of_classes(criterion: str, gaps: bool) -> None:
    """Two to ten classes, every kind of weight and limit, a thousand rows: bins change no bit of the tree."""
    source = np.random.default_rng(len(criterion) + gaps)
    for i, limits in enumerate(LIMITS):
        columns = random_columns(source, int(source.integers(300, 1500)), gaps=gaps)
        target = random_target(source, columns, [2, 3, 10, 2][i % 4], ["none", "whole", "real"][i % 3])
        sizes = Sizes(1, int(source.integers(2, 300)), int(source.integers(1, 2000)))
        parameters = {"criterion": criterion, "max_depth": 5, **limits}
        assert assert_bins_change_nothing(columns, target, parameters, sizes).tree.nodes > 1


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
def test_trees_of_counts(gaps: bool, offset: float) -> None:
    """By the Poisson deviance, many targets being 0 or all far from it: bins change no bit of the tree."""
    source = np.random.default_rng(11 + gaps)
    for i, limits in enumerate(LIMITS[:7]):
        columns = random_columns(source, int(source.integers(300, 1500)), gaps=gaps)
        target = random_target(source, columns, 0, ["none", "whole", "real"][i % 3])
        rate = np.maximum(target.values, 0) if i % 2 else source.poisson(np.exp(target.values))  # type: ignore[arg-type]
        target = replace(target, values=rate.astype(float) + offset)
        sizes = Sizes(1, int(source.integers(2, 300)), int(source.integers(1, 2000)))
        parameters = {"criterion": "poisson", "max_depth": 5, **limits}
        if offset:
            parameters.pop("min_gain", None)
        assert assert_bins_change_nothing(columns, target, parameters, sizes).tree.nodes > 1


@pytest.mark.parametrize("offset", [0.0, 1e6])
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
def test_trees_of_numbers(gaps: bool, offset: float) -> None:
    """Regression, near the origin or far away, with outliers: bins change no bit of the tree."""
    source = np.random.default_rng(7 + gaps)
    for i, limits in enumerate(LIMITS[:7]):
        columns = random_columns(source, int(source.integers(300, 1500)), gaps=gaps)
        target = random_target(source, columns, 0, ["none", "whole", "real"][i % 3], offset=offset)
        if i % 2 == 0 and target.values is not None:
            target.values[:2] += [1e4, -300]
        sizes = Sizes(1, int(source.integers(2, 300)), int(source.integers(1, 2000)))
        assert assert_bins_change_nothing(columns, target, {"max_depth": 5, **limits}, sizes).tree.nodes > 1


@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e6])
def test_numbers_of_any_size(scale: float) -> None:
    """Targets of any size are bounded without a warning."""
    source = np.random.default_rng(3)
    columns = random_columns(source, 600, gaps=False)
    drawn = random_target(source, columns, 0, "none")
    assert drawn.values is not None
    assert_bins_change_nothing(columns, Target("y", values=drawn.values * scale), {"max_depth": 4})


@pytest.mark.parametrize(
    "parameters",
    [
        {"criterion": "positive_correctness"},
        {"criterion": "true_positive_rate", "min_samples_leaf": 5},
        {"monotonic": {"x0": "up"}},
        {"criterion": "gain_ratio", "selection": "c45"},
        {"criterion": "entropy", "cut_penalty": "tried"},
        {"criterion": "gini", "cut_limit": "c45"},
        {"reuse_features": "never"},
    ],
)
def test_what_has_no_bound_is_sorted(parameters: dict[str, Any]) -> None:
    """Criteria and rules without a bound grow the same tree whatever sizes say."""
    source = np.random.default_rng(5)
    columns = random_columns(source, 400, gaps=True)
    assert_bins_change_nothing(columns, random_target(source, columns, 2, "real"), {"max_depth": 4, **parameters})


@pytest.mark.parametrize(
    "parameters",
    [{"priors": {"0": 0.9, "1": 0.1}}, {"loss": [[0, 1], [20, 0]]}, {"class_weight": {"0": 1, "1": 1e3}}],
)
@pytest.mark.parametrize("criterion", CLASS_CRITERIA)
def test_altered_class_weights(criterion: str, parameters: dict[str, Any]) -> None:
    """Class weights, priors and losses are bounded as they are scored."""
    source = np.random.default_rng(11)
    columns = random_columns(source, 700, gaps=True)
    target = random_target(source, columns, 2, "none")
    limits = {"max_depth": 5, "min_weight_leaf": 3, "criterion": criterion}
    assert_bins_change_nothing(columns, target, {**parameters, **limits})


def list_shapes(rows: int) -> dict[str, list[Column]]:
    """Tables that bins could trip over."""
    draw = np.random.default_rng(2)
    normal = draw.normal(size=rows)
    names = labels("n", [f"c{i}" for i in draw.integers(0, 9, rows)])
    sizes = labels("o", list(draw.choice(["S", "M", "L"], rows)), ["S", "M", "L"], "ordinal")
    far = np.where(np.arange(rows) == 0, 1e300, normal)
    return {
        "sorted": [numbers("a", np.sort(normal).tolist()), numbers("b", list(range(rows)))],
        "one bin for all": [numbers("a", far.tolist()), numbers("b", [3] * rows)],
        "a row per bin": [numbers("a", list(range(200)) + [7] * (rows - 200)), numbers("b", normal.tolist())],
        "copies": [numbers(name, np.round(normal, 1).tolist()) for name in "abc"],
        "turned round": [numbers("a", (-normal).tolist()), numbers("b", normal.tolist())],
        "beside categories": [names, numbers("a", normal.tolist()), sizes, numbers("b", list(map(int, normal > 0)))],
        "infinite": [numbers("a", np.where(normal > 1, np.inf, np.where(normal < -1, -np.inf, 0)).tolist())],
        "whole past 2^53": [numbers("a", (2**60 + draw.integers(0, 900, rows)).tolist())],
        "all missing but one": [numbers("a", [1.5, *[None] * (rows - 1)]), numbers("b", normal.tolist())],
    }  # fmt: skip


@pytest.mark.parametrize("name", list_shapes(2))
def test_tables_that_are_hard_on_bins(name: str) -> None:
    """Whatever the columns look like, bins change no bit of the tree, for classes and for numbers."""
    columns = list_shapes(900)[name]
    draw = np.random.default_rng(4)
    key = np.nan_to_num(columns[0].values.astype(float), posinf=9, neginf=-9)
    noisy = (np.argsort(np.argsort(key)) / 900 + draw.normal(size=900) / 2 > 0.5).astype(int)
    for criterion in CLASS_CRITERIA:
        assert_bins_change_nothing(columns, classes(noisy.tolist()), {"criterion": criterion, "max_depth": 4})
    assert_bins_change_nothing(columns, values((noisy + draw.normal(size=900)).tolist()), {"max_depth": 4})


def test_lumps_at_infinity() -> None:
    """At the sizes that are used by themselves a column of infinities and few other values is split as by sorting."""
    cells = np.zeros(39_999)
    cells[:150] = -1 - np.arange(150)
    cells[19_768:19_918] = 1 + np.arange(150)
    cells[19_918:] = np.inf
    target = classes((cells > 1000).astype(int).tolist())
    assert_bins_change_nothing([numbers("a", cells.tolist())], target, {"max_depth": 3}, Sizes())


def test_many_rows_are_looked_at_closer() -> None:
    """At the sizes that are used by themselves, with bins of hundreds of rows, the tree is the same."""
    source = np.random.default_rng(9)
    columns = random_columns(source, 25_000, gaps=True)
    for count, criterion in ((2, "gini"), (5, "entropy"), (2, "gain_ratio"), (0, "variance")):
        target = random_target(source, columns, count, "none")
        assert_bins_change_nothing(columns, target, {"criterion": criterion, "max_depth": 4}, Sizes())


# ------------------------------------------------------------------------------------------------ small tables

CELL = st.none() | st.sampled_from([-1.5, -0.0, 0.0, 0.5, 1.0, 2.0, 3.0, float("inf"), float("-inf")])
WHOLE = st.none() | st.integers(0, 9) | st.sampled_from([2**53, 2**53 + 1, -(2**63), 2**63 - 1])
REAL_WEIGHT = st.sampled_from([0.1, 0.3, 0.7, 1.0, 1 / 3])
RULES = st.fixed_dictionaries(
    {},
    optional={
        "max_depth": st.integers(1, 3),
        "max_leaf_nodes": st.integers(2, 6),
        "min_samples_leaf": st.integers(1, 3),
        "min_weight_leaf": st.sampled_from([0.4, 1.0, 1.5]),
        "min_gain": st.sampled_from([0.0517, 0.2]),
        "missing": st.sampled_from(["direction", "branch"]),
    },
)
SIZES = st.builds(Sizes, st.integers(1, 10), st.integers(2, 8), st.integers(1, 20))


@st.composite
def small_tables(draw: st.DrawFn) -> tuple[list[Column], Target, dict[str, Any]]:
    """A few rows of floats, whole numbers and categories, for up to five classes or numbers."""
    count = draw(st.integers(1, 25))

    def fill(cell: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(cell, min_size=count, max_size=count))

    columns = [
        numbers("real", [None if cell is None else float(cell) for cell in fill(CELL)]),
        labels("name", fill(st.none() | st.sampled_from("abcd")), list("abcd")),
        numbers("whole", fill(WHOLE)),
    ]
    weight = draw(st.none() | st.just(fill(st.integers(1, 3))) | st.just(fill(REAL_WEIGHT)))
    rules = draw(RULES)
    if draw(st.booleans()):
        return columns, values(fill(st.sampled_from([1e6, 1e6 + 1, 1e6 + 2, 1e6 + 0.1, -3.0])), weight), rules
    rules["criterion"] = draw(st.sampled_from(CLASS_CRITERIA))
    if rules["criterion"] == "goodness":
        rules.pop("missing", None)
    return columns, classes(fill(st.sampled_from("abcde"[: draw(st.integers(1, 5))])), weight), rules


@settings(CALM, max_examples=100)
@given(small_tables(), SIZES)
def test_small_tables(case: tuple[list[Column], Target, dict[str, Any]], sizes: Sizes) -> None:
    """Whatever a few rows hold, bins change no bit of the tree."""
    columns, target, parameters = case
    assert_bins_change_nothing(columns, target, parameters, sizes)


@st.composite
def problems(draw: st.DrawFn) -> naive.Problem:
    """A small problem of numeric columns with copies and gaps, for plain counting."""
    count = draw(st.integers(2, 12))

    def fill(cell: st.SearchStrategy[Any]) -> list[Any]:
        return draw(st.lists(cell, min_size=count, max_size=count))

    first = fill(st.sampled_from([0, 1, 2, 3, 4, 5, 6]))
    columns = {"a": first, "b": fill(st.none() | st.sampled_from([0.5, 1.5, 2.5])), "c": [-cell for cell in first]}
    weights = draw(st.just([1] * count) | st.just(fill(st.integers(1, 3))))
    limits = {"min_samples_leaf": draw(st.integers(1, 2)), "min_weight_leaf": draw(st.sampled_from([0, 0, 2.5]))}
    if draw(st.booleans()):
        targets = fill(st.integers(-4, 8).map(lambda half: half / 2))
        return naive.Problem(columns, targets, weights, criterion="variance", **limits)
    targets = fill(st.sampled_from("abc"[: draw(st.integers(2, 3))]))
    criterion = draw(st.sampled_from(CLASS_CRITERIA))
    return naive.Problem(columns, targets, weights, sorted(set(targets)), criterion=criterion, **limits)


@CALM
@given(problems(), SIZES)
def test_bins_choose_what_plain_counting_chooses(problem: naive.Problem, sizes: Sizes) -> None:
    """In each node the split by bins is the first of the best that loops over rows and exact fractions find."""
    columns = [numbers(name, cells) for name, cells in problem.columns.items()]
    target = (classes if problem.classes else values)(problem.targets, problem.weights)  # type: ignore[operator]
    names = ("criterion", "min_samples_leaf", "min_weight_leaf")
    learnt = grow_by(sizes, columns, target, {name: getattr(problem, name) for name in names})
    tree, members = learnt.tree, list_members(learnt)
    for node, rows in enumerate(members):
        tied = naive.best_of(problem, rows, naive.node_candidates(problem, rows))
        if tree.is_leaf[node]:
            assert not tied or naive.pure(problem, rows)
            continue
        first = int(tree.first_child[node])
        feature = tree.features[int(tree.feature[node])].name
        chosen = naive.Candidate(feature, "", (members[first], members[first + 1]))
        assert chosen.key == tied[0].key


def list_members(learnt: Learnt) -> list[tuple[int, ...]]:
    """The rows of each node."""
    members: list[set[int]] = [set() for _ in range(learnt.tree.nodes)]
    for row, leaf in enumerate(learnt.leaf.tolist()):
        node = leaf
        while node >= 0:
            members[node].add(row)
            node = int(learnt.tree.parent[node])
    return [tuple(sorted(rows)) for rows in members]


# ------------------------------------------------------------------------------------------------ hard weights


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


# ------------------------------------------------------------------------------------------------ cores and order


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


def test_the_order_of_rows_changes_nothing() -> None:
    """Shuffled rows give the same tree by bins, though their edges come from other rows."""
    source = np.random.default_rng(8)
    columns = random_columns(source, 22_000, gaps=True)
    target = random_target(source, columns, 3, "real")
    order = source.permutation(22_000)
    assert target.codes is not None
    assert target.weight is not None
    moved = [Column(column.name, "numeric", column.values[order]) for column in columns]
    shuffled = Target("y", target.classes, target.codes[order], weight=target.weight[order])
    tree = grow_by(Sizes(), columns, target, {"max_depth": 4}).tree
    other = grow_by(Sizes(), moved, shuffled, {"max_depth": 4}).tree
    for name in ("feature", "threshold", "missing_to", "rows", "counts"):
        assert np.array_equal(getattr(tree, name), getattr(other, name), equal_nan=name == "threshold"), name


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


@pytest.mark.parametrize(("distinct", "depth", "least"), [(5, 6, 62.5), (50, 6, 250), (500, 6, 1000), (50, None, 750)])
def test_few_values_stay_in_their_few_bins(
    monkeypatch: pytest.MonkeyPatch, distinct: int, depth: int | None, least: float
) -> None:
    """Nodes leave bins where these would hold a few rows: of few bins later, with levels ahead sooner; same tree."""
    kept: list[int] = []

    def note(above: Batch, batch: Batch, parent: Ints, rows: int) -> Batch:
        kept.extend(batch.rows.tolist() if above.binned is not None else [])
        return pass_on(above, batch, parent, rows)

    monkeypatch.setattr(grow, "pass_on", note)
    source = np.random.default_rng(distinct)
    columns = [numbers(f"x{i}", source.integers(0, distinct, 6000)) for i in range(4)]
    assert_bins_change_nothing(columns, classes(source.integers(0, 2, 6000)), {"max_depth": depth}, Sizes(coarse=1))
    assert least <= min(kept) < 2.5 * least


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
