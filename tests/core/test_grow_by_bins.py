"""The tree grown by bins is the one that sorting finds, node for node, and the one that plain counting finds."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.core import grow
from service.core.batch import Batch
from service.core.learn import Learnt
from service.core.learner import Sizes
from service.core.schema import Column, Target
from service.core.statistics import Ints
from service.core.upkeep import pass_on
from tests.core.growing import (
    CLASS_CRITERIA,
    assert_bins_change_nothing,
    grow_by,
    random_columns,
    random_target,
)
from tests.core.making import classes, labels, numbers, values
from tests.oracle import naive_tree as naive

CALM = settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
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
