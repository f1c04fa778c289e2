"""Cuts of ordered features, however they were found, made into candidates."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.core.candidates import MISSING_POSITION, NO_ROUTE, Candidates, Form
from service.core.criteria import Floats
from service.core.statistics import Ints, Tally


@dataclass(frozen=True, slots=True)
class Cuts:
    """Cuts in (segment, value) order; everything is (cut,), but ``left``: whole-number sums (class or 1, cut).

    ``node`` and ``place`` (order within the feature, below 2^61); ``rows`` on the left; ``lower``, ``upper``: training
    rows whose values stand beside the cut.
    """

    segment: Ints
    node: Ints
    place: Ints
    left: list[Ints]
    rows: Ints
    lower: Ints
    upper: Ints

    def take(self, index: Ints) -> Cuts:
        """Some of the cuts, perhaps repeatedly."""
        return Cuts(
            self.segment[index],
            self.node[index],
            self.place[index],
            [np.take(part, index, axis=1) for part in self.left],
            self.rows[index],
            self.lower[index],
            self.upper[index],
        )


def join_cuts(parts: Sequence[Cuts]) -> Cuts:
    """Cuts one after the other."""
    if len(parts) == 1:
        return parts[0]
    return Cuts(
        np.concatenate([part.segment for part in parts]),
        np.concatenate([part.node for part in parts]),
        np.concatenate([part.place for part in parts]),
        [np.concatenate(sums, axis=1) for sums in zip(*(part.left for part in parts), strict=True)],
        np.concatenate([part.rows for part in parts]),
        np.concatenate([part.lower for part in parts]),
        np.concatenate([part.upper for part in parts]),
    )


@dataclass(frozen=True, slots=True)
class Nodes:
    """Sums (class or 1, node) and rows (node,) of the nodes that segments are in; a feature has one in each node."""

    tally: Tally
    sums: list[Ints]
    rows: Ints


@dataclass(frozen=True, slots=True)
class Lacking:
    """What has no value: sums (class or 1, segment) and ``rows: (segment,)``."""

    sums: list[Ints]
    rows: Ints


def build_cuts(nodes: Nodes, cuts: Cuts) -> Candidates:
    """Candidates of cuts where nothing is missing: the right branch is the rest of the node."""
    branches = part_nodes(nodes, cuts.node, cuts.left)
    rows = np.stack([cuts.rows, nodes.rows[cuts.node] - cuts.rows])
    nowhere = np.full(len(cuts.node), NO_ROUTE)
    return Candidates(
        Form.THRESHOLD, cuts.segment, 2 * cuts.place, nowhere, rows, branches, lower=cuts.lower, upper=cuts.upper
    )


def part_nodes(nodes: Nodes, node: Ints, sums: Iterable[Ints]) -> Floats:
    """(channel, 2, cut) statistics of the branches with the ``sums: (class or 1, cut)``, and of the others."""
    if nodes.tally.counts_rows and nodes.tally.classes:
        branches = np.empty((nodes.tally.classes, 2, len(node)))
        (branches[:, 0],) = sums
        # whole counts are exact in float64, and so is their difference
        np.subtract(np.take(nodes.sums[0].astype(np.float64), node, axis=1), branches[:, 0], out=branches[:, 1])
        return branches
    sums, combine = list(sums), nodes.tally.combine_scored
    # sums that scores do not need come last in a node and are left out
    others = [np.take(total, node, axis=1) - part for total, part in zip(nodes.sums, sums, strict=False)]
    return np.stack([combine(sums, node), combine(others, node)], axis=1)


def build_directed(nodes: Nodes, cuts: Cuts, lacking: Lacking) -> Candidates:
    """Where rows lack a value each cut is two candidates: with these on the left, then on the right."""
    index = np.repeat(np.arange(len(cuts.node)), 1 + (lacking.rows[cuts.segment] > 0))
    second = np.diff(index, prepend=-1) == 0
    cuts = cuts.take(index)
    gone = lacking.rows[cuts.segment]
    joins = (gone > 0) & ~second
    left = [part + away[:, cuts.segment] * joins for part, away in zip(cuts.left, lacking.sums, strict=True)]
    plain = build_cuts(nodes, replace(cuts, left=left, rows=cuts.rows + gone * joins))
    missing_to = np.where(gone > 0, second.astype(np.int64), NO_ROUTE)
    return replace(plain, position=2 * cuts.place + second, missing_to=missing_to)


def build_missing(nodes: Nodes, node: Ints, lacking: Lacking) -> Candidates:
    """Missing against present, wherever a segment, in ``node: (segment,)``, has both."""
    segment = np.flatnonzero((lacking.rows > 0) & (lacking.rows < nodes.rows[node])).astype(np.int64)
    inside = node[segment]
    first = [away[:, segment] for away in lacking.sums]
    rest = [total[:, inside] - part for total, part in zip(nodes.sums, first, strict=False)]
    combine = nodes.tally.combine_scored
    branches = np.stack([combine(first, inside), combine(rest, inside)], axis=1)
    rows = np.stack([lacking.rows[segment], nodes.rows[inside] - lacking.rows[segment]])
    zeros = np.zeros(len(segment), np.int64)
    return Candidates(Form.MISSING, segment, zeros + MISSING_POSITION, zeros, rows, branches)
