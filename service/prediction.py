"""Prediction: a table goes down a stored tree."""

from __future__ import annotations

from typing import Any

import numpy as np

from service.core.conform import conform
from service.core.schema import Table
from service.core.tree import Tree, descend
from service.store.models import ModelStore
from service.store.records import ModelRecord


def predict(record: ModelRecord, table: Table, store: ModelStore) -> dict[str, Any]:
    """Predictions, probabilities by class, and the node each row ended in, in the order of the rows.

    Raises `InvalidData` for a table that lacks a column or, if the model refuses them, values.
    """
    tree = Tree.from_arrays(store.load_tree(record))
    refuse = record.body["parameters"]["missing"] == "refuse"
    columns, warnings = conform(table, tree.features, refuse)
    node = descend(tree, columns, table.rows).node
    answer = tree.prediction[node]
    if not tree.classes:
        return {"predictions": answer, "leaves": node, "warnings": warnings}
    labels = np.array([*tree.classes, None], dtype=object)[:-1]  # None keeps numpy from guessing a type
    return {
        "predictions": labels[answer.astype(np.int64)].tolist(),
        "classes": list(tree.classes),
        "probabilities": tree.probability[node],
        "leaves": node,
        "warnings": warnings,
    }
