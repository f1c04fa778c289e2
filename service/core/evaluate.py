"""How well a tree fits rows whose target is known."""

from __future__ import annotations

import numpy as np

from service.core.schema import Target
from service.core.statistics import Ints
from service.core.tree import Tree


def measure_fit(tree: Tree, target: Target, node: Ints) -> dict[str, float]:
    """Accuracy, or R2, mean absolute and root mean squared error, of rows that ended in ``node: (row,)``."""
    answer = tree.prediction[node]
    if target.codes is not None:
        return {"accuracy": float(np.average(answer == target.codes, weights=target.weight))}
    if target.values is None:
        return {}
    error = target.values - answer
    square = float(np.average(error * error, weights=target.weight))
    offset = target.values - np.average(target.values, weights=target.weight)
    spread = float(np.average(offset * offset, weights=target.weight))
    return {
        "r2": 1.0 - square / spread if spread > 0 else 0.0,
        "mae": float(np.average(np.abs(error), weights=target.weight)),
        "rmse": square**0.5,
    }
