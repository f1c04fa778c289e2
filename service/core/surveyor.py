"""Surveys of large nodes are made: every candidate weighed and judged, feature by feature, by any measure."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import partial

import numpy as np
from numpy.typing import NDArray

from service.core.audit import Audited, find_chosen, judge_candidates, rate_table, rebuild_batch, weigh_run
from service.core.batch import Batch
from service.core.c45 import find_many_valued, find_useful
from service.core.candidates import Form, Lack
from service.core.count_cuts import Rated, Rater, can_count, can_rate
from service.core.criteria import LOWER_IS_BETTER, TIE_BREAKS, TOLERANCE, Floats
from service.core.judge import Reason
from service.core.learner import Learner
from service.core.lines import PORTIONS, Line, can_walk, draw_line
from service.core.listing import score_table
from service.core.parallel import run_parallel
from service.core.rescore import Restated
from service.core.statistics import Ints
from service.core.survey import Reasons, Survey, weigh_some
from service.core.tree import LeafReason
from service.core.walk import count_tried_cuts, walk_line


@dataclass(frozen=True, slots=True)
class _Weighed:
    """What is kept of a feature; ``score``, ``reason``, ``form``: (candidate,).

    ``rival`` is the place of the candidate that competes for it under C4.5's selection (-1: none), with its ``gain``.
    ``other`` are the scores by another measure, where these were asked for and are at hand.
    """

    line: Line | None
    tried: Floats | None
    form: NDArray[np.uint8]
    score: Floats
    reason: Reasons
    rival: int
    gain: float
    other: Floats | None = None


def survey_node(audited: Audited, node: int) -> Survey:
    """Weigh and judge every candidate of one node, feature by feature."""
    return _survey(audited, node)[0]


def survey_twice(audited: Audited, node: int, measure: str) -> tuple[Survey, Survey]:
    """The survey of a node, and the same ranked by another measure as well: see `survey_by`."""
    survey, scores = _survey(audited, node, measure)
    return survey, survey_by(audited, survey, measure, scores)


def _survey(audited: Audited, node: int, measure: str | None = None) -> tuple[Survey, list[Floats | None]]:
    """Also the scores by another ``measure``, by feature, where they are at hand."""
    batch = rebuild_batch(audited, np.array([node]))
    if batch.tally.classes:
        batch.tally.spread_over_rows()  # once, for all features share it
    if measure not in audited.learner.objective.measures():
        measure = None
    rater = Rater(audited.learner, batch) if can_rate(audited.learner, batch) else None
    restated, features = Restated(audited.target, batch), range(len(audited.learner.features))
    tasks: list[Callable[[], _Weighed | None]] = [
        partial(_weigh_feature, audited, batch, node, rater, measure, feature) for feature in features
    ]
    if rater is not None and not batch.tally.classes:
        tasks.insert(0, restated.prepare)  # which what is shown would wait for
    found = [each for each in run_parallel(lambda task: task(), tasks) if each is not None]
    none = np.empty(0, np.int64)
    survey = Survey(
        node, batch, np.cumsum([0, *(len(each.score) for each in found)]), [each.line for each in found],
        [each.tried for each in found], [each.form for each in found], audited.learner.objective.criterion.measure,
        [each.score for each in found], [each.reason for each in found], np.empty(0), none, none,
        restated,
    )  # fmt: skip
    survey = replace(survey, highest=_find_highest(survey))
    survey = replace(survey, ahead=_find_ahead(audited, survey, found))
    return replace(survey, chosen=_find_chosen(audited, survey)), [each.other for each in found]


def _weigh_feature(
    audited: Audited, batch: Batch, node: int, rater: Rater | None, measure: str | None, feature: int
) -> _Weighed:
    learner = audited.learner
    if can_walk(learner, batch, feature):
        line = draw_line(learner, batch, feature)
        counted = rater is not None and can_count(learner, batch, line)
        # of a constant, which is a candidate as well, there are no cuts
        if counted or line.ends.any():
            rated = rater.rate(line, measure) if rater and counted else _walk(learner, batch, line)
            rival, gain = -1, -np.inf
            if rated.within is not None:
                rival, gain = find_rival(learner, batch, feature, rated.reason, rated.within, rated.within)
            forms = np.broadcast_to(np.uint8(Form.THRESHOLD), len(rated.score))
            if len(line.missing) and line.lack is not Lack.APART:
                forms = np.append(forms[1:], np.uint8(Form.MISSING))
            return _Weighed(line, rated.tried, forms, rated.score, rated.reason, rival, gain, rated.other)
    found = judge_candidates(
        learner, audited.target, batch, np.array([node]), [weigh_run(learner, batch, np.array([feature]))]
    )
    listing = found.listing
    forms = np.array([table.form for table in listing.tables], np.uint8)[listing.table]
    reason = listing.reason.astype(np.uint8)
    rival, gain = find_rival(learner, batch, feature, reason, found.within, found.gain)
    return _Weighed(None, None, forms, listing.score, reason, rival, gain)


def _walk(learner: Learner, batch: Batch, line: Line) -> Rated:
    """Weigh every cut of a line."""
    tried = count_tried_cuts(learner, batch, line, portions=PORTIONS)
    walked = walk_line(batch, line, scored=True, portions=PORTIONS)
    parts = [rate_table(learner, batch, line.block, table, tried)[:3] for table in walked]
    reason, within, score = (np.concatenate(each) for each in zip(*parts, strict=True))
    return Rated(tried, reason, score, within if learner.parameters.selection == "c45" else None)


def find_rival(
    learner: Learner, batch: Batch, feature: int, reason: Reasons, within: Floats, gain: Floats
) -> tuple[int, float]:
    """As `ranking.find_eligible`: the first best candidate of a feature, and its part in C4.5's mean of gains."""
    best, ordered = within.max(initial=-np.inf), learner.is_ordered(feature)
    if best == -np.inf:
        return -1, 0.0 if not ordered and (reason == Reason.NO_IMPROVEMENT).any() else -np.inf
    tolerance = learner.objective.tolerance(batch.stats, "c45" if ordered else "criterion")[0]
    first = int(np.argmax(within >= best - tolerance))
    return first, float(gain[first])


