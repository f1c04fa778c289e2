"""A large node without its branches: what every candidate scores, a few bytes each.

Listing a node of a million rows at once would take gigabytes. So its features are weighed one by one and dropped
again. What is kept tells filters and margins; what is shown is weighed once more, and its ranks are counted.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass, replace
from functools import cached_property, partial
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.audit import Audited, judge_candidates, weigh_run
from service.core.batch import Batch
from service.core.criteria import LOWER_IS_BETTER, Floats
from service.core.lines import Line
from service.core.listing import Listing
from service.core.ranking import Margin, count_better
from service.core.rescore import Restated
from service.core.standing import Flags, count_before, find_highest
from service.core.statistics import Ints
from service.core.walk import pick_some

LARGE_CELLS = 100_000
"""A node of more rows x features is surveyed."""
COUNTED = 20_000
"""The ranks of more candidates than this at a time are sorted out, and not counted."""
Reasons: TypeAlias = NDArray[np.uint8]
Wanted: TypeAlias = Mapping[int, Callable[[], Flags]]
"""By feature, which of its candidates are wanted: (candidate,)."""


@dataclass(frozen=True)
class Survey:
    """All candidates of one large node, in (feature, candidate) order; those of a feature begin at its ``begin``.

    By feature: the ``line`` that its cuts are read off, how many cuts were ``tried`` (see `judge`), and of each
    candidate the ``form``, the ``score`` by ``measure``, such that more is better (the criterion's: less what gains
    pay), and the `Reason` against it. ``highest: (feature,)`` is the best score of the admissible ones, -inf without
    any. ``ahead: (few,)`` are those that rank before all others whatever these score, in order: what is tied with the
    best; under C4.5's selection also what else may compete. ``chosen: (few,)`` are those that the tree took.
    """

    node: int
    batch: Batch
    begin: Ints
    line: list[Line | None]
    tried: list[Floats | None]
    form: list[NDArray[np.uint8]]
    measure: str
    score: list[Floats]
    reason: list[Reasons]
    highest: Floats
    ahead: Ints
    chosen: Ints
    restated: Restated

    def count_bytes(self) -> int:
        """About how much memory it takes."""
        lines = sum(line.count_bytes() for line in self.line if line is not None)
        each = sum(score.nbytes + reason.nbytes for score, reason in zip(self.score, self.reason, strict=True))
        parts = sum(part.nbytes for quantity in self.batch.tally.quantities for part in quantity.parts)
        return each + lines + 3 * self.batch.entries.row.nbytes + 2 * parts

    @property
    def sign(self) -> float:
        """What scores are multiplied by to be those of the measure."""
        return -1.0 if self.measure in LOWER_IS_BETTER else 1.0

    @property
    def features(self) -> range:
        """The numbers of all features."""
        return range(len(self.line))

    def find_features(self, place: Ints) -> Ints:
        """(any,) the features of some candidates."""
        return np.asarray(np.searchsorted(self.begin, place, side="right") - 1)

    def find_inside(self, feature: int, place: Ints) -> Ints:
        """Those of the candidates at ``place`` that belong to a feature, counted among its own."""
        begin, end = self.begin[feature], self.begin[feature + 1]
        return np.asarray(place[(place >= begin) & (place < end)] - begin)

    def look_up(self, place: Ints) -> tuple[Floats, Reasons]:
        """(any,) the scores of some candidates, and the reasons against them."""
        score, reason = np.empty(len(place)), np.empty(len(place), np.uint8)
        of_feature = self.find_features(place)
        for feature in np.unique(of_feature).tolist():
            mine = np.flatnonzero(of_feature == feature)
            inside = place[mine] - self.begin[feature]
            score[mine], reason[mine] = self.score[feature][inside], self.reason[feature][inside]
        return score, reason

    def list_some(self, audited: Audited, feature: int, place: Ints, rank: Ints) -> Listing:
        """Some candidates of a feature, given by ``place: (any,)`` among all, weighed again, with their ranks."""
        listing = weigh_some(audited, self, feature, place - self.begin[feature])
        return replace(listing, rank=rank, chosen=np.isin(place, self.chosen))

    def find_ranks(self, place: Ints) -> Ints:
        """(any,) the ranks of some candidates; 0 for what is inadmissible."""
        if len(place) > COUNTED:
            return self._ranks[place].astype(np.int64)
        rank = np.zeros(len(place), np.int64)
        order = np.argsort(self.ahead)
        at = np.minimum(np.searchsorted(self.ahead[order], place), max(len(order) - 1, 0))
        first = self.ahead[order][at] == place if len(order) else np.zeros(len(place), bool)
        rank[first] = order[at[first]] + 1
        score, reason = self.look_up(place)
        rest = np.flatnonzero(~first & (reason == 0))
        if len(rest):
            before = count_before(self.score, self.highest, self.begin, self._find_others, score[rest], place[rest])
            rank[rest] = len(self.ahead) + 1 + before
        return rank

    @cached_property
    def _ranks(self) -> NDArray[np.int32]:
        """(candidate,) the rank of each."""
        rank = np.zeros(self.begin[-1], np.int32)
        rank[self.ahead] = np.arange(1, len(self.ahead) + 1)
        # everything else is sorted behind those that have a rank, so that no list of places is needed beside the order
        key = np.concatenate([np.where(self._find_others(f), -self.score[f], np.nan) for f in self.features])
        count = len(key) - int(np.count_nonzero(np.isnan(key)))
        rank[np.argsort(key, kind="stable")[:count]] = np.arange(1, count + 1, dtype=np.int32) + len(self.ahead)
        return rank

    def _find_others(self, feature: int) -> Flags:
        """(candidate,) True for those of a feature that rank behind all that are ``ahead``."""
        others: Flags = self.reason[feature] == 0
        others[self.find_inside(feature, self.ahead)] = False
        return others

    def find_best(self, wanted: Wanted, most: int | None = None) -> Ints:
        """The ``most`` best by rank of the candidates that are ``wanted``."""
        of_feature = self.find_features(self.ahead)
        fits = np.zeros(len(self.ahead), bool)
        for feature in np.unique(of_feature[np.isin(of_feature, list(wanted))]).tolist():
            mine = np.flatnonzero(of_feature == feature)
            fits[mine] = wanted[feature]()[self.ahead[mine] - self.begin[feature]]
        first = self.ahead[fits][:most]
        left = None if most is None else most - len(first)
        return np.concatenate([first, self._take(wanted, left, self.highest, self._find_others)])

    def find_rest(self, wanted: Wanted, most: int | None = None) -> Ints:
        """The ``most`` best by score of the ``wanted`` candidates without a rank; the undefined last."""
        return self._take(wanted, most, np.full(len(self.line), np.inf), lambda f: self.reason[f] > 0)

    def _take(self, wanted: Wanted, most: int | None, highest: Floats, admit: Callable[[int], Flags]) -> Ints:
        """The ``most`` best by score of those that are wanted and admitted, of a feature none above its ``highest``."""
        place, score, level = np.empty(0, np.int64), np.empty(0), -np.inf
        if most == 0:
            return place
        for feature in sorted(wanted, key=lambda feature: (-highest[feature], feature)):
            if most is not None and len(place) >= most and highest[feature] < level:
                break
            inside = np.flatnonzero(wanted[feature]() & admit(feature))
            found = self.score[feature][inside]
            found[np.isnan(found)] = -np.inf
            best = find_highest(found, most)
            place, score = np.append(place, inside[best] + self.begin[feature]), np.append(score, found[best])
            best = np.argsort(place)
            best = best[find_highest(score[best], most)]
            place, score = place[best], score[best]
            level = score.min(initial=np.inf)
        return place[np.argsort(-score, kind="stable")]

    def find_margin(self) -> Margin:
        """How far the best admissible candidate is ahead by the measure; see `ranking.find_margin`."""
        first = self.find_best(self.everything(), 2)
        if not len(first):
            return Margin()
        best, *after = self.look_up(first)[0].tolist()
        other = float(np.delete(self.highest, self.find_features(first[:1])).max(initial=-np.inf))
        return Margin(
            best,
            best - after[0] if after else None,
            None if other == -np.inf else best - other,
        )

    def count_better(self, above: float) -> int:
        """How many admissible candidates score more than that."""
        each = zip(self.score, self.reason, strict=True)
        return sum(count_better(score, reason == 0, above) for score, reason in each)

    def everything(self) -> Wanted:
        """All candidates."""
        return {feature: partial(np.full, len(self.score[feature]), True) for feature in self.features}


def weigh_some(audited: Audited, survey: Survey, feature: int, inside: Ints) -> Listing:
    """Some candidates of a feature, given by place among its own, without ranks."""
    learner, batch, line = audited.learner, survey.batch, survey.line[feature]
    nodes = np.array([survey.node])
    if line is None:
        found = weigh_run(learner, batch, np.array([feature]))
        listing = judge_candidates(learner, audited.target, batch, nodes, [found]).listing.take(inside)
    else:
        # all candidates of each cut, and last what is missing
        cuts, (some, index) = line.find_cuts(), np.unique(inside // line.ways, return_inverse=True)
        picked = pick_some(batch, line, cuts[some[some < len(cuts)]])
        listing = judge_candidates(learner, audited.target, batch, nodes, picked, survey.tried[feature]).listing
        listing = listing.take(line.ways * index + inside % line.ways)
    return replace(listing, rescorer=listing.rescorer.share(survey.restated))
