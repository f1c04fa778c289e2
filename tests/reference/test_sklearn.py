"""The same trees as scikit-learn's on the data sets that it ships, wherever ties leave no choice."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from sklearn import datasets
from sklearn.tree import DecisionTreeClassifier, DecisionTreeRegressor

from tests.oracle.contract import Service
from tests.reference.sklearn_trees import Data, Shared, compare, load

IRIS, WINE, CANCER = load(datasets.load_iris()), load(datasets.load_wine()), load(datasets.load_breast_cancer())
DIGITS, DIABETES = load(datasets.load_digits(), 400), load(datasets.load_diabetes())
CLASSES = {"iris": IRIS, "wine": WINE, "cancer": CANCER, "digits": DIGITS}
MEASURES = {"gini": "gini_gain", "entropy": "information_gain"}
SEEDS = range(3)
"""scikit-learn asks features in several orders: what it takes among ties differs."""


def assert_alike(service: Service, data: Data, asked: dict[str, Any], given: dict[str, Any]) -> list[Shared]:
    """Trees of ``data`` by our parameters ``asked`` and scikit-learn's ``given``, by several orders of its features."""
    model = data.post(service, asked)
    kind = DecisionTreeRegressor if data.target.dtype.kind == "f" else DecisionTreeClassifier
    measure = (
        MEASURES.get(asked.get("criterion", "gini"), "") if kind is DecisionTreeClassifier else "variance_reduction"
    )
    found = []
    for seed in SEEDS:
        peer = kind(random_state=seed, **given).fit(data.values, data.target, sample_weight=data.weight)
        found.append(compare(service, model, peer.tree_, data, measure))
    return found


@pytest.mark.parametrize("criterion", ["gini", "entropy"])
@pytest.mark.parametrize(("name", "inner"), [("iris", 5), ("wine", 6), ("cancer", 12), ("digits", 25)])
def test_classes(service: Service, name: str, inner: int, criterion: str) -> None:
    """Unlimited trees of classes: same rows, impurities, shares and splits at every node that ties do not hide."""
    for shared in assert_alike(service, CLASSES[name], {"criterion": criterion}, {"criterion": criterion}):
        assert shared.inner >= inner, shared


def test_numbers(service: Service) -> None:
    """Unlimited trees by squared error on the progress of diabetes."""
    data = replace(DIABETES, target=DIABETES.target.astype(float))
    for shared in assert_alike(service, data, {}, {}):
        assert shared.inner > 150, shared


@pytest.mark.parametrize(
    ("asked", "given", "inner"),
    [
        ({"min_samples_leaf": 7, "min_samples_split": 20}, {"min_samples_leaf": 7, "min_samples_split": 20}, 6),
        ({"max_depth": 3}, {"max_depth": 3}, 4),
        ({"min_weight_leaf": 0.05 * 569}, {"min_weight_fraction_leaf": 0.05}, 3),
        ({"max_leaf_nodes": 8}, {"max_leaf_nodes": 8}, 4),
        ({"max_leaf_nodes": 15, "min_samples_leaf": 5}, {"max_leaf_nodes": 15, "min_samples_leaf": 5}, 7),
    ],
)
def test_limits(service: Service, asked: dict[str, Any], given: dict[str, Any], inner: int) -> None:
    """Limits on leaves, on weight, on depth, and leaves grown best first."""
    for shared in assert_alike(service, CANCER, asked, given):
        assert shared.inner >= inner, shared


@pytest.mark.parametrize("kind", ["whole", "real"])
@pytest.mark.parametrize("name", ["wine", "cancer", "diabetes"])
def test_row_weights(service: Service, name: str, kind: str) -> None:
    """Rows of weight 1 to 3, or of any: gains, impurities and answers are weighted."""
    data = (CLASSES | {"diabetes": replace(DIABETES, target=DIABETES.target.astype(float))})[name]
    source = np.random.default_rng(5)
    rows = len(data.target)
    drawn = source.integers(1, 4, rows).astype(float) if kind == "whole" else source.uniform(0.1, 3.0, rows)
    for shared in assert_alike(service, replace(data, weight=drawn), {"min_samples_leaf": 3}, {"min_samples_leaf": 3}):
        assert shared.inner >= 4, shared


@pytest.mark.parametrize("leaves", [None, 9])
def test_limits_on_weight_with_row_weights(service: Service, leaves: int | None) -> None:
    """A share of the weight of all rows is what each branch needs, also where leaves are grown best first."""
    weight = np.random.default_rng(3).uniform(0.1, 3.0, len(DIABETES.target))
    data = Data(DIABETES.values, DIABETES.target.astype(float), weight)
    asked = {"min_weight_leaf": 0.03 * float(weight.sum()), "max_leaf_nodes": leaves}
    for shared in assert_alike(service, data, asked, {"min_weight_fraction_leaf": 0.03, "max_leaf_nodes": leaves}):
        assert shared.inner >= 8, shared


