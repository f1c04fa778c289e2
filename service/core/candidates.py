"""Slots -> candidates: every way to split a segment in two, with what each branch holds.

A *segment* is one (node, feature) pair of a batch. Its occupied slots stand in code order:

    slot      code 3 | code 7 | code 9 | missing          known slots, then the missing one
    cut               ^        ^                          a cut after each known slot but the last
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from enum import Enum, IntEnum

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import Floats
from service.core.sorting import argsort_keys
from service.core.statistics import Ints, Tally

NO_ROUTE = -1
"""No branch is learnt for what is missing: nothing was, here."""
MISSING_POSITION = 2**62
"""Within its feature the `missing` split is weighed last."""


class Form(IntEnum):
    """The form of a split; 0 is what a leaf has."""

    LEAF = 0
    THRESHOLD = 1
    SUBSET = 2
    MULTIWAY = 3
    MISSING = 4
    CONSTANT = 5


@dataclass(frozen=True, slots=True)
class Slots:
    """The occupied slots of some segments, in (segment, code) order.

    ``segment``, ``code``, ``rows``: (slot,); ``sums``: whole-number sums (class or 1, slot), see `Tally`.
    ``sample: (slot,)`` is one of the training rows in the slot.
    """

    segment: Ints
    code: Ints
    rows: Ints
    sums: list[Ints]
    sample: Ints

    def take(self, index: NDArray[np.int64] | NDArray[np.bool_]) -> Slots:
        """Some of the slots."""
        sums = [s[:, index] for s in self.sums]
        return Slots(self.segment[index], self.code[index], self.rows[index], sums, self.sample[index])

    def starts(self) -> Ints:
        """(run,) the first slot of each run of equal segments."""
        return np.flatnonzero(np.diff(self.segment, prepend=-1)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Candidates:
    """Candidates of one form; branches of one candidate stand side by side, empty ones have no rows.

    ``segment``, ``position`` (order within the feature), ``missing_to`` (the branch of missing values): (candidate,);
    ``rows: (branch, candidate)``; ``branches: (channel, branch, candidate)``. ``lower``, ``upper``: training rows whose
    values stand beside a threshold (a multiway split keeps the first of its slots in ``lower``). ``subsets`` says which
    of the known ``slots`` go left. ``gone: (channel, candidate)``, ``gone_rows: (candidate,)``: what of the node lacks
    a value and is in no branch, where known values alone are scored; None if that is nothing.
    """

    form: Form
    segment: Ints
    position: Ints
    missing_to: Ints
    rows: Ints
    branches: Floats
    lower: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    upper: Ints = field(default_factory=lambda: np.empty(0, np.int64))
    subsets: Subsets | None = None
    slots: Slots | None = None
    gone: Floats | None = None
    gone_rows: Ints | None = None

    def take_gone(self, place: Ints) -> Floats | None:
        """(channel, candidate) what is in no branch of some candidates."""
        return None if self.gone is None else np.take(self.gone, place, axis=1)


@dataclass(frozen=True, slots=True)
class Subsets:
    """Which categories go left, without a table of candidates by categories.

    ``rank: (slot,)``, ``order: (ordering, slot)``: the slot's place in its segment by code, and by each ordering.
    ``method``, ``part``: (candidate,); the left branch is, by `method`, the slots whose bit of ``part`` is set
    (BITS, by rank), the one of that rank (ONE), or those of that order or lower (ORDER and above: each ordering).
    """

    rank: Ints
    order: Ints
    method: Ints
    part: Ints


BITS, ONE, ORDER = 0, 1, 2


@dataclass(frozen=True, slots=True)
class Block:
    """What segments are: ``node``, ``feature``, and where slots are counted ``levels`` of the feature: (segment,)."""

    node: Ints
    feature: Ints
    levels: Ints = field(default_factory=lambda: np.empty(0, np.int64))


def count_slots(tally: Tally, segment: Ints, code: Ints, segments: int, width: int) -> Slots:
    """Sums of each occupied (segment, code); both are (..., entry), every code is below ``width``."""
    key = segment * width + code
    bound = segments * width
    row = np.broadcast_to(tally.row, key.shape).ravel()
    flat = key.ravel()
    if bound <= 4 * key.size + 1024:
        rows = tally.count_rows(sums := tally.sum(key, bound), key, bound)
        sample: Ints = np.zeros(bound, np.int64)
        sample[flat] = row
        index = np.flatnonzero(rows)
        return Slots(index // width, index % width, rows[index], [s[:, index] for s in sums], sample[index])
    order = argsort_keys(flat, bound)
    ordered = flat[order]
    first = np.flatnonzero(np.diff(ordered, prepend=-1))
    group: Ints = np.empty(flat.size, np.int64)
    group[order] = np.repeat(np.arange(len(first)), np.diff(first, append=flat.size))
    group = group.reshape(key.shape)
    sums = tally.sum(group, len(first))
    rows = tally.count_rows(sums, group, len(first))
    return Slots(ordered[first] // width, ordered[first] % width, rows, sums, row[order[first]])


def split_missing(slots: Slots, block: Block) -> tuple[Slots, Slots]:
    """The known slots, and the missing ones (at most one per segment)."""
    missing = slots.code == block.levels[slots.segment]
    if not missing.any():
        return slots, slots.take(np.empty(0, np.int64))
    return slots.take(~missing), slots.take(missing)


def accumulate(slots: Slots) -> Slots:
    """Each slot's sums with those of the slots before it in its segment."""
    start = slots.starts()
    lengths = np.diff(start, append=len(slots.segment))

    def run(values: Ints) -> Ints:
        total = np.cumsum(values, axis=-1)
        return total - np.repeat(total[..., start] - values[..., start], lengths, axis=-1)

    return Slots(slots.segment, slots.code, run(slots.rows), [run(s) for s in slots.sums], slots.sample)


