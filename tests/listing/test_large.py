"""Large nodes are surveyed and listed a few features at a time: the listing is the one that is made at once."""

from __future__ import annotations

from dataclasses import replace
from typing import Any
from unittest.mock import Mock

import numpy as np
import pytest

from service.core import survey
from service.core.tree import Tree
from service.formats.layout import count_chunk
from service.listing import source as source_module
from service.listing.large import LargeView
from service.listing.query import SplitQuery
from service.listing.source import DataSource, DataView, make_recent, open_source
from service.listing.swept import SweptView
from service.rendering.candidates import show_parts
from service.summarizing import summarize_splits
from tests.core.making import classes, grow, labels, numbers
from tests.making import Trainer

ROWS = 60
QUERIES: list[dict[str, Any]] = [
    {},
    {"sort": "position"},
    {"top": 3},
    {"top": 5, "sort": "position", "feature": "x1"},
    {"feature": "name"},
    {"type": "subset"},
    {"type": "threshold", "admissible": False},
    {"chosen": True},
    {"chosen": False, "top": 4},
    {"admissible": False},
    {"measure": "gain_ratio", "top": 9},
    {"measure": "gini_cost"},
    {"measure": "gain_ratio"},
    {"measure": "true_positive_rate"},
    {"measure": "variance_cost", "top": 3},
    {"measure": "absolute_error_reduction", "top": 3},
    {"measure": "poisson_deviance_reduction", "feature": "x1"},
    {"measure": "information_content", "admissible": True},
]


def make_columns(gaps: bool) -> dict[str, list[Any]]:
    """Numbers with and without ties, a constant, names and grades."""
    generator = np.random.default_rng(7)
    columns: dict[str, list[Any]] = {f"x{i}": generator.normal(size=ROWS).round(1).tolist() for i in range(3)}
    columns["whole"] = generator.integers(0, 9, ROWS).tolist()
    columns["same"] = [1.5] * ROWS
    columns["name"] = generator.choice(list("pqrs"), ROWS).tolist()
    if gaps:
        for i in range(0, ROWS, 7):
            columns["x1"][i] = columns["name"][i + 1] = None
    noise = generator.normal(size=ROWS) + np.array(columns["x0"]) + np.array(columns["whole"]) / 4
    columns["y"] = np.where(noise > 1, "b", "a").tolist()
    return columns


