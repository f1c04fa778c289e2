"""What we race against. Each is given the data as it likes them best, and builds the tree that we build.

A peer that is not installed is None.
"""

from __future__ import annotations

import importlib.util
import os
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.problems import Problem

Fit = Callable[[], Any]
BINS = 255
DEEPEST = 10_000


def is_installed(module: str) -> bool:
    """Whether the peer is there."""
    return importlib.util.find_spec(module) is not None


def sklearn_fit(problem: Problem, depth: int | None) -> Fit | None:
    """scikit-learn's exact tree on the float64 matrix, as its users have it; its rounding to float32 counts."""
    if not is_installed("sklearn"):
        return None
    from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor  # noqa: PLC0415

    kind = DecisionTreeClassifier if problem.target.is_classification else DecisionTreeRegressor
    kind(max_depth=2).fit(problem.matrix[:50], problem.answers[:50])
    return lambda: kind(max_depth=depth, random_state=0).fit(problem.matrix, problem.answers)


def ydf_fit(problem: Problem, depth: int) -> Fit | None:
    """YDF's CART without the validation split that prunes it; its depth counts the root."""
    if not is_installed("ydf"):
        return None
    import ydf  # noqa: PLC0415

    matrix = problem.matrix.astype(np.float32)
    columns = {f"x{i}": np.ascontiguousarray(matrix[:, i]) for i in range(matrix.shape[1])} | {"y": problem.answers}

    def fit(rows: int | None = None) -> Any:  # noqa: ANN401 - YDF's model
        data = columns if rows is None else {name: values[:rows] for name, values in columns.items()}
        learner = ydf.CartLearner(label="y", max_depth=depth + 1, validation_ratio=0.0, min_examples=1)
        return learner.train(data, verbose=0)

    fit(50)
    return fit


def lightgbm_fit(problem: Problem, depth: int, nominal: bool = False) -> Fit | None:
    """One tree of LightGBM, with 255 bins, the construction of its data set counted."""
    if not is_installed("lightgbm"):
        return None
    import lightgbm  # noqa: PLC0415

    classes = len(problem.target.classes)
    objective = {0: {"objective": "regression"}, 2: {"objective": "binary"}}.get(
        classes, {"objective": "multiclass", "num_class": classes}
    )
    limits = {"max_depth": depth, "num_leaves": 2**depth, "min_data_in_leaf": 1, "min_sum_hessian_in_leaf": 0.0}
    parameters = objective | limits | {"max_bin": BINS, "verbose": -1, "num_threads": os.cpu_count()}
    named: list[int] | str = list(range(problem.matrix.shape[1])) if nominal else "auto"

    def fit(rows: int | None = None) -> Any:  # noqa: ANN401 - LightGBM's model
        data = lightgbm.Dataset(
            problem.matrix[:rows], problem.answers[:rows], categorical_feature=named, params=dict(parameters)
        )
        return lightgbm.train(dict(parameters), data, 1)

    fit(50)
    return fit
