"""The worked numbers of the documents that the project grew from, through the HTTP API."""

from __future__ import annotations

import json
import math
from collections import Counter
from typing import Any

import pytest

from tests.oracle.contract import DATA, Service, children_of, feature_of, read_columns

SEED = json.loads((DATA / "seed_examples.json").read_text())
TOY = SEED["toy_cart_gini"]


@pytest.fixture(scope="module")
def toy(service: Service) -> str:
    """The toy table, its 0 and 1 taken as classes."""
    return service.train(TOY["columns"], "D", {"task": "classification", "parameters": {"criterion": "gini"}})


def gini_costs(service: Service, model: str, node: int) -> dict[str, float]:
    """The gini cost of each feature's only candidate in a node."""
    splits = service.splits(model, {"node": node})
    assert len({split["feature"] for split in splits}) == len(splits)
    return {split["feature"]: split["scores"]["gini_cost"] for split in splits}


def test_toy_root_costs(service: Service, toy: str) -> None:
    """At the root A costs 1/2 (constant), B 1/3 and C 1/2, and B is chosen."""
    assert gini_costs(service, toy, 0) == pytest.approx(TOY["root_costs"], rel=1e-12)
    assert service.tree(toy)[0]["impurity"] == TOY["root_impurity"]
    (chosen,) = service.splits(toy, {"node": 0, "chosen": "true"})
    assert chosen["feature"] == TOY["root_split"]


def test_toy_constant_features_are_listed_and_never_admissible(service: Service, toy: str) -> None:
    """A feature with one value in the node costs the node's impurity and has no rank."""
    (constant,) = service.splits(toy, {"node": 0, "feature": "A"})
    assert constant["split"]["type"] == "constant"
    assert (constant["admissible"], constant["rank"], constant["chosen"]) == (False, None, False)
    assert constant["reason"] == "constant"


def test_toy_branch_b_1(service: Service, toy: str) -> None:
    """Where B is 1, impurity is 4/9, A and B cost 4/9, C costs 1/3 and is chosen."""
    nodes = service.tree(toy)
    expected = TOY["branch_B_1"]
    branch = nodes[nodes[0]["children"][1]]
    assert branch["impurity"] == pytest.approx(expected["impurity"], rel=1e-12)
    assert gini_costs(service, toy, branch["node"]) == pytest.approx(expected["costs"], rel=1e-12)
    assert feature_of(branch) == expected["split"]


def test_toy_leaves(service: Service, toy: str) -> None:
    """B = 0 is a leaf of 1; B = 1 and C = 1 a leaf of 0; C = 0 stays a tie of two rows, as no split costs less."""
    nodes = service.tree(toy)
    zero, one = (nodes[child] for child in nodes[0]["children"])
    tie, nought = (nodes[child] for child in one["children"])
    assert (zero["leaf"], zero["prediction"], zero["counts"]) == (True, 1, [0, 1])
    assert (nought["leaf"], nought["prediction"], nought["counts"]) == (True, 0, [1, 0])
    assert (tie["leaf"], tie["prediction"], tie["counts"], tie["impurity"]) == (True, 0, [1, 1], 0.5)
    assert not service.splits(toy, {"node": tie["node"], "admissible": "true"})
    assert len(nodes) == 5


def test_toy_predictions(service: Service, toy: str) -> None:
    """The tie predicts its first class with probabilities of one half."""
    answer = service.predict(toy, {name: TOY["columns"][name] for name in "ABC"})
    assert answer["predictions"] == [0, 0, 0, 1]
    assert answer["classes"] == [0, 1]
    assert answer["probabilities"] == [[1, 0], [0.5, 0.5], [0.5, 0.5], [0, 1]]


@pytest.mark.parametrize(("population", "expected"), SEED["populations_gini"].items())
def test_gini_of_small_populations(service: Service, population: str, expected: float) -> None:
    """A partition of one branch costs that population's gini impurity."""
    assert service.score([Counter(population)])["gini_cost"] == pytest.approx(expected, rel=1e-12, abs=1e-15)


@pytest.mark.parametrize("letter", ["A", "B"])
def test_partition_of_two_kinds(service: Service, letter: str) -> None:
    """Gini cost, gain, information content and their ratio of T, T, F, T parted in two ways."""
    expected = dict(SEED["partition_TTFT"][letter])
    scores = service.score(expected.pop("branches"))
    for measure, value in expected.items():
        assert scores[measure] == pytest.approx(value, rel=1e-6 if "ratio" in measure else 1e-12), measure


def test_a_branch_per_item_gains_more_and_has_the_lower_ratio(service: Service) -> None:
    """With 2N = 32 items: two branches gain 1/8 by a ratio of 1/8, one per item gains 1/2 by 1 / (2 log2 2N)."""
    seed, size = SEED["fine_grained"], 16
    two = service.score([{"T": 12, "F": 4}, {"T": 4, "F": 12}])
    each = service.score([{"T": 1, "F": 0}] * size + [{"T": 0, "F": 1}] * size)
    for measure, value in seed["binary"].items():
        assert two[measure] == pytest.approx(value, rel=1e-12), measure
    for measure in ("gini_cost", "gini_gain"):
        assert each[measure] == pytest.approx(seed["one_branch_per_item"][measure], abs=1e-12), measure
    assert each["information_content"] == pytest.approx(math.log2(2 * size), rel=1e-12)
    assert each["gini_gain_ratio"] == pytest.approx(1 / (2 * math.log2(2 * size)), rel=1e-12)
    assert each["gini_gain_ratio"] < two["gini_gain_ratio"]


