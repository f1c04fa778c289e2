"""The prediction use case: in the order of the rows, to the end, and alike for one row and for many."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any, TypeVar

import pytest

from service.errors import NotFound
from service.prediction import predict, predict_one, prepare
from service.store.models import ModelStore
from service.store.records import ModelRecord
from tests.making import Trainer, make_table

Made = TypeVar("Made")
ROWS = {"x": [1, 2, 3, 4, 5, 6], "name": list("pqpqpq"), "y": list("aabbba")}


@pytest.fixture
def other(trainer: Trainer) -> Iterator[ModelStore]:
    """What another worker has open on the same models."""
    store = ModelStore.open(trainer.settings)
    yield store
    store.close()


class Interrupted:
    """A store whose model is deleted by another worker right after it was loaded here."""

    def __init__(self, store: ModelStore, other: ModelStore) -> None:
        self.store, self.other = store, other

    def load_as(self, record: ModelRecord, make: Callable[[Mapping[str, Any]], Made]) -> Made:
        """Load, and lose the file."""
        made = self.store.load_as(record, make)
        self.other.delete(record.id)
        return made


def test_a_prediction_in_flight_finishes(trainer: Trainer, other: ModelStore) -> None:
    """A model that is deleted while rows go down its tree answers them all; the next question finds it gone."""
    record = trainer(ROWS)
    asked = make_table({"x": [6, 1, 4], "name": ["q", "p", "q"]})
    answer = predict(record, asked, Interrupted(trainer.store, other))  # type: ignore[arg-type] # all that is asked of it
    assert answer["predictions"] == ["a", "a", "b"]
    with pytest.raises(NotFound):
        trainer.store.find(record.id)


@pytest.mark.parametrize("target", ["y", "z"])
def test_one_row_and_many(trainer: Trainer, target: str) -> None:
    """A row asked for alone gets what it gets among others, classes and numbers alike."""
    columns = {"x": ROWS["x"], "name": ROWS["name"], target: ROWS["y"] if target == "y" else [0.5, 1, 1, 7, 2, 9]}
    record = trainer(columns, target)
    rows = [(x, name) for x in (0, 2, 3.5, 5, 9) for name in "pq"]
    many = predict(record, make_table({"x": [x for x, _ in rows], "name": [name for _, name in rows]}), trainer.store)
    for place, row in enumerate(rows):
        alone = predict_one(prepare(record, trainer.store), row)
        assert alone["predictions"][0] == many["predictions"][place]
        assert alone["leaves"][0] == many["leaves"][place]
        if target == "y":
            assert list(alone["probabilities"][0]) == list(many["probabilities"][place])


def test_regression_answers_the_mean(trainer: Trainer) -> None:
    """A leaf of a regression answers the weighted mean of its rows, and there are no classes."""
    record = trainer({"x": [1, 1, 2], "w": [3, 1, 1], "y": [0.0, 4.0, 9.0]}, weight="w", parameters={"max_depth": 1})
    answer = predict(record, make_table({"x": [2, 1]}), trainer.store)
    assert list(answer["predictions"]) == [9.0, 1.0]
    assert answer.keys() == {"predictions", "leaves", "warnings"}
