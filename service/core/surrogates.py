"""Surrogate splits (Breiman et al. 1984, section 5.3; Therneau and Atkinson, "An Introduction to Recursive ..", rpart).

Where a node's split cannot be asked, another feature's cut that parts most rows in the same way stands in for it. Of
each feature the cut that agrees best is found, in either direction; of categories, each goes the way of most of its
rows. Those that are better than sending all rows with the majority are kept, the best first, as in rpart 4.1.19.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.candidates import NO_ROUTE, Block, Lack, Slots, accumulate, split_missing, total_segments
from service.core.criteria import TOLERANCE, Floats
from service.core.entries import Entries
from service.core.learner import Learner
from service.core.parting import drop_lines
from service.core.schema import Target
from service.core.search import Splits
from service.core.stand_ins import StandIns, follow_stands
from service.core.statistics import Ints, Tally
from service.core.tree import STAYS
from service.core.weigh import count_block, list_blocks

Flags = NDArray[np.bool_]

LEFT, RIGHT, LOST = 0, 1, 2
FEWEST = 2
"""So many rows must go either way, lest a cut that tells nothing beats the majority by chance (rpart)."""
LEAST_ADJUSTED = 1e-10
"""A surrogate whose adjusted agreement is not above this is no better than the majority (rpart)."""


@dataclass(frozen=True, slots=True)
class Agreement:
    """The best surrogate of each (node, feature); ``weight`` that it sends the same way, 0 where there is none.

    ``known``: the weight to the left and to the right of what has both values: (2, node, feature). ``codes``: of
    categories (4, slot) node, feature, code, branch.
    """

    weight: Floats
    known: Floats
    lower: Ints
    upper: Ints
    flipped: Flags
    codes: list[Ints]


def stand_in(learner: Learner, batch: Batch, splits: Splits, branch: Ints) -> tuple[Splits, StandIns, Ints]:
    """The surrogates of the splits, and what they decide.

    ``branch: (entry,)`` is what the splits say, `NO_ROUTE` where a value is missing. Returns the splits with the way
    of what is left after all surrogates in ``missing_to``, the surrogates, and (entry,) the branch, `NO_ROUTE` where
    rows stay in their node.
    """
    taken = np.flatnonzero(splits.feature >= 0)
    inside = (splits.feature >= 0)[batch.entries.node]
    part = drop_lines(batch).take(inside, taken)
    went = branch[inside]
    sides = Sides(part.entries, went, learner.parameters.surrogate_count == "rows")
    agreement = _find_agreement(learner, part, sides)
    stands = _rank(learner, agreement, sides, splits.feature[taken])
    majority = np.where(sides.total[LEFT] > sides.total[RIGHT], LEFT, RIGHT)
    # rpart sends nobody on by a majority that there is not
    tied = np.abs(sides.total[LEFT] - sides.total[RIGHT]) <= TOLERANCE * sides.total.sum(0)
    use = learner.parameters.use_surrogates
    after = np.where(tied | (use < 2), STAYS, majority)
    if use > 0:
        went, sent = follow_stands(learner, part.entries, stands, went)
        stands = replace(stands, rows=sent)
    went = np.where(went >= 0, went, np.where(after == STAYS, NO_ROUTE, after)[part.entries.node])
    missing_to = splits.missing_to.copy()
    missing_to[taken] = after
    out = branch.copy()
    out[inside] = went
    return replace(splits, missing_to=missing_to), replace(stands, node=taken[stands.node]), out


class Sides:
    """The sides that a split sends entries to, ready to be counted; ``total: (2, node)`` weights with a side."""

    def __init__(self, entries: Entries, branch: Ints, by_rows: bool) -> None:
        side = np.where(branch < 0, LOST, branch)
        of_row = np.zeros(int(entries.row.max(initial=0)) + 1, np.int32)
        of_row[entries.row] = side
        target = Target("side", ("left", "right", "lost"), of_row)
        self.entries = entries
        self.plain = Tally(target, replace(entries, weight=None))
        self.heavy = self.plain if by_rows or entries.weight is None else Tally(target, entries)
        stats = self.heavy.combine(self.heavy.sum(entries.node, entries.nodes), np.arange(entries.nodes))
        self.total: Floats = stats[:LOST]


def _find_agreement(learner: Learner, batch: Batch, sides: Sides) -> Agreement:
    shape = (batch.entries.nodes, len(learner.features))
    out = Agreement(
        np.zeros(shape), np.zeros((2, *shape)), np.zeros(shape, np.int64), np.zeros(shape, np.int64),
        np.zeros(shape, bool), [],
    )  # fmt: skip
    for run in list_blocks(learner, np.arange(len(learner.features)), len(batch.entries.row)):
        counted = count_block(learner, batch.entries, sides.heavy, run)
        block, slots, counts = counted.block, counted.slots, counted.slots
        if sides.plain is not sides.heavy:
            counts = count_block(learner, batch.entries, sides.plain, run).slots
        if learner.is_ordered(int(run[0])):
            _agree_by_cuts(sides, block, slots, counts, out)
        else:
            _agree_by_categories(sides, block, slots, counts, learner.parameters.nominal_surrogates, out)
    return out


def _agree_by_cuts(sides: Sides, block: Block, slots: Slots, counts: Slots, out: Agreement) -> None:
    """Fill in ``out`` with the first of the best cuts of each segment."""
    segments = len(block.node)
    known, missing = split_missing(slots, block)
    numbers, none = split_missing(counts, block)
    totals = total_segments(known, missing, segments, Lack.APART)
    all_rows = total_segments(numbers, none, segments, Lack.APART).known[0]
    whole = sides.heavy.combine(totals.known, block.node)[:LOST]
    at = (block.node, block.feature)
    out.known[:, block.node, block.feature] = whole
    cut = np.flatnonzero(known.segment[1:] == known.segment[:-1])
    segment = known.segment[cut]
    node = block.node[segment]
    left = [s[:, cut] for s in accumulate(known).sums]
    below = sides.heavy.combine(left, node)
    above = sides.heavy.combine([t[:, segment] - s for t, s in zip(totals.known, left, strict=True)], node)
    rows = accumulate(numbers).sums[0][:LOST, cut].sum(0)
    enough = (rows >= FEWEST) & (all_rows[:LOST].sum(0)[segment] - rows >= FEWEST)
    same, turned = below[LEFT] + above[RIGHT], below[RIGHT] + above[LEFT]
    agree = np.maximum(same, turned)
    tolerance = TOLERANCE * whole.sum(0)
    agree[~enough | (agree <= (whole.max(0) + tolerance)[segment])] = 0.0
    first, best = _find_first(segment, agree, tolerance, segments)
    place = cut[first]
    which = segment[first]
    out.weight[at] = best
    where = (block.node[which], block.feature[which])
    out.lower[where], out.upper[where] = known.sample[place], known.sample[place + 1]
    out.flipped[where] = (turned > same)[first]


def _find_first(segment: Ints, score: Floats, tolerance: Floats, segments: int) -> tuple[Ints, Floats]:
    """The first of each segment's tied best, and (segment,) the best; none where that is 0."""
    best = np.zeros(segments)
    np.maximum.at(best, segment, score)
    near = np.flatnonzero((score > 0) & (score >= (best - tolerance)[segment]))
    return near[np.diff(segment[near], prepend=-1) != 0], best


