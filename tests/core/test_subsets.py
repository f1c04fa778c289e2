"""Which groups of categories are weighed, and that the ordering beyond six finds the best of all."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import combinations
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.learn import Learnt
from service.core.schema import Label, Target
from service.rendering.candidates import show_candidates
from service.rendering.nodes import show_tree_split
from tests.core.making import audit, classes, grow, labels, list_root, values

NAMES = [f"k{number}" for number in range(12)]


def list_groups(
    cells: Sequence[Label | None], marks: Sequence[str], parameters: dict[str, Any] | None = None
) -> list[dict[str, Any]]:
    """The candidates at the root of one nominal feature, in candidate order."""
    target = classes(marks)
    learnt = grow([labels("x", cells)], target, {"max_depth": 1} | (parameters or {}))
    listing = list_root(learnt, target)
    return show_candidates(audit(learnt, target), listing, listing.find_rows(0), listing.rank)


def sides(shown: Sequence[dict[str, Any]]) -> set[frozenset[frozenset[Label | None]]]:
    """The two groups of each subset candidate, whichever of them is called left."""
    return {frozenset(map(frozenset, s["split"]["categories"])) for s in shown if s["split"]["type"] == "subset"}


@pytest.mark.parametrize("count", [2, 3, 4, 5, 6])
def test_up_to_six_all_pairs_of_groups(count: int) -> None:
    """Each of the 2^(k-1) - 1 pairs of groups of k categories is listed once, and no other."""
    names = NAMES[:count]
    listed = list_groups(names * 2, ["a", "b"] * count)
    expected = {
        frozenset([frozenset(group), frozenset(names) - frozenset(group)])
        for size in range(1, count)
        for group in combinations(names, size)
    }
    assert sides(listed) == expected
    assert len(listed) == len(expected) == 2 ** (count - 1) - 1


@pytest.mark.parametrize("count", [7, 9])
def test_beyond_six_each_alone_and_the_cuts_of_the_ordering(count: int) -> None:
    """Seven categories or more are weighed each against the rest, and along the share of the second class."""
    names = NAMES[:count]
    cells = [name for place, name in enumerate(names) for _ in range(count)]
    marks = ["b" if row < (place * 2) % count else "a" for place in range(count) for row in range(count)]
    listed = list_groups(cells, marks)
    by_share = sorted(range(count), key=lambda place: (place * 2) % count)
    cuts = [frozenset(names[place] for place in by_share[:size]) for size in range(2, count - 1)]
    groups = [frozenset([name]) for name in names] + cuts
    assert sides(listed) == {frozenset([group, frozenset(names) - group]) for group in groups}
    assert len(listed) == len(groups)


def test_one_vs_rest() -> None:
    """With one_vs_rest each category stands against the others, and two categories make one candidate."""
    listed = list_groups(NAMES[:4], ["a", "b", "a", "b"], {"nominal": "one_vs_rest"})
    assert [split["split"]["categories"][0] for split in sorted(listed, key=lambda s: s["split"]["categories"])] == [
        [name] for name in NAMES[:4]
    ]
    assert len(list_groups(NAMES[:2] * 2, ["a", "b", "a", "a"], {"nominal": "one_vs_rest"})) == 1


def test_missing_values_go_either_way() -> None:
    """Where values are missing each pair of groups is two candidates, and missing against present is one more."""
    listed = list_groups(["k0", "k1", "k2", None] * 2, ["a", "b", "b", "a"] * 2)
    assert len(listed) == 2 * 3 + 1
    by_groups: dict[str, list[str]] = {}
    for split in listed:
        if split["split"]["type"] == "subset":
            by_groups.setdefault(str(split["split"]["categories"]), []).append(split["split"]["missing"])
    assert list(by_groups.values()) == [["left", "right"]] * 3


def test_missing_as_a_category() -> None:
    """With missing = branch what is missing is a category among the others: 2^3 - 1 pairs of groups, null in each."""
    listed = list_groups(["k0", "k1", "k2", None] * 2, ["a", "b", "b", "a"] * 2, {"missing": "branch"})
    assert len(sides(listed)) == 7
    assert all(None in frozenset.union(*pair) for pair in sides(listed))


def test_multiway_has_a_branch_for_each() -> None:
    """One candidate, its branches in the order of the categories, missing values with the heaviest of them."""
    (split, missing) = list_groups(["k1", "k0", "k1", None, "k2"], list("ababb"), {"nominal": "multiway"})
    assert split["split"] == {"type": "multiway", "categories": [["k0"], ["k1"], ["k2"]], "missing": 1}
    assert [branch["routed"]["n"] for branch in split["branches"]] == [1, 3, 1]
    assert missing["split"] == {"type": "missing"}


@settings(max_examples=30, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NAMES[:8]), st.sampled_from("ab")), min_size=12, max_size=40))
def test_the_ordering_holds_the_best(rows: list[tuple[str, str]]) -> None:
    """For two classes no pair of groups, of all there are, has a higher gini gain than the best that is listed."""
    cells, marks = [name for name, _ in rows], [mark for _, mark in rows]
    present = sorted(set(cells))
    if len(set(marks)) < 2 or len(present) < 7:
        return
    listed = list_groups(cells, marks)
    best = 0.0
    for size in range(1, len(present) // 2 + 1):
        for group in combinations(present, size):
            parts = [[mark for name, mark in rows if (name in group) == inside] for inside in (True, False)]
            best = max(best, impurity(marks) - sum(len(part) / len(rows) * impurity(part) for part in parts))
    assert max(split["scores"]["gini_gain"] for split in listed) == pytest.approx(best, abs=1e-12)


@pytest.mark.parametrize(
    ("most", "count", "pairs"), [(3, 5, 5 + 2), (5, 5, 15), (8, 8, 127), (2, 3, 3), (9, 12, 12 + 9)]
)
def test_how_many_categories_are_searched_exhaustively(most: int, count: int, pairs: int) -> None:
    """Up to `max_subset_categories` all pairs of groups; beyond it each alone, and the cuts with two on each side."""
    marks = ["b" if row <= place else "a" for place in range(count) for row in range(count)]
    listed = list_groups([name for name in NAMES[:count] for _ in range(count)], marks, {"max_subset_categories": most})
    assert len(sides(listed)) == len(listed) == pairs


@settings(max_examples=40, deadline=None)
@given(st.lists(st.tuples(st.sampled_from(NAMES[:9]), st.sampled_from("abcd")), min_size=14, max_size=50))
def test_many_categories_of_many_classes_cost_at_most_three_times_the_least(rows: list[tuple[str, str]]) -> None:
    """Each pair of groups is listed once; the best is no worse than the best alone, and within the stated factor."""
    cells, marks = [name for name, _ in rows], [mark for _, mark in rows]
    present = sorted(set(cells))
    if len(set(marks)) < 3 or len(present) < 4:
        return
    listed = list_groups(cells, marks, {"max_subset_categories": 3})
    assert len(sides(listed)) == len(listed)
    least = min(find_cost(rows, group) for size in range(1, len(present)) for group in combinations(present, size))
    alone = min(find_cost(rows, (name,)) for name in present)
    best = min(split["scores"]["gini_cost"] for split in listed)
    assert least - 1e-12 <= best <= min(3 * least, alone) + 1e-12


def test_the_largest_class_is_the_heaviest_as_scored() -> None:
    """With class weights the second ordering is by the class that is the largest then: it holds the best cut."""
    cells = [name for name in NAMES[:4] for _ in range(10)]
    marks = [*"aaaaaabbcc", *"aaaaabbbcc", *"aaaabbbbcc", *"aaabbbbbcc"]
    weight = {"a": 1, "b": 10, "c": 1}
    listed = list_groups(cells, marks, {"max_subset_categories": 2, "class_weight": weight})
    everything = list_groups(cells, marks, {"class_weight": weight})
    assert max(s["score"] for s in listed) == pytest.approx(max(s["score"] for s in everything), rel=1e-12)


def test_hundreds_of_categories() -> None:
    """300 categories of 19 classes: each alone and two orderings, and the split names every category once."""
    names = [f"n{number:03}" for number in range(300)]
    cells = names * 6
    marks = [f"c{(7 * place + 3 * time) % 19:02}" for time in range(6) for place in range(300)]
    listed = list_groups(cells, marks)
    assert len(sides(listed)) == len(listed)
    assert 300 + 297 < len(listed) <= 300 + 2 * 297
    assert all(sorted([*left, *right]) == names for left, right in (split["split"]["categories"] for split in listed))


def find_cost(rows: Sequence[tuple[str, str]], group: Sequence[str]) -> float:
    """The gini cost of a group of categories against the others."""
    parts = [[mark for name, mark in rows if (name in group) == inside] for inside in (True, False)]
    return sum(len(part) / len(rows) * impurity(part) for part in parts if part)


def impurity(marks: Sequence[str]) -> float:
    """1 - sum p^2, counted in plain Python."""
    return 1 - sum((marks.count(mark) / len(marks)) ** 2 for mark in set(marks))


@pytest.mark.parametrize("task", ["classes", "numbers"])
def test_of_hundreds_of_categories_none_is_on_the_wrong_side(task: str) -> None:
    """With two classes or numbers the chosen pair of groups is the best: to move any category would lose."""
    source = np.random.default_rng(6)
    names = [f"n{number:03}" for number in range(250)]
    cells = [name for name in names for _ in range(int(source.integers(1, 9)))]
    lean = dict(zip(names, source.random(250), strict=True))
    drawn = [
        float(source.random() < lean[name]) if task == "classes" else lean[name] + source.normal() for name in cells
    ]
    target = classes(["ab"[int(mark)] for mark in drawn]) if task == "classes" else values(drawn)
    learnt = grow([labels("x", cells)], target, {"max_depth": 1})
    (chosen,) = [split for split in show_root(learnt, target) if split["chosen"]]
    left = set(chosen["split"]["categories"][0])
    assert 20 < len(left) < 230
    best = find_spread(cells, drawn, left)
    for name in names:
        assert find_spread(cells, drawn, left ^ {name}) >= best - 1e-9


def show_root(learnt: Learnt, target: Target) -> list[dict[str, Any]]:
    """The root's candidates."""
    listing = list_root(learnt, target)
    return show_candidates(audit(learnt, target), listing, listing.find_rows(0), listing.rank)


