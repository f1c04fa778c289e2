"""How many candidates surpass one is what the whole listing says."""

from __future__ import annotations

from typing import Any

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.audit import list_candidates
from service.core.foremost import bin_numbers, tells_foremost
from service.core.lines import STEP
from service.core.surpass import count_surpassing
from tests.core.making import audit, classes, grow, labels, numbers

PARAMETERS: list[dict[str, Any]] = [
    {},
    {"criterion": "entropy", "min_samples_leaf": 20},
    {"criterion": "gain_ratio", "class_weight": "balanced"},
    {"criterion": "goodness"},
    {"nominal": "multiway"},
    {"missing": "surrogate", "reuse_features": False},
]


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    rows=st.sampled_from([40, 300]),
    digits=st.sampled_from([0, 2, 9]),
    marks=st.sampled_from(["ab", "abc"]),
    gaps=st.booleans(),
    weighted=st.booleans(),
    parameters=st.sampled_from(PARAMETERS),
)
def test_as_many_surpass_it_as_are_listed(
    seed: int, rows: int, digits: int, marks: str, gaps: bool, weighted: bool, parameters: dict[str, Any]
) -> None:
    """For any admissible candidate of the root and its children, as many are counted as the listing has better ones."""
    generator = np.random.default_rng(seed)
    cells = [generator.normal(size=rows).round(digits).tolist() for _ in range(4)]
    answers = [marks[min(int(value > 0) + int(value > 1), len(marks) - 1)] for value in cells[0]]
    for row in np.flatnonzero(generator.random(rows) < 0.2).tolist():
        answers[row] = marks[0]
        cells[1][row] = None if gaps else cells[1][row]
    columns = [numbers(f"x{i}", column) for i, column in enumerate(cells)]
    columns.append(labels("name", generator.choice(list("pqr"), rows).tolist()))
    target = classes(answers, generator.integers(1, 4, rows).tolist() if weighted else None)
    audited = audit(grow(columns, target, {"max_depth": 2, **parameters}), target)
    bins = bin_numbers(audited)
    for node in range(min(audited.tree.nodes, 3)):
        assert tells_foremost(audited, node)
        listing = list_candidates(audited, np.array([node]))
        score = listing.score[listing.rank > 0]
        for one in score[:: max(1, len(score) // 20)].tolist():
            assert count_surpassing(audited, node, one, bins) == int((score > one).sum())


def test_long_lines() -> None:
    """Running sums go on from portion to portion of a line."""
    generator, rows = np.random.default_rng(3), 3 * STEP
    columns = [numbers(f"x{i}", generator.normal(size=rows).tolist()) for i in range(2)]
    target = classes(np.where(generator.normal(size=rows) > np.array(columns[0].values), "a", "b").tolist())
    audited = audit(grow(columns, target, {"max_depth": 1}), target)
    bins, listing = bin_numbers(audited), list_candidates(audited, np.array([0]))
    for one in np.sort(listing.score[listing.rank > 0])[[0, 5, rows // 2, rows, -3]].tolist():
        assert count_surpassing(audited, 0, one, bins) == int((listing.score > one).sum())