class Lack(Enum):
    """What becomes of a segment's missing values when its candidates are weighed."""

    DIRECTED = "with either branch in turn, or with the heaviest of many"
    BRANCH = "a branch of their own"
    APART = "in no branch: known values alone are scored"


@dataclass(frozen=True, slots=True)
class Totals:
    """Per segment of a block: sums of known slots and of the missing slot; zeros where there is none."""

    known: list[Ints]
    known_rows: Ints
    missing: list[Ints]
    missing_rows: Ints
    lack: Lack = Lack.DIRECTED

    def set_apart(self, candidates: Candidates, tally: Tally, block: Block) -> Candidates:
        """The candidates with what is in none of their branches, if missing values are set apart."""
        gone_rows = self.missing_rows[candidates.segment]
        if self.lack is not Lack.APART or not gone_rows.any():
            return candidates
        gone = tally.combine([s[:, candidates.segment] for s in self.missing], block.node[candidates.segment])
        return replace(candidates, gone=gone, gone_rows=gone_rows)


def total_segments(known: Slots, missing: Slots, segments: int, lack: Lack) -> Totals:
    """Spread the sums of known and missing slots over ``segments``."""
    start = known.starts()
    present = known.segment[start]

    def spread(values: Ints, at: Ints) -> Ints:
        out = np.zeros((*values.shape[:-1], segments), np.int64)
        out[..., at] = values
        return out

    return Totals(
        [spread(np.add.reduceat(s, start, axis=1) if len(start) else s, present) for s in known.sums],
        spread(np.add.reduceat(known.rows, start) if len(start) else known.rows, present),
        [spread(s, missing.segment) for s in missing.sums],
        spread(missing.rows, missing.segment),
        lack,
    )


