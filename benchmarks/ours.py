"""How the service's core is called here: the one place to change when its entry points do.

Memory that is freed is kept, as in the processes of the service; for the peers beside it too.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from benchmarks.problems import Problem
from service.core.criteria import Task
from service.core.descend import descend
from service.core.descend_one import OneRow
from service.core.learn import Learnt, learn
from service.core.parameters import resolve
from service.core.read_row import RowReader
from service.core.schema import Column
from service.core.tree import Tree
from service.memory import keep_freed_memory

keep_freed_memory()


def fit(problem: Problem, depth: int | None, **parameters: Any) -> Learnt:  # noqa: ANN401 - of every kind
    """Learn a tree with the defaults of `cart`, encoding included."""
    task: Task = "classification" if problem.target.is_classification else "regression"
    return learn(problem.columns, problem.target, resolve("cart", {"max_depth": depth} | parameters, task))


def make_fit(problem: Problem, depth: int | None) -> Callable[[], object]:
    """The contestant that learns, after a small run that loads what is loaded late."""
    rows = slice(0, 50)
    few = [Column(c.name, c.kind, c.values[rows], c.categories, None if c.missing is None else c.missing[rows])
           for c in problem.columns]  # fmt: skip
    small = Problem(tuple(few), _take(problem, rows), problem.matrix[rows], problem.answers[rows])
    fit(small, 2)
    return lambda: fit(problem, depth)


def _take(problem: Problem, rows: slice) -> Any:  # noqa: ANN401 - a target
    target = problem.target
    codes = None if target.codes is None else target.codes[rows]
    values = None if target.values is None else target.values[rows]
    return type(target)(target.name, target.classes, codes, values)


def predict_batch(tree: Tree, columns: tuple[Column, ...], rows: int) -> object:
    """The answer of each row, as `service.prediction` finds it, without labels."""
    return tree.prediction[descend(tree, columns, rows).node]


def make_predict_one(tree: Tree, problem: Problem, row: int) -> Callable[[], object]:
    """A call that predicts one row given as plain Python numbers, checked as a posted one is."""
    reader, way, answers = RowReader(tree.features), OneRow(tree), tree.prediction
    cells = problem.matrix[row].tolist()
    return lambda: answers[way.descend(reader.read(cells))]
