"""The best cut of nodes with a thousand rows and as many values, against a running count from cut to cut."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from fractions import Fraction
from itertools import groupby
from random import Random
from typing import Any

import pytest

from tests.oracle import naive_tree as naive
from tests.oracle.contract import Service, feature_of
from tests.oracle.naive_tree import Branch, Problem
from tests.oracle.test_naive_twin import ask, route

ROWS = 1200


@dataclass(frozen=True)
class Cut:
    """A cut by the largest value on its left (None: missing against present), and where missing values go."""

    feature: str
    below: float | None
    missing: str | None
    score: float


def many_rows(criterion: str, classes: str, seed: int) -> Problem:
    """A few whole numbers, a heavy tail, gaps, and distinct values; the target follows some of them loosely."""
    draw = Random(seed)  # noqa: S311 - a fixed sequence, not a secret
    tail = [round(math.exp(draw.gauss(0, 3)), 4) for _ in range(ROWS)]
    gaps = [None if draw.random() < 0.1 else draw.random() for _ in range(ROWS)]
    near = [draw.gauss(0, 1) for _ in range(ROWS)]
    few = [draw.randrange(5) for _ in range(ROWS)]
    signal = [(tail[row] > 2) + (near[row] > 0.3) + (gaps[row] is None) + draw.gauss(0, 0.7) for row in range(ROWS)]
    targets: list[Any] = [round(value * 4) / 4 for value in signal]
    if classes:
        targets = [classes[min(len(classes) - 1, max(0, round(value)))] for value in signal]
    weights = [draw.choice([0, 1, 1, 1, 2]) for _ in range(ROWS)]
    columns: dict[str, list[naive.Value]] = {"few": [*few], "tail": [*tail], "gaps": [*gaps], "near": [*near]}
    return Problem(columns, targets, weights, sorted(set(targets)) if classes else (), criterion=criterion, max_depth=4)


def statistics(problem: Problem, row: int) -> list[int]:
    """What one row adds: its weight to its class; or weight, sum and sum of squares of the target in quarters."""
    weight = problem.weights[row]
    if problem.classes:
        return [weight if problem.targets[row] == label else 0 for label in problem.classes]
    quarters = int(float(problem.targets[row]) * 4)
    return [weight, weight * quarters, weight * quarters**2]


def total(parts: Sequence[Sequence[int]], width: int) -> list[int]:
    """The sum of the parts, place by place."""
    return [sum(part[place] for part in parts) for place in range(width)]


def score(problem: Problem, branches: Sequence[Sequence[int]]) -> float:
    """The problem's criterion for a partition, in plain floats."""
    node = [sum(column) for column in zip(*branches, strict=True)]
    if not problem.classes:
        explained = sum(branch[1] ** 2 / branch[0] for branch in branches) - node[1] ** 2 / node[0]
        return explained / node[0] / 16
    sizes = [sum(branch) for branch in branches]
    if problem.criterion == "goodness":
        parts = [[share(count, sum(node)) for count in branch] for branch in branches]
        return float(naive.binary_measures(parts, [share(size, sum(node)) for size in sizes])["goodness"] or 0)
    impurity = naive.gini if problem.criterion == "gini" else naive.entropy
    cost = math.fsum(size / sum(node) * impurity(branch) for size, branch in zip(sizes, branches, strict=True))
    gain = float(impurity(node)) - cost
    return gain / naive.entropy(sizes) if problem.criterion == "gain_ratio" else gain


def share(count: int, whole: int) -> Fraction:
    """An exact share."""
    return Fraction(count, whole)


def list_cuts(problem: Problem, rows: Branch) -> Iterator[Cut]:
    """Every cut of every feature, in candidate order, by one pass over its sorted values."""
    of_row = {row: statistics(problem, row) for row in rows}
    width = len(of_row[rows[0]])
    for feature, cells in problem.columns.items():
        absent = total([of_row[row] for row in rows if cells[row] is None], width)
        present = sorted((row for row in rows if cells[row] is not None), key=lambda row: cells[row])  # type: ignore[arg-type, return-value]
        right = total([of_row[row] for row in present], width)
        whole, left = list(right), [0] * width
        for below, group in groupby(present, key=lambda row: cells[row]):
            moved = total([of_row[row] for row in group], width)
            left = [a + b for a, b in zip(left, moved, strict=True)]
            right = [a - b for a, b in zip(right, moved, strict=True)]
            if below == cells[present[-1]]:
                break
            if not any(absent):
                yield Cut(feature, float(below or 0), None, score(problem, [left, right]))
                continue
            yield Cut(feature, float(below or 0), "left", score(problem, [total([left, absent], width), right]))
            yield Cut(feature, float(below or 0), "right", score(problem, [left, total([right, absent], width)]))
        if any(absent) and present:
            yield Cut(feature, None, None, score(problem, [absent, whole]))


@pytest.mark.parametrize(
    ("criterion", "classes"),
    [
        ("gini", "ab"),
        ("entropy", "abc"),
        ("gain_ratio", "ab"),
        ("goodness", "abcd"),
        ("gini", "abcd"),
        ("variance", ""),
    ],
)
def test_the_first_of_the_best_cuts_is_taken(service: Service, criterion: str, classes: str) -> None:
    """In each node of a tree four levels deep the split is the first whose score is the best, to the tolerance."""
    problem = many_rows(criterion, classes, seed=len(criterion) + len(classes))
    nodes = service.tree(ask(service, problem))
    members = route(problem, nodes)
    inner = [node for node in nodes if not node["leaf"]]
    assert len(inner) >= 4
    for node in inner:
        rows = members[node["node"]]
        cuts = list(list_cuts(problem, rows))
        best = max(cut.score for cut in cuts)
        enough = best - float(naive.CRITERIA[criterion].tolerance(problem, rows))
        first = next(cut for cut in cuts if cut.score >= enough)
        split = node["split"]
        assert (feature_of(node), split.get("below"), split.get("missing")) == (
            first.feature,
            first.below,
            first.missing,
        )
        assert node["score"] == pytest.approx(best, rel=1e-9)
