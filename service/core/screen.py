"""The cuts that can win among rows in value order: one number for every cut, candidates of the few that come near.

Where every row weighs 1, a cut that leaves n of a node's N rows on the left gains

    sum over k of d_k^2 / (n (N - n))        d_k: rows of class k on the left, less n times the class's share

of Gini impurity; and of variance with a single d, the left branch's sum less n times the node's mean. At a place of a
line n is what it is in every other line, and d is a running sum less what the place alone tells. So a cut is scored in
a few operations on whole lines. The number is rounded: what is within the tie tolerance, and what rounding can do, of
the best of its node becomes a candidate with exact sums, and goes the way of all candidates.

Rows that lack a value stand last in their node. With m of them on the left n is n + m, and d is d less what it is after
the last value. A cut after the last value splits missing from present.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.candidates import Block, Candidates, Form
from service.core.criteria import TOLERANCE, Floats
from service.core.cuts import Cuts, build_cuts
from service.core.deviations import TINY
from service.core.learner import Learner
from service.core.parallel import list_runs, run_parallel
from service.core.quantities import Selection
from service.core.scan import PORTION, WORTH_CELLS, Ordered, count_missing
from service.core.sides import Sides, list_sides, sum_right
from service.core.statistics import Ints

SCREENED = frozenset({"gini", "variance"})
"""The criteria whose gain has this form."""
OFFSET_BITS = 40
"""Targets are rounded to so many bits."""
MOST_ENTRIES = 2**22
"""So many of them add up within 63 bits."""
NOTHING = np.zeros(())
"""A total before anything is added."""


def can_screen(learner: Learner, batch: Batch) -> bool:
    """True where `tells_score`, and sums of all rounded targets fit 63 bits."""
    return tells_score(learner, batch) and len(batch.entries.row) <= MOST_ENTRIES


def tells_score(learner: Learner, batch: Batch) -> bool:
    """True where the number is the criterion's, and a better cut is never forbidden where a worse one is allowed."""
    return (
        batch.tally.counts_rows
        and learner.objective.criterion.statistic != "vectors"
        and learner.objective.criterion.name in SCREENED
        and learner.objective.alteration is None
        and learner.parameters.min_weight_leaf == 0
        and not learner.parameters.has_cut_rules
        and learner.directions is None
    )


def screens_all(learner: Learner, batch: Batch) -> bool:
    """True where every feature is screened."""
    ordered = batch.ordered
    return ordered is not None and len(ordered.feature) == len(learner.features) and can_screen(learner, batch)


def weigh_near(learner: Learner, batch: Batch, features: Ints) -> tuple[Block, list[Candidates]]:
    """What `find_near` finds among ``features``, which have lines in ``batch.ordered``, as candidates."""
    nodes, ordered = batch.entries.nodes, batch.pick_lines(features)
    block = Block(np.tile(np.arange(nodes), len(features)), np.repeat(ordered.feature, nodes))
    near = find_near(learner, batch, ordered, learner.objective.tolerance(batch.stats))
    tables = []
    for form, of_form in ((Form.THRESHOLD, ~near.alone), (Form.MISSING, near.alone)):
        sides = near.take(np.flatnonzero(of_form))
        table = build_cuts(batch.nodes(), _make_cuts(batch, ordered, sides))
        tables.append(replace(table, form=form, missing_to=sides.missing_to))
    return block, [table for table in tables if len(table.segment)]


def _make_cuts(batch: Batch, ordered: Ordered, sides: Sides) -> Cuts:
    """The ``sides`` with exact sums; segments are line * nodes + node."""
    row, place, node = ordered.row.ravel(), sides.place, sides.node
    lower, upper = row[place].astype(np.int64), row[place + 1].astype(np.int64)
    right = sum_right(batch, ordered, sides)
    left = [whole[:, node] - part for whole, part in zip(batch.sums, right, strict=False)]
    segment = sides.line * batch.entries.nodes + node
    return Cuts(segment, node, place, left, batch.rows[node] - sides.right, lower, upper)


def find_near(learner: Learner, batch: Batch, ordered: Ordered, tolerance: Floats) -> Sides:
    """The cuts within ``tolerance: (node,)`` of the best of their node, and more."""
    entries, start, lacking = len(batch.entries.row), batch.starts(), None
    if any(learner.features[f].has_missing for f in ordered.feature.tolist()):
        lacking = count_missing(ordered.code, start)
    left = np.arange(1, entries + 1) - start.repeat(batch.rows)
    place = _find_places(learner, batch, ordered, tolerance, start, left, lacking)
    return list_sides(batch, ordered, place, left, lacking, max(learner.parameters.min_samples_leaf, 1))


