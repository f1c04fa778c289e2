"""Surveys rank the candidates of a node as a listing of all of them does."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.core.audit import Audited, list_candidates
from service.core.listing import Listing
from service.core.ranking import rank_by
from service.core.survey import Survey
from service.core.surveyor import survey_by, survey_node, survey_twice
from service.rendering.candidates import show_candidates
from tests.core.making import audit, classes, grow, numbers, values

PARAMETERS: list[dict[str, Any]] = [
    {"criterion": "gini"},
    {"criterion": "gain_ratio", "selection": "c45"},
    {"criterion": "gain_ratio", "selection": "c45", "cut_penalty": "tried", "cut_limit": "c45"},
    {"criterion": "gini_gain_ratio", "selection": "c45", "class_weight": "balanced"},
]


@pytest.mark.parametrize("parameters", PARAMETERS, ids=str)
def test_ranks_where_the_best_cuts_starve(parameters: dict[str, Any]) -> None:
    """Cuts that would be the best of their feature, but for a branch of few rows, are not what competes for it."""
    source, rows = np.random.default_rng(4), 300
    cells = source.normal(size=(3, rows))
    marks = np.array(list("ab"))[source.integers(0, 2, rows)]
    for line in cells:
        marks[np.argsort(line)[:7]] = "c"
    target = classes(marks.tolist())
    columns = [numbers(f"x{i}", line.tolist()) for i, line in enumerate(cells)]
    audited = audit(grow(columns, target, {"max_depth": 1, "min_samples_leaf": 10, **parameters}), target)
    listing = list_candidates(audited, np.array([0]))
    place = np.arange(len(listing.rank))
    survey = survey_node(audited, 0)
    assert survey.find_ranks(place).tolist() == listing.rank.tolist()
    assert survey.chosen.tolist() == np.flatnonzero(listing.chosen).tolist()
    for measure in ("goodness", "entropy_cost", "gain_ratio"):
        both = survey_twice(audited, 0, measure)
        assert both[0].find_ranks(place).tolist() == listing.rank.tolist()
        for by in (both[1], survey_by(audited, survey, measure)):
            assert by.find_ranks(place).tolist() == rank_by(audited.learner, listing, measure, place).tolist()


GAPS: list[dict[str, Any]] = [
    {"criterion": "gini"},
    {"criterion": "entropy", "min_samples_leaf": 9},
    {"criterion": "gain_ratio", "min_samples_leaf": 3},
    {"criterion": "gini_gain_ratio", "selection": "c45", "class_weight": "balanced"},
    {"criterion": "gini", "missing": "branch"},
    {"criterion": "gain_ratio", "selection": "c45", "missing": "fractional"},
]


@pytest.mark.parametrize("parameters", GAPS, ids=str)
@pytest.mark.parametrize("marked", ["ab", "abc"])
def test_numbers_with_gaps_are_surveyed_as_they_are_listed(parameters: dict[str, Any], marked: str) -> None:
    """Each cut twice, missing values left and right, and those against the others: scores, reasons and ranks agree."""
    source, rows = np.random.default_rng(7), 400
    cells = source.normal(size=(4, rows)).round(2)
    cells[3] = source.integers(0, 4, rows)
    marks = np.array(list(marked))[((cells[0] > 0.3) + (source.random(rows) < 0.2)) % len(marked)]
    cells[:2][source.random((2, rows)) < 0.2] = np.nan
    cells[3, source.random(rows) < 0.5] = np.nan
    target = classes(marks.tolist())
    columns = [numbers(f"x{i}", [None if np.isnan(cell) else cell for cell in line]) for i, line in enumerate(cells)]
    audited = audit(grow(columns, target, {"max_depth": 1, **parameters}), target)
    listing = list_candidates(audited, np.array([0]))
    place = np.arange(len(listing.rank))
    survey = survey_node(audited, 0)
    assert np.concatenate(survey.score).tolist() == listing.score.tolist()
    assert np.concatenate(survey.reason).tolist() == listing.reason.tolist()
    assert survey.find_ranks(place).tolist() == listing.rank.tolist()
    assert survey.chosen.tolist() == np.flatnonzero(listing.chosen).tolist()
    both = survey_twice(audited, 0, "goodness")
    for by in (both[1], survey_by(audited, survey, "goodness")):
        assert by.find_ranks(place).tolist() == rank_by(audited.learner, listing, "goodness", place).tolist()
    check_shown(audited, survey, listing, 3)


@pytest.mark.parametrize("digits", [0, 9])
@pytest.mark.parametrize("parameters", [{}, {"min_samples_leaf": 30}, {"missing": "branch"}], ids=str)
def test_regressions_with_gaps_are_surveyed_as_they_are_listed(parameters: dict[str, Any], digits: int) -> None:
    """Scores by any measure, reasons and ranks agree; so does what is shown, medians and deviances counted."""
    source, rows = np.random.default_rng(3), 400
    cells = source.normal(size=(3, rows)).round(2)
    # whole numbers have deviances, the others are below 0, too
    answers = np.exp(cells[0] + source.normal(size=rows)).round(digits) - (digits > 0)
    cells[:2][source.random((2, rows)) < 0.2] = np.nan
    target = values(answers.tolist())
    columns = [numbers(f"x{i}", [None if np.isnan(cell) else cell for cell in line]) for i, line in enumerate(cells)]
    audited = audit(grow(columns, target, {"max_depth": 1, "criterion": "variance", **parameters}), target)
    listing, survey = list_candidates(audited, np.array([0])), survey_node(audited, 0)
    place = np.arange(len(listing.rank))
    assert survey.line[0] is not None
    assert np.concatenate(survey.score).tolist() == listing.score.tolist()
    assert np.concatenate(survey.reason).tolist() == listing.reason.tolist()
    assert survey.find_ranks(place).tolist() == listing.rank.tolist()
    for measure in audited.learner.objective.list_measures():
        ranks = rank_by(audited.learner, listing, measure, place).tolist()
        for by in (survey_twice(audited, 0, measure)[1], survey_by(audited, survey, measure)):
            assert by.find_ranks(place).tolist() == ranks
    check_shown(audited, survey, listing, 7)


def check_shown(audited: Audited, survey: Survey, listing: Listing, step: int) -> None:
    """All candidates of each feature are shown alike, and one in so many, and the last."""
    place = np.arange(len(listing.rank))
    for feature in survey.features:
        begin, end = survey.begin[feature], survey.begin[feature + 1]
        for asked in (place[begin:end], place[begin:end:step], place[end - 1 : end]):
            some = survey.list_some(audited, feature, asked, listing.rank[asked])
            shown = show_candidates(audited, some, np.arange(len(asked)), some.rank)
            assert shown == show_candidates(audited, listing, asked, listing.rank[asked])