def build_binary(
    form: Form,
    left: Slots,
    position: Ints,
    totals: Totals,
    tally: Tally,
    block: Block,
) -> tuple[Candidates, Ints]:
    """Candidates whose left branch holds the known sums of ``left`` (one slot a candidate).

    Where values are missing in the segment each becomes two, missing left then missing right; one of three branches;
    or one whose branches have known values only: see `Lack`. Returns them and (candidate,) the index into ``left`` of
    each.
    """
    own_branch = totals.lack is Lack.BRANCH
    has_missing = (totals.missing_rows[left.segment] > 0) & (totals.lack is not Lack.APART)
    index = np.arange(len(left.segment))
    if not own_branch:
        index = np.repeat(index, 1 + has_missing)
    segment, doubled = left.segment[index], has_missing[index]
    second = np.diff(index, prepend=-1) == 0
    to_left, to_right = doubled & ~second & (not own_branch), doubled & second
    node = block.node[segment]
    three = own_branch and bool(has_missing.any())

    def fill(known: Ints, gone: Ints, mine: Ints) -> list[Ints]:
        away = gone[..., segment]
        first = mine[..., index] + away * to_left
        rest = known[..., segment] - mine[..., index] + away * to_right
        return [first, rest, away] if three else [first, rest]

    columns = [fill(k, m, s) for k, m, s in zip(totals.known, totals.missing, left.sums, strict=True)]
    branches = [tally.combine([column[b] for column in columns], node) for b in range(2 + three)]
    missing_to = np.where(to_left, 0, np.where(to_right, 1, np.where(doubled, 2, NO_ROUTE)))
    candidates = Candidates(
        form,
        segment,
        2 * position[index] + second,
        missing_to,
        np.stack(fill(totals.known_rows, totals.missing_rows, left.rows)),
        np.stack(branches, axis=1),
    )
    return totals.set_apart(candidates, tally, block), index


def weigh_cuts(known: Slots, totals: Totals, tally: Tally, block: Block) -> Candidates:
    """A cut after every known slot but the last of its segment."""
    cut = np.flatnonzero(known.segment[1:] == known.segment[:-1])
    left = accumulate(known).take(cut)
    candidates, index = build_binary(Form.THRESHOLD, left, cut, totals, tally, block)
    lower = known.sample[cut][index]
    upper = known.sample[cut + 1][index] if len(cut) else lower
    return replace(candidates, lower=lower, upper=upper)


def weigh_missing(totals: Totals, tally: Tally, block: Block) -> Candidates:
    """Missing against present, wherever a segment has both."""
    segment = np.flatnonzero((totals.missing_rows > 0) & (totals.known_rows > 0)).astype(np.int64)
    node = block.node[segment]
    both = [tally.combine([s[:, segment] for s in sums], node) for sums in (totals.missing, totals.known)]
    return Candidates(
        Form.MISSING,
        segment,
        np.full(len(segment), MISSING_POSITION),
        np.zeros(len(segment), np.int64),
        np.stack([totals.missing_rows[segment], totals.known_rows[segment]]),
        np.stack(both, axis=1),
    )


def weigh_constants(known: Slots, totals: Totals, tally: Tally, block: Block) -> Candidates:
    """A segment whose rows all have one value, or none: the second branch is empty; listed and never taken.

    Where missing values are set apart they do not count as a value.
    """
    occupied = np.bincount(known.segment, minlength=len(block.node))
    lacking = totals.missing_rows > 0
    constant = (occupied < 2) & ((occupied == 1) | lacking) if totals.lack is Lack.APART else occupied + lacking == 1
    segment = np.flatnonzero(constant).astype(np.int64)
    sums = [k[:, segment] + m[:, segment] for k, m in zip(totals.known, totals.missing, strict=True)]
    return Candidates(
        Form.CONSTANT,
        segment,
        np.zeros(len(segment), np.int64),
        np.full(len(segment), NO_ROUTE),
        np.stack([rows := (totals.known_rows + totals.missing_rows)[segment], np.zeros_like(rows)]),
        np.stack([stats := tally.combine(sums, block.node[segment]), np.zeros_like(stats)], axis=1),
    )
