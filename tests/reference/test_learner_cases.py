"""Public bug reports against learners of this kind, as small inputs with the right behaviour."""

from __future__ import annotations

import json
import math
import random
import time
from collections.abc import Sequence
from itertools import pairwise, permutations
from typing import Any

import numpy as np
import pytest

from service.api import state
from service.core.learn import learn
from service.core.parameters import resolve
from service.core.schema import Column, Table, Target
from service.prediction import predict
from service.training import TrainingRequest, train
from tests.oracle.contract import Service, feature_of

ULP = 2.0**-52


def stump(service: Service, values: list[Any], labels: list[Any]) -> tuple[str, dict[str, Any]]:
    """A tree of one level on one feature; the model and its root's chosen split."""
    model = service.train({"x": values, "y": labels}, "y", {"task": "classification", "parameters": {"max_depth": 1}})
    (chosen,) = service.splits(model, {"node": 0, "chosen": "true"})
    return model, chosen


def raw_numbers(service: Service, url: str) -> list[str]:
    """Every number with a fraction or an exponent in the answer, as its text."""
    texts: list[str] = []
    json.loads(service.client.get(url).get_data(as_text=True), parse_float=lambda text: texts.append(text) or 0.0)
    return texts


@pytest.mark.parametrize(
    ("below", "above"),
    [
        pytest.param(0, 1e-7, id="scikit-learn 27782"),
        pytest.param(2**53, 2**53 + 1, id="scikit-learn 27782, integers"),
        pytest.param(2**60 + 1, 2**60 + 3, id="integers whose midpoint no double holds"),
        pytest.param(-(2**63), 2**63 - 1, id="integers whose sum overflows"),
        pytest.param(1 + ULP, 1 + 2 * ULP, id="mlpack 3644"),
        pytest.param(-5e-324, 0.0, id="mlpack 3644, subnormal"),
        pytest.param(1e308, 1.7e308, id="scikit-learn 10536"),
        pytest.param(20180130, 20180131, id="xgboost 3960"),
    ],
)
def test_neighbouring_values_are_separated(service: Service, below: float, above: float) -> None:
    """L1, L3, L4, L5: a split lies between two values however near or large, reads back and routes them."""
    model, chosen = stump(service, [below, above], ["a", "b"])
    split = chosen["split"]
    assert (split["below"], split["above"]) == (below, above)
    assert below <= split["threshold"] < above
    assert math.isfinite(split["threshold"])
    assert [branch["routed"]["n"] for branch in chosen["branches"]] == [1, 1]
    assert service.predict(model, {"x": [below, above]})["predictions"] == ["a", "b"]


def test_a_threshold_between_days_is_shown_exactly(service: Service) -> None:
    """L5 (xgboost 3960): the cut between 20180130 and 20180131 is 20180130.5."""
    assert stump(service, [20180130, 20180131], [0, 1])[1]["split"]["threshold"] == 20180130.5


def test_a_row_at_its_own_threshold_goes_left(service: Service) -> None:
    """L2 (scikit-learn 28175, 11165): 200 random stumps asked at exactly their threshold all answer left."""
    draw = random.Random(28175)  # noqa: S311 - a fixed sequence, not a secret
    for _ in range(200):
        low, high = sorted([draw.uniform(-1e3, 1e3), draw.uniform(-1e-3, 1e3)])
        model, chosen = stump(service, [low, high], ["left", "right"])
        cut = chosen["split"]["threshold"]
        answer = service.predict(model, {"x": [cut, math.nextafter(cut, math.inf), low, high]})
        assert answer["predictions"] == ["left", "right", "left", "right"]


