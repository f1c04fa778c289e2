"""Error-based pruning (Quinlan 1993, chapter 4), as C4.5 release 8 and Weka's J48 do it.

From below, each split is compared, by the errors that its leaves would make at an upper confidence limit, with a leaf
in its place (subtree replacement) and with its heaviest branch in its place, down which the rows of the others then go
(subtree raising). Where a branch was raised its subtree is pruned again. Nodes of one depth are looked at together, the
deepest first, so a node finds what is below it finished; a node above a raised branch waits until that is so again.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import Floats
from service.core.parameters import Parameters
from service.core.prune_draft import Draft
from service.core.prune_limits import estimate_errors
from service.core.prune_route import Flow
from service.core.statistics import Ints
from service.core.tree import LeafReason

SLACK = 0.1
"""Something else may take the place of a subtree that has up to so many errors less."""
SMALL = 1e-6
"""Numbers closer than this are equal, as in Weka."""
COLLAPSE_SLACK = 1e-3
"""A subtree that saves fewer training errors than this collapses."""


def find_collapsed(draft: Draft, shown: Floats | None) -> Ints:
    """The topmost splits below which the training rows meet as many errors as at the node itself (C4.5, J48)."""
    errors = _count_errors(_show(draft.counts, shown))[1]
    leaf = np.where(draft.inner, 0.0, errors)
    total = np.append(0.0, np.cumsum(leaf[draft.preorder]))
    below = total[draft.end] - total[draft.begin]
    idle = draft.inner & (below >= errors - COLLAPSE_SLACK)
    at = np.flatnonzero(idle)
    topmost: Ints = at[_are_topmost(draft, at)]
    return topmost


def _are_topmost(draft: Draft, nodes: Ints) -> NDArray[np.bool_]:
    """(node,) True for those that none of the others is above."""
    order = np.argsort(draft.begin[nodes])
    reach = np.maximum.accumulate(draft.end[nodes][order])
    top = np.ones(len(nodes), bool)
    top[order[1:]] = draft.begin[nodes][order[1:]] >= reach[:-1]
    return top


def _show(counts: Floats, shown: Floats | None) -> Floats:
    return counts if shown is None else counts * shown[:, None]


def _count_errors(counts: Floats) -> tuple[Floats, Floats]:
    """(node,) the weight, and what of it is not in the largest class."""
    weight = counts.sum(0)
    return weight, weight - counts.max(0)


class ErrorPruner:
    """Prunes a draft; ``estimated: (node,)`` are the errors of what is at and below each node that is finished."""

    def __init__(self, draft: Draft, parameters: Parameters, shown: Floats | None) -> None:
        self.draft, self.parameters, self.shown = draft, parameters, shown
        self.as_leaf = self._estimate(draft.counts)
        self.estimated = self.as_leaf.copy()

    def _estimate(self, counts: Floats) -> Floats:
        weight, errors = _count_errors(_show(counts, self.shown))
        return estimate_errors(weight, errors, self.parameters.confidence, self.parameters.confidence_limit)

    def run(self) -> None:
        """Look at every split, the deepest first, until none waits."""
        draft = self.draft
        waiting = draft.inner & draft.alive
        while waiting.any():
            at = np.flatnonzero(waiting)
            depth = draft.tree.depth[at]
            at = at[depth == depth.max()]
            waiting[at] = False
            raised = self._decide(at)
            if len(raised):
                below = draft.find_above(raised, np.arange(len(waiting))) >= 0
                waiting |= below & draft.inner & draft.alive

    def _decide(self, at: Ints) -> Ints:
        """Replace or raise where that is no worse; returns the nodes whose branch was raised."""
        draft = self.draft
        children, start = draft.list_children(at)
        self.estimated[at] = np.add.reduceat(self.estimated[children], start)
        largest = children[self._find_largest(children, start)]
        flow, branch = self._try_raising(at, largest)
        leaf, tree = self.as_leaf[at], self.estimated[at]
        replaced = (leaf < tree + SLACK + SMALL) & (leaf < branch + SLACK + SMALL)
        raised = ~replaced & (branch < tree + SLACK + SMALL)
        if replaced.any():
            draft.cut(at[replaced], LeafReason.ERROR_BASED)
            self.estimated[at[replaced]] = leaf[replaced]
        if raised.any():
            self._raise(at, largest, raised, flow)
        return at[raised]

    def _find_largest(self, children: Ints, start: Ints) -> Ints:
        """(node,) the place in ``children`` of the heaviest child of each; of equal ones J48 takes the last."""
        weight = _show(self.draft.counts, self.shown)[:, children].sum(0)
        count = np.diff(start, append=len(children))
        near = weight >= np.repeat(np.maximum.reduceat(weight, start), count) - SMALL
        place = np.arange(len(children))
        if self.parameters.confidence_limit == "weka":
            return np.maximum.reduceat(np.where(near, place, -1), start)
        return np.minimum.reduceat(np.where(near, place, len(children)), start)

    def _try_raising(self, at: Ints, largest: Ints) -> tuple[Flow | None, Floats]:
        """All entries if every largest branch was raised, and (node,) the errors estimated below each then."""
        draft = self.draft
        branch = np.full(len(at), np.inf)
        if not self.parameters.subtree_raising:
            return None, branch
        # a leaf in the place of its parent has all that the parent has
        ended = ~draft.inner[largest]
        branch[ended] = self.as_leaf[at[ended]]
        open_ = np.flatnonzero(~ended)
        if not len(open_):
            return draft.flow, branch
        flow = draft.flow
        above = draft.find_above(at[open_], flow.at)
        inside = above >= 0
        if not draft.router.parts_rows:
            # what is in the branch already stays where it is
            inside &= draft.find_above(largest[open_], flow.at) < 0
        moved = _merge(flow.take(inside).move(largest[open_][above[inside]]), draft.router.parts_rows)
        joined = flow.take(~inside).join(draft.send(moved))
        leaves = np.flatnonzero(draft.alive & ~draft.inner)
        of_branch = draft.find_above(largest[open_], leaves)
        leaves, of_branch = leaves[of_branch >= 0], of_branch[of_branch >= 0]
        place = np.full(len(draft.alive), -1)
        place[leaves] = np.arange(len(leaves))
        held = joined.move(place[joined.at])
        counts = draft.sum_classes(held.take(held.at >= 0), len(leaves))
        branch[open_] = np.bincount(of_branch, self._estimate(counts), len(open_))
        return joined, branch

    def _raise(self, at: Ints, largest: Ints, raised: NDArray[np.bool_], flow: Flow | None) -> None:
        draft = self.draft
        if flow is None:
            return
        # others of this level did not raise theirs: their entries stay where they are
        moved = draft.find_above(at[raised], flow.at) >= 0
        stays = draft.find_above(at[raised], draft.flow.at) < 0
        draft.raise_branches(at[raised], largest[raised], draft.flow.take(stays).join(flow.take(moved)))
        self.as_leaf = self._estimate(draft.counts)
        self.estimated = np.where(draft.inner, self.estimated, self.as_leaf)


def _merge(flow: Flow, parted: bool) -> Flow:
    """Entries of one row at one node made one again; nothing to do where rows are not parted."""
    if not parted or flow.weight is None or not len(flow.row):
        return flow
    order = np.lexsort((flow.row, flow.at))
    row, at = flow.row[order], flow.at[order]
    first = np.flatnonzero((np.diff(row, prepend=-1) != 0) | (np.diff(at, prepend=-1) != 0))
    return Flow(row[first], np.add.reduceat(flow.weight[order], first), at[first])
