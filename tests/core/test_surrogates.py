"""Which splits stand in, and what their agreement counts, where it is not the weight."""

from __future__ import annotations

from typing import Any

import pytest

from service.core.tree import Tree
from tests.core.making import classes, grow, labels, numbers

Y = ["a"] * 4 + ["b"] * 4
X = numbers("x", [1, 2, 3, 4, 5, 6, 7, 8])


def list_surrogates(tree: Tree, node: int = 0) -> list[tuple[str, float]]:
    """The features that stand in at a node, best first, with their agreement."""
    stands = tree.surrogates
    assert stands is not None
    return [(tree.features[stands.feature[at]].name, float(stands.agree[at])) for at in stands.list_at(node)]


@pytest.mark.parametrize(("count", "expected"), [("weight", [("z", 17 / 18)]), ("rows", [("w", 7 / 8), ("z", 7 / 8)])])
def test_agreement_counts_weight_or_rows(count: str, expected: list[tuple[str, float]]) -> None:
    """Each of two features errs in one row; by weight the one that errs in the heavy row is no use."""
    weight = [1.0] * 8
    weight[0] = 11.0
    columns = [X, numbers("w", [9, 1, 1, 1, 9, 9, 9, 9]), numbers("z", [1, 1, 1, 9, 9, 9, 9, 9])]
    more: dict[str, Any] = {"missing": "surrogate", "surrogate_count": count, "max_depth": 1}
    found = list_surrogates(grow(columns, classes(Y, weight), more).tree)
    assert found == [(name, pytest.approx(agree)) for name, agree in expected]


@pytest.mark.parametrize(("rule", "expected"), [("cart", ["one", "two"]), ("rpart", ["two"])])
def test_groups_that_agree_too_well_for_rpart(rule: str, expected: list[str]) -> None:
    """Of two groupings, one errs in a row and one in two: rpart 4.1 drops the better one (larose8, node 1)."""
    one = labels("one", ["p", "p", "p", "q", "q", "q", "q", "q"])
    two = labels("two", ["p", "p", "p", "q", "q", "q", "q", "p"])
    tree = grow([X, one, two], classes(Y), {"missing": "surrogate", "nominal_surrogates": rule, "max_depth": 1}).tree
    assert [name for name, _ in list_surrogates(tree)] == expected
