"""Explanations: why rows are answered what they are, and what would have to be otherwise."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.core.answers import Answers, answer_rows
from service.core.candidates import Form
from service.core.conform import conform
from service.core.counterfactual import Changes, complete_spans, find_changes, find_spans
from service.core.errors import Fault
from service.core.explain import How, Steps, trace_rows
from service.core.folds import take_cells
from service.core.guide import Guide
from service.core.schema import Column, Table
from service.core.shapley import Shapley, find_shapley, measure_shapley
from service.core.tree import Tree
from service.errors import InvalidRequest
from service.prediction import Predictor, prepare
from service.rendering.nodes import show_number, show_statistics
from service.rules import RowRule, write_surrogate, write_test
from service.store.models import ModelStore
from service.store.records import ModelRecord

MOST_STEPS = 200_000
"""An answer has at most so many steps, which are a hundred megabytes."""
MOST_NUMBERS = 3_000_000
"""What is told of all steps has at most so many numbers and words, and so have the Shapley values."""
MOST_FACTORS = 500_000_000
"""The Shapley values of an answer take at most so many factors, which are a few seconds."""
LONG = 100
"""Those of a job may take so many times as many."""
FACTORS_OF_A_CELL = 50
"""So many factors make up for a cell in what becomes a job by itself."""
TOLD = 0.1
"""The share of a job that all but the Shapley values is taken to be."""


@dataclass(frozen=True, slots=True)
class ExplanationRequest:
    """Rows, and what is asked of them."""

    table: Table
    counterfactuals: bool = True
    shapley: bool = False


def check(record: ModelRecord, request: ExplanationRequest, store: ModelStore) -> None:
    """Raise what `explain` raises, as a job, for a request that cannot be answered."""
    predictor = prepare(record, store)
    conform(request.table, predictor.tree.features, predictor.missing)
    if request.shapley:
        _check_shapley(predictor.tree, request.table.rows, LONG * MOST_FACTORS)


def count_cells(record: ModelRecord, request: ExplanationRequest, store: ModelStore) -> int:
    """How many rows x columns take about as long."""
    tree = prepare(record, store).tree
    factors = 0 if tree.answers or not request.shapley else request.table.rows * measure_shapley(tree)
    return request.table.cells + factors // FACTORS_OF_A_CELL


def explain(
    record: ModelRecord, request: ExplanationRequest, store: ModelStore, report: Callable[[float], None] | None = None
) -> dict[str, Any]:
    """For each row its way, the rule, where it ends, the least changes and the Shapley values.

    ``report``, of a job, is told how much is done, and ends all by raising. Raises `InvalidData` for a table that
    cannot be predicted or asks for too much, `InvalidRequest` for Shapley values that do.
    """
    predictor = prepare(record, store)
    tree, rows = predictor.tree, request.table.rows
    columns, warnings = conform(request.table, tree.features, predictor.missing)
    if request.shapley:
        _check_shapley(tree, rows, MOST_FACTORS if report is None else LONG * MOST_FACTORS)
    guide = predictor.guide(columns)
    answers = answer_rows(tree, guide, columns, rows)
    steps = trace_rows(tree, guide, columns, rows, MOST_STEPS)
    teller = _Teller(predictor, request.table, columns, answers)
    shown = _show_ways(teller, steps, rows)
    if request.counterfactuals:
        spans = find_spans(tree) if predictor.spans is None else complete_spans(predictor.spans)
        _add_changes(teller, shown, list(find_changes(tree, guide, columns, answers, spans, steps.count_ends(rows))))
    whole: dict[str, Any] = {}
    if request.shapley:
        found = _find_shapley(tree, guide, columns, rows, report)
        whole["shapley"] = {
            "explains": "probabilities" if tree.classes else "predictions",
            "expected": _show_output(tree, found.expected),
        }
        _add_shapley(tree, shown, found)
    classes = {"classes": list(tree.classes)} if tree.classes else {}
    return {**classes, **whole, "rows": shown, "warnings": warnings}


def _find_shapley(
    tree: Tree, guide: Guide, columns: Sequence[Column], rows: int, report: Callable[[float], None] | None
) -> Shapley:
    """The Shapley values, so many rows at a time that ``report`` is told in time."""
    together = max(1, MOST_FACTORS // 10 // measure_shapley(tree))
    found = []
    for begin in range(0, max(rows, 1), together):
        if report is not None:
            report(TOLD + (1 - TOLD) * begin / rows)
        some = np.arange(begin, min(begin + together, rows))
        found.append(find_shapley(tree, guide, [take_cells(column, some) for column in columns], len(some)))
    return replace(found[0], values=np.concatenate([each.values for each in found]))


def _check_shapley(tree: Tree, rows: int, factors: int) -> None:
    """Raise `InvalidRequest` where there are no Shapley values, or they take more than so many ``factors``."""
    if tree.answers:
        raise InvalidRequest(
            "the answers of this model are no numbers and have no probabilities: nothing adds up to them",
            Fault("/shapley", "leave it out"),
        )
    outputs = len(tree.classes) or tree.prediction[0].size
    most = min(factors // measure_shapley(tree), MOST_NUMBERS // max(len(tree.features) * outputs, 1))
    if rows > most:
        remedy = f"send at most {most} rows at once" if most else "leave it out"
        raise InvalidRequest("Shapley values of these rows and this tree take too long", Fault("/shapley", remedy))


class _Teller:
    """Rows and answers in the words of the API."""

    def __init__(self, predictor: Predictor, table: Table, columns: Sequence[Column], answers: Answers) -> None:
        self.predictor, self.tree, self.answers = predictor, predictor.tree, answers
        posted = {column.name: column for column in table.columns}
        self.posted = [posted[feature.name] for feature in self.tree.features]
        self.missing = [column.is_missing() for column in columns]
        self.columns = columns
        self._nodes: dict[int, tuple[dict[str, Any], int]] = {}
        self._left = MOST_NUMBERS

    def show_cell(self, feature: int, row: int) -> Any:  # noqa: ANN401 - a label, a number or null
        """What was posted."""
        return None if self.missing[feature][row] else _show_value(self.posted[feature], row)

    def read_row(self, row: int) -> list[float | None]:
        """The row's numbers and codes, None where missing."""
        return [
            None if gone[row] else column.values[row].item()
            for column, gone in zip(self.columns, self.missing, strict=True)
        ]

    def show_answer(self, prediction: Any) -> Any:  # noqa: ANN401 - a number, a code or several numbers
        """A prediction."""
        if self.tree.classes or self.tree.answers:
            return self.predictor.labels[int(prediction)]
        return prediction.tolist()

    def show_node(self, node: int) -> dict[str, Any]:
        """What a step says of its node, whatever the row; raises `InvalidRequest` when all has become too long."""
        if node not in self._nodes:
            test = {} if self.tree.is_leaf[node] else {"test": write_test(self.tree, node)}
            told = test | show_statistics(self.tree, node)
            self._nodes[node] = told, 12 + len(test.get("test", "")) // 8 + len(self.tree.classes)
        told, size = self._nodes[node]
        self._left -= size
        if self._left < 0:
            raise InvalidRequest("the explanations of these rows are too long", Fault("/data", "send fewer rows"))
        return told


