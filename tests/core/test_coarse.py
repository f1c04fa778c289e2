"""The coarse pass lists every cut that can win, with the branches that sorting gives it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.core.batch import Batch
from service.core.bounds import BOUNDS
from service.core.candidates import Block, Candidates, Form
from service.core.coarse import can_bound, weigh_contenders
from service.core.criteria import CRITERIA
from service.core.learner import Learner, Sizes
from service.core.refine import FEW_ROWS
from service.core.schema import Target
from service.core.search import search
from service.core.weigh import weigh_lines
from tests.core.growing import SORTED, make_root, random_columns, random_target, suitable_target
from tests.core.making import classes, numbers

BINNED = Sizes(coarse=1)
Listed = dict[tuple[Any, ...], tuple[float, bytes]]


def list_scores(learner: Learner, batch: Batch, found: tuple[Block, list[Candidates]]) -> Listed:
    """Score and branches by (node, feature, form, value below, value above, where missing goes)."""
    block, tables = found
    listed: Listed = {}
    # squares, which are no part of scores, are not made for contenders; deviances have four channels that are
    width = batch.tally.classes or (2 if learner.objective.criterion.statistic == "moments" else 4)
    for table in tables:
        stats = learner.objective.alter(table.branches[:width])
        score = learner.objective.score(stats, stats.sum(1)) if len(table.segment) else np.empty(0)
        for i, segment in enumerate(table.segment.tolist()):
            numbers_ = learner.features[int(block.feature[segment])].numbers
            beside = (
                (numbers_[table.lower[i]], numbers_[table.upper[i]]) if table.form == Form.THRESHOLD else ()
            )  # missing against present has no values beside it
            key = (int(block.node[segment]), int(block.feature[segment]), table.form, beside, int(table.missing_to[i]))
            assert key not in listed
            listed[key] = (
                float(score[i]),
                np.ascontiguousarray(table.branches[:width, :, i]).tobytes(),
            )
    return listed


def make_case(criterion: str, rows: int, *, gaps: bool, nodes: int = 3) -> tuple[Any, Target, list[int]]:
    """Columns, a target that suits the criterion and some nodes."""
    source = np.random.default_rng(rows + gaps)
    columns = random_columns(source, rows, gaps=gaps)
    target = suitable_target(source, columns, criterion, "real" if gaps else "none")
    return columns, target, source.integers(0, nodes, rows).tolist()


@pytest.mark.parametrize("rows", [40, 700, 9000])
@pytest.mark.parametrize("gaps", [False, True], ids=["whole", "gaps"])
@pytest.mark.parametrize("criterion", [*BOUNDS, "gini of plain rows", "variance of plain rows"])
def test_contenders_hold_every_cut_that_can_win(criterion: str, gaps: bool, rows: int) -> None:
    """Every cut within the tolerance of its node's best is listed, and what is listed is what sorting lists."""
    criterion, *plain = criterion.split(maxsplit=1)
    columns, target, node = make_case(criterion, rows, gaps=gaps)
    if plain:
        target = random_target(np.random.default_rng(rows), columns, 2 if criterion == "gini" else 0, "none")
    parameters = {"criterion": criterion, "min_samples_leaf": 2}
    learner, batch = make_root(columns, target, parameters, BINNED, node)
    contenders = list_scores(learner, batch, weigh_contenders(learner, batch, np.arange(5)))
    learner, batch = make_root(columns, target, parameters, SORTED, node)
    every = list_scores(learner, batch, weigh_lines(learner, batch, np.arange(5)))
    tolerance = learner.objective.tolerance(batch.stats)
    assert all(every[key][1] == branches for key, (_, branches) in contenders.items())
    cuts = {key: score for key, (score, _) in every.items() if key[2] == Form.THRESHOLD}
    for at in range(3):
        chosen = search(learner, batch.run(at, at + 1))
        best = float(chosen.score[0])
        can_win = {key for key, score in cuts.items() if key[0] == at and abs(score - best) <= tolerance[at]}
        assert can_win
        assert can_win <= contenders.keys()
    if rows == 9000 and not gaps:
        assert len(contenders) < len(every) / 5


def test_a_closer_look_is_taken() -> None:
    """A bin with more rows than are sorted at once is parted again, and the best cut inside it is found."""
    rows = 200 * FEW_ROWS
    draw = np.random.default_rng(0)
    cells = draw.normal(size=rows)
    cells[0], cells[1] = -1e300, 1e300
    edge = np.sort(cells)[rows // 3]
    learner, batch = make_root([numbers("x", cells.tolist())], classes((cells > edge).astype(int).tolist()), {}, BINNED)
    splits = search(learner, batch)
    assert cells[splits.lower[0]] == edge
    assert splits.score[0] == learner.objective.impurity(batch.stats)[0]


def test_a_batch_without_bins_is_refused() -> None:
    """The coarse pass says so when it is asked about rows that were not binned."""
    columns, target, _ = make_case("gini", 40, gaps=False)
    learner, batch = make_root(columns, target, {}, SORTED)
    with pytest.raises(ValueError, match="no bins"):
        weigh_contenders(learner, batch, np.arange(5))


@pytest.mark.parametrize(
    ("parameters", "bounded"),
    [
        *(({"criterion": name}, name in BOUNDS) for name in CRITERIA if CRITERIA[name].task == "classification"),
        ({"criterion": "gain_ratio", "selection": "c45"}, False),
        ({"monotonic": {"x0": "up"}}, False),
        ({"min_samples_leaf": 5, "class_weight": "balanced"}, True),
    ],
)
def test_what_can_be_bounded(parameters: dict[str, Any], bounded: bool) -> None:
    """Bins serve where a bound is known and nothing but the score decides; elsewhere rows are sorted."""
    source = np.random.default_rng(0)
    columns = random_columns(source, 60, gaps=False)
    learner, batch = make_root(columns, random_target(source, columns, 2, "none"), parameters, BINNED)
    assert can_bound(learner) == bounded
    assert (batch.binned is not None) == bounded
