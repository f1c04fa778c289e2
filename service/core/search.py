"""Nominees -> the best split of each node.

choose     the best feature of each node
resolve    take the winners apart into splits
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.c45 import find_many_valued, find_useful
from service.core.candidates import NO_ROUTE, Block, Candidates, Form, Slots
from service.core.coarse import weigh_contenders
from service.core.criteria import Floats
from service.core.cuts import part_nodes
from service.core.learner import Learner
from service.core.nominate import Board, Nominees
from service.core.parallel import list_runs, run_parallel
from service.core.scan import Ordered
from service.core.screen import can_screen, find_near, screens_all, weigh_near
from service.core.sides import part_rows, sum_right
from service.core.statistics import Ints
from service.core.subsets import find_left
from service.core.weigh import BLOCK_CELLS, list_blocks, weigh_block, weigh_lines

RUN_CELLS = 60_000
"""Nodes are searched together up to about so many rows x features."""
SCREENED_CELLS = 2_000_000
"""So many where every feature is screened: most of that goes by shorter runs again, and the rest is few calls."""
RUN_BINS = 64 * 256
"""Nodes whose bins are counted are searched together up to so many cells of a feature."""
KEPT_CELLS = 2_000_000
"""Up to so many rows x features the candidates are kept until the winner is known; beyond it they are weighed again."""


@dataclass(slots=True)
class Splits:
    """The best split of each node of a batch; everything is (node,) unless its shape is given.

    ``feature`` is -1 where no candidate is admissible. ``branches`` counts the children. ``lower``, ``upper`` are
    training rows whose values stand beside a threshold. ``side: (entry,)`` is the branch that each entry takes, where
    the search came to know it. Nominal splits are spelt out in ``category: (3, pair)``:
    node, code, branch.
    """

    feature: Ints
    form: Ints
    score: Floats
    branches: Ints
    missing_to: Ints
    lower: Ints
    upper: Ints
    category: Ints
    side: NDArray[np.bool_] | None = None

    def take_node(self, node: int) -> Splits:
        """The split of one node, as a batch of its own."""
        one = slice(node, node + 1)
        category = self.category[:, self.category[0] == node].copy()
        category[0] = 0
        return Splits(
            self.feature[one], self.form[one], self.score[one], self.branches[one], self.missing_to[one],
            self.lower[one], self.upper[one], category,
        )  # fmt: skip


def search(learner: Learner, batch: Batch) -> Splits:
    """The split that an exhaustive search takes in each node, ties broken by (feature order, candidate order).

    Nodes are searched in runs that fit the processor's cache, several at a time.
    """
    if not learner.features:
        return _no_splits(batch.entries.nodes)
    if batch.binned is None and len(batch.entries.row) * len(learner.features) <= RUN_CELLS:
        return _search_run(learner, batch)
    if batch.binned is not None:
        runs = list_runs(np.full(batch.entries.nodes, max(batch.binned.find_widths())), RUN_BINS)
    else:
        most = SCREENED_CELLS if screens_all(learner, batch) else RUN_CELLS
        runs = list_runs(batch.rows * len(learner.features), most)
    if len(runs) == 1:
        return _search_run(learner, batch)
    if batch.ordered is not None:
        batch.tally.spread_over_rows()  # once, for all runs share it
    return join_splits(run_parallel(lambda run: _search_run(learner, batch.run(*run)), runs), runs)


def join_splits(parts: Sequence[Splits], runs: Sequence[tuple[int, int]]) -> Splits:
    """The splits of consecutive runs of nodes, as one."""
    names = ("feature", "form", "score", "branches", "missing_to", "lower", "upper")
    category = [
        part.category + np.array([[first], [0], [0]])
        for part, (first, _) in zip(parts, runs, strict=True)
        if part.category.size
    ]
    sides = [part.side for part in parts if part.side is not None]
    return Splits(
        **{name: np.concatenate([getattr(part, name) for part in parts]) for name in names},
        side=np.concatenate(sides) if len(sides) == len(parts) else None,
        category=np.concatenate([np.empty((3, 0), np.int64), *category], axis=1),
    )


def _search_run(learner: Learner, batch: Batch) -> Splits:
    nodes, features = batch.entries.nodes, len(learner.features)
    if batch.ordered is not None and screens_all(learner, batch):
        return _search_screened(learner, batch, batch.ordered)
    nominees = Nominees(*(np.full((nodes, features), worst) for worst in (-np.inf, -np.inf, 0.0, -np.inf)))
    boards = []
    small = len(batch.entries.row) * features <= KEPT_CELLS
    for run, weigh in _list_units(learner, batch):
        board = Board(learner, batch, *weigh(learner, batch, run))
        found = board.nominate()[0]
        segment = (board.block.node, board.block.feature)
        for name in ("within", "across", "tie", "gain"):
            getattr(nominees, name)[segment] = getattr(found, name)
        if small or weigh in NARROW:
            boards.append(board)
    chosen, best = choose(learner, batch, nominees)
    splits = _no_splits(nodes)
    if not small:
        boards += [
            Board(learner, batch, *weigh(learner, batch, wanted))
            for run, weigh in _list_units(learner, batch)
            if weigh not in NARROW and len(wanted := np.intersect1d(run, chosen))
        ]
    category = [resolve(learner, splits, board, chosen, best) for board in boards]
    return replace(splits, category=np.concatenate([splits.category, *category], axis=1))


def _search_screened(learner: Learner, batch: Batch, ordered: Ordered) -> Splits:
    """All features are screened together: the first of each node's tied best cuts, which stand in feature order.

    Of what `judge` has to say of candidates only the gain is left: see `can_screen`.
    """
    nodes, splits = batch.entries.nodes, _no_splits(batch.entries.nodes)
    tolerance = learner.objective.tolerance(batch.stats, impurity=batch.impurity)
    sides = find_near(learner, batch, ordered, tolerance)
    # which branch comes first makes no difference to the score
    branches = part_nodes(batch.nodes(), sides.node, sum_right(batch, ordered, sides))
    score = learner.objective.score(branches, branches.sum(1))
    allowed = (score > tolerance[sides.node]) & (score >= learner.parameters.min_gain)
    best = splits.score.copy()
    np.maximum.at(best, sides.node[allowed], score[allowed])
    # backwards, so that the first of a node is written last
    tied = (allowed & (score >= (best - tolerance)[sides.node])).nonzero()[0][::-1]
    first = np.full(nodes, -1)
    first[sides.node[tied]] = tied
    chosen = (first >= 0).nonzero()[0]
    taken = first[chosen]
    splits.feature[chosen] = ordered.feature[sides.line[taken]]
    splits.form[chosen], splits.branches[chosen] = Form.THRESHOLD, 2
    splits.form[chosen[sides.alone[taken]]] = Form.MISSING
    splits.score[chosen], splits.missing_to[chosen] = score[taken], sides.missing_to[taken]
    row, place = ordered.row.ravel(), sides.place[taken]
    splits.lower[chosen], splits.upper[chosen] = row[place], row[place + 1]
    splits.side = part_rows(batch, ordered, sides, taken)
    return splits


Weigh = Callable[[Learner, Batch, Ints], tuple[Block, list[Candidates]]]
NARROW: tuple[Weigh, ...] = (weigh_contenders, weigh_near)
"""Those that give few candidates, which are kept until the winner is known."""


def _list_units(learner: Learner, batch: Batch) -> Iterator[tuple[Ints, Weigh]]:
    """Features that are weighed together, and how: along kept-up lines, or from counts."""
    lines = np.empty(0, np.int64)
    if batch.binned is not None:
        lines = batch.binned.feature
        yield lines, weigh_contenders
    elif batch.ordered is not None:
        lines = batch.ordered.feature
        most = max(1, BLOCK_CELLS // len(batch.entries.row))
        weigh = weigh_near if can_screen(learner, batch) else weigh_lines
        yield from ((run, weigh) for run in _part(lines, most))
    taken = set(lines.tolist())
    others = np.array([f for f in range(len(learner.features)) if f not in taken], np.int64)
    for run in list_blocks(learner, others, len(batch.entries.row)):
        yield run, weigh_block


def _part(features: Ints, most: int) -> list[Ints]:
    return [features[begin : begin + most] for begin in range(0, len(features), most)]


def choose(learner: Learner, batch: Batch, nominees: Nominees) -> tuple[Ints, Floats]:
    """(node,) the feature whose nominee wins, -1 without any; and (node,) the best score across features."""
    # of a feature's tied candidates the nominee is the first, not the best: its score is no measure for other features
    across = nominees.within
    if learner.parameters.selection == "c45":
        useful = find_useful(nominees.gain, find_many_valued(learner.features, batch.tally.all_rows))
        across = np.where(useful, nominees.across, -np.inf)
    best = across.max(1)
    with np.errstate(invalid="ignore"):
        tied = across >= (best - learner.objective.tolerance(batch.stats))[:, None]
    tied &= np.isfinite(across)
    tie = np.where(tied, nominees.tie, -np.inf)
    winner = tied & (tie >= tie.max(1)[:, None])
    return np.where(winner.any(1), winner.argmax(1), -1), best


def resolve(learner: Learner, splits: Splits, board: Board, chosen: Ints, best: Floats) -> Ints:
    """Fill in the ``splits`` of the nodes whose chosen feature is on the board; returns their (3, pair) categories.

    ``chosen``: the feature that wins, ``best``: the score across features: (node,).
    """
    block = board.block
    _, of_table, place = board.nominate(None if learner.parameters.selection == "c45" else best[block.node])
    of_table = np.where(chosen[block.node] == block.feature, of_table, -1)
    category = [np.empty((3, 0), np.int64)]
    for index, table in enumerate(board.tables):
        segment = np.flatnonzero(of_table == index)
        if len(segment):
            node = block.node[segment]
            splits.feature[node] = block.feature[segment]
            # scored on its own, so that no digit depends on what it was weighed beside
            branches = learner.objective.alter(table.branches[:, :, place[segment]])
            gone = learner.objective.alter_gone(table.take_gone(place[segment]))
            price = board.find_price(index, place[segment])
            splits.score[node] = learner.objective.score(branches, branches.sum(1), gone, price)
            category.append(_describe(learner, splits, table, block, node, place[segment]))
    return np.concatenate(category, axis=1)


def _no_splits(nodes: int) -> Splits:
    feature, form, branches, missing_to, lower, upper = np.zeros((6, nodes), np.int64)
    feature[:], missing_to[:] = -1, NO_ROUTE
    score, category = np.full(nodes, -np.inf), np.empty((3, 0), np.int64)
    return Splits(feature, form, score, branches, missing_to, lower, upper, category)


def _describe(learner: Learner, splits: Splits, table: Candidates, block: Block, node: Ints, place: Ints) -> Ints:
    """Fill in the ``splits`` of some nodes from their candidates; returns the categories' branches (3, pair)."""
    splits.form[node] = table.form
    splits.missing_to[node] = table.missing_to[place]
    splits.branches[node] = (table.rows[:, place] > 0).sum(0)
    if table.form == Form.THRESHOLD:
        splits.lower[node], splits.upper[node] = table.lower[place], table.upper[place]
    category = _spell_out(table, block, place)
    if learner.parameters.empty_branches and table.form == Form.MULTIWAY and table.slots is not None:
        _open_empty_branches(learner, splits, table, table.slots, node, place)
        category[2] = category[1]
    # where missing values are a category of their own, the branch of the last code is theirs
    lacking = category[1] == levels_of(learner, splits.feature[category[0]])
    splits.missing_to[category[0][lacking]] = category[2][lacking]
    return category


