"""The path of cost-complexity pruning beside scikit-learn's, on the data sets that it ships."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from sklearn import datasets
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from service.core.learn import learn
from service.core.parameters import resolve
from service.core.schema import Column, Target

Load = Callable[[], Any]
CASES = [
    (datasets.load_iris, {}),
    (datasets.load_wine, {}),
    (datasets.load_wine, {"criterion": "entropy"}),
    (datasets.load_breast_cancer, {}),
    (datasets.load_breast_cancer, {"class_weight": "balanced"}),
    (datasets.load_diabetes, {}),
]


def learn_pruned(load: Load, asked: dict[str, Any], alpha: float) -> tuple[Any, Any]:
    """Our tree of a data set pruned to alpha by impurity, and the data."""
    data = load()
    columns = [Column(str(place), "numeric", line.copy()) for place, line in enumerate(data.data.T)]
    if "target_names" in data:
        labels = tuple(range(len(data.target_names)))
        target, task = Target("y", labels, data.target.astype(np.int32)), "classification"
    else:
        target, task = Target("y", values=data.target.astype(float)), "regression"
    parameters = {"pruning": "cost_complexity", "risk": "impurity", "alpha": alpha, **asked}
    return learn(columns, target, resolve("cart", parameters, task)), data  # type: ignore[arg-type]


def grow_peer(load: Load, asked: dict[str, Any], alpha: float = 0.0) -> Any:  # noqa: ANN401 - it has no types
    """scikit-learn's unfitted tree."""
    kind = DecisionTreeClassifier if "target_names" in load() else DecisionTreeRegressor
    return kind(random_state=0, ccp_alpha=alpha, **asked)


@pytest.mark.parametrize(("load", "asked"), CASES)
def test_the_path(load: Load, asked: dict[str, Any]) -> None:
    """The same alphas and impurities; links of one alpha, which scikit-learn lists one by one, are a step here."""
    learnt, data = learn_pruned(load, asked, 0.0)
    path = grow_peer(load, asked).cost_complexity_pruning_path(data.data, data.target)
    scale = float(path.impurities[-1])
    last = np.append(np.diff(path.ccp_alphas) > 1e-9 * scale, True)
    ours = learnt.pruning.path
    assert len(ours.alpha) == last.sum() > 5
    assert ours.alpha == pytest.approx(path.ccp_alphas[last], rel=1e-9, abs=1e-12 * scale)
    assert ours.risk == pytest.approx(path.impurities[last], rel=1e-9, abs=1e-12 * scale)


@pytest.mark.parametrize(("load", "asked"), CASES)
def test_the_pruned_tree(load: Load, asked: dict[str, Any]) -> None:
    """Pruned to the middle of the path, a tree has scikit-learn's leaves and answers every training row as it does."""
    learnt, data = learn_pruned(load, asked, 0.0)
    alphas = learnt.pruning.path.alpha
    alpha = float(alphas[len(alphas) // 2 : len(alphas) // 2 + 2].mean())
    pruned, _ = learn_pruned(load, asked, alpha)
    peer = grow_peer(load, asked, alpha).fit(data.data, data.target)
    assert int(pruned.tree.is_leaf.sum()) == peer.get_n_leaves() > 1
    assert pruned.tree.prediction[pruned.leaf] == pytest.approx(peer.predict(data.data), rel=1e-9)
