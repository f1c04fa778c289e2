"""Both sides of some cuts of a line have, by each statistic, what they have as runs of entries, to the last bit."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest

from service.core import parts
from service.core.branches import weigh_runs
from service.core.lines import Line, draw_line, pick_cuts
from service.core.rescore import Restated
from service.core.runs import Layout
from service.core.schema import Statistic, Target
from tests.core.growing import SORTED, make_root
from tests.core.making import numbers


def lay_out(line: Line) -> Layout:
    """Each place of a line is a slot."""
    place, zero = np.arange(len(line.entry) + 1), np.zeros(1, np.int64)
    whole, none = np.array([[0], [len(line.entry)]]), np.zeros((2, 1), np.int64)
    return Layout(line.entry.astype(np.int64), place[:-1], place[1:], zero, whole, none, line.lack)


@pytest.mark.parametrize("statistic", ["moments", "deviance", "deviations"])
@pytest.mark.parametrize("weights", ["none", "whole", "real"])
@pytest.mark.parametrize("digits", [0, 1, 9])
def test_parts_are_runs(statistic: Statistic, weights: str, digits: int, monkeypatch: pytest.MonkeyPatch) -> None:
    """Few or many cuts, in any order and repeated; of targets many of which are equal, or none."""
    monkeypatch.setattr(parts, "BLOCK", 4)
    monkeypatch.setattr(parts, "FEW_CUTS", 5)
    source = np.random.default_rng(digits)
    whole, real = source.integers(1, 4, 90).astype(float), source.uniform(0.1, 3, 90)
    heavy = {"none": None, "whole": whole, "real": real}[weights]
    target = Target("y", values=source.gamma(2.0, size=90).round(digits), weight=heavy)
    column = numbers("x", source.normal(size=90).round(1).tolist())
    learner, batch = make_root([column], target, {"criterion": "variance"}, SORTED)
    line, restated = draw_line(learner, batch, 0), Restated(replace(target, statistic="moments"), batch)
    layout, other = lay_out(line), restated.get(statistic)
    for cut in (line.find_cuts(), line.find_cuts()[-1:], line.find_cuts()[::-4], line.find_cuts()[[7, 3, 7, 20]]):
        table, parted = pick_cuts(batch, line, cut)
        place = np.arange(len(cut))
        expected, _ = weigh_runs(other.tally, other.stats, layout, table, place, np.zeros_like(place))
        found = restated.weigh_parts(statistic, parted)
        assert found.shape == expected.shape
        assert (found == expected).all()


@pytest.mark.parametrize("classes", [0, 3])
def test_parts_are_summed(classes: int) -> None:
    """The sums before a cut are those of the entries before it, class by class."""
    source = np.random.default_rng(8)
    answers = source.integers(0, 3, 50)
    target = Target("y", values=answers.astype(float))
    if classes:
        target = Target("y", ("a", "b", "c"), answers.astype(np.int32))
    learner, batch = make_root([numbers("x", source.normal(size=50).tolist())], target, {}, SORTED)
    line = draw_line(learner, batch, 0)
    (left, *_) = parts.part_line(line.entry, np.array([9, 30])).sum(batch.tally)
    for candidate, count in enumerate((10, 31)):
        before = answers[batch.entries.row[line.entry[:count]]]
        assert left[:, candidate].tolist() == (np.bincount(before, minlength=3).tolist() if classes else [count])