@pytest.mark.parametrize(
    "targets",
    [
        pytest.param([row * 1e-9 for row in range(8)], id="tiny"),
        pytest.param([1e9 + step for step in (0, 0, 1, 1)], id="far from zero"),
    ],
)
def test_regression_tolerance_is_relative(service: Service, targets: list[float]) -> None:
    """L6 (scikit-learn 14838): targets of 1e-9, or 1e9 apart by 1, still split, and every row is predicted."""
    values = list(range(len(targets)))
    model = service.train({"x": values, "y": targets}, "y", {"task": "regression"})
    (chosen,) = service.splits(model, {"node": 0, "chosen": "true"})
    assert chosen["split"]["threshold"] == len(targets) / 2 - 0.5
    assert service.predict(model, {"x": values})["predictions"] == pytest.approx(targets, rel=1e-12)


def test_missing_or_not_is_a_candidate(service: Service) -> None:
    """L7 (scikit-learn 32272): a column of 0, 0, 0 and two gaps is not constant; `missing` splits it."""
    cells = [0, 0, 0, None, None]
    model = service.train({"x": cells, "y": ["a", "a", "a", "b", "b"]}, "y")
    (split,) = service.splits(model, {"node": 0})
    assert (split["feature"], split["split"]["type"], split["chosen"]) == ("x", "missing", True)
    assert sorted(branch["routed"]["n"] for branch in split["branches"]) == [2, 3]
    assert service.predict(model, {"x": cells})["predictions"] == ["a", "a", "a", "b", "b"]


ALIKE = {
    "p": [1, 2, 3, 4, 4, 1],
    "q": [1, 2, 3, 4, 4, 1],
    "r": list("xxyyyx"),
    "s": [False, False, True, True, True, False],
}


ALIKE_LABELS = ["n", "n", "y", "y", "y", "n"]


def test_equal_gains_go_to_the_first_feature(service: Service) -> None:
    """L9 (scikit-learn 8443, 24839, 12188): of four perfect features the first in order wins, in any order."""
    for order in permutations(ALIKE):
        model = service.train({**{name: ALIKE[name] for name in order}, "y": ALIKE_LABELS}, "y")
        assert [feature_of(node) for node in service.tree(model)] == [order[0], None, None]
        best = service.splits(model, {"node": 0, "sort": "rank"})[:4]
        assert [split["feature"] for split in best] == list(order)


def test_equal_gains_within_a_feature_go_to_the_lowest_cut(service: Service) -> None:
    """L9: a, b, a on 1, 2, 3 can be cut in two equal ways; the lower is taken, however the rows are ordered."""
    for order in permutations(range(3)):
        columns = {"x": [[1, 2, 3][row] for row in order], "y": [["a", "b", "a"][row] for row in order]}
        root = service.tree(service.train(columns, "y"))[0]
        assert root["split"]["threshold"] == 1.5


def test_the_same_request_gives_the_same_model(service: Service) -> None:
    """L9: two runs answer with the same tree and the same listing."""
    first, second = (service.train({**ALIKE, "y": ["n", "y", "y", "y", "n", "n"]}, "y") for _ in range(2))
    assert service.tree(first) == service.tree(second)
    assert service.splits(first) == service.splits(second)


def test_two_identical_rows_of_two_classes(service: Service) -> None:
    """L10 (scikit-learn 17592): the leaf says one half each, and the first class in order although it came last."""
    model = service.train({"x": [1, 1], "y": ["b", "a"]}, "y")
    answer = service.predict(model, {"x": [1]})
    assert (answer["classes"], answer["probabilities"], answer["predictions"]) == (["a", "b"], [[0.5, 0.5]], ["a"])
    assert len(service.tree(model)) == 1


def infinite(values: list[float], labels: list[str]) -> Table:
    """A table that JSON cannot say: a numeric column with infinities, and two classes a and b."""
    codes = np.array(["ab".index(label) for label in labels], np.int32)
    return Table((Column("x", "numeric", np.array(values)), Column("y", "nominal", codes, ("a", "b"))), len(values))


