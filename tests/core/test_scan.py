"""Rows kept in value order give the cuts that counting codes gives."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.batch import Batch
from service.core.candidates import Block, Candidates, Form
from service.core.encoding import encode
from service.core.entries import Entries
from service.core.learner import Learner
from service.core.scan import LACKING, PORTION, Ordered, arrange
from service.core.schema import Column, Target
from service.core.statistics import Ints
from service.core.weigh import weigh_block, weigh_lines
from tests.core.growing import SORTED, make_root, random_columns, random_target
from tests.core.making import classes, labels, numbers, values

CELL = st.none() | st.sampled_from([-0.0, 0.0, 1.5, 2.0, float("inf"), float("-inf")])
WHOLE = st.none() | st.integers(0, 5) | st.sampled_from([2**60, 2**60 + 1, -(2**63), 2**63 - 1])
ROWS = st.lists(st.tuples(CELL, WHOLE, st.sampled_from("abc"), st.integers(0, 2)), min_size=3, max_size=30)


def make_columns(rows: list[tuple[Any, ...]]) -> list[Column]:
    """A column of floats, one of whole numbers and an ordinal one."""
    return [
        numbers("real", [None if row[0] is None else float(row[0]) for row in rows]),
        numbers("whole", [row[1] for row in rows]),
        labels("size", [None if row[1] is None else "SML"[row[1] % 3] for row in rows], ["S", "M", "L"], "ordinal"),
    ]


@settings(deadline=None)
@given(ROWS)
def test_rows_stand_in_value_order(rows: list[tuple[Any, ...]]) -> None:
    """A line holds the rows by value, equal values with equal codes, what is missing last."""
    features = encode(make_columns(rows))
    some = np.arange(0, len(rows), 2)
    ordered = arrange(features, np.arange(3), some)
    for line, feature in enumerate(features):
        assert sorted(ordered.row[line].tolist()) == some.tolist()
        missing = feature.is_missing(ordered.row[line].astype(np.int64))
        assert (missing == (ordered.code[line] == LACKING)).all()
        assert (np.diff(missing.astype(int)) >= 0).all()
        keys = (feature.numbers if feature.feature.kind == "numeric" else feature.codes)[ordered.row[line][~missing]]
        code = ordered.code[line][~missing]
        assert (keys[1:] >= keys[:-1]).all()
        assert ((code[1:] > code[:-1]) == (keys[1:] > keys[:-1])).all()


def split_twice(whole: Ordered, rows: int, parents: int, children: int, gone: float, seed: int) -> tuple[Ordered, Ints]:
    """``whole`` split into ``parents``, each into ``children`` in turns; also (row,) the node, -1 if it is ``gone``."""
    source = np.random.default_rng(seed)
    above, node = draw_nodes(source.integers(0, parents, rows))
    halfway = whole.regroup(above, np.zeros(above.nodes, np.int64), rows)
    turn = source.integers(0, children, rows)
    turn[source.random(rows) < gone] = -1
    below, kept = draw_nodes(np.where(turn < 0, -1, turn * parents + node))
    parent = node[below.row[np.flatnonzero(np.diff(below.node, prepend=-1))]]
    return halfway.regroup(below, parent, rows), kept


def draw_nodes(key: Ints) -> tuple[Entries, Ints]:
    """Rows as entries of nodes that are numbered as their ``key: (row,)`` ascend, -1 in none; and (row,) the node."""
    node = np.full(len(key), -1)
    node[key >= 0] = np.unique(key[key >= 0], return_inverse=True)[1]
    row = np.argsort(node, kind="stable")[np.count_nonzero(node < 0) :]
    return Entries(row, node[row], int(node.max()) + 1), node


@settings(deadline=None, max_examples=40)
@given(st.integers(1, 400), st.integers(1, 30), st.sampled_from([2, 3, 12]), st.booleans(), st.sampled_from([1, 20]))
def test_a_split_keeps_the_order(rows: int, parents: int, children: int, most_go: bool, times: int) -> None:
    """Regrouped rows are those of the nodes, one after the other, each in the order that it had: few and many."""
    source = np.random.default_rng(rows)
    features = encode(
        [Column("x", "numeric", source.integers(0, 50, rows)), Column("z", "numeric", source.random(rows))] * times
    )
    whole = arrange(features, np.arange(2 * times), np.arange(rows))
    below, node = split_twice(whole, rows, parents, children, 0.8 if most_go and rows > 20 else 0.0, parents)
    for line in (0, 1, 2 * times - 1):
        order = whole.row[line]
        expected = order[np.argsort(node[order], kind="stable")][np.count_nonzero(node < 0) :]
        assert below.row[line].tolist() == expected.tolist()
        code = np.empty(rows, np.int64)
        code[whole.row[line]] = whole.code[line]
        assert below.code[line].tolist() == code[expected].tolist()


@pytest.mark.parametrize(("parents", "children"), [(10, 2), (1, 70_000), (35_000, 2)])
def test_a_split_of_many_rows_keeps_the_order(parents: int, children: int) -> None:
    """Several portions, and more children than 16 bits hold, are regrouped alike."""
    rows = 3 * PORTION
    features = encode([Column("x", "numeric", np.random.default_rng(0).random(rows))])
    whole = arrange(features, np.arange(1), np.arange(rows))
    below, node = split_twice(whole, rows, parents, children, 0.0, 1)
    order = whole.row[0]
    assert (below.row[0] == order[np.argsort(node[order], kind="stable")]).all()


Row = tuple[Any, ...]


def list_candidates(batch: Batch, learner: Learner, found: tuple[Block, list[Candidates]]) -> list[Row]:
    """(node, feature, position order, form, value below, value above, where missing goes, rows, scored statistics)."""
    block, tables = found
    listed = []
    for table in tables:
        for i in np.lexsort((table.position, block.feature[table.segment], block.node[table.segment])).tolist():
            feature = learner.features[int(block.feature[table.segment[i]])]
            keys = feature.numbers if feature.feature.kind == "numeric" else feature.codes
            cut = table.form == Form.THRESHOLD
            beside = (keys[table.lower[i]] + 0, keys[table.upper[i]] + 0) if cut else ()
            node = int(block.node[table.segment[i]])
            scored = table.branches[: batch.tally.classes or 2, :, i].tolist()
            listed.append(
                (node, int(block.feature[table.segment[i]]), table.form, beside, int(table.missing_to[i]),
                 table.rows[:, i].tolist(), scored)
            )  # fmt: skip
    return listed


@pytest.mark.parametrize("kind", ["classes", "weighted classes", "numbers"])
@settings(deadline=None, max_examples=60)
@given(ROWS)
def test_lines_give_the_cuts_of_counts(kind: str, rows: list[tuple[Any, ...]]) -> None:
    """Cuts read off ordered rows are those of counted codes: the same, in the same order, with the same branches."""
    marks = [row[2] for row in rows]
    weight = [0.3 + 0.1 * (i % 7) for i in range(len(rows))]
    targets: dict[str, Target] = {
        "classes": classes(marks),
        "weighted classes": classes(marks, weight),
        "numbers": values(["abc".index(mark) + 0.1 for mark in marks], weight),
    }
    node = np.unique([row[3] for row in rows], return_inverse=True)[1]
    limit = {"min_samples_leaf": 2}  # else cuts that cannot win are left out
    learner, batch = make_root(make_columns(rows), targets[kind], limit, SORTED, node.tolist())
    features = np.arange(3)
    by_lines = list_candidates(batch, learner, weigh_lines(learner, batch, features))
    by_counts = list_candidates(batch, learner, weigh_block(learner, batch, features))
    assert by_lines == by_counts


@pytest.mark.parametrize("count", [2, 4])
@pytest.mark.parametrize("criterion", ["gini", "entropy"])
def test_what_is_left_out_cannot_win(criterion: str, count: int) -> None:
    """Of the cuts amid single rows of one class, which are left out, none comes within the tolerance of the best."""
    source = np.random.default_rng(count)
    columns = random_columns(source, 500, gaps=False)
    target = random_target(source, columns, count, "none")
    node = source.integers(0, 5, 500).tolist()
    learner, batch = make_root(columns, target, {"criterion": criterion}, SORTED, node)
    block, (table, *_) = weigh_lines(learner, batch, np.arange(5))
    whole, (full, *_) = weigh_block(learner, batch, np.arange(5))

    def score(found: Candidates) -> np.ndarray[Any, Any]:
        return learner.objective.score(found.branches, found.branches.sum(1))

    assert len(table.segment) < len(full.segment)
    best = np.full(5, -np.inf)
    np.maximum.at(best, whole.node[full.segment], score(full))
    kept = np.zeros(5, int)
    np.add.at(kept, block.node[table.segment], score(table) >= (best - 1e-12)[block.node[table.segment]])
    all_best = np.zeros(5, int)
    np.add.at(all_best, whole.node[full.segment], score(full) >= (best - 1e-12)[whole.node[full.segment]])
    assert kept.tolist() == all_best.tolist()