def find_spread(cells: Sequence[str], drawn: Sequence[float], left: set[str]) -> float:
    """The squares about the means of two groups of categories: of two classes, coded 0 and 1, half the gini cost."""
    total = 0.0
    for inside in (True, False):
        part = [value for name, value in zip(cells, drawn, strict=True) if (name in left) == inside]
        total += sum(value * value for value in part) - sum(part) ** 2 / max(len(part), 1)
    return total


def test_empty_branches_are_listed() -> None:
    """With empty_branches each category has a branch in its place, with nothing in it where no row has it."""
    cells = ["k1", "k3", "k1", None, "k3", "k3"]
    target = classes(list("ababab"))
    columns = [labels("x", cells, NAMES[:5])]
    for missing in ("direction", "fractional", "branch"):
        asked = {"nominal": "multiway", "empty_branches": True, "missing": missing, "max_depth": 1}
        learnt = grow(columns, target, asked)
        split = next(split for split in show_root(learnt, target) if split["split"]["type"] == "multiway")
        assert split["chosen"]
        last = [[None]] if missing == "branch" else []
        assert split["split"]["categories"] == [[name] for name in NAMES[:5]] + last
        assert split["split"] == show_tree_split(learnt.tree, 0)
        occupied = [branch["routed"]["n"] > 0 for branch in split["branches"]]
        assert occupied == [False, True, False, True, False, *([True] if last else [])]
        assert [branch["routed"]["n"] for branch in split["branches"]] == learnt.tree.rows[1:].tolist()
