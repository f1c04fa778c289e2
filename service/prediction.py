"""Prediction: rows go down a stored tree, a table at once or a single row by the short way."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.answers import answer_rows
from service.core.conform import conform
from service.core.counterfactual import SPANS
from service.core.descend_one import OneRow
from service.core.guide import Guide, are_floats, lay_out
from service.core.read_row import Cell, RowReader
from service.core.schema import Column, Table
from service.core.tree import Tree, choose_answers
from service.store.models import ModelStore
from service.store.records import ModelRecord


@dataclass(frozen=True, slots=True)
class Picked:
    """``items[which]``, not carried out: of few items that come many times each has to be written as text but once.

    ``items``: (item,) or (item, class) float64; ``which``: (row,) int64.
    """

    items: NDArray[np.float64]
    which: NDArray[np.int64]

    def __getitem__(self, row: int) -> Any:  # noqa: ANN401 - a number or an array
        """The item of a row."""
        return self.items[self.which[row]]


class Predictor:
    """A model's tree, made ready once for all requests of this process."""

    def __init__(self, plain: Mapping[str, Any], missing: str) -> None:
        self.tree = Tree.from_arrays(plain)
        self.missing = missing
        self.spans: NDArray[np.float64] | None = plain.get(SPANS)
        self.names = {feature.name: place for place, feature in enumerate(self.tree.features)}
        self.reader = RowReader(self.tree.features, missing == "refuse")
        self.one = OneRow(self.tree)
        # None keeps numpy from guessing a type
        known = self.tree.classes or self.tree.answers
        self.labels = np.empty(len(known), dtype=object)
        self.labels[:] = known
        self._guide: Guide | None = None

    def guide(self, columns: Sequence[Column]) -> Guide:
        """The guide for such columns: the one made last, where it serves."""
        guide, floats = self._guide, are_floats(columns)
        if guide is None or guide.floats != floats:
            guide = self._guide = lay_out(self.tree, floats)
        return guide


def prepare(record: ModelRecord, store: ModelStore) -> Predictor:
    """The model's predictor, kept by the store beside the file that it was made from."""
    missing = str(record.body["parameters"]["missing"])
    return store.load_as(record, lambda plain: Predictor(plain, missing))


def predict(record: ModelRecord, table: Table, store: ModelStore) -> dict[str, Any]:
    """Predictions, probabilities by class, and the node each row ended in, in the order of the rows.

    Raises `InvalidData` for a table that lacks a column or, if the model refuses them, values.
    """
    predictor = prepare(record, store)
    tree = predictor.tree
    columns, warnings = conform(table, tree.features, predictor.missing)
    answers = answer_rows(tree, predictor.guide(columns), columns, table.rows)
    if tree.answers:
        predicted = predictor.labels[answers.prediction[answers.index].astype(np.int64)].tolist()
        return {"predictions": predicted, "leaves": answers.leaf, "warnings": warnings}
    if not tree.classes:
        predictions = Picked(answers.prediction, answers.index)
        return {"predictions": predictions, "leaves": answers.leaf, "warnings": warnings}
    return {
        "predictions": predictor.labels[answers.prediction[answers.index].astype(np.int64)].tolist(),
        "classes": list(tree.classes),
        "probabilities": Picked(answers.probability, answers.index),
        "leaves": answers.leaf,
        "warnings": warnings,
    }


def predict_one(predictor: Predictor, cells: Sequence[Cell]) -> dict[str, Any]:
    """What `predict` answers for a table of one row, with ``cells`` in the order of the features, as JSON has them.

    Raises `Unusual` where that would be an error or have a warning.
    """
    tree = predictor.tree
    values = predictor.reader.read(cells)
    node = predictor.one.descend(values)
    if tree.share is not None and not predictor.one.is_leaf(node):
        return _mix_parts(tree, predictor.one.part(values))
    answer = tree.prediction[node]
    if tree.answers:
        return {"predictions": [tree.answers[int(answer)]], "leaves": [node], "warnings": []}
    if not tree.classes:
        return {"predictions": [answer], "leaves": [node], "warnings": []}
    return {
        "predictions": [tree.classes[int(answer)]],
        "classes": tree.classes,
        "probabilities": [tree.probability[node]],
        "leaves": [node],
        "warnings": [],
    }


def _mix_parts(tree: Tree, parts: Sequence[tuple[int, float]]) -> dict[str, Any]:
    """The answer to a row of which there are ``parts`` in several leaves; added up in the order of `Parts.mix`."""
    heaviest = max(parts, key=lambda part: part[1])[0]
    if not tree.classes:
        total = np.zeros(tree.prediction.shape[1:])
        for node, share in parts:
            total = total + share * tree.prediction[node]
        return {"predictions": [total], "leaves": [heaviest], "warnings": []}
    probability = np.zeros(len(tree.classes))
    for node, share in parts:
        probability += share * tree.probability[node]
    return {
        "predictions": [tree.classes[int(choose_answers(probability[None], tree.loss)[0])]],
        "classes": tree.classes,
        "probabilities": [probability],
        "leaves": [heaviest],
        "warnings": [],
    }