def _spell_out(table: Candidates, block: Block, place: Ints) -> Ints:
    """(3, pair) node, code and branch of every category that the chosen candidates of a nominal ``table`` split."""
    slots = table.slots
    if slots is None:
        return np.empty((3, 0), np.int64)
    if table.subsets is not None:
        left, of_slot = find_left(table.subsets, slots, table.segment, place)
        branch, mine = np.where(left, 0, 1), of_slot >= 0
    else:
        taken = np.zeros(len(block.node), bool)
        taken[table.segment[place]] = True
        start = slots.starts()
        branch = np.arange(len(slots.segment)) - np.repeat(start, np.diff(start, append=len(slots.segment)))
        mine = taken[slots.segment]
    return np.stack([block.node[slots.segment[mine]], slots.code[mine], branch[mine]])


def _open_empty_branches(
    learner: Learner, splits: Splits, table: Candidates, slots: Slots, node: Ints, place: Ints
) -> None:
    """Give every category of the feature a branch, whether rows are in it or not; a branch is its code then."""
    levels = levels_of(learner, splits.feature[node])
    own = learner.parameters.missing == "branch"
    last = np.searchsorted(slots.segment, table.segment[place], side="right") - 1
    splits.branches[node] = levels + (own & (slots.code[last] == levels))
    to = table.missing_to[place]
    splits.missing_to[node] = np.where(to >= 0, slots.code[table.lower[place] + np.maximum(to, 0)], to)


def levels_of(learner: Learner, feature: Ints) -> Ints:
    """The number of categories of each given feature; 0 for -1, no feature."""
    return np.array([*(len(coded.feature.categories) for coded in learner.features), 0], np.int64)[feature]
