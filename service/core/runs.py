"""Branches as runs: entries in such an order that every branch of every candidate of a block is a few runs of them.

For what is no sum over slots, a median or the dissimilarity of pairs, a branch has to be asked for as a whole:

    slots     c0 | c1 | c2 | c3 | missing         of one segment, in the order of its cuts
    cut       ------->|<-------                   one run to the left, one to the right, and one of what is missing
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import BITS, ONE, Block, Candidates, Form, Lack, Slots, Subsets
from service.core.sorting import argsort_keys
from service.core.statistics import Ints

Runs = tuple[Ints, Ints]
"""Where runs begin and end: both (run, ...); the union of all runs is meant, and equal ends are no run."""


@dataclass(frozen=True, slots=True)
class Layout:
    """Entries of a block by segment and slot.

    ``entry: (place,)`` of the batch; ``begin``, ``end``: (slot,) the run of each known slot; ``start: (segment,)`` the
    first known slot of each segment, ``known``, ``missing``: (2, segment) the runs of what has a value and of what has
    none. ``lack``: see `candidates.Lack`.
    """

    entry: Ints
    begin: Ints
    end: Ints
    start: Ints
    known: Ints
    missing: Ints
    lack: Lack

    def list_spans(self) -> tuple[Ints, Ints]:
        """Where each segment begins and ends: (segment,) both."""
        first = np.where(self.known[1] > 0, self.known[0], self.missing[0])
        return first, np.maximum(self.known[1], self.missing[1])

    def narrow(self, segments: Ints) -> Layout:
        """The same with the entries of some segments only; of the others nothing may be asked any more."""
        first, last = self.list_spans()
        length = (last - first)[segments]
        shift = np.zeros(len(first), np.int64)
        shift[segments] = np.cumsum(length) - length - first[segments]
        of_slot = np.repeat(shift, np.diff(self.start, append=len(self.begin)))

        def move(run: Ints) -> Ints:
            return np.where(run[1] > run[0], run + shift, 0)

        entry = self.entry[_chain(first[segments], length)]
        return replace(
            self, entry=entry, begin=self.begin + of_slot, end=self.end + of_slot, known=move(self.known),
            missing=move(self.missing),
        )  # fmt: skip


class Weighed:
    """What a block of candidates was made from, kept to ask for their branches as runs.

    ``segment``, ``code``: (feature, entry); every code is below ``width``.
    """

    def __init__(
        self, segment: Ints, code: Ints, width: int, block: Block, slots: tuple[Slots, Slots], lack: Lack
    ) -> None:
        self._segment, self._code, self._width, self._block = segment, code, width, block
        known, missing = slots
        self._known, self._missing, self._lack = known, missing, lack
        self._layouts: dict[bool, Layout] = {}

    def lay_out(self, order: Ints | None) -> Layout:
        """The entries by segment and slot; ``order: (slot,)``, of the block's subsets, is what slots stand in."""
        by_code = order is None
        if by_code not in self._layouts:
            key = self._segment * self._width + self._code
            self._layouts[by_code] = lay_out_runs(key, self._block, self._known, self._missing, self._lack, order)
        return self._layouts[by_code]

    def lay_out_for(self, table: Candidates) -> Layout:
        """As `lay_out`, in the order that a table of the block needs."""
        subsets = table.subsets
        # numbers have one ordering, and none where each category is weighed against the rest
        return self.lay_out(None if subsets is None or not len(subsets.order) else subsets.order[0])

    def find_nodes(self, table: Candidates, place: Ints) -> Ints:
        """(candidate,) the node of each candidate of a table of the block."""
        return self._block.node[table.segment[place]]

    def count_bytes(self) -> int:
        """About how much memory it takes, laid out or not."""
        return 3 * self._segment.nbytes


def lay_out_runs(
    key: Ints, block: Block, known: Slots, missing: Slots, lack: Lack, order: Ints | None = None
) -> Layout:
    """``key: (feature, entry)`` is segment * width + code: slots stand in its order.

    ``order: (slot,)`` is the place of each known slot in its segment, if that is not by code.
    """
    segments, flat = len(block.node), key.ravel()
    entry = argsort_keys(flat, int(flat.max(initial=0)) + 1) % max(key.shape[-1], 1)
    segment = np.concatenate([known.segment, missing.segment])
    rows = np.concatenate([known.rows, missing.rows])
    within = np.concatenate([known.code, missing.code])
    by_code = np.lexsort((within, segment))
    begin = np.empty(len(rows), np.int64)
    begin[by_code] = np.cumsum(rows[by_code]) - rows[by_code]
    if order is not None:
        within = np.concatenate([order, np.full(len(missing.code), len(known.code) + 1)])
        again = np.lexsort((within, segment))
        entry = entry[_chain(begin[again], rows[again])]
        begin[again] = np.cumsum(rows[again]) - rows[again]
    end = begin + rows
    slots = len(known.segment)
    return Layout(
        entry,
        begin[:slots],
        end[:slots],
        np.searchsorted(known.segment, np.arange(segments)).astype(np.int64),
        _span(known.segment, begin[:slots], end[:slots], segments),
        _span(missing.segment, begin[slots:], end[slots:], segments),
        lack,
    )


