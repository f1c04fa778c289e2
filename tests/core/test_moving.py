"""Medians beside a cut that moves along a line are those that each side has when it is asked for by itself."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from numpy.typing import NDArray

from service.core import moving
from service.core.entries import Entries
from service.core.lines import Lack, Line
from service.core.medians import find_middles
from service.core.moving import Moving
from service.core.schema import Target
from service.core.statistics import Tally

ROWS = 300


def make_targets(source: np.random.Generator, kind: str) -> NDArray[np.float64]:
    """Targets of ROWS rows that are all distinct, that have few values, or all but a few of which are equal."""
    if kind == "distinct":
        return source.normal(size=ROWS)
    if kind == "few":
        return source.integers(0, 5, ROWS) * 1.5
    return np.where(source.random(ROWS) < 0.05, source.normal(size=ROWS), 2.0)


@pytest.mark.parametrize("gap", [0.0, 0.2])
@pytest.mark.parametrize("weights", ["none", "real", "uneven"])
@pytest.mark.parametrize("kind", ["distinct", "few", "equal"])
@pytest.mark.parametrize("ordered", [False, True])
def test_both_sides_of_every_cut(
    kind: str, weights: str, gap: float, ordered: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of each side, with what is missing and without, the deviation is the same to the last bit.

    However many cuts are asked for at a time, and however far the median moves: not at all where targets have nothing
    to do with the line, and all the way where they are in its order.
    """
    monkeypatch.setattr(moving, "BLOCK", 8)
    source = np.random.default_rng([len(kind), len(weights), int(10 * gap)])
    targets = make_targets(source, kind)
    weight = {"none": None, "real": source.uniform(0.1, 3, ROWS), "uneven": np.exp(4 * source.normal(size=ROWS))}
    target = replace(Target("y", values=targets, weight=weight[weights]), statistic="deviations")
    tally = Tally(target, Entries(np.arange(ROWS), np.zeros(ROWS, np.int64), 1, target.weight))
    order = np.argsort(targets, kind="stable") if ordered else source.permutation(ROWS)
    lacks = source.random(ROWS) < gap
    line = Line(
        0,
        order[~lacks[order]].astype(np.int32),
        np.ones(0, bool),
        np.flatnonzero(lacks).astype(np.int32),
        Lack.DIRECTED,
    )
    known, places = len(line.entry), np.concatenate([line.entry, line.missing]).astype(np.int64)

    def ask(begin: NDArray[np.int64], end: NDArray[np.int64], *, missing: bool) -> NDArray[np.float64]:
        lack = np.full_like(begin, known), np.full_like(begin, ROWS if missing else known)
        runs = np.stack([begin, lack[0]]), np.stack([end, lack[1]])
        return find_middles(tally, places, runs, np.zeros(len(begin), np.int64))[0]

    sides = Moving(tally, line)
    if len(line.missing):
        whole = ask(np.array([0]), np.array([known]), missing=False)[0]
        assert sides.stay() == (whole, ask(np.array([0]), np.array([0]), missing=True)[0])
    cut = np.sort(source.choice(known - 1, known // 2, replace=False))
    zero, last = np.zeros_like(cut), np.full_like(cut, known)
    found = [sides.move(part) for part in np.split(cut, [1, 2, 9, 60])]
    for missing in (False, True):
        expected = np.stack([ask(zero, cut + 1, missing=missing), ask(cut + 1, last, missing=missing)])
        assert np.concatenate([pair[missing] for pair in found], axis=1).tolist() == expected.tolist()
