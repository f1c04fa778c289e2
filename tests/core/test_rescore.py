"""Entries by another statistic of their targets are those that are made anew, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.core.batch import Batch, make_batch
from service.core.criteria import CRITERIA
from service.core.entries import Entries
from service.core.objective import Objective
from service.core.rescore import Restated
from service.core.schema import Statistic, Target

STATISTICS: list[Statistic] = ["moments", "deviance", "deviations"]


def make(target: Target, statistic: Statistic, entries: Entries) -> tuple[Target, Batch]:
    """The batch that is made anew."""
    criterion = next(c for c in CRITERIA.values() if c.task == "regression" and c.statistic == statistic)
    target = replace(target, statistic=statistic)
    return target, make_batch(target, entries, Objective(criterion))


@pytest.mark.parametrize("own", STATISTICS)
@pytest.mark.parametrize("weights", [False, True])
def test_restated_batches(own: Statistic, weights: bool) -> None:
    """Whatever a model sums, the sums, statistics and answers by each statistic are those made from the target."""
    source = np.random.default_rng(3)
    values = np.round(source.gamma(2.0, size=70), 2) * (source.random(70) < 0.9)
    target = Target("y", values=values, weight=source.uniform(0.5, 2, 70) if weights else None)
    row = source.permutation(70)[:60]
    entries = Entries(row, np.repeat([0, 1, 2], [30, 1, 29]), 3, None if target.weight is None else target.weight[row])
    restated = Restated(*make(target, own, entries))
    for statistic in STATISTICS:
        expected, found = make(target, statistic, entries)[1], restated.get(statistic)
        assert found.stats.tolist() == expected.stats.tolist()
        assert [part.tolist() for part in found.sums] == [part.tolist() for part in expected.sums]
        assert found.impurity.tolist() == expected.impurity.tolist()
        assert (found.answer is None) == (expected.answer is None)
        if found.answer is not None and expected.answer is not None:
            assert found.answer.tolist() == expected.answer.tolist()
        if found.tally.ranking is not None and expected.tally.ranking is not None:
            assert found.tally.ranking.rank.tolist() == expected.tally.ranking.rank.tolist()
