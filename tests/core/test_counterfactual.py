"""The least change of one feature, against trying every cell that there is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from service.core.counterfactual import Changes, complete_spans, find_changes, find_spans, measure_spans
from service.core.explain import trace_rows
from service.core.folds import take_cells
from service.core.schema import Column
from tests.core.explaining import ORDER, Case, cases, with_stand_ins
from tests.core.making import grow, labels, numbers, values

SLOWLY = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def change(case: Case, spans: Any = None) -> dict[tuple[int, int], tuple[Changes, int]]:  # noqa: ANN401 - an array
    """The changes found, by row and feature."""
    known = find_spans(case.tree) if spans is None else spans
    ends = trace_rows(case.tree, case.guide, case.columns, case.rows).count_ends(case.rows)
    found = find_changes(case.tree, case.guide, case.columns, case.answer(), known, ends)
    return {(row, each.feature): (each, i) for each in found for i, row in enumerate(each.row.tolist())}


def list_cells(case: Case, feature: int) -> Column:
    """Every category; of numbers all thresholds of the tree, each with the next number above it, and extremes."""
    tree, told = case.tree, case.tree.features[feature]
    if told.kind != "numeric":
        return Column(told.name, told.kind, np.arange(len(told.categories), dtype=np.int32), told.categories)
    limits, whole = [tree.threshold[tree.feature == feature]], [tree.whole[tree.feature == feature]]
    if tree.surrogates is not None:
        mine = tree.surrogates.feature == feature
        limits.append(tree.surrogates.threshold[mine])
        whole.append(tree.surrogates.whole[mine])
    if told.integer:
        cells = np.concatenate([*whole, np.concatenate(whole) + 1, [-(10**6), 10**6]])
        return Column(told.name, "numeric", cells.astype(np.int64))
    limit = np.concatenate(limits)
    limit = limit[np.isfinite(limit)]
    return Column(told.name, "numeric", np.concatenate([limit, np.nextafter(limit, np.inf), [-1e308, 1e308]]))


def answers_of(case: Case, row: int, feature: int, cells: Column) -> Any:  # noqa: ANN401 - an array
    """(cell, ...) what the row is answered with each of these cells."""
    count = len(cells.values)
    table = [take_cells(column, np.full(count, row)) for column in case.columns]
    table[feature] = cells
    told = case.answer(table)
    return told.prediction[told.index]


def differs(case: Case, one: Any, other: Any) -> bool:  # noqa: ANN401 - numbers
    """Whether two answers are others, by more than rounding."""
    if case.tree.classes:
        return bool(one != other)
    return one != pytest.approx(other, rel=1e-12, abs=0)


def measure(case: Case, row: int, feature: int, cell: Any) -> float:  # noqa: ANN401 - a number
    """Gower's distance from the row's own cell."""
    told, column = case.tree.features[feature], case.columns[feature]
    old = column.values[row].item()
    if column.is_missing()[row] or (told.kind != "numeric" and old < 0):
        return 1.0
    if told.kind == "numeric":
        low, high = find_spans(case.tree)[:2, feature].tolist()
        return abs(cell / 2 - old / 2) / (high / 2 - low / 2 if high > low else 0.5)
    return abs(cell - old) / (len(ORDER) - 1) if told.kind == "ordinal" else 1.0


@with_stand_ins
@SLOWLY
@given(cases())
def test_every_other_cell(case: Case) -> None:
    """What is told alters the answer, no cell that is nearer does, and where nothing is told none does."""
    found = change(case)
    answers = case.answer()
    before = answers.prediction[answers.index]
    for row in range(case.rows):
        for feature in range(len(case.columns)):
            cells = list_cells(case, feature)
            told = answers_of(case, row, feature, cells)
            near = [
                (measure(case, row, feature, cell), cell)
                for cell, answer in zip(cells.values.tolist(), told, strict=True)
                if differs(case, answer, before[row])
            ]
            if (row, feature) not in found:
                assert not near
                continue
            each, i = found[row, feature]
            again = answers_of(case, row, feature, take_cells(each.cells, np.array([i])))[0]
            assert again == pytest.approx(each.prediction[i], rel=1e-12)
            assert differs(case, again, before[row])
            new = each.cells.values[i].item()
            assert each.distance[i] == pytest.approx(measure(case, row, feature, new))
            assert near
            assert each.distance[i] <= min(near)[0] * (1 + 1e-12)


def test_numbers_by_hand() -> None:
    """Up: the next number above the threshold; down: the threshold; whole numbers stay whole."""
    real, whole = numbers("x", [0.0, 1.0, 3.0, 4.0]), numbers("n", [0, 1, 3, 4])
    target = values([0.0, 0.0, 1.0, 1.0])
    case = Case(grow([real], target).tree, [numbers("x", [1.5, 2.5, None])])
    found = change(case, measure_spans([real]))
    cells = {row: each.cells.values[i].item() for (row, _), (each, i) in found.items()}
    assert cells == {0: np.nextafter(2.0, 3), 1: 2.0, 2: np.nextafter(2.0, 3)}
    each, i = found[1, 0]
    assert (each.distance[i], each.prediction[i], each.leaf[i]) == (0.125, 0.0, 1)
    case = Case(grow([whole], target).tree, [numbers("n", [1, 4])])
    found = change(case, measure_spans([whole]))
    told = {row: (each.cells.values[i].item(), each.distance[i]) for (row, _), (each, i) in found.items()}
    assert told == {0: (3, 0.5), 1: (2, 0.5)}


def test_categories_by_hand() -> None:
    """The nearest level of an ordered feature, the first of categories in order."""
    size = labels("size", ["S", "M", "L", "XL"], ORDER, "ordinal")
    case = Case(grow([size], values([0.0, 0.0, 0.0, 1.0])).tree, [labels("size", ["S", "XL"], ORDER, "ordinal")])
    told = {row: (int(each.cells.values[i]), each.distance[i]) for (row, _), (each, i) in change(case).items()}
    assert told == {0: (3, 1.0), 1: (2, 1 / 3)}


def test_large_whole_numbers() -> None:
    """Beyond 2^53 the change is still by one."""
    big = 2**62
    column = numbers("n", [big, big + 1, big + 2, big + 3])
    case = Case(grow([column], values([0.0, 0.0, 1.0, 1.0])).tree, [numbers("n", [big + 1, big + 2])])
    told = {row: each.cells.values[i].item() for (row, _), (each, i) in change(case).items()}
    assert told == {0: big + 2, 1: big + 1}
    column = numbers("n", [big + i for i in range(11)])
    case = Case(grow([column], values([1.0, *[0.0] * 6, *[1.0] * 4])).tree, [numbers("n", [big + 5, -big])])
    for spans, width in ((measure_spans([column]), 10), (find_spans(case.tree), 7)):  # the tree knows 0, 1, 6 and 7
        found = {
            row: (each.cells.values[i].item(), each.distance[i]) for (row, _), (each, i) in change(case, spans).items()
        }
        assert found == {0: (big + 7, 2 / width), 1: (big + 1, (2 * big + 1) / width)}


def test_spans() -> None:
    """Of numbers the least and the greatest that are finite, of anything else none."""
    columns = [numbers("a", [1.0, None, 5.0, float("inf")]), numbers("b", [3, None]), labels("c", ["p"])]
    columns += [numbers("d", [None, None]), numbers("e", [float("-inf"), float("inf")]), numbers("f", [])]
    columns += [numbers("g", [5, -3]), numbers("h", [-(2**63), 2**63 - 1])]
    none = [np.nan] * 4
    expected = np.array([[1, 3, *none, -3, -(2.0**63)], [5, 3, *none, 5, 2.0**63], [2, 0, *none, 4, 2.0**63]])
    assert measure_spans(columns) == pytest.approx(expected, nan_ok=True)
    assert complete_spans(expected[:2]) == pytest.approx(expected, nan_ok=True)