def _agree_by_categories(sides: Sides, block: Block, slots: Slots, counts: Slots, rule: str, out: Agreement) -> None:
    """Fill in ``out``: each category goes the way of most of its rows, with the majority if these are as many."""
    segments = len(block.node)
    known, _ = split_missing(slots, block)
    numbers, _ = split_missing(counts, block)
    node = block.node[known.segment]
    stats = sides.heavy.combine(known.sums, node)
    start = known.starts()
    present = known.segment[start]
    whole = np.zeros((3, segments))
    if len(start):
        sums = [np.add.reduceat(s, start, axis=1) for s in known.sums]
        whole[:, present] = sides.heavy.combine(sums, block.node[present])
    out.known[:, block.node, block.feature] = whole[:LOST]
    tie = np.abs(stats[LEFT] - stats[RIGHT]) <= TOLERANCE * stats[:LOST].sum(0)
    right = np.where(tie, (whole[LEFT] <= whole[RIGHT])[known.segment], stats[LEFT] < stats[RIGHT])
    rows = numbers.sums[0][:LOST].sum(0)
    mine = [np.where(right, s[RIGHT], s[LEFT])[None] for s in known.sums]
    agree, sent = np.zeros(segments), np.zeros((2, segments))
    if len(start):
        sums = [np.add.reduceat(s, start, axis=1) for s in mine]
        agree[present] = sides.heavy.combine(sums, block.node[present])[0]
        first = np.where(right, 0, rows)
        if rule == "rpart":
            # 4.1.19 counts what disagrees and what agrees in the place of what goes left and what goes right
            first = np.where(right, numbers.sums[0][LEFT], numbers.sums[0][RIGHT])
        sent[LEFT, present] = np.add.reduceat(first, start)
        sent[RIGHT, present] = np.add.reduceat(rows - first, start)
    good = (sent >= FEWEST).all(0) & (agree > whole[:LOST].max(0) * (1 + TOLERANCE))
    out.weight[block.node, block.feature] = np.where(good, agree, 0.0)
    # of a category whose rows all lack the split's own value nothing is known
    told = good[known.segment] & (rows > 0)
    segment = known.segment[told]
    out.codes.append(np.stack([block.node[segment], block.feature[segment], known.code[told], right[told]]))


