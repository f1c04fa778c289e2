"""Batches: parts of them hold what they held, and runs of features are cut alike."""

from __future__ import annotations

import numpy as np
import pytest

from service.core.batch import Batch
from service.core.learner import Sizes
from service.core.weigh import BLOCK_CELLS, list_blocks, weigh_block, weigh_lines
from tests.core.growing import SORTED, make_root, random_columns, random_target
from tests.core.making import labels, numbers


@pytest.mark.parametrize("sizes", [SORTED, Sizes(coarse=1)], ids=["sorted", "binned"])
@pytest.mark.parametrize("count", [0, 3])
def test_part_of_a_batch(count: int, sizes: Sizes) -> None:
    """Some nodes of a batch have the rows, statistics, bins and order that they had among the others."""
    source = np.random.default_rng(count)
    columns = random_columns(source, 200, gaps=True)
    target = random_target(source, columns, count, "real")
    _, batch = make_root(columns, target, {}, sizes, source.integers(0, 5, 200).tolist())
    run = batch.run(1, 4)
    keep = np.array([False, True, True, True, False])
    for part in (run, batch.take(keep[batch.entries.node], keep)):
        inside = keep[batch.entries.node]
        assert part.entries.row.tolist() == batch.entries.row[inside].tolist()
        assert part.entries.node.tolist() == (batch.entries.node[inside] - 1).tolist()
        assert part.stats.tolist() == batch.stats[:, 1:4].tolist()
        assert part.starts().tolist() == (batch.starts()[1:4] - batch.starts()[1]).tolist()
        again = part.tally.combine(part.tally.sum(part.entries.node, 3), np.arange(3))
        assert again.tolist() == batch.stats[:, 1:4].tolist()
        check_lines(part, batch, inside)


def check_lines(part: Batch, batch: Batch, inside: np.ndarray) -> None:
    """What is kept up beside the entries was taken along."""
    if batch.binned is not None:
        assert part.binned is not None
        assert (part.binned.code == batch.binned.code[:, inside]).all()
    else:
        assert batch.ordered is not None
        assert part.ordered is not None
        assert (part.ordered.row == batch.ordered.row[:, inside]).all()
        assert (part.ordered.code == batch.ordered.code[:, inside]).all()


def test_blocks_are_cut_alike() -> None:
    """Features are weighed in order, in runs of one way of cutting, of no more cells than are weighed together."""
    cells = list(range(20))
    columns = [numbers("a", cells), numbers("b", cells), labels("c", ["x", "y"] * 10), numbers("d", cells)]
    learner, _ = make_root(columns, random_target(np.random.default_rng(0), columns[:2], 2, "none"), {}, SORTED)
    assert [run.tolist() for run in list_blocks(learner, np.arange(4), 20)] == [[0, 1], [2], [3]]
    assert [run.tolist() for run in list_blocks(learner, np.arange(4), BLOCK_CELLS)] == [[0], [1], [2], [3]]
    assert [run.tolist() for run in list_blocks(learner, np.array([3, 0]), 20)] == [[3, 0]]
    assert list(list_blocks(learner, np.empty(0, np.int64), 20)) == []


def test_lines_of_some_features() -> None:
    """The cuts of some features are those of all, less the others'."""
    source = np.random.default_rng(3)
    columns = random_columns(source, 120, gaps=False)
    target = random_target(source, columns, 2, "none")
    learner, batch = make_root(columns, target, {"min_samples_leaf": 2}, SORTED)
    block, (every,) = weigh_lines(learner, batch, np.arange(5))
    mine, (some,) = weigh_lines(learner, batch, np.array([1, 3]))
    wanted = np.isin(block.feature[every.segment], [1, 3])
    assert mine.feature[some.segment].tolist() == block.feature[every.segment[wanted]].tolist()
    assert some.branches.tolist() == every.branches[:, :, wanted].tolist()


def test_without_lines_codes_are_counted() -> None:
    """A batch whose rows are in no order is weighed by counts of codes."""
    source = np.random.default_rng(4)
    columns = random_columns(source, 50, gaps=False)
    learner, batch = make_root(columns, random_target(source, columns, 2, "none"), {}, Sizes(coarse=1))
    by_lines = weigh_lines(learner, batch, np.arange(2))[1]
    by_counts = weigh_block(learner, batch, np.arange(2))[1]
    assert [table.branches.tolist() for table in by_lines] == [table.branches.tolist() for table in by_counts]
