"""The best candidates of a node, found by bins, are the first of all candidates, with their ranks."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.audit import list_candidates
from service.core.foremost import bin_numbers, list_foremost, tells_foremost
from service.core.ranking import find_margin
from service.core.schema import Column, Target
from tests.core.making import audit, classes, grow, labels, numbers, values


def make_case(
    seed: int, rows: int, digits: int, gaps: bool, criterion: str = "gini", *, weighted: bool = False
) -> tuple[list[Column], Target]:
    """Numbers that tell much and little, some missing, and a name; few digits make ties. A target for the criterion."""
    generator = np.random.default_rng(seed)
    cells = [generator.normal(size=rows).round(digits).tolist() for _ in range(4)]
    if gaps:
        cells[1] = [None if i % 5 == 0 else cell for i, cell in enumerate(cells[1])]
    scores = generator.normal(size=rows) + np.array(cells[0])
    columns = [numbers(f"x{i}", column) for i, column in enumerate(cells)]
    columns.append(labels("name", generator.choice(list("pqr"), rows).tolist()))
    if criterion in ("variance", "poisson"):
        heavy = generator.uniform(1, 2, rows).tolist() if weighted else None
        return columns, values(np.maximum(scores.round(digits), 0.0).tolist(), heavy)
    return columns, classes(np.where(scores > 0, "b", "a").tolist())


@settings(max_examples=40, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    rows=st.sampled_from([40, 700, 3000]),
    digits=st.sampled_from([1, 2, 9]),
    gaps=st.booleans(),
    most=st.sampled_from([1, 2, 7, 60]),
    parameters=st.sampled_from(
        [
            {"criterion": "gini"},
            {"criterion": "entropy", "min_samples_leaf": 20},
            {"criterion": "gain_ratio"},
            {"criterion": "variance"},
            {"criterion": "poisson"},
            {"criterion": "variance", "missing": "surrogate"},
        ]
    ),
)
def test_the_foremost_are_the_first_of_all(
    seed: int, rows: int, digits: int, gaps: bool, most: int, parameters: dict[str, Any]
) -> None:
    """Ranks, scores, features, places, choice and margins of the best so many are those of the whole listing."""
    columns, target = make_case(seed, rows, digits, gaps, parameters["criterion"], weighted="missing" not in parameters)
    learnt = grow(columns, target, {"max_depth": 1, **parameters})
    audited = audit(learnt, target)
    assert tells_foremost(audited, 0)
    few = list_foremost(audited, 0, most, bin_numbers(audited))
    whole = list_candidates(audited, np.array([0]))
    if few is None:
        assert int((whole.rank > 0).sum()) < max(most, 2)
        return
    told = []
    for listing in (few, whole):
        first = np.flatnonzero((listing.rank > 0) & (listing.rank <= most))
        first = first[np.argsort(listing.rank[first])]
        tables = [(listing.tables[t], p) for t, p in zip(listing.table[first], listing.place[first], strict=True)]
        branches = [table.branches[:, :, place].tolist() for table, place in tables]
        told.append(
            [listing.feature[first].tolist(), listing.score[first].tolist(), listing.chosen[first].tolist(), branches]
        )
        rows_ = np.arange(len(listing.node))
        told[-1].append(find_margin(listing, rows_, listing.rank, listing.score))
    assert told[0] == told[1]
    assert len(told[0][1]) == most
    assert few.count_bytes() > 0


@pytest.mark.parametrize(
    "parameters", [{"min_weight_leaf": 2.0}, {"monotonic": {"x0": "up"}}, {"missing": "fractional"}], ids=str
)
def test_where_it_is_not_known(parameters: dict[str, Any]) -> None:
    """Limits of weight, monotonic features and parts of rows are left to the listing of all."""
    columns, target = make_case(1, 60, 1, True)
    audited = audit(grow(columns, target, {"max_depth": 1, **parameters}), target)
    assert not tells_foremost(audited, 0)
