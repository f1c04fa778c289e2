"""The naive learner is itself held to textbook numbers and to counting arguments, without the service."""

from __future__ import annotations

import json
import math
from fractions import Fraction
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tests.oracle import naive_tree as naive
from tests.oracle import strategies

DATA = Path(__file__).parents[1] / "data"
WORKED = json.loads((DATA / "worked_examples.json").read_text())
NAMES = {
    "gain": "information_gain",
    "split_info": "information_content",
    "gain_ratio": "gain_ratio",
    "gini_decrease": "gini_gain",
    "phi": "goodness",
    "twoing": "twoing",
}


def worked_splits(found: object, path: str = "") -> list[tuple[str, dict[str, Any]]]:
    """Every worked split that lists its branches' counts, with its place in the file."""
    if isinstance(found, list):
        return [entry for place, item in enumerate(found) for entry in worked_splits(item, f"{path}/{place}")]
    if not isinstance(found, dict):
        return []
    own = [(path, found)] if "counts" in found and "c45_missing" not in path else []
    return own + [entry for key, item in found.items() for entry in worked_splits(item, f"{path}/{key}")]


@pytest.mark.parametrize("split", [pytest.param(split, id=path) for path, split in worked_splits(WORKED)])
def test_measures_equal_the_worked_examples(split: dict[str, Any]) -> None:
    """Gain, split information, ratio, gini decrease, phi and twoing equal the textbooks' to 1e-12."""
    scores = naive.class_measures([[Fraction(count) for count in branch] for branch in split["counts"]])
    for theirs, ours in NAMES.items():
        if theirs in split:
            assert math.isclose(float(scores[ours]), split[theirs], rel_tol=1e-12, abs_tol=1e-12), theirs


def test_positive_measures_equal_the_worked_examples() -> None:
    """Positive correctness 6 and 4, true positive rates 8/11 and 3/4."""
    for letter, correctness, rate in (("A", 6, Fraction(8, 11)), ("B", 4, Fraction(3, 4))):
        case = WORKED[f"wikipedia_feature_{letter}"]
        branches = [[Fraction(case["TP"]), Fraction(case["FP"])], [Fraction(case["FN"]), Fraction(case["TN"])]]
        scores = naive.class_measures(branches, positive=0)
        assert (scores["positive_correctness"], scores["true_positive_rate"]) == (correctness, rate)


def test_variance_reduction_and_the_encyclopaedias_formula() -> None:
    """Targets 0,1 | 0,1 reduces nothing, and 0.125 by the formula that squares the shares; each errs by a half."""
    scores = naive.number_measures([[(Fraction(1), Fraction(y)) for y in (0, 1)]] * 2)
    assert scores == {
        "variance_reduction": 0,
        "pairwise_variance_reduction": Fraction(1, 8),
        "absolute_error_cost": Fraction(1, 2),
        "absolute_error_reduction": 0,
        "poisson_deviance_reduction": 0,
    }


def problem(cells: list[naive.Value], asked: dict[str, Any]) -> naive.Problem:
    """One feature, two classes in turn, unit weights."""
    targets = ["no" if row % 2 else "yes" for row in range(len(cells))]
    return naive.Problem({"x": cells}, targets, [1] * len(cells), ("no", "yes"), **asked)


@pytest.mark.parametrize(
    ("cells", "asked", "forms"),
    [
        ([1, 2, 3], {}, {"threshold": 2}),
        ([1, 2, 2.5, None], {}, {"threshold": 4, "missing": 1}),
        ([1, 2, None], {"missing": "branch"}, {"threshold": 1, "missing": 1}),
        ([0, 0, 0, None, None], {}, {"missing": 1}),
        ([7, 7], {}, {"constant": 1}),
        ([None, None], {}, {"constant": 1}),
        (["a", "b"], {}, {"subset": 1}),
        (["a", "b"], {"nominal": "one_vs_rest"}, {"subset": 1}),
        (list("abcde"), {}, {"subset": 15}),
        (list("abcde"), {"nominal": "one_vs_rest"}, {"subset": 5}),
        (list("abcde"), {"nominal": "multiway"}, {"multiway": 1}),
        ([*"abc", None], {}, {"subset": 6, "missing": 1}),
        ([*"abc", None], {"nominal": "multiway"}, {"multiway": 1, "missing": 1}),
        ([True, False, True], {}, {"subset": 1}),
    ],
)
def test_candidates_are_as_many_as_counting_says(
    cells: list[naive.Value], asked: dict[str, Any], forms: dict[str, int]
) -> None:
    """There are k-1 cuts of k values, twice that where some are missing, and 2^(k-1)-1 subsets of k categories."""
    case = problem(cells, asked)
    found = naive.node_candidates(case, case.rows())
    assert {form: sum(each.form == form for each in found) for form in {each.form for each in found}} == forms
    assert len({each.key for each in found}) == len(found)
    assert all(sorted(row for branch in each.branches for row in branch) == list(case.rows()) for each in found)
    assert all(all(each.branches) for each in found)


def test_missing_under_branch_is_one_more_category() -> None:
    """Three categories and missing ones give 2^3 - 1 subsets, one of them missing against present, or four branches."""
    case = problem([*"abc", None], {"missing": "branch"})
    found = naive.node_candidates(case, case.rows())
    assert [each.form for each in found] == ["subset"] * 7
    assert len({each.key for each in found}) == 7
    wide = problem([*"abc", None], {"missing": "branch", "nominal": "multiway"})
    assert [len(each.branches) for each in naive.node_candidates(wide, wide.rows())] == [4]


def test_missing_goes_with_the_heaviest_branch_of_many() -> None:
    """Under direction the multiway candidate adds the missing rows to its heaviest branch, the first of equals."""
    case = problem(["b", "a", "b", None], {"nominal": "multiway"})
    assert naive.node_candidates(case, case.rows())[0].branches == ((1,), (0, 2, 3))


def test_admission_needs_rows_weight_and_improvement() -> None:
    """A cut is refused for too few rows, for too little weight, for no gain and for less than min_gain."""
    table = {"x": [1, 2, 3, 4]}
    targets = ["no", "yes", "yes", "yes"]

    def usable(asked: dict[str, Any]) -> list[bool]:
        case = naive.Problem(table, targets, [1, 1, 2, 0], ("no", "yes"), **asked)
        return [each.admissible for each in naive.node_candidates(case, case.rows())]

    assert usable({}) == [True, True]
    assert usable({"min_samples_leaf": 2}) == [False, False]
    assert usable({"min_weight_leaf": 1.5}) == [False, True]
    assert usable({"min_gain": 0.3}) == [True, False]


@given(st.one_of(strategies.classification(), strategies.with_a_positive_class(), strategies.regression()))
def test_every_candidate_parts_the_rows(case: naive.Problem) -> None:
    """Each candidate's branches hold every row once and none is empty; a gain is never below 0 but for rounding."""
    for each in naive.node_candidates(case, case.rows()):
        assert sorted(row for branch in each.branches for row in branch) == list(case.rows())
        assert all(each.branches)
        gains = [each.scores.get(name) for name in ("gini_gain", "information_gain", "variance_reduction")]
        assert all(gain >= -1e-12 for gain in gains if gain is not None)
