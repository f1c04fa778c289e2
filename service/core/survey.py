"""A large node without its branches: what every candidate scores and ranks, a few bytes each.

Listing a node of a million rows at once would take gigabytes. So its features are weighed a few at a time and dropped
again; what is kept tells ranks, counts and filters. The candidates that are shown are weighed once more.
"""

from __future__ import annotations

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from service.core.audit import Audited, Unranked, find_chosen, rebuild_batch, weigh_candidates
from service.core.candidates import Candidates
from service.core.criteria import LOWER_IS_BETTER, TOLERANCE, Floats
from service.core.listing import Listing
from service.core.parallel import run_parallel
from service.core.ranking import Margin, find_eligible
from service.core.rescore import Rescorer
from service.core.statistics import Ints
from service.core.tree import LeafReason
from service.core.weigh import Batch, list_blocks

LARGE_CELLS = 600_000
"""A node of more rows x features is surveyed."""
LEAST = np.finfo(np.float64).max
Flags = NDArray[np.bool_]


@dataclass(frozen=True, slots=True)
class Survey:
    """All candidates of one large node, in (feature, candidate) order; arrays are (candidate,) unless it is said.

    ``runs`` are features that are weighed together, whose candidates begin at ``start: (run + 1,)``; those of a feature
    begin at ``begin: (feature + 1,)``. ``score`` is by ``measure`` (the criterion's: less what gains pay). ``rank`` is
    1 for the best and 0 for what is inadmissible, ``form`` the `Form`. ``chosen: (few,)`` are those that the tree took.
    """

    node: int
    batch: Batch
    runs: list[Ints]
    start: Ints
    begin: Ints
    measure: str
    score: Floats
    rank: NDArray[np.int32]
    form: NDArray[np.uint8]
    chosen: Ints

    def count_bytes(self) -> int:
        """About how much memory it takes."""
        return self.score.nbytes + self.rank.nbytes + self.form.nbytes + 6 * self.batch.entries.row.nbytes

    def weigh_run(self, audited: Audited, run: int) -> Listing:
        """The candidates of a run of features, with their branches and their ranks."""
        listing = _weigh(audited, self.batch, self.node, self.runs[run]).listing
        begin, end = self.start[run], self.start[run + 1]
        chosen = np.zeros(end - begin, bool)
        chosen[self.chosen[(self.chosen >= begin) & (self.chosen < end)] - begin] = True
        return replace(listing, rank=self.rank[begin:end].astype(np.int64), chosen=chosen)

    def find_margin(self) -> Margin:
        """How far the best admissible candidate is ahead by the measure; see `ranking.find_margin`."""
        sign = -1.0 if self.measure in LOWER_IS_BETTER else 1.0
        first, second = np.flatnonzero(self.rank == 1), np.flatnonzero(self.rank == 2)
        if not len(first):
            return Margin()
        best = sign * float(self.score[first[0]])
        feature = int(np.searchsorted(self.begin, first[0], side="right")) - 1
        others = [slice(0, self.begin[feature]), slice(self.begin[feature + 1], None)]
        rest = [sign * self.score[part][self.rank[part] > 0] for part in others]
        other = max((float(np.nanmax(part)) for part in rest if len(part)), default=None)
        return Margin(
            best,
            best - sign * float(self.score[second[0]]) if len(second) else None,
            None if other is None else best - other,
        )


def _weigh(audited: Audited, batch: Batch, node: int, run: Ints) -> Unranked:
    return weigh_candidates(audited.learner, audited.target, batch, np.array([node]), run)


@dataclass(frozen=True, slots=True)
class _Run:
    """What is kept of a run of features; (candidate,) but ``lasts: (feature,)``, the end of each feature."""

    lasts: Ints
    score: Floats
    within: Floats | None
    gain: Floats | None
    tie: Floats | None
    reason: NDArray[np.uint8]
    form: NDArray[np.uint8]


def survey_node(audited: Audited, node: int) -> Survey:
    """Weigh, judge and rank every candidate of one node, a few features at a time."""
    learner = audited.learner
    batch = rebuild_batch(audited, np.array([node]))
    if batch.tally.classes:
        batch.tally.spread_over_rows()  # once, for all runs share it
    runs = list(list_blocks(learner, np.arange(len(learner.features)), len(batch.entries.row)))
    criterion, by_gain = learner.objective.criterion, learner.parameters.selection == "c45"

    def weigh(run: Ints) -> _Run:
        found = _weigh(audited, batch, node, run)
        listing = found.listing
        whole = np.arange(len(listing.node))
        forms = np.array([table.form for table in listing.tables], np.uint8)
        return _Run(
            np.searchsorted(listing.feature, run, side="right"),
            listing.score,
            found.within if by_gain else None,
            found.gain if by_gain else None,
            listing.score_rows(criterion.tie_break, whole) if criterion.tie_break else None,
            listing.reason.astype(np.uint8),
            forms[listing.table],
        )

    parts = run_parallel(weigh, runs)
    start = np.cumsum([0, *(len(part.score) for part in parts)])
    begin = np.concatenate([[0], *(first + part.lasts for first, part in zip(start, parts, strict=False))])
    score = np.concatenate([part.score for part in parts])
    form = np.concatenate([part.form for part in parts])
    parts = [replace(part, score=score[:0], form=form[:0]) for part in parts]  # they are held once
    rank = _rank(audited, batch, parts, score, begin)
    survey = Survey(node, batch, runs, start, begin, criterion.measure, score, rank, form, np.empty(0, np.int64))
    return replace(survey, chosen=_find_chosen(audited, survey))