@pytest.mark.parametrize(
    ("values", "labels", "threshold"),
    [
        ([1, 2, math.inf, 10], ["a", "a", "b", "a"], 10),
        ([1, 2, -math.inf, 10], ["a", "a", "b", "a"], -math.inf),
        ([-math.inf, math.inf], ["a", "b"], -math.inf),
    ],
)
def test_infinity_is_a_value(service: Service, values: list[float], labels: list[str], threshold: float) -> None:
    """L11 (scikit-learn 34956): infinities order last and first, train and predict; their listing is still JSON."""
    request = TrainingRequest(
        table=infinite(values, labels),
        target="y",
        features=None,
        weight=None,
        task=None,
        algorithm="cart",
        parameters={},
        positive_class=None,
        missing_target="refuse",
        name=None,
        description="",
        tags={},
        retain="data",
    )
    with service.client.application.app_context():
        record = train(request, state.store(), state.settings())
        answer = predict(record, Table(infinite(values, labels).columns[:1], len(values)), state.store())
    assert list(answer["predictions"]) == labels
    nodes = service.tree(record.id)
    assert len(nodes) == 3
    assert nodes[0]["split"]["threshold"] == (threshold if math.isfinite(threshold) else "-Infinity")
    text = service.client.get(f"/models/{record.id}/splits").get_data(as_text=True)
    listed = json.loads(text, parse_constant=pytest.fail)["splits"]
    assert len([split for split in listed if split["node"] == 0]) == len(values) - 1


@pytest.fixture(scope="module")
def deep(service: Service) -> tuple[str, int]:
    """Alternating labels along one feature: the ends are peeled off one by one; the model and its depth."""
    rows = 3000
    columns = {"x": list(range(rows)), "y": ["ab"[row % 2] for row in range(rows)]}
    record = service.record({"data": {"columns": columns}, "target": "y", "retain": "data"})
    return str(record["id"]), int(record["tree"]["depth"])


def test_a_tree_thousands_of_levels_deep(service: Service, deep: tuple[str, int]) -> None:
    """L12 (Orange 7297): a tree of some 3,000 levels trains, is drawn, predicts and lists its deepest node."""
    model, depth = deep
    assert depth > 2900
    nodes = service.tree(model)
    assert sum(node["leaf"] for node in nodes) == 3000
    answer = service.predict(model, {"x": list(range(3000))})
    assert answer["predictions"] == ["ab"[row % 2] for row in range(3000)]
    last = max(nodes, key=lambda node: node["depth"] * (not node["leaf"]))
    assert len(service.splits(model, {"node": last["node"]})) == 1
    assert len(service.splits(model, {"node": nodes[0]["children"][1]})) == 2998


def test_small_thresholds_have_their_shortest_form(service: Service) -> None:
    """L13 (imodels 279): thresholds about 1e-6 are printed so that they read back equal, and no longer than needed."""
    values = [1e-6, 1.5e-6, 2e-6, 2.3e-6, 1.1e-6, 1e-7]
    model = service.train({"x": values, "y": list("abacba")}, "y")
    texts = raw_numbers(service, f"/models/{model}/tree") + raw_numbers(service, f"/models/{model}/splits?node=0")
    small = [text for text in texts if 0 < float(text) < 1e-5]
    assert len(small) >= 10
    assert all(len(text) <= len(repr(float(text))) for text in small)
    cuts = {split["split"]["threshold"] for split in service.splits(model, {"node": 0})}
    ordered = sorted(values)
    assert cuts == {(low + high) / 2 for low, high in pairwise(ordered)}


def test_one_pure_branch_is_allowed(service: Service) -> None:
    """L14 (tribuo 298): a candidate with one pure branch is admissible, and the pure node below stays a leaf."""
    model = service.train({"x": [1, 2, 3, 4], "y": list("abab")}, "y", {"parameters": {"max_depth": 1}})
    (chosen,) = service.splits(model, {"node": 0, "chosen": "true"})
    assert chosen["branches"][0]["known"]["counts"] == [1, 0]
    nodes = service.tree(model)
    assert nodes[nodes[0]["children"][0]]["leaf"]


