"""Rows of binned nodes take the side that their values tell."""

from __future__ import annotations

import numpy as np
import pytest

from service.core.learner import Sizes
from service.core.route import route_entries
from service.core.route_bins import find_binned
from service.core.search import search
from tests.core.growing import SORTED, make_root, random_columns, random_target
from tests.core.making import classes, labels, numbers

ROWS, NODES = 3000, 7


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("count", [0, 2, 3])
@pytest.mark.parametrize("seed", range(4))
def test_each_row_goes_where_its_value_is(seed: int, count: int, gaps: bool) -> None:
    """Not above the last value on the left: left; above: right; without a value: where the split sends it."""
    source = np.random.default_rng(seed)
    columns = random_columns(source, ROWS, gaps=gaps)
    columns.append(numbers("rough", source.integers(0, 2, ROWS) + source.integers(0, 4000, ROWS) * 1e-9))
    target = random_target(source, columns, count, "none")
    node = np.sort(source.integers(0, NODES, ROWS)).tolist()
    learner, batch = make_root(columns, target, {}, Sizes(coarse=1), node)
    splits = search(learner, batch)
    went = route_entries(learner, batch, splits)
    told = find_binned(batch, splits).tolist()
    assert told
    for entry, (row, at) in enumerate(zip(batch.entries.row.tolist(), batch.entries.node.tolist(), strict=True)):
        if at not in told:
            continue
        coded = learner.features[int(splits.feature[at])]
        right = bool(coded.numbers[row] > coded.numbers[splits.lower[at]])
        if coded.has_missing and coded.is_missing()[row]:
            right = bool(splits.missing_to[at])
        assert went[entry] == right, (entry, at)


def test_what_bins_do_not_tell() -> None:
    """Rows in order have no bins, and groups of categories no threshold."""
    kinds = ["ab"[row % 2] for row in range(60)]
    columns = [labels("kind", kinds), numbers("x", [float(row) for row in range(60)])]
    for target, sizes, told in (
        (classes(kinds), Sizes(coarse=1), []),
        (classes(["ab"[row // 30] for row in range(60)]), Sizes(coarse=1), [0]),
        (classes(["ab"[row // 30] for row in range(60)]), SORTED, []),
    ):
        learner, batch = make_root(columns, target, {}, sizes)
        assert find_binned(batch, search(learner, batch)).tolist() == told
