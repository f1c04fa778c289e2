"""All candidates of one large node in order, a portion at a time: weighed once to rank them, once more to show them.

Between the two one number of each candidate is kept, nothing else; so the memory depends on the rows of the node.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, replace
from tempfile import TemporaryFile
from typing import BinaryIO

import numpy as np

from service.core.audit import Audited, Found, Unranked, find_chosen, judge_candidates, rebuild_batch, weigh_run
from service.core.batch import Batch
from service.core.c45 import find_many_valued, find_useful
from service.core.candidates import Form
from service.core.criteria import LOWER_IS_BETTER, TIE_BREAKS, TOLERANCE, Floats
from service.core.judge import Reason
from service.core.learner import Learner
from service.core.lines import add_neighbours, can_walk, draw_line
from service.core.listing import Listing
from service.core.ranks import Ranks
from service.core.rescore import Restated
from service.core.statistics import Ints
from service.core.surveyor import find_rival
from service.core.tree import LeafReason
from service.core.walk import Stretch, Walk, count_tried_cuts, walk_line


def sweep_node(
    audited: Audited, node: int, measure: str | None = None, scratch: Callable[[], BinaryIO] = TemporaryFile
) -> Iterator[Listing]:
    """The candidates of a node in (feature, candidate) order, ranked by the run's selection or by a ``measure``.

    ``scratch`` makes files that are gone when they are closed: one number of each candidate lies in one.
    """
    with scratch() as file, scratch() as other:
        ranks, ahead = _rank_node(audited, node, Ranks(file))
        taken = np.empty(0, np.int64) if audited.tree.is_leaf[node] else ahead[:1]
        if not audited.learner.ranks_by(measure):
            ranks, ahead = _rank_node(audited, node, Ranks(other), measure)
        ranks.settle(ahead)
        swept, begin = _open(audited, node), 0  # not before: there is room for one of the two
        for feature in range(len(audited.learner.features)):
            for found in swept.walk(feature):
                rank = ranks.read(len(found.within))
                chosen = np.isin(np.arange(begin, begin := begin + len(rank)), taken)
                if audited.tree.reason[node] == LeafReason.RAISED:
                    chosen = find_chosen(audited, found.listing, rank)
                yield replace(found.listing, rank=rank, chosen=chosen)


@dataclass(frozen=True, slots=True)
class _Swept:
    """A node that is gone through, feature by feature."""

    audited: Audited
    node: int
    batch: Batch
    restated: Restated

    def walk(self, feature: int, *, scored: bool = False) -> Iterator[Unranked]:
        """The candidates of a feature, of numbers some cuts at a time.

        With all statistics of their branches, or those that are ``scored``.
        """
        learner, batch, nodes = self.audited.learner, self.batch, np.array([self.node])
        for found, tried in self._weigh(feature, scored=scored):
            judged = judge_candidates(learner, self.audited.target, batch, nodes, [found], tried)
            listing = judged.listing
            yield replace(judged, listing=replace(listing, rescorer=listing.rescorer.share(self.restated)))

    def _weigh(self, feature: int, *, scored: bool) -> Iterator[tuple[Found, Floats | None]]:
        """Some candidates, and how many cuts count in the price of a gain, where that is known."""
        learner, batch = self.audited.learner, self.batch
        line = draw_line(learner, batch, feature) if can_walk(learner, batch, feature) else None
        if line is None or not line.ends.any():  # a constant is a candidate as well
            yield weigh_run(learner, batch, np.array([feature])), None
            return
        tried, walk = count_tried_cuts(learner, batch, line), Walk(line)
        for number, table in enumerate(walk_line(batch, line, scored=scored)):
            bare = scored or table.form != Form.THRESHOLD  # scores do not need to know what is beside
            whole = table if bare else add_neighbours(batch, line, table)
            yield (line.block, [whole], Stretch(walk, number)), tried


def _open(audited: Audited, node: int) -> _Swept:
    batch = rebuild_batch(audited, np.array([node]))
    return _Swept(audited, node, batch, Restated(audited.target, batch))


def _find_keys(found: Unranked, measure: str | None) -> Floats:
    """(candidate,) what ranks, the least first; NaN for what has no rank."""
    listing = found.listing
    score = listing.score if measure is None else listing.score_rows(measure, np.arange(len(listing.score)))
    sign = 1.0 if measure in LOWER_IS_BETTER else -1.0
    return np.where(listing.reason == 0, sign * score, np.nan)


def _rank_node(audited: Audited, node: int, ranks: Ranks, measure: str | None = None) -> tuple[Ranks, Ints]:
    """The keys of all candidates, and the places of those that rank before all others, in order.

    That is as `ranking.build_keys` has it, or by a ``measure`` as `ranking.rank_by`.
    """
    learner, swept, begin = audited.learner, _open(audited, node), [0]
    by_gain = measure is None and learner.parameters.selection == "c45"
    rivals: list[_Rival] = []
    for feature in range(len(learner.features)):
        parts = []
        for found in swept.walk(feature, scored=measure is None):
            keys, first = _find_keys(found, measure), ranks.count
            ranks.add(keys)
            if by_gain:
                rows = _find_contenders(learner, swept.batch, found)
                each = found.listing.reason, found.within, found.gain, keys
                parts.append(np.stack([first + rows, *(values[rows] for values in each)]))
        if by_gain:
            place, reason, within, gain, keys = np.concatenate(parts, axis=1)
            at, part = find_rival(learner, swept.batch, feature, reason, within, gain)
            rivals.append(_Rival(-1, part, np.nan) if at < 0 else _Rival(int(place[at]), part, float(keys[at])))
        begin.append(ranks.count)
    if by_gain:
        return ranks, _order_rivals(learner, swept.batch, rivals)
    best, tie_break = ranks.least, TIE_BREAKS.get(measure or learner.objective.criterion.measure)
    tolerance = float(learner.objective.tolerance(swept.batch.stats)[0]) if measure is None else TOLERANCE * abs(best)
    ahead = ranks.find_up_to(best + tolerance) if best < np.inf else np.empty(0, np.int64)
    if tie_break:
        ahead = ahead[np.argsort(-_break_ties(swept, begin, ahead, tie_break), kind="stable")]
    return ranks, ahead


def _break_ties(swept: _Swept, begin: list[int], place: Ints, measure: str) -> Floats:
    """What decides among the candidates at ascending ``place``, which are tied: their scores by a ``measure``."""
    ties = []
    feature = np.searchsorted(begin, place, side="right") - 1
    for index in np.unique(feature).tolist():
        first = begin[index]
        for found in swept.walk(index):
            rows = place[(place >= first) & (place < first + len(found.within))] - first
            ties.append(found.listing.score_rows(measure, rows))
            first += len(found.within)
    return np.concatenate([np.empty(0), *ties])


@dataclass(frozen=True, slots=True)
class _Rival:
    """A feature's candidate that competes under C4.5's selection: its place, its part in the mean of gains, its key."""

    place: int
    gain: float
    key: float


def _find_contenders(learner: Learner, batch: Batch, found: Unranked) -> Ints:
    """Those of some candidates of a feature that may be its rival, or tell that it is split in vain."""
    tolerance = max(float(learner.objective.tolerance(batch.stats, how)[0]) for how in ("c45", "criterion"))
    best, reason = found.within.max(initial=-np.inf), found.listing.reason
    near = np.flatnonzero((found.within >= best - tolerance) & (found.within > -np.inf))
    return np.union1d(near, np.flatnonzero(reason == Reason.NO_IMPROVEMENT)[:1])


def _order_rivals(learner: Learner, batch: Batch, rivals: list[_Rival]) -> Ints:
    """The places of those that may compete: what is tied with the best, then by score."""
    many_valued = find_many_valued(learner.features, batch.tally.all_rows)
    useful = find_useful(np.array([[rival.gain for rival in rivals]]), many_valued)[0]
    some = [rival for rival, fits in zip(rivals, useful, strict=True) if fits and not np.isnan(rival.key)]
    place, key = np.array([rival.place for rival in some], np.int64), np.array([rival.key for rival in some])
    tied = key <= key.min(initial=np.inf) + float(learner.objective.tolerance(batch.stats)[0])
    return place[np.argsort(np.where(tied, -np.inf, key), kind="stable")]
