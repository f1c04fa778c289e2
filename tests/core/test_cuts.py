"""Cuts become candidates: the right branch is the rest, and what is missing goes each way in turn."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.batch import Batch, make_batch
from service.core.candidates import MISSING_POSITION, NO_ROUTE, Form
from service.core.criteria import CRITERIA
from service.core.cuts import Cuts, Lacking, build_cuts, build_directed, build_missing
from service.core.entries import Entries
from service.core.objective import Objective
from service.core.schema import Target
from tests.core.making import classes, values

ENTRY = st.tuples(st.integers(0, 1), st.integers(-1, 4), st.sampled_from("abc"), st.sampled_from([0.1, 1.0, 2.5]))
ENTRIES = st.lists(ENTRY, min_size=2, max_size=30)
"""Node, value (-1: missing), target, weight."""
ROWS = list[tuple[int, int, str, float]]


def make_target(kind: str, rows: ROWS) -> Target:
    """A target of the rows: classes that weigh alike, classes by weight, numbers by weight."""
    marks, weight = [row[2] for row in rows], [row[3] for row in rows]
    if kind == "numbers":
        return values([ord(mark) / 7 for mark in marks], weight)
    return classes(marks, weight if kind == "weighted classes" else None)


def list_cuts(batch: Batch, value: list[int]) -> tuple[Cuts, Lacking]:
    """Every cut of one feature in every node, and what is missing, by sums over masks."""
    cell, nodes, tally = np.array(value), batch.entries.nodes, batch.tally
    node_of = batch.entries.node
    places = [
        (node, cut)
        for node in range(nodes)
        for cut in sorted(set(cell[node_of == node].tolist()) - {-1})[:-1]
    ]  # fmt: skip
    masks = [(node_of == node) & (cell >= 0) & (cell <= cut) for node, cut in places]
    gone = [(node_of == node) & (cell < 0) for node in range(nodes)]

    def add_up(groups: list[np.ndarray]) -> list[np.ndarray]:
        parts = [tally.sum_scored(tally.key(np.where(mask, 0, 1), 2), 2) for mask in groups]
        empty = [
            np.zeros((max(tally.classes, 1), 0), np.int64) for _ in tally.sum_scored(tally.key(node_of, nodes), nodes)
        ]
        return [np.stack([part[i][:, 0] for part in parts], axis=1) for i in range(len(empty))] if parts else empty

    node = np.array([node for node, _ in places], np.int64)
    row = np.array([np.flatnonzero(mask)[-1] for mask in masks], np.int64)
    rows = np.array([mask.sum() for mask in masks], np.int64)
    cuts = Cuts(node, node, np.array([cut for _, cut in places], np.int64), add_up(masks), rows, row, row)
    return cuts, Lacking(add_up(gone), np.array([mask.sum() for mask in gone]))


def make_batches(kind: str, rows: ROWS) -> tuple[Batch, list[int]]:
    """The rows by node as a batch, with the value of each entry."""
    rows = sorted(rows, key=lambda row: row[0])
    node = np.unique([row[0] for row in rows], return_inverse=True)[1].astype(np.int64)
    target = make_target(kind, rows)
    objective = Objective(CRITERIA["variance" if kind == "numbers" else "gini"])
    batch = make_batch(target, Entries(np.arange(len(rows)), node, int(node.max()) + 1, target.weight), objective)
    return batch, [row[1] for row in rows]


KINDS = ["classes", "weighted classes", "numbers"]


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=60)
@given(ENTRIES)
def test_branches_make_up_the_node(kind: str, rows: ROWS) -> None:
    """The two branches of every candidate hold all of the node, missing values on the side that is named."""
    batch, value = make_batches(kind, rows)
    cuts, lacking = list_cuts(batch, value)
    for table in (build_cuts(batch.nodes(), cuts), build_directed(batch.nodes(), cuts, lacking)):
        node = table.segment
        assert (table.rows.sum(0) == batch.rows[node]).all()
        assert np.allclose(table.branches.sum(1), batch.stats[: len(table.branches), node], rtol=1e-12, atol=1e-12)
        assert table.form == Form.THRESHOLD
    missing = build_missing(batch.nodes(), np.arange(batch.entries.nodes), lacking)
    both = (lacking.rows > 0) & (lacking.rows < batch.rows)
    assert missing.segment.tolist() == np.flatnonzero(both).tolist()
    assert missing.rows[0].tolist() == lacking.rows[both].tolist()
    assert (missing.rows.sum(0) == batch.rows[both]).all()
    assert (missing.position == MISSING_POSITION).all()


@pytest.mark.parametrize("kind", KINDS)
@settings(deadline=None, max_examples=60)
@given(ENTRIES)
def test_missing_goes_left_then_right(kind: str, rows: ROWS) -> None:
    """Each cut is one candidate where nothing is missing in its node, else two: missing left first, then right."""
    batch, value = make_batches(kind, rows)
    cuts, lacking = list_cuts(batch, value)
    plain, directed = build_cuts(batch.nodes(), cuts), build_directed(batch.nodes(), cuts, lacking)
    at = 0
    for cut, node in enumerate(cuts.node.tolist()):
        gone = int(lacking.rows[node])
        for side in (0, 1) if gone else (NO_ROUTE,):
            assert directed.missing_to[at] == side
            assert directed.rows[0, at] == plain.rows[0, cut] + gone * (side == 0)
            assert directed.lower[at] == plain.lower[cut]
            assert at == 0 or directed.segment[at] > node - 1
            assert directed.position[at] == plain.position[cut] + max(side, 0)
            at += 1
    assert at == len(directed.segment)


@given(ENTRIES)
@settings(deadline=None, max_examples=30)
def test_whole_counts_need_no_rounding(rows: ROWS) -> None:
    """Without weights both branches are whole counts of rows."""
    batch, value = make_batches("classes", rows)
    table = build_cuts(batch.nodes(), list_cuts(batch, value)[0])
    assert (table.branches == np.rint(table.branches)).all()
    assert (table.branches.sum(0) == table.rows).all()
