"""Measures of how good answers are, beside scikit-learn's and beside hand calculation."""

from __future__ import annotations

import math
import warnings
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from sklearn import metrics as peer

from service.core.answers import Answers
from service.core.evaluate import ClassFit, Metrics, measure_classes, measure_numbers

Told = tuple[Answers, NDArray[np.int64], NDArray[np.float64] | None]


@st.composite
def told_classes(draw: st.DrawFn) -> Told:
    """Two to four classes, a few distinct answers as in a tree, rows that each got one of them."""
    classes = draw(st.integers(2, 4))
    shares = st.lists(st.integers(0, 3), min_size=classes, max_size=classes).filter(any)
    counts = np.array(draw(st.lists(shares, min_size=1, max_size=6)), float)
    rows = draw(st.integers(1, 15))
    index = draw(st.lists(st.integers(0, len(counts) - 1), min_size=rows, max_size=rows))
    truth = draw(st.lists(st.integers(0, classes - 1), min_size=rows, max_size=rows))
    weight = draw(st.none() | st.lists(st.sampled_from([0.1, 0.5, 1.0, 3.0, 1e-3]), min_size=rows, max_size=rows))
    probability = counts / counts.sum(1, keepdims=True)
    answers = Answers(np.array(index), probability.argmax(1).astype(float), probability)
    return answers, np.array(truth), None if weight is None else np.array(weight)


def fit_classes(answers: Answers, truth: Any, weight: Any = None, positive: int = 1) -> ClassFit:  # noqa: ANN401 - array-like
    """The fit of lists."""
    return measure_classes(answers, np.array(truth), None if weight is None else np.array(weight, float), positive)


@given(told_classes())
def test_classes_beside_scikit_learn(case: Told) -> None:
    """Every measure of classes is scikit-learn's, weights and ties and absent classes included."""
    answers, truth, weight = case
    every = list(range(answers.probability.shape[1]))
    shares, called = answers.probability[answers.index], answers.prediction[answers.index].astype(int)
    fit = measure_classes(answers, truth, weight, 1)
    close = pytest.approx
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # it warns of what is undefined
        assert fit.metrics["accuracy"] == close(peer.accuracy_score(truth, called, sample_weight=weight))
        balanced = peer.balanced_accuracy_score(truth, called, sample_weight=weight)
        assert fit.metrics["balanced_accuracy"] == close(balanced)
        loss = peer.log_loss(truth, shares, labels=every, sample_weight=weight)
        assert fit.metrics["log_loss"] == close(loss, rel=1e-12, abs=1e-14)
        brier = peer.brier_score_loss(
            truth, shares if len(every) > 2 else shares[:, 1], labels=every, sample_weight=weight,
            **({} if len(every) > 2 else {"pos_label": 1}),
        )  # fmt: skip
        assert fit.metrics["brier"] == close(brier, rel=1e-12, abs=1e-14)
        matrix = peer.confusion_matrix(truth, called, labels=every, sample_weight=weight)
        assert fit.confusion[:-1] == close(matrix)
        assert not fit.confusion[-1].any()
        told = peer.precision_recall_fscore_support(
            truth, called, labels=every, sample_weight=weight, zero_division=np.nan
        )
        for mine, theirs in zip((fit.precision, fit.recall, fit.f1), told, strict=False):
            assert mine == close(theirs, nan_ok=True)


@given(told_classes())
def test_roc_auc_beside_scikit_learn(case: Told) -> None:
    """The area under the ROC curve of each class against the rest is scikit-learn's, and so are its two means."""
    answers, truth, weight = case
    every = list(range(answers.probability.shape[1]))
    shares = answers.probability[answers.index]
    fit = measure_classes(answers, truth, weight, 1)
    for k in every:
        if 0 < (truth == k).sum() < len(truth):
            assert fit.roc_auc[k] == pytest.approx(peer.roc_auc_score(truth == k, shares[:, k], sample_weight=weight))
        else:
            assert math.isnan(fit.roc_auc[k])
    defined = not np.isnan(fit.roc_auc).any()
    names = {"roc_auc": "macro"} | ({"roc_auc_weighted": "weighted"} if len(every) > 2 else {})
    assert {name for name in fit.metrics if name.startswith("roc_auc")} == set(names)
    for name, average in names.items():
        if not defined:
            assert fit.metrics[name] is None
            continue
        score = shares[:, 1] if len(every) == 2 else shares
        asked = {} if len(every) == 2 else {"multi_class": "ovr", "average": average, "labels": every}
        assert fit.metrics[name] == pytest.approx(peer.roc_auc_score(truth, score, sample_weight=weight, **asked))


@given(told_classes(), st.randoms(use_true_random=False))
def test_rows_in_another_order(case: Told, source: Random) -> None:
    """Without weights, rows in another order give the very same digits."""
    answers, truth, _ = case
    order = np.array(source.sample(range(len(truth)), len(truth)))
    again = Answers(answers.index[order], answers.prediction, answers.probability)
    assert measure_classes(again, truth[order], None, 1).metrics == measure_classes(answers, truth, None, 1).metrics


@given(told_classes(), st.integers(-1070, 1000))
def test_weights_have_no_unit(case: Told, power: int) -> None:
    """Whole weights times any power of two that fits give the very same digits."""
    answers, truth, _ = case
    weight = 1.0 + np.arange(len(truth)) % 3
    scaled = np.ldexp(weight, power)
    assert measure_classes(answers, truth, scaled, 0).metrics == measure_classes(answers, truth, weight, 0).metrics


