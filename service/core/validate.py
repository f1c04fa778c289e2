"""Cross-validation: each fold is answered by a tree that was learnt from the others."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from threading import Lock

import numpy as np

from service.core.answers import Answers, answer_rows
from service.core.conform import conform
from service.core.evaluate import Metrics, find_positive, measure
from service.core.folds import assign_folds, take_rows
from service.core.guide import are_floats, lay_out
from service.core.learn import learn
from service.core.parallel import PARALLEL_CELLS, run_parallel
from service.core.parameters import Parameters
from service.core.schema import MISSING, Column, Label, Table, Target
from service.core.statistics import Ints
from service.core.tree import Tree

WORTH_CELLS = 4 * PARALLEL_CELLS
"""Of smaller tables the interpreter, which one thread holds at a time, takes more time than numpy does."""


@dataclass(frozen=True, slots=True)
class Plan:
    """So many folds, dealt anew by ``seed`` in each of so many repeats."""

    folds: int
    seed: int = 0
    repeats: int = 1

    @property
    def trials(self) -> int:
        """How many trees are learnt."""
        return self.folds * self.repeats


@dataclass(frozen=True, slots=True)
class Trial:
    """One fold held out: the measures of its ``rows`` rows, and the leaves of the tree that answered them."""

    repeat: int
    fold: int
    rows: int
    leaves: int
    metrics: Metrics


def cross_validate(
    columns: Sequence[Column], target: Target, parameters: Parameters, positive: Label | None, plan: Plan,
    report: Callable[[float], None] | None = None,
) -> list[Trial]:  # fmt: skip
    """A trial for each fold of each repeat, in this order: all that `learn` does, on the other folds only.

    The first repeat has the folds that `assign_folds` gives for the seed. Trials share the cores where they are large;
    the numbers are the same however they are shared. There are at least as many rows as
    folds. ``report`` is told again and again how much is done, 0 to 1, and ends all by raising. Raises what `learn`
    raises.
    """
    done: list[Trial] = []
    alone = Lock()  # trials run side by side

    def tell(*_: int) -> None:
        if report is not None:
            with alone:
                report(len(done) / plan.trials)

    deals = [assign_folds(target, plan.folds, _seed(plan, repeat)) for repeat in range(plan.repeats)]

    def run(task: tuple[int, int]) -> Trial:
        repeat, fold = task
        held = deals[repeat] == fold
        learnt = learn(*take_rows(columns, target, ~held), parameters, positive, tell)
        tested, truth = take_rows(columns, target, held)
        answers = _answer(learnt.tree, tested, truth.rows)
        metrics = measure(answers, truth, find_positive(target.classes, positive), parameters.criterion)
        trial = Trial(repeat, fold, truth.rows, int(learnt.tree.is_leaf.sum()), metrics)
        done.append(trial)
        tell()
        return trial

    tasks = [(repeat, fold) for repeat in range(plan.repeats) for fold in range(plan.folds)]
    return run_parallel(run, tasks, worth=target.rows * len(columns) > WORTH_CELLS)


def _seed(plan: Plan, repeat: int) -> int | list[int]:
    return plan.seed if repeat == 0 else [plan.seed, repeat]


def _answer(tree: Tree, columns: Sequence[Column], rows: int) -> Answers:
    """The answers to rows as they would be posted: a level that the tree's own rows lack is unseen."""
    levels = {feature.name for feature in tree.features if feature.kind == "ordinal"}
    posted = [
        _as_levels(column) if column.kind == "numeric" and column.name in levels else column for column in columns
    ]
    conformed, _ = conform(Table(tuple(posted), rows), tree.features)
    return answer_rows(tree, lay_out(tree, are_floats(conformed)), conformed, rows)


def _as_levels(column: Column) -> Column:
    """A numeric column as one of categories, each distinct number one."""
    missing = column.is_missing()
    numbers, known = np.unique(column.values[~missing], return_inverse=True)
    codes: Ints = np.full(len(missing), MISSING, np.int64)
    codes[~missing] = known
    return replace(
        column, kind="ordinal", values=codes.astype(np.int32), categories=tuple(numbers.tolist()), missing=None
    )
