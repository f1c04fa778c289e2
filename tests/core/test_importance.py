"""What a tree owes to its features, beside scikit-learn's account and beside conservation."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from service.core.importance import credit_features, find_gains
from service.core.learn import Learnt, restore_objective
from tests.core.making import classes, grow, labels, numbers, values


def weigh(learnt: Learnt, positive: str | None = None) -> NDArray[np.float64]:
    """(feature,) the gains, from nothing but the tree and its parameters."""
    objective, _ = restore_objective(learnt.tree, learnt.learner.parameters, positive)
    return credit_features(learnt.tree, find_gains(learnt.tree, objective))


@pytest.mark.parametrize("criterion", ["gini", "entropy", "variance", "poisson"])
@pytest.mark.parametrize("weighted", [False, True])
def test_beside_scikit_learn(criterion: str, weighted: bool) -> None:
    """On data without ties the shares are its feature_importances_, and the sums those times the weight."""
    random = np.random.default_rng(4)
    table = random.normal(size=(400, 5)).astype(np.float32).astype(float)
    signal = 2 * (table[:, 0] > 0.2) + table[:, 1] + 0.5 * table[:, 2] * table[:, 3]
    weight = random.integers(1, 4, 400).astype(float) if weighted else None
    asked = {"criterion": criterion, "max_depth": 4, "min_samples_leaf": 15}
    columns = [numbers(f"x{j}", table[:, j].tolist()) for j in range(5)]
    heavy = None if weight is None else weight.tolist()
    if criterion in ("gini", "entropy"):
        truth = np.digitize(signal + random.normal(size=400), [0, 2])
        target = classes(["abc"[k] for k in truth], heavy)
        peer = DecisionTreeClassifier(**asked).fit(table, truth, weight)
    else:
        truth = random.poisson(np.exp(signal / 2)) if criterion == "poisson" else signal + random.normal(size=400)
        target = values(truth.astype(float).tolist(), heavy)
        asked["criterion"] = "poisson" if criterion == "poisson" else "squared_error"
        peer = DecisionTreeRegressor(**asked).fit(table, truth, weight)
    learnt = grow(columns, target, asked | {"criterion": criterion})
    assert sorted(peer.tree_.feature[peer.tree_.feature >= 0]) == sorted(
        learnt.tree.feature[~learnt.tree.is_leaf].tolist()
    )
    gain = weigh(learnt)
    assert gain / gain.sum() == pytest.approx(peer.feature_importances_, rel=1e-9)
    total = 400 if weight is None else weight.sum()
    # both take half of the Poisson deviance
    assert gain == pytest.approx(peer.tree_.compute_feature_importances(normalize=False) * total, rel=1e-9)


ASKED: list[tuple[dict[str, Any], str | None]] = [
    ({"criterion": "gini"}, None),
    ({"criterion": "entropy", "class_weight": "balanced"}, None),
    ({"criterion": "gini", "priors": {"n": 1, "y": 3}, "loss": [[0, 2], [5, 0]]}, None),
    ({"criterion": "gain_ratio", "nominal": "multiway", "class_weight": {"n": 2, "y": 1}}, None),
    ({"criterion": "gini_gain_ratio"}, None),
    ({"criterion": "goodness"}, None),
    ({"criterion": "positive_correctness"}, "y"),
    ({"criterion": "entropy", "max_leaf_nodes": 3}, None),
]


@settings(deadline=None)
@given(st.data(), st.sampled_from(ASKED))
def test_gains_add_up(data: st.DataObject, case: tuple[dict[str, Any], str | None]) -> None:
    """All gains together are what the leaves' weighted impurities lack of the root's, whatever the classes weigh."""
    asked, positive = case
    rows = data.draw(st.integers(2, 20))
    told = ["n", "y", *data.draw(st.lists(st.sampled_from("ny"), min_size=rows - 2, max_size=rows - 2))]
    weights = st.lists(st.sampled_from([1, 2, 0.5]), min_size=rows, max_size=rows)
    target = classes(told, data.draw(st.none() | weights))
    cells = data.draw(st.lists(st.none() | st.integers(0, 5), min_size=rows, max_size=rows))
    names = data.draw(st.lists(st.sampled_from("pqr"), min_size=rows, max_size=rows))
    columns = [numbers("a", cells), labels("b", names)]
    learnt = grow(columns, target, asked, positive=positive)
    tree, objective = learnt.tree, learnt.learner.objective
    weight = objective.alter(tree.counts).sum(0)
    total = weight * tree.impurity
    expected = total[0] - total[tree.is_leaf].sum()
    assert weigh(learnt, positive).sum() == pytest.approx(expected, rel=1e-9, abs=1e-9 * max(total[0], 1))


def test_a_leaf_owes_nothing() -> None:
    """A tree of one leaf, with features or without, has gained nothing."""
    assert weigh(grow([numbers("a", [1, 1])], classes(["n", "y"]))).tolist() == [0.0]
    assert weigh(grow([], values([1.0, 2.0]))).tolist() == []