TRAININGS: list[dict[str, Any]] = [
    {"parameters": {"max_depth": 3, "min_samples_leaf": 3}},
    {"algorithm": "c45"},
    {"algorithm": "j48"},
    {"parameters": {"missing": "surrogate", "max_depth": 2}},
    {"parameters": {"missing": "branch", "criterion": "entropy", "max_depth": 2}},
    {"parameters": {"criterion": "true_positive_rate", "max_depth": 2}, "positive_class": "b"},
    {"parameters": {"max_depth": 1}, "positive_class": "b"},
    {"algorithm": "id3", "features": ["name"], "parameters": {"missing": "branch"}},
    {"weight": "whole", "parameters": {"max_depth": 2, "monotonic": {"x0": "up"}, "min_weight_leaf": 9.0}},
    {"target": "x0", "parameters": {"max_depth": 2}},
    {"target": "whole", "task": "regression", "parameters": {"criterion": "poisson", "max_depth": 2}},
    {"target": "x0", "parameters": {"criterion": "absolute_error", "max_depth": 1}},
]


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("training", TRAININGS, ids=str)
def test_a_survey_lists_what_a_listing_does(
    trainer: Trainer, training: dict[str, Any], gaps: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Under every query each node has the same candidates, ranks, order and head, whichever way it is weighed."""
    monkeypatch.setattr(survey, "COUNTED", 3)  # ranks are counted for some of the pages, and sorted out for others
    record = trainer(make_columns(gaps), **training)
    tree = Tree.from_arrays(trainer.store.load_tree(record))
    plain = open_source(record, tree, trainer.store, make_recent())
    assert isinstance(plain, DataSource)
    surveyed = DataSource(record.id, plain.audited, make_recent(), large=0, uncounted=0)
    names = {feature.name for feature in tree.features}
    for fields in QUERIES:
        if fields.get("feature", next(iter(names))) not in names or fields.get("measure") not in {
            None,
            *plain.measures,
        }:
            continue
        query = SplitQuery(**fields)
        for node in np.flatnonzero(tree.rows > 0).tolist():
            (one,), (other,) = (list(source.view_nodes(np.array([node]), query)) for source in (plain, surveyed))
            assert isinstance(other, LargeView)
            assert len(one) == len(other)
            assert one.head() == other.head(), fields
            assert one.render(0, ROWS * 9) == other.render(0, ROWS * 9), fields
            assert one.render(2, 5) == other.render(2, 5)
            (some,) = surveyed.view_nodes(np.array([node]), query, end=5)
            assert isinstance(some, LargeView)
            assert (len(some), some.render(1, 5)) == (len(one), one.render(1, 5)), fields
            if node < 2 and len(fields) < 2:
                by_position = replace(query, sort="position")
                one = next(iter(plain.view_nodes(np.array([node]), by_position)))
                (streamed,) = surveyed.stream_nodes(np.array([node]), by_position)
                assert isinstance(streamed, SweptView if query.top is None else LargeView)
                chunks = list(streamed.stream(1, 4))
                assert max(map(count_chunk, chunks), default=0) <= 4
                assert [row for chunk in chunks for row in show_parts(chunk)] == one.render(1, ROWS * 9)


@pytest.mark.parametrize("parameters", [{"max_depth": 2}, {"max_depth": 2, "missing": "surrogate"}])
def test_summaries_of_large_nodes(parameters: dict[str, Any]) -> None:
    """A summary has the same best candidates and heads, whichever way the nodes were weighed."""
    marks = ["ab"[(i * i) % 7 % 2] for i in range(ROWS)]
    gaps = [None if i % 5 == 0 else float(i % 11) for i in range(ROWS)]
    columns = [numbers("x", [i * 7 % 31 for i in range(ROWS)]), numbers("z", gaps)]
    columns.append(labels("name", ["pqr"[i % 3] for i in range(ROWS)]))
    learnt = grow(columns, classes(marks), parameters)
    plain, surveyed = (summarize_splits(learnt, learnt.target, 2, large=large) for large in (10**9, 0))
    assert plain == surveyed
    assert len(plain["rows"][0]) == 6


@pytest.mark.parametrize("gaps", [False, True])
def test_pages_of_the_best_need_no_survey(trainer: Trainer, gaps: bool) -> None:
    """The first pages, `top` and `chosen` of a large node show what a survey shows; how many there are is left open."""
    record = trainer(make_columns(gaps), parameters={"max_depth": 2})
    tree = Tree.from_arrays(trainer.store.load_tree(record))
    plain = open_source(record, tree, trainer.store, make_recent())
    assert isinstance(plain, DataSource)
    source = DataSource(record.id, plain.audited, make_recent(), large=0, uncounted=0)
    queries: list[tuple[dict[str, Any], bool]] = [
        ({}, False), ({"top": 5}, True), ({"admissible": True}, False), ({"chosen": True}, True),
    ]  # fmt: skip
    for fields, counted in queries:
        (view,) = source.view_nodes(np.array([0]), SplitQuery(**fields), end=9)
        (whole,) = plain.view_nodes(np.array([0]), SplitQuery(**fields))
        assert isinstance(view, DataView)
        assert view.is_counted == counted
        assert view.render(0, 9) == whole.render(0, 9)
        assert view.head() == whole.head()
    (view,) = source.view_nodes(np.array([0]), SplitQuery(), end=2000)
    assert isinstance(view, LargeView)
    counted = DataSource(record.id, plain.audited, make_recent(), large=0)
    (view,) = counted.view_nodes(np.array([0]), SplitQuery(), end=9)
    assert isinstance(view, LargeView)  # a survey of few rows says at once how many there are
    assert view.is_counted


def test_pages_of_a_file_are_not_counted(trainer: Trainer) -> None:
    """Numbers that are mapped from the file of the model do not count as memory of the worker, their codes do."""
    numbers_ = np.random.default_rng(1).normal(size=100_000).tolist()
    record = trainer({"x": numbers_, "y": ["a", "b"] * 50_000}, parameters={"max_depth": 1})
    source = open_source(record, Tree.from_arrays(trainer.store.load_tree(record)), trainer.store, make_recent())
    assert isinstance(source, DataSource)
    assert source.audited.count_bytes() < 8 * 100_000 * 1.6


def test_pages_by_another_measure_are_surveyed_once(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    """The page after the first by a measure needs no survey, nor does one by the run's own; another measure does."""
    record = trainer(make_columns(gaps=False), parameters={"max_depth": 2})
    tree = Tree.from_arrays(trainer.store.load_tree(record))
    plain = open_source(record, tree, trainer.store, make_recent())
    assert isinstance(plain, DataSource)
    source = DataSource(record.id, plain.audited, make_recent(), large=0, uncounted=0)
    names = ("survey_node", "survey_by", "survey_twice")
    made = {name: Mock(wraps=getattr(source_module, name)) for name in names}
    for name, spy in made.items():
        monkeypatch.setattr(source_module, name, spy)
    for measure in ("goodness", "goodness", None, "goodness", "information_gain", "information_gain"):
        query = SplitQuery(measure=measure)
        (view,), (whole,) = (list(each.view_nodes(np.array([0]), query)) for each in (source, plain))
        assert view.render(3, 9) == whole.render(3, 9)
    assert {name: spy.call_count for name, spy in made.items()} == {"survey_node": 0, "survey_by": 1, "survey_twice": 1}
