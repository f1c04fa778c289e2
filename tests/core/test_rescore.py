"""Entries by another statistic of their targets are those that are made anew, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.core.batch import Batch, make_batch
from service.core.criteria import CRITERIA, Floats
from service.core.entries import Entries
from service.core.objective import Objective
from service.core.parts import Parts
from service.core.rescore import Restated
from service.core.schema import Statistic, Target
from service.core.surveyor import survey_node
from service.rendering.candidates import show_candidates
from tests.core.making import audit, grow, numbers, values

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
    answers = np.round(source.gamma(2.0, size=70), 2) * (source.random(70) < 0.9)
    target = Target("y", values=answers, weight=source.uniform(0.5, 2, 70) if weights else None)
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


def test_what_is_shown_of_a_line_with_gaps_is_weighed_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever lacks a value goes left or right, which are two tables: each is weighed once for all measures."""
    weighed, weigh = list[tuple[str, int]](), Restated.weigh_parts

    def note(restated: Restated, statistic: Statistic, parts: Parts) -> Floats:
        weighed.append((statistic, id(parts)))
        return weigh(restated, statistic, parts)

    monkeypatch.setattr(Restated, "weigh_parts", note)
    source = np.random.default_rng(2)
    cells = [None if cell < -1 else cell for cell in source.normal(size=200).tolist()]
    target = values(source.gamma(2.0, size=200).tolist())
    audited = audit(grow([numbers("x", cells)], target, {"criterion": "variance"}), target)
    shown = survey_node(audited, 0).list_some(audited, 0, np.arange(9), np.arange(9))
    show_candidates(audited, shown, np.arange(9), shown.rank)
    assert sorted(statistic for statistic, _ in weighed) == ["deviance"] * 2 + ["deviations"] * 2
    assert len(set(weighed)) == 4