@pytest.mark.parametrize("weights", [[1.0, 4.0, 0.5], "balanced"])
def test_class_weights(service: Service, weights: list[float] | str) -> None:
    """Given class weights, and balanced ones, multiply the weights of the rows."""
    by_class: Any = weights if weights == "balanced" else dict(enumerate(weights))
    posted: Any = weights if weights == "balanced" else {str(place): each for place, each in enumerate(weights)}
    for shared in assert_alike(service, WINE, {"class_weight": posted}, {"class_weight": by_class}):
        assert shared.inner >= 4, shared


def test_class_weights_with_row_weights(service: Service) -> None:
    """Both at once multiply."""
    data = replace(CANCER, weight=np.random.default_rng(2).integers(1, 4, len(CANCER.target)).astype(float))
    asked = {"class_weight": {"0": 3.0, "1": 1.0}, "max_depth": 4}
    for shared in assert_alike(service, data, asked, {"class_weight": {0: 3.0, 1: 1.0}, "max_depth": 4}):
        assert shared.inner >= 8, shared


@pytest.mark.parametrize("depth", [3, 6])
def test_monotonic_classes(service: Service, depth: int) -> None:
    """Some features of the tumours may only raise the share of benign ones, others only lower it."""
    rules = {0: "down", 1: "up", 7: "down", 21: "down", 22: "up", 27: "up"}
    asked = {"monotonic": {f"x{place}": way for place, way in rules.items()}, "max_depth": depth, "min_samples_leaf": 5}
    signs = [{"up": 1, "down": -1}.get(rules.get(place, ""), 0) for place in range(30)]
    given = {"monotonic_cst": signs, "max_depth": depth, "min_samples_leaf": 5}
    for shared in assert_alike(service, CANCER, asked, given):
        assert shared.inner >= 5, shared


@pytest.mark.parametrize("depth", [3, 6])
def test_monotonic_numbers(service: Service, depth: int) -> None:
    """The progress of diabetes may only rise with the body mass index, only fall with another, and so on."""
    data = replace(DIABETES, target=DIABETES.target.astype(float))
    rules = {2: "up", 3: "up", 6: "down", 8: "down", 0: "up"}
    asked = {"monotonic": {f"x{place}": way for place, way in rules.items()}, "max_depth": depth, "min_samples_leaf": 5}
    signs = [{"up": 1, "down": -1}.get(rules.get(place, ""), 0) for place in range(10)]
    given = {"monotonic_cst": signs, "max_depth": depth, "min_samples_leaf": 5}
    for shared in assert_alike(service, data, asked, given):
        assert shared.inner >= 7, shared


@pytest.mark.parametrize("share", [0.1, 0.4])
@pytest.mark.parametrize("name", ["iris", "wine", "cancer", "diabetes"])
def test_missing_values(service: Service, name: str, share: float) -> None:
    """Cells lost at random, and more of them in one class: each cut learns the side of what is missing."""
    data = (CLASSES | {"diabetes": replace(DIABETES, target=DIABETES.target.astype(float))})[name]
    source = np.random.default_rng(8)
    often = np.where(data.target == data.target[0], 1.5, 0.5)[:, None] * share
    values = np.where(source.random(data.values.shape) < often, np.nan, data.values)
    gaps = replace(data, values=values)
    for shared in assert_alike(service, gaps, {"min_samples_leaf": 4}, {"min_samples_leaf": 4}):
        assert shared.inner >= 2, shared


def test_predictions(service: Service) -> None:
    """Where no split was tied the answers to all rows, and to rows between them, are the same."""
    half = np.arange(len(CANCER.target)) % 2 == 0
    taught = Data(CANCER.values[half], CANCER.target[half])
    asked = {"max_depth": 4, "min_samples_leaf": 6}
    model = taught.post(service, asked)
    peer = DecisionTreeClassifier(random_state=0, **asked).fit(taught.values, taught.target)
    shared = compare(service, model, peer.tree_, taught, "gini_gain")
    assert shared.ties == 0
    answer = service.predict(model, CANCER.columns())
    assert answer["predictions"] == peer.predict(CANCER.values).tolist()
    assert np.array(answer["probabilities"]) == pytest.approx(peer.predict_proba(CANCER.values), rel=1e-12)
