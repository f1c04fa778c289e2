"""Explanations without HTTP: models of earlier releases, and what a row is measured by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service import explaining
from service.core.counterfactual import SPANS
from service.core.shapley import measure_shapley
from service.core.tree import Tree
from service.errors import InvalidRequest, JobStopped
from service.explaining import ExplanationRequest, explain
from service.store.records import ModelDraft
from tests.making import make_table

if TYPE_CHECKING:
    from service.store.models import ModelStore
    from service.store.records import ModelRecord
    from tests.making import Trainer


def find_distance(record: ModelRecord, store: ModelStore) -> Any:  # noqa: ANN401 - a number
    """How far the row x = 2 is from another answer."""
    (row,) = explain(record, ExplanationRequest(make_table({"x": [2]})), store)["rows"]
    (change,) = row["counterfactuals"]
    assert change["to"] == 5
    return change["distance"]


def test_models_without_ranges(trainer: Trainer) -> None:
    """A file that lacks the ranges of training has distances by what stands beside the tree's thresholds."""
    record = trainer({"x": [1, 2, 6, 11], "y": ["a", "a", "b", "b"]})
    plain = {name: value for name, value in trainer.store.load_tree(record).items() if name != SPANS}
    older = trainer.store.add(ModelDraft("older", record.body, plain))
    assert find_distance(record, trainer.store) == 0.3
    assert find_distance(older, trainer.store) == 0.75


def test_a_job_takes_longer(trainer: Trainer, monkeypatch: pytest.MonkeyPatch) -> None:
    """Shapley values that nobody waits for may take more factors; the job is told how far it is, and may be ended."""
    record = trainer({"x": list(range(40)), "y": ["a", "b"] * 20})
    asked = ExplanationRequest(make_table({"x": list(range(30))}), shapley=True)
    whole = explain(record, asked, trainer.store)
    tree = Tree.from_arrays(trainer.store.load_tree(record))
    monkeypatch.setattr(explaining, "MOST_FACTORS", 20 * measure_shapley(tree))
    with pytest.raises(InvalidRequest):
        explain(record, asked, trainer.store)
    told: list[float] = []
    assert explain(record, asked, trainer.store, told.append) == whole
    assert len(told) == 15
    assert told == sorted(told)
    assert told[-1] < 1

    def end(_: float) -> None:
        raise JobStopped

    with pytest.raises(JobStopped):
        explain(record, asked, trainer.store, end)
