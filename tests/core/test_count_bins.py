"""Bins are counted by stretches of entries and by siblings, and every bin has the rows that it has."""

from __future__ import annotations

from collections import Counter
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

from service.core import count_bins
from service.core.batch import Batch, make_batch
from service.core.count_bins import count_lines, keep_up, lay_out_stretches
from service.core.learner import Learner, Sizes
from service.core.route import route_entries, send_entries
from service.core.schema import Column
from service.core.search import search
from service.core.statistics import Ints
from service.core.upkeep import pass_on
from tests.core.growing import make_root, random_columns, random_target
from tests.core.making import numbers

BINNED = Sizes(coarse=1)
Cells = Counter[tuple[int, int, int, int]]


@pytest.fixture(autouse=True)
def short_stretches(monkeypatch: pytest.MonkeyPatch) -> None:
    """So few entries a stretch that nodes are cut into several, and several are in one."""
    monkeypatch.setattr(count_bins, "STRETCH", 16)
    monkeypatch.setattr(count_bins, "FILL", 0)


def make_columns(source: np.random.Generator, rows: int, gaps: bool) -> list[Column]:
    """Columns of many values and of few, with the three widths of tables."""
    few = [numbers(f"few {distinct}", source.integers(0, distinct, rows)) for distinct in (3, 40)]
    return [*random_columns(source, rows, gaps=gaps), *few]


def make_binned(classes: int, gaps: bool, weight: str, seed: int = 0) -> tuple[Learner, Batch, Any]:
    """A binned batch of 30 nodes, some of a single row."""
    source = np.random.default_rng(seed)
    columns = make_columns(source, 900, gaps)
    target = random_target(source, columns, classes, weight)
    node = np.sort(source.integers(0, 10, 900)) * 3 + source.integers(0, 3, 900)
    node[:30] = np.arange(30)
    learner, batch = make_root(columns, target, {}, BINNED, node.tolist())
    assert batch.binned is not None
    return learner, batch, target


def count_naively(batch: Batch) -> Cells:
    """The rows of each line, node, class and bin."""
    assert batch.binned is not None
    label = batch.tally.label_entries.tolist()
    return Counter(
        (line, node, label[entry], int(batch.binned.code[line, entry]))
        for line in range(len(batch.binned.feature))
        for entry, node in enumerate(batch.entries.node.tolist())
    )


def read_tables(batch: Batch) -> Cells:
    """The same of the tables that are kept up."""
    assert batch.binned is not None
    tables = batch.binned.tables
    assert tables is not None
    found: Cells = Counter()
    for width, counts in tables.counts.items():
        for at in zip(*np.nonzero(counts), strict=True):
            line, node, label, cell = map(int, at)
            found[int(tables.line[width][line]), node, label, cell] = int(counts[at])
    return found


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("weight", ["none", "real"])
@pytest.mark.parametrize("classes", [0, 2, 5])
def test_sums_are_those_of_the_rows(classes: int, weight: str, gaps: bool) -> None:
    """Whatever the stretches: each sum is that over the entries of its node, class and bin."""
    _, batch, _ = make_binned(classes, gaps, weight)
    binned, tally = batch.binned, batch.tally
    assert binned is not None
    widths = np.array(binned.find_widths())
    for width in set(widths.tolist()):
        lines = np.flatnonzero(widths == width)
        stretches = lay_out_stretches(batch, width)
        assert len(stretches) > 1
        sums, rows, _ = count_lines(batch, binned, lines, width, stretches)
        for place, line in enumerate(lines.tolist()):
            cell = batch.entries.node * width + binned.code[line]
            cells = batch.entries.nodes * width
            expected = tally.sum_scored(tally.key(cell, cells), cells)
            group = slice(place * batch.entries.nodes, (place + 1) * batch.entries.nodes)
            assert all(np.array_equal(s[:, group].reshape(len(s), -1), e) for s, e in zip(sums, expected, strict=True))
            assert rows[group].ravel().tolist() == np.bincount(cell, minlength=cells).tolist()


@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("classes", [2, 3])
def test_siblings_are_what_their_parents_have_more(monkeypatch: pytest.MonkeyPatch, classes: int, gaps: bool) -> None:
    """Level by level, with some nodes left out, the tables hold the rows of every class in every bin."""
    monkeypatch.setattr(count_bins, "ROOM", 10**6)
    source = np.random.default_rng(classes)
    columns = make_columns(source, 2000, gaps)
    target = random_target(source, columns, classes, "none")
    learner, batch = make_root(columns, target, {"criterion": "gini"}, BINNED)
    derived = 0
    pair = count_bins._pair_siblings

    def note(above: Ints, rows: Ints, parent: Ints) -> tuple[Ints, Ints]:
        nonlocal derived
        less, more = pair(above, rows, parent)
        derived += len(more)
        return less, more

    monkeypatch.setattr(count_bins, "_pair_siblings", note)
    batch = keep_up(batch)
    assert read_tables(batch) == count_naively(batch)
    for _ in range(5):
        splits = search(learner, batch)
        route = route_entries(learner, batch, splits)
        children = send_entries(learner, batch, route, np.where(splits.feature >= 0, splits.branches, 0))
        below = make_batch(target, children.entries, learner.objective)
        kept = np.arange(below.entries.nodes) % 5 != 4
        parent = children.parent[children.child][kept]
        batch = pass_on(batch, below.keep(kept), parent, target.rows)
        assert read_tables(batch) == count_naively(batch)
    assert derived > 5


def test_what_is_not_kept_up() -> None:
    """Tables larger than the bins themselves, those of weights and those of numbers are counted when asked for."""
    for classes, weight in ((2, "none"), (2, "real"), (0, "none")):
        _, batch, _ = make_binned(classes, False, weight)
        assert batch.binned is not None
        again = keep_up(replace(batch, binned=replace(batch.binned, tables=None))).binned
        assert again is not None
        assert again.tables is None
