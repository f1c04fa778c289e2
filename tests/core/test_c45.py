"""C4.5's rules for numeric cuts and for the features that compete, as numbers."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.c45 import find_many_valued, find_useful
from service.core.encoding import encode
from service.core.judge import Reason
from service.rendering.candidates import show_candidates
from tests.core.making import audit, classes, grow, labels, list_root, numbers


def list_cuts(cells: list[Any], marks: str, parameters: dict[str, Any]) -> list[dict[str, Any]]:
    """The root's candidates by entropy of one column."""
    target = classes(list(marks))
    learnt = grow([numbers("x", cells)], target, {"criterion": "entropy", "max_depth": 1} | parameters)
    listing = list_root(learnt, target)
    return show_candidates(audit(learnt, target), listing, listing.find_rows(0), listing.rank)


@pytest.mark.parametrize(("penalty", "cuts"), [("tried", 3), ("distinct", 5)])
def test_what_a_cut_pays(penalty: str, cuts: int) -> None:
    """Of five cuts three leave two rows on each side: the gain pays log2 3 or log2 5 bits over six rows."""
    listed = list_cuts([1, 2, 3, 4, 5, 6], "aaabbb", {"min_samples_leaf": 2, "cut_penalty": penalty})
    for cut in listed:
        assert cut["score"] == pytest.approx(cut["scores"]["information_gain"] - math.log2(cuts) / 6, abs=1e-15)
    assert listed[2]["score"] == pytest.approx(1 - math.log2(cuts) / 6)
    assert listed[2]["rank"] == 1


def test_a_cut_that_cannot_pay_is_no_improvement() -> None:
    """A gain below log2 3 / 4 bits is not enough for one of three cuts in four rows."""
    listed = list_cuts([1, 2, 3, 4], "abbb", {"cut_penalty": "tried", "min_samples_leaf": 1})
    assert [cut["scores"]["information_gain"] > math.log2(3) / 4 for cut in listed] == [True, False, False]
    assert [cut["reason"] for cut in listed] == [None, "no_improvement", "no_improvement"]


def test_missing_values_on_either_side_are_two_cuts() -> None:
    """Each of two cuts is two candidates where values are missing; missing against present pays nothing."""
    listed = list_cuts([1, 2, 3, None], "abba", {"cut_penalty": "tried"})
    price = [split["scores"]["information_gain"] - split["score"] for split in listed]
    assert price == pytest.approx([math.log2(4) / 4] * 4 + [0.0], abs=1e-15)


@pytest.mark.parametrize(("rows", "least"), [(40, 2), (100, 5), (1000, 25)])
def test_the_limit_of_a_cut(rows: int, least: int) -> None:
    """With two classes each branch needs a twentieth of the rows, and 25 at the most."""
    listed = list_cuts(list(range(rows)), "ab" * (rows // 2), {"cut_limit": "c45"})
    short = [min(cut["branches"][0]["known"]["n"], cut["branches"][1]["known"]["n"]) < least for cut in listed]
    assert [cut["reason"] == "cut_limit" for cut in listed] == short
    assert sum(short) == 2 * (least - 1)


def test_groups_have_no_cut_limit_and_pay_nothing() -> None:
    """Splits by categories are neither limited nor charged."""
    target = classes(list("aa" + "b" * 38))
    parameters = {"criterion": "entropy", "cut_limit": "c45", "cut_penalty": "tried", "max_depth": 1}
    listing = list_root(grow([labels("x", ["p", *"q" * 38, "r"])], target, parameters), target)
    assert set(listing.reason.tolist()) == {Reason.ADMISSIBLE}
    assert listing.score == pytest.approx(listing.score_rows("information_gain", np.arange(3)), abs=0)


def test_bins_are_not_asked_where_cuts_pay() -> None:
    """Many rows give the tree that few would: a price needs the number of cuts, which bins do not know."""
    cells = [float(value) for value in np.random.default_rng(4).normal(size=25_000)]
    target = classes(["a" if value > 0.3 else "b" for value in cells])
    learnt = grow([numbers("x", cells)], target, {"criterion": "entropy", "cut_penalty": "tried", "max_depth": 1})
    impurity = learnt.tree.impurity[0]
    assert learnt.tree.score[0] == pytest.approx(impurity - math.log2(24_999) / 25_000, abs=1e-12)


def test_useful_features() -> None:
    """The mean counts a gain of 0, but neither what has nothing to offer nor categories without number."""
    gain = np.array([[0.3, 0.0, -np.inf, 0.148], [0.1, 0.09, 0.0995, 0.9], [-np.inf, -np.inf, -np.inf, 0.5]])
    plain = find_useful(gain, np.zeros(4, bool))
    assert plain.tolist() == [[True, False, False, False], [False, False, False, True], [False, False, False, True]]
    many = find_useful(gain, np.array([False, False, False, True]))
    assert many.tolist() == [[True, False, False, False], [True, False, True, True], [False] * 4]


def test_many_valued_features() -> None:
    """Three of ten rows' categories are many, unless there is nothing but such features."""
    three, two = labels("three", list("abcabcabca")), labels("two", list("ababababab"))
    assert find_many_valued(encode([three, two]), 10).tolist() == [True, False]
    assert find_many_valued(encode([three, numbers("x", list(range(10)))]), 10).tolist() == [True, False]
    assert find_many_valued(encode([three, three]), 10).tolist() == [False, False]


TABLES = st.lists(
    st.tuples(st.sampled_from([1, 2, 3, 4, None]), st.sampled_from(["p", "q", None]), st.sampled_from("ab"),
              st.integers(1, 3)),
    min_size=8, max_size=30,
)  # fmt: skip


@settings(max_examples=80, deadline=None)
@given(TABLES, st.sampled_from(["multiway", "one_vs_rest"]))
def test_a_weight_of_two_is_the_row_twice(rows: list[tuple[int | None, str | None, str, int]], nominal: str) -> None:
    """J48's limits, prices, parts and pruning count weight: a row that weighs 3 is one that stands there thrice."""
    repeated = [row for row in rows for _ in range(row[3])]
    trees = []
    for table, weight in ((rows, [float(row[3]) for row in rows]), (repeated, None)):
        columns = [numbers("x", [row[0] for row in table]), labels("c", [row[1] for row in table], ["p", "q"])]
        target = classes([row[2] for row in table], weight)
        trees.append(grow(columns, target, {"nominal": nominal}, "j48").tree)
    light, long = trees
    assert light.feature.tolist() == long.feature.tolist()
    assert np.array_equal(light.threshold, long.threshold, equal_nan=True)
    assert light.counts == pytest.approx(long.counts, abs=1e-9)
    assert light.probability == pytest.approx(long.probability, abs=1e-9)
