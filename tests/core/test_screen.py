"""A number for every cut tells which ones can win: all that could be tied with the best become candidates."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.batch import Batch
from service.core.candidates import Block, Candidates, Form
from service.core.learner import Learner
from service.core.schema import Column
from service.core.screen import can_screen, weigh_near
from service.core.weigh import weigh_lines
from tests.core.growing import SORTED, make_root, random_columns, random_target

TASKS = ["two classes", "five classes", "numbers"]
COUNT = {"two classes": 2, "five classes": 5, "numbers": 0}
Cut = tuple[int, ...]


def list_cuts(learner: Learner, batch: Batch, found: tuple[Block, list[Candidates]]) -> dict[Cut, tuple[float, bytes]]:
    """Each cut's exact score and the bytes of its statistics, in candidate order.

    Cuts are told by node, feature, form, where missing values go, and the rows beside them.
    """
    block, tables = found
    cuts: list[tuple[tuple[int, int, int], Cut, tuple[float, bytes]]] = []
    for table in tables:
        score = learner.objective.score(table.branches, table.branches.sum(1))
        for i, segment in enumerate(table.segment):
            where = int(block.node[segment]), int(block.feature[segment])
            beside = (int(table.lower[i]), int(table.upper[i])) if table.form == Form.THRESHOLD else ()
            sums = np.ascontiguousarray(table.branches[:, :, i]).tobytes() + table.rows[:, i].tobytes()
            cut = (*where, table.form, int(table.missing_to[i]), *beside)
            cuts.append(((*where, int(table.position[i])), cut, (float(score[i]), sums)))
    return {cut: told for _, cut, told in sorted(cuts)}


@pytest.mark.parametrize("task", TASKS)
@settings(deadline=None, max_examples=60)
@given(
    st.integers(2, 300),
    st.integers(1, 6),
    st.integers(1, 4),
    st.sampled_from([0, 0.02, 0.5]),
    st.integers(0, 2**32 - 1),
    st.sampled_from([0, 1e9]),
)
def test_whatever_is_tied_with_the_best_is_there(
    task: str, rows: int, nodes: int, least: int, gaps: float, seed: int, offset: float
) -> None:
    """Every cut within the tolerance of its node's best of all features is a candidate, with the same exact sums."""
    source = np.random.default_rng(seed)
    columns = list(random_columns(source, rows, gaps=False))
    for number in range(0, len(columns), 2):
        columns[number] = leave_out(source, columns[number], gaps)
    target = random_target(source, columns, COUNT[task], "none", offset=offset)
    node = np.unique(source.integers(0, nodes, rows), return_inverse=True)[1]
    learner, batch = make_root(columns, target, {"min_samples_leaf": least}, SORTED, node.tolist())
    assert can_screen(learner, batch)
    features = np.arange(len(columns))
    near = list_cuts(learner, batch, weigh_near(learner, batch, features))
    every = {
        cut: (score, sums)
        for cut, (score, sums) in list_cuts(learner, batch, weigh_lines(learner, batch, features)).items()
        if np.frombuffer(sums, np.int64)[-2:].min() >= least
    }
    tolerance = learner.objective.tolerance(batch.stats)
    best = {n: max((score for cut, (score, _) in every.items() if cut[0] == n), default=0.0) for n in range(nodes)}
    for cut, (score, sums) in every.items():
        if score >= best[cut[0]] - tolerance[cut[0]] and score > tolerance[cut[0]]:
            assert near[cut][1] == sums
    assert list(near) == [cut for cut in every if cut in near]


def leave_out(source: np.random.Generator, column: Column, share: float) -> Column:
    """The column with a ``share`` of its cells missing, in some tenths of the rows all."""
    values = np.array(column.values)
    values[source.random(len(values)) < share] = np.nan
    if share:
        values[np.arange(len(values)) * 10 // len(values) == source.integers(0, 20)] = np.nan
    return replace(column, values=values)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("task", TASKS)
def test_few_cuts_become_candidates(task: str, gaps: bool) -> None:
    """Of thousands of cuts those of the best and what is tied with it are left."""
    source = np.random.default_rng(1)
    columns = random_columns(source, 1000, gaps=gaps)
    target = random_target(source, columns, COUNT[task], "none")
    learner, batch = make_root(columns, target, {}, SORTED, (np.arange(1000) % 4).tolist())
    _, tables = weigh_near(learner, batch, np.arange(5))
    assert 4 <= sum(len(table.segment) for table in tables) <= 16


@pytest.mark.parametrize(
    ("parameters", "weight"),
    [({"criterion": "gain_ratio"}, "none"), ({"min_weight_leaf": 3}, "none"), ({"class_weight": "balanced"}, "none"),
     ({"priors": {"0": 1, "1": 2}}, "none"), ({"monotonic": {"x0": "up"}}, "none"), ({"cut_limit": "c45"}, "none"),
     ({}, "real")],
)  # fmt: skip
def test_where_the_number_is_not_the_score_nothing_is_screened(parameters: dict[str, object], weight: str) -> None:
    """Weights, other criteria and rules that may forbid the best cut have every cut weighed."""
    source = np.random.default_rng(2)
    columns = random_columns(source, 50, gaps=False)
    target = random_target(source, columns, 2, weight)
    assert not can_screen(*make_root(columns, target, parameters, SORTED))