def _rank(audited: Audited, batch: Batch, parts: list[_Run], score: Floats, begin: Ints) -> NDArray[np.int32]:
    """(candidate,) the ranks that `audit.weigh_listing` gives."""
    objective = audited.learner.objective
    admissible = np.concatenate([part.reason for part in parts]) == 0
    kept = np.where(admissible, score, -np.inf)
    eligible = None
    if audited.learner.parameters.selection == "c45":
        eligible = _find_eligible(audited, batch, parts, score, begin)
    rival = kept if eligible is None else np.where(eligible, kept, -np.inf)
    best = rival.max(initial=-np.inf)
    with np.errstate(invalid="ignore"):
        tied = (rival >= best - objective.tolerance(batch.stats)[0]) & (rival > -np.inf)
    tie = None
    if objective.criterion.tie_break:
        tie = np.concatenate([part.tie for part in parts if part.tie is not None])
    return _order(admissible, kept, tied, tie, eligible)


def _order(
    admissible: Flags, score: Floats, tied: Flags, tie: Floats | None, eligible: Flags | None
) -> NDArray[np.int32]:
    """(candidate,) ranks: first what is ``tied``, by ``tie``; then what is ``eligible``; then the rest, by score."""
    first = np.flatnonzero(tied)
    if tie is not None:
        first = first[np.argsort(-tie[first], kind="stable")]
    rank = np.zeros(len(score), np.int32)
    rank[first] = np.arange(1, len(first) + 1)
    ahead = len(first)
    rest = admissible & ~tied
    for group in [rest] if eligible is None else [rest & eligible, rest & ~eligible]:
        count = int(np.count_nonzero(group))
        # everything else is sorted behind it, so that no list of places is needed beside the order
        key = np.negative(score)
        np.minimum(key, LEAST, out=key)
        key[~group] = np.inf
        order = np.argsort(key, kind="stable")[:count]
        rank[order] = np.arange(ahead + 1, ahead + count + 1, dtype=np.int32)
        ahead += count
    return rank


def _find_eligible(audited: Audited, batch: Batch, parts: list[_Run], score: Floats, begin: Ints) -> Flags:
    """(candidate,) True where C4.5's selection lets a candidate compete with those of other features."""
    node, nothing = np.zeros(len(score), np.int64), np.zeros(len(score), bool)
    feature = np.repeat(np.arange(len(begin) - 1), np.diff(begin))
    reason = np.concatenate([part.reason for part in parts])
    tables: list[Candidates] = []
    slim = Listing(
        np.zeros(1, np.int64), batch.tally.centre, audited.learner.objective, tables, node, node, node, feature,
        reason.astype(np.int64), score, node, nothing, False, Rescorer(audited.target, batch.entries, [], [], False),
    )  # fmt: skip
    within = np.concatenate([part.within for part in parts if part.within is not None])
    gain = np.concatenate([part.gain for part in parts if part.gain is not None])
    return find_eligible(audited.learner, batch, slim, within, gain)


def _find_chosen(audited: Audited, survey: Survey) -> Ints:
    """The candidates that the tree took: in its own feature's run."""
    tree = audited.tree
    if tree.is_leaf[survey.node]:
        return np.empty(0, np.int64)
    if tree.reason[survey.node] != LeafReason.RAISED:
        return np.flatnonzero(survey.rank == 1)
    feature = int(tree.feature[survey.node])
    run = next(i for i, features in enumerate(survey.runs) if feature in features)
    listing = survey.weigh_run(audited, run)
    chosen: Ints = np.flatnonzero(find_chosen(audited, listing, listing.rank)) + survey.start[run]
    return chosen


def survey_by(audited: Audited, survey: Survey, measure: str) -> Survey:
    """The same node ranked by another measure, as `ranking.rank_by` does."""
    learner = audited.learner
    if measure == survey.measure and learner.parameters.cut_penalty is None:
        return survey

    def weigh(run: Ints) -> Floats:
        listing = _weigh(audited, survey.batch, survey.node, run).listing
        return listing.score_rows(measure, np.arange(len(listing.node)))

    score = np.concatenate(run_parallel(weigh, survey.runs))
    better = score * (-1.0 if measure in LOWER_IS_BETTER else 1.0)
    ranked = (survey.rank > 0) & ~np.isnan(score)
    better = np.where(ranked, better, -np.inf)
    best = better.max(initial=-np.inf)
    tied = ranked & (better >= best - TOLERANCE * abs(best)) if np.isfinite(best) else ranked & (better == best)
    return replace(survey, measure=measure, score=score, rank=_order(ranked, better, tied, None, None))
