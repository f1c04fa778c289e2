"""Shapley values against the sum over all subsets of features, and what every such account owes."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from numpy.typing import NDArray

from service.core.explain import How, trace_rows
from service.core.shapley import find_shapley
from tests.core.explaining import Case, cases, with_stand_ins
from tests.core.making import grow, numbers, values

SLOWLY = settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.too_slow])
NEAR = {"rel": 1e-9, "abs": 1e-10}
Numbers = NDArray[np.float64]


def outputs(case: Case) -> Numbers:
    """(node, output) what nodes answer."""
    tree = case.tree
    return tree.probability if tree.classes else tree.prediction.reshape(tree.nodes, -1)


def weigh(case: Case, node: int) -> float:
    """What a node weighs, by the weights of classes that its probabilities count."""
    tree = case.tree
    if not tree.classes:
        return float(tree.weight[node])
    whole = tree.counts[:, 0]
    return sum(
        float(tree.counts[k, node] * tree.probability[0, k] / whole[k]) for k in range(len(whole)) if whole[k] > 0
    )


def play(case: Case, row: int, known: frozenset[int], node: int = 0) -> Numbers:
    """What the row is expected to be answered from the node on, when some features are known: plain recursion."""
    tree = case.tree
    if tree.is_leaf[node]:
        return outputs(case)[node]
    children = range(int(tree.first_child[node]), int(tree.first_child[node] + tree.branches[node]))
    branch, how, player = say(case, row, node)
    if player not in known:
        shares = [weigh(case, child) for child in children]
    elif how == How.STOPPED:
        return outputs(case)[node]
    elif how == How.PARTS:
        assert tree.share is not None
        shares = [float(tree.share[child]) for child in children]
    else:
        return play(case, row, known, children[branch])
    parts = [s / sum(shares) * play(case, row, known, c) for s, c in zip(shares, children, strict=True) if s > 0]
    return np.sum(parts, axis=0)


def say(case: Case, row: int, node: int) -> tuple[int, How, int]:
    """Branch, how, and the feature that decides, where the node alone is asked."""
    from service.core.explain import decide, read_cells  # noqa: PLC0415 - what is tested in test_explain

    told = decide(
        case.tree,
        case.guide,
        read_cells(case.guide, case.columns, slice(0, case.rows)),
        np.array([node]),
        np.array([row]),
    )
    which = int(told.surrogate[0])
    stands = case.tree.surrogates
    player = int(case.tree.feature[node]) if which < 0 or stands is None else int(stands.feature[which])
    return int(told.branch[0]), How(int(told.how[0])), player


@with_stand_ins
@SLOWLY
@given(cases())
def test_all_subsets(case: Case) -> None:
    """Each value is the mean, over all orders in which features become known, of what the feature then adds."""
    found = find_shapley(case.tree, case.guide, case.columns, case.rows)
    features = range(len(case.columns))
    count = len(features)
    assert found.expected == pytest.approx(play(case, 0, frozenset()), **NEAR)
    for row in range(2):
        worth = {
            frozenset(some): play(case, row, frozenset(some))
            for size in range(count + 1)
            for some in combinations(features, size)
        }
        for f in features:
            expected = np.zeros(found.values.shape[2])
            for some, value in worth.items():
                if f not in some:
                    size = len(some)
                    orders = math.factorial(size) * math.factorial(count - size - 1) / math.factorial(count)
                    expected = expected + orders * (worth[some | {f}] - value)
            assert found.values[row, f] == pytest.approx(expected, **NEAR)


@with_stand_ins
@SLOWLY
@given(cases())
def test_sums(case: Case) -> None:
    """What is expected and all values of a row make up its answer."""
    found = find_shapley(case.tree, case.guide, case.columns, case.rows)
    answers = case.answer()
    told = answers.probability if case.tree.classes else answers.prediction.reshape(len(answers.prediction), -1)
    assert found.expected + found.values.sum(1) == pytest.approx(told[answers.index], **NEAR)


@SLOWLY
@given(cases())
def test_features_that_say_nothing(case: Case) -> None:
    """A feature that decides nothing, at any node, has no value."""
    found = find_shapley(case.tree, case.guide, case.columns, case.rows)
    asked = set(case.guide.used.tolist())
    for f in range(len(case.columns)):
        assert f in asked or (found.values[:, f] == 0).all()


@pytest.mark.parametrize("deep", [40, 120])
def test_many_features(deep: int) -> None:
    """Of a tree that asks for one feature after the other the values still make up the answer."""
    cells = np.eye(deep + 1, deep)
    columns = [numbers(f"x{f}", cells[:, f].tolist()) for f in range(deep)]
    case = Case(grow(columns, values(np.arange(deep + 1.0).tolist())).tree, columns)
    assert case.tree.depth.max() > 15
    found = find_shapley(case.tree, case.guide, case.columns, case.rows)
    assert (found.expected + found.values.sum(1))[:, 0] == pytest.approx(np.arange(deep + 1.0), rel=1e-9, abs=1e-9)
    assert found.expected[0] == pytest.approx(deep / 2)


def test_a_feature_asked_twice() -> None:
    """Worked by hand: two cuts of one feature credit it with all that the answer differs from the mean."""
    columns = [numbers("x", [1, 2, 3, 4])]
    case = Case(grow(columns, values([0.0, 0.0, 4.0, 12.0])).tree, columns)
    found = find_shapley(case.tree, case.guide, columns, 4)
    assert found.expected.tolist() == [4.0]
    assert found.values[:, 0, 0] == pytest.approx([-4, -4, 0, 8])


def test_one_leaf() -> None:
    """It answers what is expected, whatever the features."""
    columns = [numbers("x", [1, 1])]
    case = Case(grow(columns, values([1.0, 2.0])).tree, columns)
    found = find_shapley(case.tree, case.guide, columns, 2)
    assert (found.values.tolist(), found.expected.tolist()) == ([[[0.0]], [[0.0]]], [1.5])
    assert trace_rows(case.tree, case.guide, columns, 2).node.tolist() == [0, 0]
