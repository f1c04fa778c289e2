"""Trees of numbers beside scikit-learn's on the data sets that it ships: equal impurities and answers."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from sklearn.datasets import load_diabetes
from sklearn.tree import DecisionTreeRegressor

from tests.oracle.contract import Service

LIMITS = [{}, {"min_samples_leaf": 5}, {"max_depth": 3, "min_samples_split": 10}]
Table = NDArray[np.float64]


def read_diabetes() -> tuple[Table, Table]:
    """442 patients: ten columns, as float32 has them since that is what the peer compares, and a whole number."""
    columns, target = load_diabetes(return_X_y=True)
    return columns.astype(np.float32).astype(np.float64), target


def train(service: Service, columns: Table, target: Table, criterion: str, more: Mapping[str, Any]) -> Sequence[Any]:
    """The nodes of our tree."""
    data = {f"x{place}": column.tolist() for place, column in enumerate(columns.T)}
    weight = more.get("weight")
    names = {"weight": "w"} if weight is not None else {}
    data |= {"w": weight.tolist()} if weight is not None else {}
    limits = {name: value for name, value in more.items() if name != "weight"}
    body = {"task": "regression", "parameters": {"criterion": criterion, **limits}, **names}
    return service.tree(service.train(data | {"y": target.tolist()}, "y", body))


def read_several() -> tuple[Table, Table]:
    """The progress, the age and the mass of the patients, and the other columns."""
    columns, target = read_diabetes()
    return columns[:, 3:], np.stack([target, 1000 * columns[:, 0], 500 * columns[:, 2]], axis=1)


def train_several(service: Service, columns: Table, targets: Table, more: Mapping[str, Any]) -> Sequence[Any]:
    """The nodes of our tree of three targets."""
    weight = more.get("weight")
    names = ["progress", "age", "mass"]
    data = {f"x{place}": column.tolist() for place, column in enumerate(columns.T)}
    data |= {name: column.tolist() for name, column in zip(names, targets.T, strict=True)}
    data |= {"w": weight.tolist()} if weight is not None else {}
    limits = {name: value for name, value in more.items() if name != "weight"}
    body = {"data": {"columns": data}, "target": names, "parameters": limits, "weight": None if weight is None else "w"}
    return service.tree(service.record(body)["id"])


def assert_alike(ours: Sequence[Any], theirs: Any) -> int:  # noqa: ANN401 - scikit-learn's Tree
    """Impurities and answers agree in all nodes down to where a tie was broken otherwise; how many were compared."""
    waiting, compared, rounding = [(0, 0)], 0, 1e-12 * max(1, theirs.impurity[0])
    while waiting:
        mine, other = waiting.pop()
        node = ours[mine]
        compared += 1
        assert node["n"] == theirs.n_node_samples[other]
        assert node["impurity"] == pytest.approx(theirs.impurity[other], rel=1e-9, abs=rounding)
        assert np.ravel(node["prediction"]) == pytest.approx(np.ravel(theirs.value[other]), rel=1e-12)
        left, right = theirs.children_left[other], theirs.children_right[other]
        assert node["leaf"] == (left < 0), node
        if node["leaf"]:
            continue
        share = theirs.weighted_n_node_samples[[left, right]] / theirs.weighted_n_node_samples[other]
        gain = theirs.impurity[other] - float(share @ theirs.impurity[[left, right]])
        assert node["score"] == pytest.approx(gain, rel=1e-9, abs=1e-9 * node["impurity"])
        same = node["feature"] == f"x{theirs.feature[other]}"
        if same and node["split"]["threshold"] == pytest.approx(theirs.threshold[other], rel=1e-6):
            waiting += zip(node["children"], (left, right), strict=True)
    return compared


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("weighted", [False, True])
def test_poisson(service: Service, limits: dict[str, Any], weighted: bool) -> None:
    """By the Poisson deviance, with a third of the targets 0, weighted or not."""
    columns, target = read_diabetes()
    target = np.maximum(target - 100, 0)
    weight = np.arange(len(target)) % 3 + 1.0 if weighted else None
    peer = DecisionTreeRegressor(criterion="poisson", random_state=0, **limits).fit(columns, target, weight)
    nodes = train(service, columns, target, "poisson", limits | ({"weight": weight} if weighted else {}))
    assert assert_alike(nodes, peer.tree_) >= min(len(nodes), 15)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("weighted", [False, True])
def test_absolute_error(service: Service, limits: dict[str, Any], weighted: bool) -> None:
    """By the absolute error about the weighted median, the middle of two where these share the weight."""
    columns, target = read_diabetes()
    weight = np.arange(len(target)) % 3 + 1.0 if weighted else None
    peer = DecisionTreeRegressor(criterion="absolute_error", random_state=0, **limits).fit(columns, target, weight)
    nodes = train(service, columns, target, "absolute_error", limits | ({"weight": weight} if weighted else {}))
    assert assert_alike(nodes, peer.tree_) >= min(len(nodes), 15)


@pytest.mark.parametrize("limits", LIMITS)
@pytest.mark.parametrize("weighted", [False, True])
def test_several_targets(service: Service, limits: dict[str, Any], weighted: bool) -> None:
    """The progress, the age and the mass at once, by the mean of their variances: every node answers with a list."""
    columns, targets = read_several()
    weight = np.arange(len(targets)) % 3 + 1.0 if weighted else None
    peer = DecisionTreeRegressor(random_state=0, **limits).fit(columns, targets, weight)
    nodes = train_several(service, columns, targets, limits | ({"weight": weight} if weighted else {}))
    assert assert_alike(nodes, peer.tree_) >= min(len(nodes), 15)


@pytest.mark.parametrize("alpha", [20.0, 60.0])
def test_several_targets_pruned(service: Service, alpha: float) -> None:
    """Cut back to the same cost-complexity, trees of several targets have the same nodes."""
    columns, targets = read_several()
    peer = DecisionTreeRegressor(random_state=0, ccp_alpha=alpha).fit(columns, targets)
    nodes = train_several(service, columns, targets, {"pruning": "cost_complexity", "alpha": alpha})
    assert 1 < len(nodes) == peer.tree_.node_count
    assert assert_alike(nodes, peer.tree_) >= len(nodes) - 4
