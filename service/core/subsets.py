"""Candidates of nominal features: two groups of categories, or a branch for each.

Among k categories there are 2^(k-1) - 1 pairs of groups. Up to ``max_subset_categories`` all are weighed; beyond it,
each category against the rest and the cuts of an ordering: by the share of the second of two classes, or by the mean,
which holds the best pair of groups for every criterion here (Breiman et al. 1984, theorem 4.5 and its proof for
quasi-convex functions). With more classes two orderings are cut, which need not hold the best pair:

* by the first principal component of the class shares (Coppersmith, Hong and Hosking 1999);
* by the share of the node's largest class, as if the others were one (after Laber, Molinaro and Mello Pereira 2018,
  "Binary partitions with approximate minimum impurity"). Its best cut costs at most three times the least gini
  cost. For a branch of weight n, of which m is of other classes, n gini = n gini(largest, others) + m/n (m gini of
  the others alone). The first terms, of the best cut, add up to no more than the least cost, for merging classes takes
  away. The second add up to no more than m gini in the node, so to twice what the two largest classes leave there;
  and no pair of groups costs less than that once, since n gini is at least what the branch's largest class leaves.
"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import (
    BITS,
    NO_ROUTE,
    ONE,
    ORDER,
    Block,
    Candidates,
    Form,
    Lack,
    Slots,
    Subsets,
    Totals,
    accumulate,
    build_binary,
)
from service.core.criteria import Floats
from service.core.statistics import Ints, Tally

MULTIWAY_CELLS = 2_000_000
"""Multiway candidates are weighed in portions of about so many branches x channels."""
COVARIANCE_CELLS = 2_000_000
"""Covariances of class shares are decomposed in portions of about so many numbers."""


def weigh_subsets(
    known: Slots, totals: Totals, tally: Tally, block: Block, exhaustive: int | None, alteration: Floats | None,
    typical: Floats | None = None,
) -> Candidates:  # fmt: skip
    """Pairs of groups of the ``known`` categories of each segment; see the module for which.

    Up to ``exhaustive`` categories all pairs; None for each category against the rest and nothing else. ``alteration:
    (class,)`` multiplies class weights where they are compared. ``typical: (slot,)`` orders categories, if that is not
    the mean or the class shares.
    """
    start = known.starts()
    count = np.diff(start, append=len(known.segment))
    rank = np.arange(len(known.segment)) - np.repeat(start, count)
    size = np.repeat(count, count)
    order = np.empty((0, len(rank)), np.int64)
    parts = [_pick_ones(known, rank, size, exhaustive)]
    if exhaustive is not None:
        order = _order_slots(known, tally, block, start, count, exhaustive, alteration, typical)
        parts += [_pick_bits(known, start, count, k) for k in range(3, exhaustive + 1)]
        parts += [_pick_cuts(known, rank, order[: which + 1], size, exhaustive) for which in range(len(order))]
    left = _join_slots([slots for slots, _, _ in parts])
    method = np.concatenate([np.full(len(part), how) for _, part, how in parts])
    part = np.concatenate([part for _, part, _ in parts])
    # candidate order within a feature: single categories (or groups by bits), then the cuts of each ordering
    position = part + np.maximum(method - ONE, 0) * (known.code.size + 1)
    candidates, index = build_binary(Form.SUBSET, left, position, totals, tally, block)
    return replace(candidates, slots=known, subsets=Subsets(rank, order, method[index], part[index]))


def _join_slots(parts: list[Slots]) -> Slots:
    return Slots(
        np.concatenate([slots.segment for slots in parts]),
        np.concatenate([slots.code for slots in parts]),
        np.concatenate([slots.rows for slots in parts]),
        [np.concatenate(sums, axis=1) for sums in zip(*(slots.sums for slots in parts), strict=True)],
        np.concatenate([slots.sample for slots in parts]),
    )


def _pick_ones(known: Slots, rank: Ints, size: Ints, exhaustive: int | None) -> tuple[Slots, Ints, int]:
    """Each category against the rest; of two categories only the first, for it is the same pair."""
    several = size > (2 if exhaustive is None else exhaustive)
    index = np.flatnonzero(several | ((size == 2) & (rank == 0)))
    return known.take(index), rank[index], ONE


def _pick_bits(known: Slots, start: Ints, count: Ints, k: int) -> tuple[Slots, Ints, int]:
    """All pairs of groups of the segments with ``k`` categories, the first category always left."""
    first = start[count == k]
    masks = 1 + 2 * np.arange(2 ** (k - 1) - 1)
    member = (masks[:, None] >> np.arange(k)) & 1  # (mask, rank)
    slots = first[:, None] + np.arange(k)  # (segment, rank)

    def gather(values: Ints) -> Ints:
        return (values[..., slots] @ member.T).reshape(*values.shape[:-1], -1)

    segment = np.repeat(known.segment[first], len(masks))
    none = np.zeros_like(segment)
    left = Slots(segment, none, gather(known.rows), [gather(s) for s in known.sums], none)
    return left, np.tile(masks, len(first)), BITS


def _pick_cuts(known: Slots, rank: Ints, orders: Ints, size: Ints, exhaustive: int) -> tuple[Slots, Ints, int]:
    """The cuts of the last of ``orders: (ordering, slot)`` that are not cuts of an earlier one.

    They leave two or more categories on each side (the others are in `_pick_ones`).
    """
    order, begin = orders[-1], np.arange(len(rank)) - rank
    ordered = np.argsort(begin + order)  # slots of each segment in its ordering
    place = order[ordered]
    fresh = (size > exhaustive) & (place >= 1) & (place < size - 2)
    for earlier in orders[:-1, ordered]:
        # the groups are the same if so many categories are the first, or the last, of the earlier ordering
        for other in (earlier, size - 1 - earlier):
            fresh &= np.maximum.accumulate(begin + other) - begin > place
    cut = np.flatnonzero(fresh)
    return accumulate(known.take(ordered)).take(cut), place[cut], ORDER + len(orders) - 1


def _order_slots(
    known: Slots, tally: Tally, block: Block, start: Ints, count: Ints, exhaustive: int, alteration: Floats | None,
    typical: Floats | None,
) -> Ints:  # fmt: skip
    """(ordering, slot) each category's place in its segment; ties stay in category order."""
    stats = tally.combine(known.sums, block.node[known.segment])
    if tally.classes == 0:
        keys = [stats[1] / stats[0] if typical is None else typical]
        if tally.outputs > 1:
            means = stats[1 : 1 + tally.outputs] / stats[0]
            keys = [_project(means, stats[0], start, count, exhaustive)]
    else:
        stats = stats if alteration is None else stats * alteration[:, None]
        share = stats / stats.sum(0)
        keys = [share[-1]]
        if tally.classes > 2:
            largest = np.repeat(np.add.reduceat(stats, start, axis=1).argmax(0), count)
            keys = [_project(share, stats.sum(0), start, count, exhaustive), share[largest, np.arange(len(largest))]]
    places = np.empty((len(keys), len(known.segment)), np.int64)
    for place, key in zip(places, keys, strict=True):
        order = np.lexsort((key, known.segment))
        place[order] = np.arange(len(order)) - np.repeat(start, count)
    return places


