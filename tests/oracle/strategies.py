"""Small random tables with everything that trips a learner: ties, gaps, constants, weights of 0, one row."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from tests.oracle.naive_tree import Problem, Value

KINDS: dict[str, Sequence[Value]] = {
    "whole": [0, 1, 2, 3, 4],
    "real": [-1e300, -1.5, -0.0, 0.0, 1e-7, 0.1, 0.2, 0.30000000000000004, 2.5, 1e300],
    "nominal": ["ash", "birch", "cedar", "elm"],
    "boolean": [False, True],
    "constant": [7],
    "ordinal": ["XS", "S", "M", "L"],
}
ORDER = ["XS", "S", "M", "L", "XL"]
LABELS: Sequence[Sequence[Any]] = (["a", "b", "c", "d"], [False, True], [1, 2, 3], [-1, 5])
TWO_LABELS: Sequence[Sequence[Any]] = (["n", "p"], [False, True])
CLASS_CRITERIA = ("gini", "entropy", "gain_ratio", "gini_gain_ratio", "goodness")
POSITIVE_CRITERIA = ("positive_correctness", "true_positive_rate")


@st.composite
def columns(
    draw: st.DrawFn, rows: int, kinds: Sequence[str] = tuple(KINDS), gaps: bool = True
) -> dict[str, list[Value]]:
    """One to three columns, each with gaps or without; one with nothing in it at all counts as numeric."""
    made: dict[str, list[Value]] = {}
    for place, kind in enumerate(draw(st.lists(st.sampled_from(kinds), min_size=1, max_size=3))):
        cells = st.sampled_from(KINDS[kind])
        cell = st.one_of(cells, cells, st.none()) if gaps and draw(st.booleans()) else cells
        made[f"{kind}{place}"] = draw(st.lists(cell, min_size=rows, max_size=rows))
    return made


def ordinals(made: Mapping[str, object]) -> dict[str, Sequence[str]]:
    """The order of the categories of each ordinal column, one of which no row has."""
    return {name: ORDER for name in made if name.startswith("ordinal")}


@st.composite
def weights(draw: st.DrawFn, rows: int) -> list[int]:
    """All ones, or 0, 1 and 2 mixed with at least one row that counts."""
    if draw(st.booleans()):
        return [1] * rows
    return draw(st.lists(st.sampled_from([0, 1, 1, 2]), min_size=rows, max_size=rows).filter(any))


@st.composite
def limits(draw: st.DrawFn) -> dict[str, Any]:
    """Growth limits, most of them left alone; no min_gain that a fraction of small counts could equal."""
    choices: dict[str, Sequence[Any]] = {
        "max_depth": [None, None, 1, 2],
        "min_samples_split": [2, 2, 4],
        "min_samples_leaf": [1, 1, 2, 3],
        "min_weight_leaf": [0, 0, 1.5],
        "min_gain": [0, 0, 0.0517],
    }
    return {name: draw(st.sampled_from(values)) for name, values in choices.items()}


@st.composite
def handling(draw: st.DrawFn, binary: bool = False) -> dict[str, str]:
    """How nominal features are split, in two only where the criterion is defined for two, and missing values sent."""
    nominal = draw(st.sampled_from(["subset", "one_vs_rest", "multiway"][: 2 if binary else 3]))
    return {"nominal": nominal, "missing": draw(st.sampled_from(["direction", "branch"]))}


@st.composite
def classification(draw: st.DrawFn, criteria: Sequence[str] = CLASS_CRITERIA) -> Problem:
    """A problem with up to four classes."""
    rows = draw(st.integers(1, 12))
    labels = draw(st.sampled_from(LABELS))
    targets = draw(st.lists(st.sampled_from(labels), min_size=rows, max_size=rows))
    counted = draw(weights(rows))
    classes = sorted({target for target, weight in zip(targets, counted, strict=True) if weight})
    criterion = draw(st.sampled_from(criteria))
    asked = draw(limits()) | draw(handling(binary=criterion == "goodness"))
    made = draw(columns(rows))
    return Problem(made, targets, counted, classes, ordinals=ordinals(made), criterion=criterion, **asked)


@st.composite
def with_a_positive_class(draw: st.DrawFn) -> Problem:
    """A problem with two classes, one of them the positive one."""
    rows = draw(st.integers(2, 12))
    labels: Sequence[Any] = draw(st.sampled_from(TWO_LABELS))
    rest = draw(st.lists(st.sampled_from(labels), min_size=rows - 2, max_size=rows - 2))
    counted = [1, 1, *draw(weights(rows - 2))] if rows > 2 else [1, 1]
    asked = draw(limits()) | draw(handling(binary=True)) | {"criterion": draw(st.sampled_from(POSITIVE_CRITERIA))}
    positive = draw(st.sampled_from(labels))
    made = draw(columns(rows))
    return Problem(made, [*labels, *rest], counted, labels, positive=positive, ordinals=ordinals(made), **asked)


@st.composite
def regression(draw: st.DrawFn, criterion: str = "variance") -> Problem:
    """A problem with numbers to predict, halves apart, so that their sums are exact."""
    rows = draw(st.integers(1, 12))
    targets = draw(st.lists(st.integers(-4, 8).map(lambda half: half / 2), min_size=rows, max_size=rows))
    asked = draw(limits()) | draw(handling())
    made = draw(columns(rows))
    return Problem(made, targets, draw(weights(rows)), criterion=criterion, ordinals=ordinals(made), **asked)


@st.composite
def echoed(draw: st.DrawFn, problems: st.SearchStrategy[Problem]) -> Problem:
    """A problem in which some columns say nearly what others say, so that they stand in for these."""
    problem = draw(problems)
    made: dict[str, list[Value]] = {name: list(cells) for name, cells in problem.columns.items()}
    for name in draw(st.lists(st.sampled_from(list(made)), min_size=1, max_size=2, unique=True)):
        cells = list(made[name])
        for row in draw(st.lists(st.sampled_from(problem.rows()), max_size=3)):
            cells[row] = draw(st.none() | st.sampled_from(made[name]))
        made[f"{name}again"] = cells
    return replace(problem, columns=made, ordinals=ordinals(made))


@st.composite
def counts(draw: st.DrawFn) -> Problem:
    """A problem with halves of 0 and more to predict, one of which counts and is above 0."""
    rows = draw(st.integers(1, 12))
    halves = st.lists(st.integers(0, 8).map(lambda half: half / 2), min_size=rows, max_size=rows)
    counted = draw(weights(rows))
    targets = draw(halves.filter(lambda drawn: any(y * w for y, w in zip(drawn, counted, strict=True))))
    asked = draw(limits()) | draw(handling())
    made = draw(columns(rows))
    return Problem(made, targets, counted, criterion="poisson", ordinals=ordinals(made), **asked)


@st.composite
def messy_regression(draw: st.DrawFn) -> Problem:
    """Numbers to predict of very different sizes, by weights such as 0.1: their sums depend on the order of adding."""
    rows = draw(st.integers(3, 14))
    targets = draw(st.lists(st.sampled_from([0.1, 0.2, 0.3, 1e-3, 1e9, -7.7, 1 / 3]), min_size=rows, max_size=rows))
    counted: Sequence[Any] = draw(st.lists(st.sampled_from([0.1, 0.7, 1, 1e-3, 3.3]), min_size=rows, max_size=rows))
    made = draw(columns(rows))
    criterion = draw(st.sampled_from(["variance", "poisson", "absolute_error", "dissimilarity"]))
    if criterion == "poisson":
        targets = [abs(target) for target in targets]
    return Problem(made, targets, counted, criterion=criterion, ordinals=ordinals(made), **draw(handling()))