def _find_places(
    learner: Learner, batch: Batch, ordered: Ordered, tolerance: Floats, start: Ints, left: Ints, lacking: Ints | None
) -> Ints:
    """(cut,) flat places in (line, entry) after which the cuts lie, those of a node in their order.

    Nodes begin at ``start: (node,)``, and ``left: (entry,)`` of their rows are left of each place. ``lacking: (line,
    node)`` rows lack a value.
    """
    right = batch.rows.repeat(batch.rows) - left
    allowed = np.minimum(left, right) >= max(learner.parameters.min_samples_leaf, 1)
    factor = allowed * _find_scale(batch) / np.maximum(left * right, 1)
    unit = None if batch.tally.classes else _find_units(batch)
    planes, margin = _list_planes(batch, left), find_margin(tolerance, len(left), unit)

    def find(run: tuple[int, int]) -> Ints:
        nodes = slice(*run)
        first, rows = start[nodes], batch.rows[nodes]
        inside = slice(int(first[0]), int(first[-1] + rows[-1]))
        gaps = None if lacking is None else _find_gaps(batch, start, lacking, nodes)
        scores, joined = _sum_deviations(planes, run[0], inside, ordered.row[:, inside], gaps)
        scores *= factor[inside]
        if gaps is not None:
            ahead = gaps.rows.take(gaps.node, axis=1)
            joined *= factor[inside].take(ahead + np.arange(len(gaps.node)), mode="clip")
            scores[gaps.lines] = np.maximum(scores[gaps.lines], joined)
            scores[:, gaps.end] = 0.0
        code = ordered.code[:, inside].ravel()
        scores.ravel()[np.flatnonzero(code[1:] == code[:-1])] = 0.0
        best = np.maximum.reduceat(scores.max(0), first - first[0])
        floor = np.maximum(best - margin[nodes], TINY).repeat(rows)
        line, place = np.divmod(np.flatnonzero(scores >= floor), scores.shape[1])
        return np.asarray(line * len(left) + place + inside.start)

    # nodes whose lines the processor's cache holds
    runs = list_runs(batch.rows * len(ordered.row), PORTION)
    return np.concatenate(run_parallel(find, runs, worth=ordered.row.size > WORTH_CELLS))


@dataclass(frozen=True, slots=True)
class Gaps:
    """The ``lines`` where nodes lack values: ``rows: (line, node)`` do.

    ``end: (node,)`` is each node's last place, after which no cut is, and ``node: (entry,)`` that of each place.
    """

    lines: Selection
    rows: Ints
    end: Ints
    node: Ints

    def join(self, deviation: Floats) -> Floats:
        """What d is when the rows that lack a value are on the left; both are (d, line, entry)."""
        mine = deviation[:, self.lines]
        shift = mine[:, np.arange(len(self.rows))[:, None], self.end - self.rows]  # after the last value
        return np.asarray(mine - shift.take(self.node, axis=2))


def _find_gaps(batch: Batch, start: Ints, lacking: Ints, nodes: slice) -> Gaps | None:
    """Those of some nodes, the places counted from the first of these; None without any."""
    some = lacking[:, nodes].any(1)
    if not some.any():
        return None
    rows = batch.rows[nodes]
    lines = slice(None) if some.all() else np.flatnonzero(some)
    end = start[nodes] + rows - 1 - start[nodes.start]
    return Gaps(lines, lacking[lines, nodes], end, np.arange(len(rows)).repeat(rows))


@dataclass(frozen=True, slots=True)
class Planes:
    """Some d: ``amount: (row,)`` whole numbers, of which ``expected: (d, entry)`` are expected left of a place.

    ``before: (d, node)`` is what the nodes before one have. With ``label: (d,)`` the amounts of a d are 1 for the rows
    of a label, and 0 for others.
    """

    amount: NDArray[Any]
    before: Ints
    expected: Floats
    label: Ints | None = None