def _rank(learner: Learner, found: Agreement, sides: Sides, primary: Ints) -> StandIns:
    """The best of each node, which splits on the feature ``primary: (node,)``, in order of their agreement."""
    parameters = learner.parameters
    nodes, features = found.weight.shape
    base = found.known if parameters.surrogate_style == 1 else np.repeat(sides.total[:, :, None], features, axis=2)
    weight, majority = base.sum(0), base.max(0)
    with np.errstate(invalid="ignore", divide="ignore"):
        agree = found.weight / weight
        adjusted = (found.weight - majority) / (weight - majority)
    good = (found.weight > 0) & (adjusted > LEAST_ADJUSTED)
    good[np.arange(nodes), primary] = False
    node, feature = np.nonzero(good)
    # rounded, so that what differs by rounding only stays in feature order
    order = np.lexsort((feature, -np.round(agree[node, feature], 12), node))
    node, feature = node[order], feature[order]
    first = np.flatnonzero(np.diff(node, prepend=-1))
    rank = np.arange(len(node)) - np.repeat(first, np.diff(first, append=len(node)))
    keep = rank < parameters.max_surrogates
    node, feature = node[keep], feature[keep]
    at = (node, feature)
    return StandIns(
        node, feature, found.lower[at], found.upper[at], found.flipped[at], agree[at], adjusted[at],
        np.zeros(len(node), np.int64), _pick_codes(found, node, feature),
    )  # fmt: skip


def _pick_codes(found: Agreement, node: Ints, feature: Ints) -> Ints:
    """(3, pair) surrogate, code and branch of the categories of those that were kept."""
    if not found.codes:
        return np.empty((3, 0), np.int64)
    codes = np.concatenate(found.codes, axis=1)
    index = np.full(found.weight.shape, -1)
    index[node, feature] = np.arange(len(node))
    of = index[codes[0], codes[1]]
    kept = of >= 0
    return np.stack([of[kept], codes[2, kept], codes[3, kept]])