def _find_ahead(audited: Audited, survey: Survey, found: list[_Weighed]) -> Ints:
    """What ranks before all others, in order, as in `ranking.build_keys`."""
    learner, batch = audited.learner, survey.batch
    tolerance = float(learner.objective.tolerance(batch.stats)[0])
    if learner.parameters.selection != "c45":
        return _find_tied(audited, survey, tolerance, learner.objective.criterion.tie_break)
    gains = np.array([[each.gain for each in found]])
    useful = find_useful(gains, find_many_valued(learner.features, batch.tally.all_rows))[0]
    rivals = np.array([f for f, each in enumerate(found) if useful[f] and each.rival >= 0], np.int64)
    place = survey.begin[rivals] + np.array([found[f].rival for f in rivals], np.int64)
    score = survey.look_up(place)[0]
    near = score >= score.max(initial=-np.inf) - tolerance
    return np.concatenate([place[near], place[~near][np.argsort(-score[~near], kind="stable")]])


def _find_highest(survey: Survey) -> Floats:
    """(feature,) the best score of its admissible candidates; -inf where there is none."""

    def find(feature: int) -> float:
        score, reason = survey.score[feature], survey.reason[feature]
        if not len(score):
            return -np.inf
        best = int(score.argmax())  # most often the best of all is admissible, and nothing has to be left out
        return float(score[best] if reason[best] == 0 else np.where(reason == 0, score, -np.inf).max())

    return np.array(run_parallel(find, survey.features))


def _find_tied(audited: Audited, survey: Survey, tolerance: float, tie_break: str | None) -> Ints:
    """What is tied with the best, in the order of the measure that decides among it, if any does."""
    best = survey.highest.max(initial=-np.inf)
    tied, tie = [np.empty(0, np.int64)], [np.empty(0)]
    for feature in np.flatnonzero((survey.highest >= best - tolerance) & (survey.highest > -np.inf)).tolist():
        near = np.flatnonzero((survey.score[feature] >= best - tolerance) & (survey.reason[feature] == 0))
        tied.append(near + survey.begin[feature])
        if tie_break:
            tie.append(weigh_some(audited, survey, feature, near).score_rows(tie_break, np.arange(len(near))))
    place = np.concatenate(tied)
    return place[np.argsort(-np.concatenate(tie), kind="stable")] if tie_break else place


def _find_chosen(audited: Audited, survey: Survey) -> Ints:
    """The candidates that the tree took."""
    tree = audited.tree
    if tree.is_leaf[survey.node]:
        return np.empty(0, np.int64)
    if tree.reason[survey.node] != LeafReason.RAISED:
        return survey.find_best(survey.everything(), 1)
    feature = int(tree.feature[survey.node])
    listing = weigh_some(audited, survey, feature, np.arange(len(survey.score[feature])))
    return np.asarray(np.flatnonzero(find_chosen(audited, listing, listing.rank)) + survey.begin[feature])


def survey_by(audited: Audited, survey: Survey, measure: str, known: Sequence[Floats | None] | None = None) -> Survey:
    """The same node ranked by another measure, as `ranking.rank_by` does; some scores by feature may be ``known``."""
    if audited.learner.ranks_by(measure):
        return survey
    known = known or [None] * len(survey.line)
    learner, batch = audited.learner, survey.batch
    rater = Rater(learner, batch) if can_rate(learner, batch) and any(score is None for score in known) else None

    def find(feature: int) -> tuple[Floats, Reasons]:
        score, reason = known[feature], survey.reason[feature]
        if score is None:
            score = _score_feature(audited, survey, measure, rater, feature)
        undefined = np.isnan(score)
        if undefined.any():
            reason = np.where(undefined & (reason == 0), np.uint8(Reason.UNDEFINED), reason)
        return -score if measure in LOWER_IS_BETTER else score, reason

    scores, reasons = (list(each) for each in zip(*run_parallel(find, survey.features), strict=True))
    by = replace(survey, measure=measure, score=scores, reason=reasons, ahead=np.empty(0, np.int64))
    by = replace(by, highest=_find_highest(by))
    best = by.highest.max(initial=-np.inf)
    tolerance = TOLERANCE * abs(best) if np.isfinite(best) else 0.0
    return replace(by, ahead=_find_tied(audited, by, tolerance, TIE_BREAKS.get(measure)))


def _score_feature(audited: Audited, survey: Survey, measure: str, rater: Rater | None, feature: int) -> Floats:
    """(candidate,) the scores of a feature's candidates."""
    objective, line = audited.learner.objective, survey.line[feature]
    if line is not None and measure not in objective.measures():
        return survey.restated.score_line(line, measure, unknown_branch=objective.unknown_branch)
    if line is None:
        inside = np.arange(len(survey.score[feature]))
        return weigh_some(audited, survey, feature, inside).score_rows(measure, inside)
    if rater is not None and can_count(audited.learner, survey.batch, line):
        return rater.score(line, measure)
    walked = walk_line(survey.batch, line, portions=PORTIONS)
    return np.concatenate([score_table(objective, table, measure) for table in walked])
