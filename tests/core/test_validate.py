"""Cross-validation: what it says of each fold is what a training on the others and a prediction say."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from service.core import validate
from service.core.folds import assign_folds
from service.core.schema import Column, Label, Target
from service.core.validate import Plan, Trial, cross_validate
from tests.core.making import classes, grow, labels, numbers, values


def run(columns: list[Column], target: Target, plan: Plan, positive: Label | None = None, **asked: Any) -> list[Trial]:  # noqa: ANN401 - parameters
    """The trials of a learner with these parameters."""
    parameters = grow(columns, target, asked, positive=positive).learner.parameters
    return cross_validate(columns, target, parameters, positive, plan)


def some_rows(rows: int = 60, seed: int = 3) -> tuple[list[Column], Target]:
    """Two numbers, one of them with gaps, and a class that depends on both."""
    random = np.random.default_rng(seed)
    first, second = random.normal(size=rows), random.integers(0, 9, rows)
    told = (first + second / 4 + random.normal(size=rows) > 1).astype(int)
    gaps = [None if row % 7 == 0 else float(cell) for row, cell in enumerate(first)]
    return [numbers("a", gaps), numbers("b", second.tolist())], classes(["ny"[code] for code in told])


def test_leaving_one_out() -> None:
    """By hand: without features each row is answered by the majority of the others."""
    target = classes(["a", "a", "a", "b", "b"])
    trials = run([numbers("x", [1] * 5)], target, Plan(5))
    held = [int(np.flatnonzero(assign_folds(target, 5, 0) == fold)[0]) for fold in range(5)]
    # three to one or two to two, where the first class wins: a is always said
    assert [trial.metrics["accuracy"] for trial in trials] == [float(row < 3) for row in held]
    assert [(trial.repeat, trial.fold, trial.rows, trial.leaves) for trial in trials] == [
        (0, f, 1, 1) for f in range(5)
    ]


def test_means_left_out() -> None:
    """By hand: each half of 1, 2, 10, 11 is answered by the mean of the other one, weights included."""
    target = values([1, 2, 10, 11], [1, 3, 1, 1])
    fold = assign_folds(target, 2, 5)
    trials = run([], target, Plan(2, seed=5))
    assert target.values is not None
    assert target.weight is not None
    for k, trial in enumerate(trials):
        mean = np.average(target.values[fold != k], weights=target.weight[fold != k])
        error = np.average(abs(target.values[fold == k] - mean), weights=target.weight[fold == k])
        assert trial.metrics["mae"] == pytest.approx(error)


def test_seeds_and_repeats() -> None:
    """The same plan gives the same numbers, another seed others; repeats go on where the first one was."""
    columns, target = some_rows()
    once = run(columns, target, Plan(5, seed=1))
    assert run(columns, target, Plan(5, seed=1)) == once
    assert run(columns, target, Plan(5, seed=2)) != once
    thrice = run(columns, target, Plan(5, seed=1, repeats=3))
    assert thrice[:5] == once
    assert [(trial.repeat, trial.fold) for trial in thrice] == [(r, f) for r in range(3) for f in range(5)]
    assert len({tuple(t.metrics["log_loss"] for t in thrice[5 * r : 5 * r + 5]) for r in range(3)}) == 3


def test_cores_change_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Trials that run side by side give what they give one after the other."""
    columns, target = some_rows()
    alone = run(columns, target, Plan(4))
    monkeypatch.setattr(validate, "WORTH_CELLS", 0)
    assert run(columns, target, Plan(4)) == alone


@pytest.mark.parametrize(
    ("positive", "asked"),
    [
        (None, {"class_weight": "balanced"}),
        (None, {"priors": {"a": 1, "b": 2, "c": 3}}),
        (None, {"priors": {"a": 1, "b": 2, "c": 3}, "class_weight": "balanced"}),
        (None, {"loss": [[0, 1, 2], [3, 0, 1], [9, 9, 0]]}),
        (None, {"criterion": "goodness"}),
        (None, {"criterion": "gain_ratio", "nominal": "multiway", "selection": "c45"}),
        ("c", {"criterion": "positive_correctness"}),
        ("c", {"criterion": "true_positive_rate"}),
    ],
)
def test_a_class_that_a_fold_lacks(positive: str | None, asked: dict[str, Any]) -> None:
    """Whatever the classes weigh, the tree that never saw one is grown, and the row that is one counts as wrong."""
    told = ["a"] * 9 + ["b"] * 9 if positive is None else ["a"] * 18
    columns = [numbers("x", [*range(19)]), labels("k", [*"pqr"] * 6 + ["s"])]
    target = classes([*told, "c"])
    trials = run(columns, target, Plan(3), positive, **asked)
    fold = int(assign_folds(target, 3, 0)[-1])
    accuracy = trials[fold].metrics["accuracy"]
    assert accuracy is not None
    assert 0 <= accuracy < 1
    for trial in trials:
        assert all(value is None or np.isfinite(value) for value in trial.metrics.values())


def test_altered_weights_of_present_classes() -> None:
    """A tree grown with a class that no row has weighs the others as if it were not there."""
    columns, target = some_rows()
    more = replace(target, classes=("n", "y", "z"))
    for asked, fewer in (
        ({"class_weight": "balanced"}, {"class_weight": "balanced"}),
        ({"priors": {"n": 1, "y": 3, "z": 2}}, {"priors": {"n": 1, "y": 3}}),
    ):
        wide, narrow = grow(columns, more, asked).tree, grow(columns, target, fewer).tree
        assert wide.probability[:, :2] == pytest.approx(narrow.probability)
        assert (wide.feature == narrow.feature).all()


def test_numbers_as_levels() -> None:
    """A level that the other folds lack is unseen there: the row stops at the root and gets its answer."""
    columns = [numbers("x", [1, 1, 1, 2, 2, 2, 7])]
    target = classes([*"aaabbba"])
    asked = {"numeric": "ordinal", "nominal": "multiway"}
    trials = run(columns, target, Plan(7), **asked)
    alone = int(assign_folds(target, 7, 0)[-1])
    assert trials[alone].metrics["accuracy"] == 1.0  # three a and three b: the first class
    assert [trial.metrics["accuracy"] for k, trial in enumerate(trials) if k != alone] == [1.0] * 6
