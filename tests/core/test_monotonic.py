"""Monotonic features: predictions follow them, whatever other features are split."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.answers import answer_rows
from service.core.descend import descend
from service.core.guide import are_floats, lay_out
from service.core.monotonic import find_bounds
from tests.core.making import classes, grow, labels, numbers, values

ALTERED: list[dict[str, Any]] = [
    {},
    {"class_weight": {"a": 1, "b": 3}},
    {"priors": {"a": 0.8, "b": 0.2}},
    {"loss": [[0, 5], [1, 0]]},
    {"loss": [[0, 1], [4, 0]], "class_weight": "balanced"},
]
ROWS = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 3), st.integers(-20, 20)), min_size=2, max_size=40)


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sampled_from(["up", "down"]))
def test_predictions_follow_a_monotonic_feature(rows: list[tuple[int, int, int]], direction: str) -> None:
    """All else equal, a regression tree's prediction never falls (or rises) as the feature rises."""
    columns = [numbers("x", [x for x, _, _ in rows]), numbers("z", [z for _, z, _ in rows])]
    tree = grow(columns, values([y for *_, y in rows]), {"monotonic": {"x": direction}}).tree
    for z in range(-1, 5):
        asked = [numbers("x", list(range(-1, 11))), numbers("z", [z] * 12)]
        answers = tree.prediction[descend(tree, asked, 12).node]
        steps = np.diff(answers) * (1 if direction == "up" else -1)
        assert (steps >= -1e-9).all()


@settings(max_examples=60, deadline=None)
@given(ROWS, st.sampled_from(ALTERED))
def test_shares_follow_a_monotonic_feature(rows: list[tuple[int, int, int]], altered: dict[str, Any]) -> None:
    """All else equal, the share of the second class never falls as the feature rises, nor does the answer."""
    marks = ["b" if y > 0 else "a" for *_, y in rows]
    if len(set(marks)) < 2:
        return
    columns = [numbers("x", [x for x, _, _ in rows]), numbers("z", [z for _, z, _ in rows])]
    tree = grow(columns, classes(marks), {"monotonic": {"x": "up"}, **altered}).tree
    for z in range(-1, 5):
        asked = [numbers("x", list(range(-1, 11))), numbers("z", [z] * 12)]
        node = descend(tree, asked, 12).node
        assert (np.diff(tree.probability[node, 1]) >= -1e-12).all()
        assert (np.diff(tree.prediction[node]) >= 0).all()
        assert tree.probability.sum(1) == pytest.approx(1.0, rel=1e-12)


GAPS = st.lists(
    st.tuples(st.sampled_from([None, *range(8)]), st.sampled_from([None, 0, 1, 2]), st.sampled_from(["p", "q", None]),
              st.booleans()),
    min_size=4, max_size=40,
)  # fmt: skip


@settings(max_examples=100, deadline=None)
@given(GAPS, st.sampled_from(["direction", "branch"]), st.booleans())
def test_rows_with_gaps_follow_it_too(rows: list[tuple[Any, Any, Any, bool]], missing: str, numeric: bool) -> None:
    """Whatever other features lack a value, and whatever becomes of it, answers rise with the feature."""
    xs, zs, cs, marks = (list(column) for column in zip(*rows, strict=True))
    if len(set(marks)) < 2:
        return
    columns = [numbers("x", xs), numbers("z", zs), labels("c", cs, ["p", "q"])]
    target = values([3.0 * mark for mark in marks]) if numeric else classes(["ab"[mark] for mark in marks])
    tree = grow(columns, target, {"monotonic": {"x": "up"}, "missing": missing}).tree
    for z in (None, 0, 1, 2):
        for c in (None, "p", "q"):
            asked = [numbers("x", list(range(-1, 9))), numbers("z", [z] * 10), labels("c", [c] * 10, ["p", "q"])]
            answers = answer_rows(tree, lay_out(tree, are_floats(asked)), asked, 10)
            shown = answers.prediction if numeric else answers.probability[:, 1]
            assert (np.diff(shown[answers.index]) >= -1e-9).all()


def test_shares_follow_an_ordinal_feature() -> None:
    """Ordered levels may be monotonic: of two cuts the one that goes against the order is not taken."""
    sizes = labels("size", [*"SSSSMMMMLLLL"], ["S", "M", "L"], "ordinal")
    target = classes([*"aabb", *"bbbb", *"aaaa"])
    free, up, down = (
        grow([sizes], target, {"monotonic": {"size": way} if way else None}).tree for way in (None, "up", "down")
    )
    shares = {name: tree.probability[descend(tree, [sizes], 12).node, 1][[0, 4, 8]] for name, tree in
              (("free", free), ("up", up), ("down", down))}  # fmt: skip
    assert shares["free"].tolist() == [0.5, 1.0, 0.0]
    assert shares["up"].tolist() == [0.5, 0.5, 0.5]
    assert shares["down"].tolist() == [0.75, 0.75, 0.0]


def test_answers_are_set_to_the_bound() -> None:
    """Between 3 and 6 the bound is 4.5: a group of 8 below the first branch answers 4.5, and its mean stays 8."""
    cells, groups = [1] * 20 + [2] * 10, ["p", *"q" * 19, *"q" * 10]
    target = values([8, *[52 / 19] * 19, *[6] * 10])
    tree = grow([numbers("x", cells), labels("z", groups)], target, {"monotonic": {"x": "up"}}).tree
    assert tree.features[tree.feature[0]].name == "x"
    assert tree.prediction == pytest.approx([4, 3, 6, 4.5, 52 / 19])
    assert tree.mean == pytest.approx([4, 3, 6, 8, 52 / 19])


def test_bounds_come_from_cuts_of_monotonic_features_alone() -> None:
    """A cut of another feature hands its node's bounds on; one of the feature itself adds the middle."""
    target = values([0, 0, 4, 4, 8, 8])
    columns = [numbers("x", [1, 1, 2, 2, 3, 3])]
    learnt = grow(columns, target, {"monotonic": {"x": "up"}})
    assert find_bounds(learnt.learner, learnt.tree)[:, 1:].T.tolist() == [
        [-np.inf, 3],
        [3, np.inf],
        [3, 6],
        [6, np.inf],
    ]
    free = grow(columns, target)
    assert find_bounds(free.learner, free.tree).T.tolist() == [[-np.inf, np.inf]] * free.tree.nodes
