"""Explanations without HTTP: models of earlier releases, and what a row is measured by."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from service.core.counterfactual import SPANS
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