def _project(share: Floats, weight: Floats, start: Ints, count: Ints, exhaustive: int) -> Floats:
    """(slot,) class shares projected on the first principal component of their segment, where it is needed.

    ``share: (class, slot)``, weighted by ``weight: (slot,)``. The component's sign is fixed by its largest entry.
    """
    mean = np.add.reduceat(share * weight, start, axis=1) / np.add.reduceat(weight, start)
    centred = share - np.repeat(mean, count, axis=1)
    component = np.ones_like(mean)  # (class, segment)
    wide = np.flatnonzero(count > exhaustive)
    for run in np.array_split(wide, len(wide) * len(share) ** 2 // COVARIANCE_CELLS + 1):
        if len(run):
            component[:, run] = _find_components(centred * np.sqrt(weight), start, count, run)
    # rounded, so that categories with equal shares stay in category order
    projected: Floats = (np.repeat(component, count, axis=1) * centred).sum(0)
    return np.round(projected, 12)


def _find_components(scaled: Floats, start: Ints, count: Ints, run: Ints) -> Floats:
    """(class, segment) eigenvectors of the largest eigenvalue of each segment's covariance, for segments ``run``."""
    inside = np.repeat(start[run], count[run]) + _count_up(count[run])
    first = np.cumsum(count[run]) - count[run]
    rows = scaled[:, inside]
    covariance = np.stack([np.add.reduceat(rows * row, first, axis=1).T for row in rows], axis=1)
    vectors = np.linalg.eigh(covariance)[1][:, :, -1]  # (segment, class)
    largest = np.take_along_axis(vectors, np.abs(vectors).argmax(1)[:, None], axis=1)
    return np.asarray((vectors * np.sign(largest)).T)


def _count_up(count: Ints) -> Ints:
    """0 .. count - 1 for each count, one after the other."""
    return np.arange(count.sum()) - np.repeat(np.cumsum(count) - count, count)


def find_left(subsets: Subsets, slots: Slots, segment: Ints, candidate: Ints) -> tuple[NDArray[np.bool_], Ints]:
    """Which of the known ``slots`` go left under the given candidates, at most one per segment.

    ``segment``: (candidate,) of the whole table. Returns (slot,) bool, and (slot,) the candidate of the slot's
    segment as an index into ``candidate`` (-1: none).
    """
    of_segment = np.full(int(slots.segment.max(initial=-1)) + 1, -1)
    of_segment[segment[candidate]] = np.arange(len(candidate))
    of_slot = of_segment[slots.segment]
    chosen = candidate[of_slot] if len(candidate) else np.zeros(len(of_slot), np.int64)
    method, part = subsets.method[chosen], subsets.part[chosen]
    by_bit = (part >> np.minimum(subsets.rank, 62)) & 1 == 1
    left = np.where(method == BITS, by_bit, subsets.rank == part)
    for which, order in enumerate(subsets.order):
        left = np.where(method == ORDER + which, order <= part, left)
    return left & (of_slot >= 0), of_slot


def weigh_multiway(known: Slots, totals: Totals, tally: Tally, block: Block) -> list[Candidates]:
    """A branch for each known category, in category order; missing values join the heaviest branch, or are set apart.

    In portions, since branches: (channel, branch, candidate) is as wide as the segment with most categories.
    """
    start = known.starts()
    count = np.diff(start, append=len(known.segment))
    several = np.flatnonzero(count >= 2)
    tables = []
    channels = max(tally.classes, 3)
    for portion in _portions(count[several] * channels):
        cells = several[portion]
        tables.append(_spread_branches(known, start[cells], count[cells], totals, tally, block))
    return tables


def _portions(cells: Ints) -> list[slice]:
    """Consecutive runs of segments whose padded branches number about `MULTIWAY_CELLS`."""
    runs, begin, widest = [], 0, 0
    for index, width in enumerate(cells.tolist()):
        widest = max(widest, width)
        if index > begin and widest * (index + 1 - begin) > MULTIWAY_CELLS:
            runs.append(slice(begin, index))
            begin, widest = index, width
    return [*runs, slice(begin, len(cells))] if len(cells) else []


def _spread_branches(known: Slots, start: Ints, count: Ints, totals: Totals, tally: Tally, block: Block) -> Candidates:
    """``start``, ``count``: (candidate,) the run of slots of each segment; branch b takes its b-th slot."""
    branch = np.arange(int(count.max()))
    inside = branch[:, None] < count
    slot = np.where(inside, start + branch[:, None], 0)  # (branch, candidate)
    segment = known.segment[start]
    sums = [np.where(inside, s[:, slot], 0) for s in known.sums]
    rows = np.where(inside, known.rows[slot], 0)
    node = np.broadcast_to(block.node[segment], slot.shape)
    stats = tally.combine([s.reshape(len(s), -1) for s in sums], node.ravel())
    weight = stats.sum(0) if tally.classes else stats[0]
    heaviest = weight.reshape(slot.shape).argmax(0)
    lacking = (totals.missing_rows[segment] > 0) & (totals.lack is not Lack.APART)
    to = np.where(lacking, heaviest, NO_ROUTE)
    joins = (branch[:, None] == to) & lacking
    sums = [s + joins * m[:, None, segment] for s, m in zip(sums, totals.missing, strict=True)]
    rows = rows + joins * totals.missing_rows[segment]
    stats = tally.combine([s.reshape(len(s), -1) for s in sums], node.ravel()).reshape(-1, *slot.shape)
    candidates = Candidates(
        Form.MULTIWAY, segment, np.zeros(len(segment), np.int64), to, rows, stats, slots=known, lower=start
    )
    return totals.set_apart(candidates, tally, block)
