"""Naive surrogates and parted rows: obvious loops beside `naive_tree`, with exact fractions.

Where missing values are in no branch, candidates are weighed by the rows whose value is known and count by their share.
A node's rows come with the weight that has come down to it: ``Problem.weights`` is that of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from fractions import Fraction
from typing import Any

from tests.oracle import naive_tree as naive
from tests.oracle.naive_tree import Branch, Candidate, Exact, Problem, Value

SCALED = (
    "gini_gain",
    "information_gain",
    "goodness",
    "twoing",
    "variance_reduction",
    "pairwise_variance_reduction",
    "poisson_deviance_reduction",
    "absolute_error_reduction",
)
COSTS: Sequence[tuple[str, str, Callable[[Any], Exact]]] = (
    ("gini_cost", "gini_gain", naive.gini),
    ("entropy_cost", "information_gain", naive.entropy),
    ("absolute_error_cost", "absolute_error_reduction", naive.absolute),
)
"""A cost, the gain that it goes with, and the impurity of the node."""


def known_candidates(problem: Problem, rows: Branch, by_weight: bool) -> list[Candidate]:
    """Every candidate of the node that parts known rows in two or more, measured and judged.

    ``by_weight``: limits on rows count what has come of them instead.
    """
    found = []
    for feature, cells in problem.columns.items():
        present = tuple(row for row in rows if cells[row] is not None)
        absent = tuple(row for row in rows if cells[row] is None)
        for form, branches in known_branches(problem, feature, present):
            scores = known_scores(problem, branches, present, absent)
            good = admissible(problem, rows, branches, present, scores, by_weight)
            found.append(Candidate(feature, form, branches, scores, good))
    return found


def known_branches(problem: Problem, feature: str, present: Branch) -> list[tuple[str, tuple[Branch, ...]]]:
    """(form, branches) of every way to part the rows with a value."""
    values = {problem.columns[feature][row] for row in present}
    if len(values) < 2:
        return []
    if is_ordered(problem, feature, next(iter(values))):
        return [("cut", cut) for cut in naive.cuts(problem, feature, present)]
    return naive.groupings(problem, naive.by_category(problem, feature, present))


def is_ordered(problem: Problem, feature: str, value: Value) -> bool:
    """Cut along its values, not grouped."""
    if isinstance(value, str | bool):
        return feature in problem.ordinals and problem.nominal != "multiway"
    return True


def known_scores(
    problem: Problem, branches: Sequence[Branch], present: Branch, absent: Branch
) -> dict[str, Exact | None]:
    """The measures of the known rows, by their share of the weight."""
    scores = naive.measure(problem, branches)
    share = problem.weight(present) / problem.weight(present + absent)
    scaled = {name: value if value is None or name not in SCALED else value * share for name, value in scores.items()}
    sizes = [problem.weight(branch) for branch in branches]
    if problem.missing == "fractional":
        sizes.append(problem.weight(absent))
    content = naive.entropy(sizes)
    if "information_content" in scaled:
        scaled["information_content"] = content
    for ratio, gain in (("gain_ratio", "information_gain"), ("gini_gain_ratio", "gini_gain")):
        if ratio in scaled:
            scaled[ratio] = float(scaled[gain] or 0) / content
    whole = present + absent
    for cost, gain, impurity in COSTS:
        if cost in scaled:
            pieces = problem.moments(whole) if cost == "absolute_error_cost" else problem.counts(whole)
            scaled[cost] = float(impurity(pieces)) - float(scaled[gain] or 0)
    return scaled


def admissible(
    problem: Problem, rows: Branch, branches: Sequence[Branch], present: Branch,
    scores: Mapping[str, Exact | None], by_weight: bool,
) -> bool:  # fmt: skip
    """Enough of the known rows in the branches, and an improvement beyond the tolerance."""
    criterion = naive.CRITERIA[problem.criterion]
    score = scores[criterion.measure]
    if score is None:
        return False
    for branch in branches:
        size = problem.weight(branch) if by_weight and problem.min_samples_leaf > 1 else len(branch)
        if size < problem.min_samples_leaf or problem.weight(branch) < problem.min_weight_leaf:
            return False
    gain = score - criterion.baseline(problem, present)
    return bool(gain > criterion.tolerance(problem, rows) and gain >= problem.min_gain)


# ---------------------------------------------------------------------------------------------------- surrogates


@dataclass(frozen=True)
class Surrogate:
    """A feature that stands in: the side (0 left, 1 right) of each of its values that it can tell."""

    feature: str
    agree: float
    adjusted: float
    sides: Mapping[Value, int]


def find_surrogates(problem: Problem, primary: str, sides: Mapping[int, int], rows: Branch) -> list[Surrogate]:
    """What stands in for a split that sends each row whose value is known to one of two ``sides``, best first."""
    left, right = (problem.weight([row for row, side in sides.items() if side == way]) for way in (0, 1))
    total, majority = left + right, max(left, right)
    found = []
    for feature in problem.columns:
        agreed, told = agree_best(problem, feature, sides, rows) if feature != primary else (Fraction(0), {})
        if told and agreed > majority:
            found.append(
                Surrogate(feature, float(agreed / total), float((agreed - majority) / (total - majority)), told)
            )
    found.sort(key=lambda each: -round(each.agree, 12))
    return found[:5]


def agree_best(
    problem: Problem, feature: str, sides: Mapping[int, int], rows: Branch
) -> tuple[Fraction, dict[Value, int]]:
    """The greatest weight that the feature sends the same way, and the side of each value; nothing if none will do."""
    cells = problem.columns[feature]
    present = tuple(row for row in rows if cells[row] is not None)
    groups = naive.by_category(problem, feature, present)
    values = [cells[group[0]] for group in groups]
    if not groups:
        return Fraction(0), {}
    if is_ordered(problem, feature, values[0]):
        return agree_by_cut(problem, sides, groups, values)
    return agree_by_category(problem, sides, groups, values)


def went(problem: Problem, sides: Mapping[int, int], rows: Sequence[int], side: int) -> Fraction:
    """The weight of the rows that the split itself sends to a side."""
    return problem.weight([row for row in rows if sides.get(row) == side])


def agree_by_cut(
    problem: Problem, sides: Mapping[int, int], groups: Sequence[Branch], values: Sequence[Value]
) -> tuple[Fraction, dict[Value, int]]:
    """The first of the best cuts, either way round, with two rows or more on each side."""
    everything = [row for group in groups for row in group]
    best = max(went(problem, sides, everything, side) for side in (0, 1))
    told: dict[Value, int] = {}
    for place in range(1, len(groups)):
        below = [row for group in groups[:place] for row in group if row in sides]
        above = [row for group in groups[place:] for row in group if row in sides]
        if len(below) < 2 or len(above) < 2:
            continue
        for side in (0, 1):
            agreed = went(problem, sides, below, side) + went(problem, sides, above, 1 - side)
            if agreed > best:
                best = agreed
                told = {value: side if i < place else 1 - side for i, value in enumerate(values)}
    return best, told


def agree_by_category(
    problem: Problem, sides: Mapping[int, int], groups: Sequence[Branch], values: Sequence[Value]
) -> tuple[Fraction, dict[Value, int]]:
    """Each category with the most of its rows, or where these are as many with the majority."""
    everything = [row for group in groups for row in group]
    left, right = (went(problem, sides, everything, side) for side in (0, 1))
    usual = 0 if left > right else 1
    told: dict[Value, int] = {}
    sent = [0, 0]
    agreed = Fraction(0)
    for group, value in zip(groups, values, strict=True):
        known = [row for row in group if row in sides]
        if not known:
            continue
        of_left, of_right = (went(problem, sides, known, side) for side in (0, 1))
        told[value] = usual if of_left == of_right else 0 if of_left > of_right else 1
        sent[told[value]] += len(known)
        agreed += max(of_left, of_right)
    return (agreed, told) if min(sent) >= 2 else (Fraction(0), {})