def _show_value(column: Column, row: int) -> Any:  # noqa: ANN401 - a label or a number
    value = column.values[row].item()
    if column.kind == "numeric":
        return show_number(value) if isinstance(value, float) else value
    return column.categories[value]


def _show_ways(teller: _Teller, steps: Steps, rows: int) -> list[dict[str, Any]]:
    tree, answers = teller.tree, teller.answers
    begins = np.searchsorted(steps.row, np.arange(rows + 1)).tolist()
    told = steps.decisions
    shown = []
    for row in range(rows):
        rule = RowRule(tree, teller.read_row(row))
        path, ends = [], []
        for i in range(begins[row], begins[row + 1]):
            node, how, surrogate = int(steps.node[i]), How(int(told.how[i])), int(told.surrogate[i])
            share = {} if tree.share is None else {"share": float(steps.share[i])}
            if how != How.ENDED:
                path.append(_show_step(teller, row, node, how, int(told.branch[i]), surrogate) | share)
                rule.add(node, how, surrogate)
            if how in (How.ENDED, How.STOPPED):
                told_of = {name: value for name, value in teller.show_node(node).items() if name != "test"}
                ends.append({"node": node, "leaf": bool(tree.is_leaf[node]), **told_of, **share})
        index = answers.index[row]
        probabilities = {"probabilities": answers.probability[index].tolist()} if tree.classes else {}
        shown.append(
            {
                "prediction": teller.show_answer(answers.prediction[index]),
                **probabilities,
                "leaf": int(answers.leaf[row]),
                "rule": rule.write(),
                "conditions": rule.show(),
                "path": path,
                "ends": ends,
            }
        )
    return shown


def _show_step(teller: _Teller, row: int, node: int, how: How, branch: int, surrogate: int) -> dict[str, Any]:
    tree = teller.tree
    feature = int(tree.feature[node])
    asked = how == How.VALUE and tree.form[node] != Form.MULTIWAY
    step = {
        "node": node,
        "feature": tree.features[feature].name,
        "value": teller.show_cell(feature, row),
        "how": how.name.lower(),
        "passed": branch == 0 if asked else None,
        "branch": branch if branch >= 0 else None,
        "to": int(tree.first_child[node]) + branch if branch >= 0 else None,
        **teller.show_node(node),
    }
    stands = tree.surrogates
    if surrogate >= 0 and stands is not None:
        other = int(stands.feature[surrogate])
        step["surrogate"] = {
            "rank": surrogate - stands.list_at(node).start + 1,
            "feature": tree.features[other].name,
            "test": write_surrogate(tree, stands, surrogate),
            "value": teller.show_cell(other, row),
        }
    return step


def _add_changes(teller: _Teller, shown: list[dict[str, Any]], found: Sequence[Changes]) -> None:
    """Write the least changes into what is shown of the rows, the nearest first."""
    for each in shown:
        each["counterfactuals"] = []
    for changes in found:
        for i, row in enumerate(changes.row.tolist()):
            shown[row]["counterfactuals"].append(
                {
                    "feature": teller.tree.features[changes.feature].name,
                    "from": teller.show_cell(changes.feature, row),
                    "to": _show_value(changes.cells, i),
                    "distance": show_number(float(changes.distance[i])),
                    "prediction": teller.show_answer(changes.prediction[i]),
                    "leaf": int(changes.leaf[i]),
                }
            )
    for each in shown:
        # features come in their order, which a stable sort keeps among equals
        each["counterfactuals"].sort(key=lambda change: float(change["distance"]))


def _add_shapley(tree: Tree, shown: list[dict[str, Any]], found: Shapley) -> None:
    names = [feature.name for feature in tree.features]
    for each, values in zip(shown, found.values, strict=True):
        each["shapley"] = {name: _show_output(tree, value) for name, value in zip(names, values, strict=True)}


def _show_output(tree: Tree, output: Any) -> Any:  # noqa: ANN401 - an array
    """A number of a regression, a list where there are several, or one for each class."""
    return output.tolist() if tree.classes or tree.prediction.ndim > 1 else float(output[0])