HALVES = Answers(np.arange(4), np.array([0.0, 0.0, 1.0, 1.0]), np.array([[1.0, 0], [0.75, 0.25], [0.25, 0.75], [0, 1]]))


def test_labels_that_training_did_not_have() -> None:
    """They count as wrong: no accuracy, a class without recall, the largest loss; the rest of each class's curve."""
    fit = fit_classes(HALVES, [0, 0, 1, 2])
    assert fit.metrics["accuracy"] == 0.75
    assert fit.metrics["balanced_accuracy"] == pytest.approx(2 / 3)
    assert fit.metrics["log_loss"] == pytest.approx((2 * -math.log(0.75) - math.log(np.finfo(float).eps)) / 4)
    assert fit.metrics["brier"] == pytest.approx((2 * 0.25**2 + (1 + 1) / 2) / 4)
    assert fit.metrics["roc_auc"] == pytest.approx(2 / 3)
    assert fit.confusion.tolist() == [[2, 0], [0, 1], [0, 1]]
    assert fit_classes(HALVES, [0, 0, 1, 2], positive=0).metrics["roc_auc"] == 1.0


def test_a_perfect_answer() -> None:
    """It loses nothing at all, not even a rounding, and has every other measure at 1."""
    sure = Answers(np.array([0, 1, 1]), np.array([0.0, 1.0]), np.eye(2))
    assert fit_classes(sure, [0, 1, 1]).metrics == {
        "accuracy": 1.0, "balanced_accuracy": 1.0, "log_loss": 0.0, "brier": 0.0, "roc_auc": 1.0,
    }  # fmt: skip


def test_one_class() -> None:
    """A model of one class has no ROC curve, and nothing of it fails."""
    fit = fit_classes(Answers(np.array([0, 0]), np.array([0.0]), np.ones((1, 1))), [0, 1], positive=0)
    assert (fit.metrics["accuracy"], fit.metrics["roc_auc"]) == (0.5, None)
    assert fit.confusion.tolist() == [[1], [1]]


def fit_numbers(predicted: list[float], truth: list[float], weight: list[float] | None, poisson: bool) -> Metrics:
    """The fit of answers that are all different."""
    answers = Answers(np.arange(len(predicted)), np.array(predicted), np.empty((len(predicted), 0)))
    return measure_numbers(answers, np.array(truth), None if weight is None else np.array(weight), poisson)


WEIGHTS = st.sampled_from([0.1, 1.0, 2.5, 7.0])
CELLS = st.floats(0.01, 1e6)


@given(st.lists(st.tuples(CELLS, CELLS, WEIGHTS), min_size=2, max_size=15), st.booleans())
def test_numbers_beside_scikit_learn(rows: list[tuple[float, float, float]], weighted: bool) -> None:
    """Every measure of numbers is scikit-learn's."""
    predicted, truth, weights = map(list, zip(*rows, strict=True))
    weight = weights if weighted else None
    fit = fit_numbers(predicted, truth, weight, False)
    asked = {"sample_weight": weight}
    assert fit["mae"] == pytest.approx(peer.mean_absolute_error(truth, predicted, **asked))
    assert fit["rmse"] == pytest.approx(peer.root_mean_squared_error(truth, predicted, **asked))
    assert fit["deviance"] == pytest.approx(peer.mean_squared_error(truth, predicted, **asked))
    if max(truth) - min(truth) > 1e-6 * max(truth):
        assert fit["r2"] == pytest.approx(peer.r2_score(truth, predicted, **asked), rel=1e-6)
    deviance = fit_numbers(predicted, truth, weight, True)["deviance"]
    assert deviance == pytest.approx(peer.mean_poisson_deviance(truth, predicted, **asked), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("size", [1e-300, 1e-150, 1.0, 1e150])
def test_numbers_of_any_size(size: float) -> None:
    """Neither do squares overflow, nor do they vanish before they are compared."""
    fit = fit_numbers([0, 2 * size, 3 * size], [size, 2 * size, 6 * size], None, False)
    assert fit["r2"] == pytest.approx(1 - 10 / 14)
    assert fit["mae"] == pytest.approx(4 / 3 * size)
    assert fit["rmse"] == pytest.approx((10 / 3) ** 0.5 * size)


@pytest.mark.parametrize(("truth", "r2"), [([5.0, 5.0], None), ([0.1] * 3, None), ([7.0], None), ([1.0, 3.0], 0.0)])
def test_r2_of_equal_targets(truth: list[float], r2: float | None) -> None:
    """There is no share of what does not vary; an answer of the mean explains nothing."""
    assert fit_numbers([float(np.mean(truth))] * len(truth), truth, None, False)["r2"] == r2


@pytest.mark.parametrize(
    ("predicted", "truth", "deviance"),
    [([0.0], [0.0], 0.0), ([2.0], [0.0], 4.0), ([0.0], [1.0], None), ([1.0], [-1.0], None), ([3.0], [3.0], 0.0)],
)
def test_poisson_at_its_edges(predicted: list[float], truth: list[float], deviance: float | None) -> None:
    """Nothing that came and nothing that was expected cost nothing; more than none expected is not finite."""
    assert fit_numbers(predicted, truth, None, True)["deviance"] == deviance


@given(st.lists(st.tuples(CELLS, CELLS, WEIGHTS), min_size=2, max_size=15), st.randoms(use_true_random=False))
def test_numbers_in_another_order(rows: list[tuple[float, float, float]], source: Random) -> None:
    """Rows in another order give the very same digits."""
    mixed = source.sample(rows, len(rows))
    first, second = ([*map(list, zip(*some, strict=True))] for some in (rows, mixed))
    assert fit_numbers(*first, True) == fit_numbers(*second, True)
