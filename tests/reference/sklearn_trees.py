"""scikit-learn's trees beside those of the service, node by node.

scikit-learn keeps features as float32 and asks them in a random order, so it may take another of equally good splits.
Values here are such that float32 holds. Where the two trees take different splits of one node, both must score alike;
unless they part the rows alike, nothing is said of what is below.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from tests.oracle.contract import Service

LEAF = -1


@dataclass(frozen=True)
class Data:
    """Rows of one of scikit-learn's data sets: ``values: (row, feature)``, NaN where missing; classes or numbers."""

    values: NDArray[np.float64]
    target: NDArray[Any]
    weight: NDArray[np.float64] | None = None

    @property
    def names(self) -> list[str]:
        """The names of the features."""
        return [f"x{place}" for place in range(self.values.shape[1])]

    def post(self, service: Service, parameters: Mapping[str, Any]) -> str:
        """The model that the service learns; its id."""
        columns = self.columns() | {"y": self.target.tolist()}
        more: dict[str, Any] = {"parameters": dict(parameters)}
        more["task"] = "regression" if self.target.dtype.kind == "f" else "classification"
        if self.weight is not None:
            columns["w"] = self.weight.tolist()
            more["weight"] = "w"
        return service.train(columns, "y", more)

    def columns(self, rows: Sequence[int] | slice = slice(None)) -> dict[str, list[Any]]:
        """Some rows as they are posted."""
        picked = self.values[rows].T.tolist()
        return {
            name: [None if cell != cell else cell for cell in line]  # noqa: PLR0124 - NaN differs from itself
            for name, line in zip(self.names, picked, strict=True)
        }


def load(loaded: Any, rows: int | None = None) -> Data:  # noqa: ANN401 - scikit-learn's Bunch
    """A data set of scikit-learn, with the values that float32 makes of them."""
    values = loaded.data[:rows].astype(np.float32).astype(np.float64)
    return Data(values, loaded.target[:rows])


@dataclass
class Shared:
    """What two trees have in common: nodes seen in both, the inner ones among them, leaves of both, and ties met."""

    nodes: int = 0
    inner: int = 0
    leaves: int = 0
    ties: int = 0


def compare(
    service: Service,
    model: str,
    tree: Any,  # noqa: ANN401 - `tree_`
    data: Data,
    measure: str,
) -> Shared:
    """Walk both trees from the root while their splits agree; fails where they differ and are not equally good.

    The rows of leaves that both trees have are asked for their answers.
    """
    nodes, shared = service.tree(model), Shared()
    answers: list[tuple[NDArray[np.int64], NDArray[np.float64]]] = []
    pairs = [(0, 0, np.arange(len(data.target)))]
    while pairs:
        here, there, rows = pairs.pop()
        ours = nodes[here]
        shared.nodes += 1
        assert ours["n"] == tree.n_node_samples[there]
        assert ours["impurity"] == pytest.approx(tree.impurity[there], rel=1e-9, abs=1e-12)
        leaf = tree.children_left[there] == LEAF
        if ours["leaf"]:
            # scikit-learn also takes splits that gain nothing
            assert leaf or find_gain(tree, there) <= 1e-9 * max(1.0, tree.impurity[there])
            shared.leaves += 1
            answers.append((rows, tree.value[there][0]))
            continue
        assert not leaf
        mine = go_left(ours, data.values[rows, data.names.index(ours["feature"])])
        theirs = go_left_there(tree, there, data.values[rows, tree.feature[there]])
        sides = [tree.children_left[there], tree.children_right[there]]
        if not (mine == theirs).all():
            best = service.splits(model, {"node": here, "chosen": "true"})[0]["scores"][measure]
            assert find_gain(tree, there) == pytest.approx(best, rel=1e-9, abs=1e-12)
            if not (mine != theirs).all():
                shared.ties += 1
                continue
            sides.reverse()
        elif ours["split"]["type"] == "threshold" and data.names[tree.feature[there]] == ours["feature"]:
            assert ours["split"]["threshold"] == tree.threshold[there]
        shared.inner += 1
        pairs += zip(ours["children"], sides, (rows[mine], rows[~mine]), strict=True)
    if answers:
        assert_answers(service, model, data, answers)
    return shared


def go_left(ours: Mapping[str, Any], cells: NDArray[np.float64]) -> NDArray[np.bool_]:
    """Which rows of a node of ours its first branch takes."""
    split = ours["split"]
    if split["type"] == "missing":
        return np.isnan(cells)
    return np.where(np.isnan(cells), split.get("missing") == "left", cells <= split["threshold"])


def go_left_there(tree: Any, node: int, cells: NDArray[np.float64]) -> NDArray[np.bool_]:  # noqa: ANN401 - `tree_`
    """Which rows of a node of scikit-learn's its left branch takes."""
    return np.where(np.isnan(cells), bool(tree.missing_go_to_left[node]), cells <= tree.threshold[node])


def find_gain(tree: Any, node: int) -> float:  # noqa: ANN401 - `tree_`
    """What a split of scikit-learn's gains in impurity."""
    weight = tree.weighted_n_node_samples
    sides = (tree.children_left[node], tree.children_right[node])
    return float(tree.impurity[node] - sum(weight[side] * tree.impurity[side] for side in sides) / weight[node])


def assert_answers(
    service: Service, model: str, data: Data, answers: Sequence[tuple[NDArray[np.int64], NDArray[np.float64]]]
) -> None:
    """Rows are answered with the values of their leaves: the shares of the classes, or the mean."""
    rows = np.concatenate([some for some, _ in answers])
    expected = np.concatenate([np.tile(value, (len(some), 1)) for some, value in answers])
    answer = service.predict(model, data.columns(rows))
    if "probabilities" not in answer:
        assert answer["predictions"] == pytest.approx(expected[:, 0], rel=1e-9, abs=1e-9)
        return
    shares = expected / expected.sum(1, keepdims=True)
    assert np.array(answer["probabilities"]) == pytest.approx(shares, rel=1e-9, abs=1e-12)
