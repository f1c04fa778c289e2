"""Rules in words: what fits them goes the same way, and what they say."""

from __future__ import annotations

import json
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from service.core.explain import How, trace_rows
from service.core.schema import Column
from service.core.tree import Tree
from service.rules import RowRule, write_surrogate, write_test
from tests.core.explaining import Case, cases, with_stand_ins
from tests.core.making import classes, grow, labels, numbers, values

SLOWLY = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


def read(columns: list[Column], row: int) -> list[float | None]:
    """The cells of a row."""
    return [None if column.is_missing()[row] else column.values[row].item() for column in columns]


def trace(case: Case, row: int) -> tuple[RowRule, list[tuple[Any, ...]]]:
    """The rule of a row, and its steps."""
    steps = trace_rows(case.tree, case.guide, case.columns, case.rows)
    told = steps.decisions
    rule, way = RowRule(case.tree, read(list(case.columns), row)), []
    for i in np.flatnonzero(steps.row == row).tolist():
        way.append((int(steps.node[i]), int(told.how[i]), int(told.branch[i]), int(told.surrogate[i])))
        if told.how[i] != How.ENDED:
            rule.add(int(steps.node[i]), How(int(told.how[i])), int(told.surrogate[i]))
    return rule, way


def fits(tree: Tree, conditions: list[dict[str, Any]], cells: list[float | None]) -> bool:
    """Whether a row meets all conditions, by what they say as JSON."""
    names = [feature.name for feature in tree.features]
    for condition in conditions:
        place = names.index(condition["feature"])
        value, known = cells[place], tree.features[place].categories
        if condition.get("has_value") is False:
            if value is not None:
                return False
            continue
        if value is None:
            return False
        label = known[int(value)] if known and value >= 0 else object()
        if "one_of" in condition and label not in condition["one_of"]:
            return False
        if "none_of" in condition and label in condition["none_of"]:
            return False
        if not known and not (condition.get("above", -np.inf) < value <= condition.get("up_to", np.inf)):
            return False
    return True


@with_stand_ins
@SLOWLY
@given(cases())
def test_what_fits_goes_the_same_way(case: Case) -> None:
    """A row fits its own rule, and any mixture of rows that fits it has the same steps, decided alike."""
    mixed = Case(case.tree, [turn(column, place) for place, column in enumerate(case.columns)])
    for row in range(case.rows):
        rule, way = trace(case, row)
        conditions = rule.show()
        assert fits(case.tree, conditions, read(list(case.columns), row))
        assert len({condition["feature"] for condition in conditions}) == len(conditions)
        for other in range(mixed.rows):
            if fits(case.tree, conditions, read(list(mixed.columns), other)):
                assert trace(mixed, other)[1] == way


def turn(column: Column, place: int) -> Column:
    """The column's cells again and again, each column in another rhythm."""
    count = len(column.values)
    order = np.arange(24) // (place + 1) % count
    missing = None if column.missing is None else column.missing[order]
    return Column(column.name, column.kind, column.values[order], column.categories, missing)


def test_several_cuts_become_one_interval() -> None:
    """Of many tests on a number the nearest on each side are told, exactly; whole numbers beyond 2^53 as they are."""
    columns = [numbers("x", [1, 2, 3, 4])]
    case = Case(grow(columns, values([0.0, 5.0, 1.0, 9.0])).tree, columns)
    rules = [trace(case, row)[0] for row in range(4)]
    assert [rule.write() for rule in rules] == ["x <= 1.5", "1.5 < x <= 2.5", "2.5 < x <= 3.5", "x > 3.5"]
    assert rules[1].show() == [{"feature": "x", "text": "1.5 < x <= 2.5", "above": 1.5, "up_to": 2.5}]
    big = 2**60
    columns = [numbers("x", [big, big + 1])]
    assert trace(Case(grow(columns, values([0.0, 5.0])).tree, columns), 0)[0].write() == f"x <= {big}"


def test_categories_become_a_set() -> None:
    """Several tests on categories leave those that passed all; labels are written as JSON."""
    columns = [labels("c", ["a", "b", 2, True], ["a", "b", 2, True])]
    case = Case(grow(columns, values([0.0, 10.0, 20.0, 40.0])).tree, columns)
    assert [trace(case, row)[0].write() for row in range(4)] == ['c is "a"', 'c is "b"', "c is 2", "c is true"]
    assert json.loads(json.dumps(trace(case, 3)[0].show())) == [{"feature": "c", "text": "c is true", "one_of": [True]}]


def test_of_one_leaf() -> None:
    """Any row fits, for nothing is asked."""
    case = Case(grow([numbers("x", [1, 1])], values([0.0, 1.0])).tree, [numbers("x", [1])])
    assert (trace(case, 0)[0].write(), trace(case, 0)[0].show()) == ("any row", [])


@pytest.mark.parametrize(
    ("cells", "parameters", "test"),
    [
        (numbers("x", [1, 1, 3, 3]), {}, "x <= 2.0"),
        (labels("c", ["p", "p", "q", "q"]), {}, 'c is "p"'),
        (labels("c", ["p", "p", "q", "r"]), {"nominal": "multiway"}, "which c"),
        (labels("s", ["S", "M", "L", "L"], ["S", "M", "L"], "ordinal"), {}, 's is one of "S", "M"'),
        (numbers("x", [None, None, 3, 3]), {"missing": "branch"}, "x has no value"),
    ],
)
def test_tests(cells: Column, parameters: dict[str, Any], test: str) -> None:
    """Each form of split says under which condition a row goes to its first branch."""
    assert write_test(grow([cells], classes(["n", "n", "y", "y"]), parameters).tree, 0) == test


def test_surrogates() -> None:
    """One that is turned round says that greater values go to the first branch."""
    x, w = numbers("x", [1, 2, 3, 11, 12, 13, None]), numbers("w", [9, 9, 9, 2, 2, 2, 2])
    tree = grow([x, w], classes(list("nnnpppp")), {"missing": "surrogate", "max_depth": 1}).tree
    assert tree.surrogates is not None
    told = {tree.features[int(tree.feature[0])].name: write_test(tree, 0)}
    told |= {"stands in": write_surrogate(tree, tree.surrogates, 0)}
    assert told in ({"x": "x <= 7.0", "stands in": "w > 5.5"}, {"w": "w <= 5.5", "stands in": "x > 7.0"})