def _sum_deviations(
    planes: Planes, first: int, inside: slice, row: NDArray[np.int32], gaps: Gaps | None
) -> tuple[Floats, Floats]:
    """(line, entry) the sum of d^2 after each entry of ``row``: the places ``inside`` of lines, from node ``first``.

    Also, in the lines of ``gaps``, with the rows that lack a value on the left.
    """
    amount = planes.amount.take(row)
    total = joined = NOTHING
    # as many at once as fit the cache
    step = max(1, PORTION // row.size)
    for begin in range(0, len(planes.expected), step):
        some = slice(begin, begin + step)
        own = amount[None]
        if planes.label is not None:
            own = (own == planes.label[some, None, None]).astype(np.int32)
        # along all lines at once, which lets go of the interpreter; whole numbers may wrap
        running = own.ravel().cumsum(dtype=own.dtype).reshape(own.shape)
        running -= (running[:, :, :1] - own[:, :, :1] - planes.before[some, first, None, None]).astype(own.dtype)
        deviation: Floats = running - planes.expected[some, None, inside]
        if gaps is not None:
            joined = _add_squares(joined, gaps.join(deviation))
        total = _add_squares(total, deviation)
    return total, joined


def _add_squares(total: Floats, deviation: Floats) -> Floats:
    """The squares of ``deviation: (d, line, entry)`` on top of the ``total``, if there is one; in place."""
    deviation *= deviation
    part: Floats = deviation[0] if len(deviation) == 1 else deviation.sum(0)
    return np.add(total, part, out=total) if total is not NOTHING else part


def _list_planes(batch: Batch, left: Ints) -> Planes:
    """Every d of the nodes, where ``left: (entry,)`` rows are left after each place."""

    def expect(amount: NDArray[Any], whole: Ints, label: Ints | None = None) -> Planes:
        """With ``whole: (d, node)``, the nodes' sums."""
        before = whole.cumsum(axis=1) - whole
        share = (whole / batch.rows).repeat(batch.rows, axis=1)
        return Planes(amount, before, before.repeat(batch.rows, axis=1) + share * left, label)

    label = batch.tally.label
    if label is None:
        offset = _round_offsets(batch)
        by_row = np.empty(batch.tally.all_rows, np.int64)
        by_row[batch.entries.row] = offset
        return expect(by_row, np.add.reduceat(offset, batch.starts())[None])
    if batch.tally.classes == 2:
        # what one class has too much the other has too little
        return expect(label, batch.sums[0][1:])
    return expect(label, batch.sums[0], np.arange(batch.tally.classes))


def _find_scale(batch: Batch) -> Floats | float:
    """(entry,) the gain by sum of d^2 / (n (N - n)); one number where it is the same for all."""
    if batch.tally.classes:
        return 2.0 if batch.tally.classes == 2 else 1.0
    return np.square(_find_units(batch)).repeat(batch.rows)


def _round_offsets(batch: Batch) -> Ints:
    """(entry,) how far each target lies from its node's centre, in whole units."""
    node, quantity = batch.entries.node, batch.tally.quantities[1]
    offset = sum(part * unit[node] for part, unit in zip(quantity.parts, quantity.units, strict=True))
    return np.asarray(np.rint(offset / _find_units(batch)[node]), np.int64)


def _find_units(batch: Batch) -> Floats:
    """(node,) powers of two, of which the largest offset has at most 2^OFFSET_BITS."""
    low, high = batch.tally.reach
    exponent = np.frexp(np.maximum(-low, high))[1]
    return np.asarray(np.ldexp(1.0, np.maximum(exponent, -900) - OFFSET_BITS))


def find_margin(tolerance: Floats, size: Ints | int, unit: Floats | None) -> Floats:
    """(node,) how far below the best computed gain the true winner, or a tie with it, can have been computed.

    ``tolerance: (node,)`` is that of scores, `TOLERANCE` times the impurity. An error e of d is one of at most
    2 e sqrt(gain / (n (N - n))) + e^2 / (n (N - n)) in the gain, which is at most the impurity. The one error is
    rounding of sums of ``size`` targets, each at most sqrt(N impurity), which for classes is at least 1. The other is
    that of targets known to half a ``unit: (node,)`` only (None: exactly), n (N - n) / N units at most.
    """
    impurity = tolerance / TOLERANCE
    margin = np.asarray(tolerance + impurity * size * 2.0**-48)
    return margin if unit is None else margin + (np.sqrt(impurity) + unit) * unit