def test_no_candidate_has_an_empty_branch(service: Service) -> None:
    """L14 (tribuo 303): below a split on a feature, no cut of it lies outside the values that are left."""
    model = service.train({"x": [1, 2, 3, 4, 5, 6], "k": list("aabbcc"), "y": list("pqrqpr")}, "y")
    listed = service.splits(model)
    assert len({split["node"] for split in listed}) > 3
    assert all(branch["routed"]["n"] > 0 for split in listed for branch in split["branches"])


def marks(sizes: Sequence[int], marked: Sequence[int]) -> list[bool]:
    """For classes that stand one after the other, True for the first so many of each."""
    return [row < many for size, many in zip(sizes, marked, strict=True) for row in range(size)]


CRITERIA = pytest.mark.parametrize("criterion", ["gini", "entropy", "gain_ratio", "gini_gain_ratio", "goodness"])


@CRITERIA
@pytest.mark.parametrize("sizes", [(60, 120, 180), (60, 60, 240), (120, 300, 0)])
def test_a_gain_of_rounding_errors_is_none(service: Service, criterion: str, sizes: tuple[int, ...]) -> None:
    """L14 (tribuo 410): branches with the same shares gain nothing; what rounding leaves, such as 4e-16, is no gain."""
    parts = [part for part in range(2, 61) if 60 % part == 0]
    columns: dict[str, list[Any]] = {f"1/{part}": marks(sizes, [size // part for size in sizes]) for part in parts}
    labels = [label for label, size in zip("abc", sizes, strict=True) for _ in range(size)]
    model = service.train(columns | {"y": labels}, "y", {"parameters": {"criterion": criterion}})
    listed = service.splits(model, {"node": 0})
    assert len(listed) == len(parts)
    assert {(split["admissible"], split["reason"], split["rank"]) for split in listed} == {
        (False, "no_improvement", None)
    }
    assert len(service.tree(model)) == 1


@CRITERIA
@pytest.mark.parametrize("marked", [(1, 2, 4), (0, 3, 5), (2, 3, 6), (1, 5, 6)])
def test_rounding_breaks_no_tie(service: Service, criterion: str, marked: tuple[int, ...]) -> None:
    """L9: six features that part three classes of 7 alike but for the classes' names are tied in this order."""
    columns: dict[str, list[Any]] = {f"{order}": marks((7, 7, 7), order) for order in permutations(marked)}
    body = {"parameters": {"criterion": criterion, "max_depth": 1}}
    listed = service.splits(service.train(columns | {"y": list("a" * 7 + "b" * 7 + "c" * 7)}, "y", body), {"node": 0})
    assert [split["feature"] for split in listed] == list(columns)
    assert listed[0]["chosen"]


def test_poisson_with_gaps(service: Service) -> None:
    """L8 (scikit-learn 32870): with missing values no Poisson impurity is below 0, and a branch of one row has 0."""
    columns = {"x": [None, 1, 2, 3, None], "y": [0.49, 0.5, 0.7, 1.5, 0.8]}
    model = service.train(columns, "y", {"parameters": {"criterion": "poisson"}})
    listing = service.listing(model)
    branches = [branch["known"] for split in listing["splits"] for branch in split["branches"]]
    impurities = [each["impurity"] for each in [*service.tree(model), *listing["nodes"], *branches]]
    assert min(impurities) == 0
    assert {branch["impurity"] for branch in branches if branch["n"] == 1} == {0}
    assert all(split["score"] >= -1e-15 for split in listing["splits"] if split["score"] is not None)


@pytest.mark.parametrize("least", [1, 2, 3])
def test_a_split_between_a_few_rows_is_listed(service: Service, least: int) -> None:
    """L15 (rpart 70): x = 1 holds three of ten rows, no fewer than a leaf needs; n times its gini gain is 0.152381."""
    data = {"y": [1, 1, *[0] * 8], "x": [1, 0, 1, 1, *[0] * 6]}
    parameters = {"min_samples_leaf": least, "max_depth": 1}
    model = service.train(data, "y", {"task": "classification", "parameters": parameters})
    (split,) = service.splits(model, {"node": 0})
    assert split["admissible"]
    assert split["chosen"]
    assert 10 * split["scores"]["gini_gain"] == pytest.approx(0.152381, abs=5e-7)


@pytest.mark.parametrize(("below", "above"), [(3, 7), (7, 3)])
def test_limits_are_met_exactly(service: Service, below: int, above: int) -> None:
    """L15's kind: a branch with just so many rows, or just such a weight, is admissible; asked for more it is not."""
    data = {"x": [1] * below + [2] * above, "y": ["a"] * below + ["b"] * above, "w": [0.1] * (below + above)}
    smaller = min(below, above)
    for limits, admissible in (
        ({"min_samples_leaf": smaller}, True),
        ({"min_samples_leaf": smaller + 1}, False),
        (
            {"min_weight_leaf": smaller / 10},
            True,
        ),  # three times 0.1 is 0.30000000000000004, seven times 0.7000000000000001
        ({"min_weight_leaf": smaller / 10 + 0.01}, False),
    ):
        (split,) = service.splits(service.train(data, "y", {"weight": "w", "parameters": limits}), {"node": 0})
        assert split["admissible"] == admissible, limits


def test_a_weight_that_rounding_makes_light_meets_its_limit(service: Service) -> None:
    """Weights of 0.7 and 0.1 add up to 0.7999999999999999: that is 0.8."""
    data = {"x": [1, 1, 2, 2], "y": ["a", "a", "b", "b"], "w": [0.7, 0.1, 1, 1]}
    limits = {"weight": "w", "parameters": {"min_weight_leaf": 0.8}}
    assert service.splits(service.train(data, "y", limits), {"node": 0})[0]["admissible"]


def test_few_values_are_no_slower_than_many() -> None:
    """L19 (scikit-learn 23404): 300,000 rows of three distinct values take no longer than as many of a continuum."""
    source = np.random.default_rng(1)
    rows = 300_000
    noise = source.random(rows) < 0.2
    times = {}
    for name, cells in (("few", source.integers(0, 3, rows).astype(float)), ("many", source.random(rows) * 3)):
        target = ((cells > 1.2) ^ noise).astype(np.int32)
        columns = [Column("x", "numeric", cells)]
        took = []
        for _ in range(3):
            begun = time.process_time()
            learn(columns, Target("y", (0, 1), target), resolve("cart", {"max_depth": 8}, "classification"))
            took.append(time.process_time() - begun)
        times[name] = min(took)
    assert times["few"] <= times["many"], times


def test_each_node_is_told_completely(service: Service) -> None:
    """L20 (h2o-3 2778, 3220): every node says its feature, its cut, where the missing go, counts and children."""
    data: dict[str, list[Any]] = {
        "x": [1, 2, 3, 4, None, 6, 7, 8, 9, 10, 11, 12],
        "z": ["p", "q", "r", "p", "q", None, "p", "q", "r", "p", "q", "r"],
        "y": ["a", "b", "a", "a", "b", "b", "a", "b", "b", "a", "b", "a"],
    }
    model = service.train(data, "y")
    nodes = service.tree(model)
    assert [node["node"] for node in nodes] == list(range(len(nodes)))
    seen = {name: any(cell is None for cell in cells) for name, cells in data.items()}
    for node in nodes:
        assert sum(node["counts"]) == node["n"]
        if node["leaf"]:
            assert node["reason"]
            continue
        (chosen,) = service.splits(model, {"node": node["node"], "chosen": "true"})
        split = node["split"]
        assert (chosen["feature"], chosen["split"]) == (node["feature"], split)
        assert split["type"] in ("threshold", "subset", "missing")
        known = {"threshold": "threshold", "subset": "categories", "missing": "type"}[split["type"]]
        assert split[known] is not None
        below = [nodes[child] for child in node["children"]]
        assert [sum(pair) for pair in zip(*(child["counts"] for child in below), strict=True)] == node["counts"]
        assert all(child["parent"] == node["node"] for child in below)
    root = nodes[0]
    assert seen[root["feature"]]
    assert root["split"]["type"] == "missing" or "missing" in root["split"]