def _chain(begin: Ints, length: Ints) -> Ints:
    """The places of runs, one run after the other."""
    first = np.cumsum(length) - length
    places: Ints = np.repeat(begin - first, length) + np.arange(int(length.sum()))
    return places


def _span(segment: Ints, begin: Ints, end: Ints, segments: int) -> Ints:
    """(2, segment) from the first begin to the last end of each segment's slots; 0, 0 without any."""
    out = np.zeros((2, segments), np.int64)
    if len(segment):
        low, high = np.full(segments, np.iinfo(np.int64).max), np.zeros(segments, np.int64)
        np.minimum.at(low, segment, begin)
        np.maximum.at(high, segment, end)
        out[0], out[1] = np.where(high > 0, low, 0), high
    return out


def list_runs(layout: Layout, table: Candidates, place: Ints) -> Runs:
    """The runs (run, branch, candidate) of every branch of the candidates at ``place`` of a table."""
    segment = table.segment[place]
    branches = len(table.rows)
    if table.form == Form.THRESHOLD:
        runs = _list_cuts(layout, segment, table.position[place] // 2, branches)
    elif table.form == Form.SUBSET and table.subsets is not None:
        runs = _list_subsets(layout, segment, table.subsets, place)
    elif table.form == Form.MULTIWAY:
        runs = _list_slots(layout, table.lower[place], table.rows[:, place] > 0)
    else:
        none = np.zeros((2, len(place)), np.int64)
        second = layout.known[:, segment] if table.form == Form.MISSING else none
        first = layout.missing[:, segment] if table.form == Form.MISSING else layout.known[:, segment]
        joined = none if table.form == Form.MISSING else layout.missing[:, segment]
        both = np.stack([np.stack([first, second], 1), np.stack([joined, none], 1)])  # (run, edge, branch, candidate)
        return both[:, 0], both[:, 1]
    return _join_missing(layout, segment, table.missing_to[place], runs)


def _list_cuts(layout: Layout, segment: Ints, slot: Ints, branches: int) -> Runs:
    """One run a branch: the cut lies after the known slot; a third branch is that of what is missing."""
    first, last = layout.known[:, segment]
    cut = layout.end[slot]
    begin, end = np.zeros((2, 1, branches, len(segment)), np.int64)
    begin[0, 0], end[0, 0], begin[0, 1], end[0, 1] = first, cut, cut, last
    return begin, end


def _list_subsets(layout: Layout, segment: Ints, subsets: Subsets, place: Ints) -> Runs:
    """Groups of categories by how they were picked: see `Subsets`."""
    method, part = subsets.method[place], subsets.part[place]
    start = layout.start[segment]
    count = np.append(layout.start[1:], len(layout.begin))[segment] - start
    first, last = layout.known[:, segment]
    widest = max(int(count[method == BITS].max(initial=0)), 2)
    begin, end = np.zeros((2, widest, 2, len(place)), np.int64)
    if len(subsets.order):
        # the cuts of the ordering: everything up to the slot with that place
        slot_at = np.empty(len(layout.begin), np.int64)
        slots = np.diff(layout.start, append=len(layout.begin))
        slot_at[np.repeat(layout.start, slots) + subsets.order[0]] = np.arange(len(layout.begin))
        cut = layout.end[slot_at[np.minimum(start + part, len(layout.begin) - 1)]]
        begin[0, 0], end[0, 0], begin[0, 1], end[0, 1] = first, cut, cut, last
    one = np.flatnonzero(method == ONE)
    slot = (start + part)[one]
    begin[0, 0, one], end[0, 0, one] = layout.begin[slot], layout.end[slot]
    begin[0, 1, one], end[0, 1, one] = first[one], layout.begin[slot]
    begin[1, 1, one], end[1, 1, one] = layout.end[slot], last[one]
    bits = np.flatnonzero(method == BITS)
    for rank in range(widest):
        mine = bits[rank < count[bits]]
        left = (part[mine] >> rank) & 1
        begin[rank][1 - left, mine], end[rank][1 - left, mine] = (
            layout.begin[start[mine] + rank], layout.end[start[mine] + rank],
        )  # fmt: skip
        begin[rank][left, mine], end[rank][left, mine] = 0, 0
        beyond = bits[rank >= count[bits]]
        begin[rank][:, beyond], end[rank][:, beyond] = 0, 0
    return begin, end


def _list_slots(layout: Layout, first: Ints, occupied: NDArray[np.bool_]) -> Runs:
    """Branch b is the b-th known slot from ``first: (candidate,)`` on; ``occupied: (branch, candidate)``."""
    slot = np.where(occupied, first + np.arange(len(occupied))[:, None], 0)
    return np.where(occupied, layout.begin[slot], 0)[None], np.where(occupied, layout.end[slot], 0)[None]


def _join_missing(layout: Layout, segment: Ints, missing_to: Ints, runs: Runs) -> Runs:
    """One more run for the branch that takes what is missing."""
    begin, end = runs
    taken = np.flatnonzero((missing_to >= 0) & (layout.missing[1, segment] > 0))
    if not len(taken) or layout.lack is Lack.APART:
        return runs
    more = np.zeros((2, 1, *begin.shape[1:]), np.int64)
    more[:, 0, missing_to[taken], taken] = layout.missing[:, segment[taken]]
    return np.concatenate([begin, more[0]]), np.concatenate([end, more[1]])