def customers(case: dict[str, Any]) -> dict[str, list[Any]]:
    """Rows of one boolean feature and a class, as many as the case counts: the branch `true` is the positive one."""
    cells = [(True, "yes")] * case["TP"] + [(False, "yes")] * case["FN"]
    cells += [(True, "no")] * case["FP"] + [(False, "no")] * case["TN"]
    return {"x": [cell for cell, _ in cells], "y": [label for _, label in cells]}


@pytest.mark.parametrize("letter", ["A", "B"])
@pytest.mark.parametrize("criterion", ["positive_correctness", "true_positive_rate"])
def test_positive_measures_of_a_learnt_split(service: Service, letter: str, criterion: str) -> None:
    """Positive correctness 6 and 4, true positive rates 8/11 and 0.75, as a trained model lists them."""
    case = SEED["positive_correctness"][letter]
    body = {"positive_class": "yes", "parameters": {"criterion": criterion, "max_depth": 1}}
    (split,) = service.splits(service.train(customers(case), "y", body), {"node": 0})
    assert split["scores"]["positive_correctness"] == case["EP"]
    assert split["scores"]["true_positive_rate"] == pytest.approx(case["TPR"], rel=1e-12)
    assert split["score"] == split["scores"][criterion]
    assert split["chosen"]


@pytest.mark.parametrize("letter", ["A", "B"])
def test_positive_measures_of_a_posted_partition(service: Service, letter: str) -> None:
    """The same four numbers from counts alone, the branch with the higher share of positives being positive."""
    case = SEED["positive_correctness"][letter]
    branches = [{"no": case["TN"], "yes": case["FN"]}, {"no": case["FP"], "yes": case["TP"]}]
    scores = service.score(branches, {"positive_class": "yes"})
    assert scores["positive_correctness"] == case["EP"]
    assert scores["true_positive_rate"] == pytest.approx(case["TPR"], rel=1e-12)


def test_windy(service: Service) -> None:
    """Wind parts 9 and 5 into 3, 3 and 6, 2: entropy 0.940 bits, gain 0.048."""
    seed = SEED["windy"]
    scores = service.score([{"yes": yes, "no": no} for yes, no in seed["children"].values()])
    assert scores["information_gain"] == pytest.approx(seed["information_gain"], rel=1e-12)
    assert scores["information_gain"] + scores["entropy_cost"] == pytest.approx(seed["entropy"], rel=1e-12)


def test_goodness_of_low_savings(service: Service) -> None:
    """Low savings against the rest has phi 0.4375."""
    seed = SEED["goodness_savings_low"]
    assert service.score([seed["left"], seed["right"]])["goodness"] == pytest.approx(seed["goodness"], rel=1e-12)


def test_variance_reduction_by_both_formulas(service: Service) -> None:
    """A split of y = 0,1 | 0,1 reduces no variance; weighting by squared shares scores it 0.125."""
    columns = {"x": [False, False, True, True], "y": [0, 1, 0, 1]}
    (split,) = service.splits(service.train(columns, "y", {"task": "regression"}), {"node": 0})
    assert split["scores"]["variance_reduction"] == pytest.approx(0, abs=1e-15)
    assert split["scores"]["pairwise_variance_reduction"] == pytest.approx(0.125, rel=1e-12)
    assert not split["admissible"]


@pytest.fixture(scope="module")
def tennis(service: Service) -> str:
    """Play tennis by ID3."""
    return service.train(read_columns("playtennis.csv"), "Play", {"algorithm": "id3"})


def test_play_tennis_root_gains(service: Service, tennis: str) -> None:
    """The gains of Outlook, Humidity, Wind and Temperature at the root are .2467, .1518, .0481 and .0292."""
    listed = service.splits(tennis, {"node": 0})
    gains = {split["feature"]: split["scores"]["information_gain"] for split in listed}
    assert gains == pytest.approx(SEED["play_tennis_root_gains"], rel=1e-12)
    assert [split["feature"] for split in listed] == ["Outlook", "Humidity", "Wind", "Temperature"]


def test_play_tennis_id3_tree(service: Service, tennis: str) -> None:
    """Outlook; Sunny asks Humidity (High no, Normal yes), Overcast is yes, Rain asks Wind (Strong no, Weak yes)."""
    nodes = service.tree(tennis)
    root = children_of(nodes, nodes[0])
    assert feature_of(nodes[0]) == "Outlook"
    assert root["Overcast"]["leaf"]
    assert root["Overcast"]["prediction"] == "Yes"
    for outlook, feature, answers in (
        ("Sunny", "Humidity", {"High": "No", "Normal": "Yes"}),
        ("Rain", "Wind", {"Strong": "No", "Weak": "Yes"}),
    ):
        assert feature_of(root[outlook]) == feature
        leaves = children_of(nodes, root[outlook])
        assert {value: leaf["prediction"] for value, leaf in leaves.items()} == answers
        assert all(leaf["leaf"] for leaf in leaves.values())
    assert len(nodes) == 8
