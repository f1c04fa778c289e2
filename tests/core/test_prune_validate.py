"""Cross-validation of the path against growing, cutting and predicting once for every fold and every subtree."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from service.core.descend import descend
from service.core.folds import assign_folds, take_rows
from service.core.learn import build_objective, learn
from service.core.prune_cost import Costs, find_cut, find_path, find_risks
from service.core.prune_cut import cut_back
from service.core.prune_ends import find_errors
from service.core.prune_validate import Validated, find_middles
from service.core.schema import Column, Target
from service.core.tree import LeafReason
from tests.core.growing import resolved
from tests.core.making import classes, numbers, values
from tests.core.pruning import SLOWLY, tables


@SLOWLY
@given(tables(), st.integers(2, 4), st.integers(0, 3))
def test_one_fold_and_one_subtree_at_a_time(table: tuple[list[Column], Target], folds: int, seed: int) -> None:
    """The errors and their deviation are those of trees grown on the other folds, cut at the geometric means."""
    columns, target = table
    assume(target.rows >= folds)
    parameters = resolved(target, {"pruning_folds": folds, "seed": seed})
    grown = learn(columns, target, parameters)
    path, found = grown.pruning.path, grown.pruning.validated
    assert path is not None
    assert found is not None
    weight = np.ones(target.rows) if target.weight is None else target.weight
    squares = [0.0] * len(path.alpha)
    totals = [0.0] * len(path.alpha)
    fold = assign_folds(target, folds, seed)
    for index in range(folds):
        some, of_some = take_rows(columns, target, fold != index)
        tree = learn(some, of_some, resolved(target, {})).tree
        objective, _ = build_objective(target, parameters, None)
        its_path = find_path(tree, find_risks(tree, objective, Costs(), "error"))
        for step, alpha in enumerate(find_middles(path).tolist()):
            at = its_path.find_step(min(alpha, 1e300))
            shorter, _ = cut_back(tree, find_cut(tree, its_path, at), LeafReason.COST_COMPLEXITY)
            answer = shorter.prediction[descend(shorter, columns, target.rows).node]
            for row in np.flatnonzero(fold == index).tolist():
                error = _err(target, row, float(answer[row]))
                totals[step] += weight[row] * error
                squares[step] += weight[row] * error**2
    root = sum(weight[row] * _err(target, row, float(grown.tree.prediction[0])) for row in range(target.rows))
    assume(root > 0)
    assert (found.error * root).tolist() == pytest.approx(totals, abs=1e-9)
    spread = [(max(square - total**2 / weight.sum(), 0)) ** 0.5 for square, total in zip(squares, totals, strict=True)]
    assert (found.deviation * root).tolist() == pytest.approx(spread, abs=1e-5)


def _err(target: Target, row: int, answer: float) -> float:
    if target.codes is not None:
        return float(target.codes[row] != answer)
    assert target.values is not None
    return float((target.values[row] - answer) ** 2)


def test_the_deviation_of_the_root_is_that_of_a_count() -> None:
    """With k errors in n rows the root's error is 1 and deviates by sqrt(k - k^2 / n) / k, as rpart prints it."""
    # kyphosis: 17 of 81, 0.2155872 in every table of rpart
    target = classes(["absent"] * 64 + ["present"] * 17)
    learnt = learn([numbers("x", [0, 1] * 40 + [0])], target, resolved(target, {"pruning_folds": 10}))
    found = learnt.pruning.validated
    assert found is not None
    assert found.error[-1] == 1.0
    assert found.deviation[-1] == pytest.approx(0.2155872, abs=5e-8)


def test_the_choice() -> None:
    """The least error, of equals the smallest tree; under one_se the smallest within a deviation of the least."""
    found = Validated(np.array([0.5, 0.4, 0.4, 0.45, 0.6, 1.0]), np.array([0.2, 0.9, 0.06, 0.01, 0.3, 0.3]))
    assert (found.choose("min"), found.choose("one_se")) == (2, 3)
    tight = Validated(found.error, np.array([0.2, 0.9, 0.01, 0.2, 0.3, 0.3]))
    assert (tight.choose("min"), tight.choose("one_se")) == (2, 2)


@pytest.mark.parametrize("criterion", ["variance", "absolute_error", "poisson"])
def test_errors_are_what_the_criterion_minimizes(criterion: str) -> None:
    """On the training rows the mean error of a node's own answer is its impurity, be it squares or anything else."""
    source = np.random.default_rng(5)
    target = values(source.integers(0, 9, 60).astype(float).tolist(), source.integers(1, 4, 60).tolist())
    columns = [numbers("x", source.integers(0, 9, 60).tolist())]
    learnt = learn(columns, target, resolved(target, {"criterion": criterion, "max_depth": 3}))
    tree = learnt.tree
    for at in (np.zeros(60, np.int64), learnt.leaf):
        error = find_errors(tree, learnt.target, at, Costs())
        for node in np.unique(at).tolist():
            mine = at == node
            assert target.weight is not None
            mean = np.average(error[mine], weights=target.weight[mine])
            assert mean == pytest.approx(tree.impurity[node], rel=1e-9, abs=1e-12)


def test_an_answer_of_nothing_costs_much_but_not_without_end() -> None:
    """A leaf without events meets one: the Poisson deviance is cut off, and 0 for none."""
    target = values([1.0, 1.0, 3.0, 4.0])
    learnt = learn([numbers("x", [1, 2, 3, 4])], target, resolved(target, {"criterion": "poisson"}))
    tree = replace(learnt.tree, prediction=np.where(learnt.tree.is_leaf, 0.0, learnt.tree.prediction))
    leaf = np.full(2, int(learnt.leaf[0]))
    error = find_errors(tree, replace(values([0.0, 5.0]), statistic="deviance"), leaf, Costs())
    assert error[0] == 0.0
    assert 100 < error[1] < 1000


def test_folds_can_be_ended_from_outside() -> None:
    """Who follows the growth is asked while folds grow too, as when all is done; so are those of rows held out."""
    source = np.random.default_rng(3)
    target = classes(source.choice(list("ab"), 200).tolist())
    columns = [numbers("x", source.normal(size=200).tolist())]
    told: list[int] = []
    learn(columns, target, resolved(target, {}), progress=lambda _, entries: told.append(entries))
    alone = len(told)
    learn(columns, target, resolved(target, {"pruning_folds": 4}), progress=lambda _, entries: told.append(entries))
    assert told[alone : 2 * alone] == told[:alone]
    assert len(told) > 4 * alone
    assert not any(told[2 * alone :])
    held: list[int] = []
    learn(
        columns,
        target,
        resolved(target, {"pruning": "reduced_error"}),
        progress=lambda _, entries: held.append(entries),
    )
    assert any(held)
