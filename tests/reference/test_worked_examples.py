"""The textbooks' classification examples through the HTTP API, at full precision."""

from __future__ import annotations

import json
from typing import Any

import pytest

from tests.oracle.contract import DATA, Service, children_of, feature_of, read_columns

WORKED = json.loads((DATA / "worked_examples.json").read_text())
NAMES = {
    "gain": "information_gain",
    "split_info": "information_content",
    "gain_ratio": "gain_ratio",
    "gini_decrease": "gini_gain",
    "phi": "goodness",
    "twoing": "twoing",
}
TENNIS = read_columns("playtennis.csv")
CUSTOMERS = read_columns("larose8.csv")
ORDER = {"playtennis": ["Yes", "No"], "larose8": ["Good", "Bad"]}


def assert_scores(split: dict[str, Any], expected: dict[str, Any]) -> None:
    """Every measure that the example gives is listed with its value, to 1e-12."""
    given = {ours: expected[theirs] for theirs, ours in NAMES.items() if theirs in expected}
    assert given
    listed = {measure: split["scores"][measure] for measure in given}
    assert listed == pytest.approx(given, rel=1e-12, abs=1e-12)


def sizes(split: dict[str, Any]) -> list[int]:
    """Rows of each branch."""
    return [branch["known"]["n"] for branch in split["branches"]]


def by_category(splits: list[dict[str, Any]]) -> dict[str, dict[str, Any]]:
    """One-against-rest splits by `feature=category`; of two categories the one split answers to both."""
    return {
        f"{split['feature']}={group[0]}": split
        for split in splits
        if split["split"]["type"] == "subset"
        for group in split["split"]["categories"]
        if len(group) == 1
    }


def node_below(service: Service, model: str, category: str) -> int:
    """The root's child that a category leads to."""
    nodes = service.tree(model)
    return int(children_of(nodes, nodes[0])[category]["node"])


@pytest.fixture(scope="module")
def tennis(service: Service) -> str:
    """Play tennis with a branch for each category, by information gain."""
    return service.train(TENNIS, "Play", {"parameters": {"criterion": "entropy", "nominal": "multiway"}})


def test_play_tennis_root(service: Service, tennis: str) -> None:
    """Every feature of play tennis at the root: gains, ratios, gini decreases, phi and twoing."""
    expected = dict(WORKED["play_tennis_root"])
    body = service.listing(tennis, {"node": 0})
    (root,) = body["nodes"]
    assert root["impurity"] == pytest.approx(expected.pop("H"), rel=1e-12)
    assert service.score([{"Yes": 9, "No": 5}])["gini_cost"] == pytest.approx(expected.pop("gini"), rel=1e-12)
    listed = {split["feature"]: split for split in body["splits"]}
    assert listed.keys() == expected.keys()
    for feature, example in expected.items():
        split = listed[feature]
        assert split["split"]["categories"] == [[value] for value in example["values"]]
        assert body["classes"] == ["No", "Yes"]
        assert [branch["known"]["counts"][::-1] for branch in split["branches"]] == example["counts"]
        assert_scores(split, example)


@pytest.mark.parametrize("category", ["Sunny", "Rain"])
def test_play_tennis_below_the_root(service: Service, tennis: str, category: str) -> None:
    """The three other features under Sunny and under Rain."""
    listed = service.splits(tennis, {"node": node_below(service, tennis, category)})
    splits = {split["feature"]: split for split in listed if split["split"]["type"] != "constant"}
    expected = WORKED[f"play_tennis_{category}"]
    assert splits.keys() == expected.keys()
    for feature, example in expected.items():
        assert sizes(splits[feature]) == example["n"]
        assert_scores(splits[feature], example)


def test_play_tennis_one_against_rest(service: Service) -> None:
    """All ten categories of play tennis, each against the rest of its feature."""
    parameters = {"criterion": "gini", "nominal": "one_vs_rest", "max_depth": 1}
    splits = by_category(service.splits(service.train(TENNIS, "Play", {"parameters": parameters}), {"node": 0}))
    expected = WORKED["play_tennis_root_binary"]
    assert splits.keys() == expected.keys()
    for name, example in expected.items():
        assert sorted(sizes(splits[name])) == sorted(example["n"])
        assert_scores(splits[name], example)


@pytest.mark.parametrize(("file", "case"), [("golf.csv", "golf_quinlan"), ("golf_weka.csv", "golf_weka")])
def test_golf_cuts_at_the_root(service: Service, file: str, case: str) -> None:
    """Every cut of temperature and humidity, with midpoint, neighbours, counts and scores."""
    columns = read_columns(file)
    model = service.train(columns, "play", {"parameters": {"criterion": "entropy"}})
    for feature in ("temperature", "humidity"):
        listed = service.splits(model, {"node": 0, "feature": feature, "sort": "position"})
        assert_cuts(listed, WORKED[case][feature])


@pytest.mark.parametrize(("file", "case"), [("golf.csv", "golf_quinlan"), ("golf_weka.csv", "golf_weka")])
@pytest.mark.parametrize(("outlook", "feature"), [("sunny", "humidity"), ("rain", "temperature")])
def test_golf_cuts_below_the_root(service: Service, file: str, case: str, outlook: str, feature: str) -> None:
    """Humidity's cuts under sunny and temperature's under rain."""
    columns = read_columns(file)
    model = service.train(columns, "play", {"parameters": {"criterion": "entropy", "nominal": "multiway"}})
    category = next(value for value in columns["outlook"] if value.startswith(outlook))
    query = {"node": node_below(service, model, category), "feature": feature, "sort": "position"}
    assert_cuts(service.splits(model, query), WORKED[case][f"{outlook}_{feature}"])


def assert_cuts(listed: list[dict[str, Any]], expected: list[dict[str, Any]]) -> None:
    """The same cuts in the same order; the examples count players first, who are the class of the later name."""
    assert [split["split"]["threshold"] for split in listed] == [cut["mid"] for cut in expected]
    assert [split["split"]["below"] for split in listed] == [cut["le"] for cut in expected]
    for split, cut in zip(listed, expected, strict=True):
        assert [branch["known"]["counts"][::-1] for branch in split["branches"]] == cut["counts"]
        assert_scores(split, cut)


def test_golf_tree_by_c45(service: Service) -> None:
    """C4.5's golf tree: outlook; sunny cuts humidity at 77.5, overcast plays, rain asks for wind."""
    nodes = service.tree(service.train(read_columns("golf.csv"), "play", {"algorithm": "c45"}))
    root = children_of(nodes, nodes[0])
    assert feature_of(nodes[0]) == "outlook"
    assert (feature_of(root["sunny"]), root["sunny"]["split"]["threshold"]) == ("humidity", 77.5)
    assert (root["overcast"]["leaf"], root["overcast"]["prediction"]) == (True, "Play")
    assert feature_of(root["rain"]) == "windy"
    assert len(nodes) == 8


def test_golf_cuts_that_c45_may_take(service: Service) -> None:
    """Under C4.5's limit of two rows, exactly the eligible cuts with a gain are admissible."""
    model = service.train(read_columns("golf.csv"), "play", {"algorithm": "c45"})
    for feature in ("temperature", "humidity"):
        listed = service.splits(model, {"node": 0, "feature": feature, "sort": "position"})
        eligible = [cut["eligible_c45"] for cut in WORKED["golf_quinlan"][feature]]
        assert [split["reason"] != "min_samples_leaf" for split in listed] == eligible
        assert [split["admissible"] for split in listed] == eligible


def test_one_unknown_outlook(service: Service) -> None:
    """C4.5's gain counts the 13 of 14 days whose outlook is known: their own gain times 13/14."""
    case = WORKED["c45_missing_outlook"]
    scores = service.score([{"yes": yes, "no": no} for yes, no in case["counts"]])
    assert scores["information_gain"] * 13 / 14 == pytest.approx(case["gain"], rel=1e-12)
    assert scores["entropy_cost"] + scores["information_gain"] == pytest.approx(case["H_known"], rel=1e-12)
    assert scores["gini_gain"] == pytest.approx(case["gini_decrease"], rel=1e-12)


def larose(service: Service, parameters: dict[str, Any]) -> tuple[str, int]:
    """Larose's customers: the model, and the number of the node where assets are not low."""
    model = service.train(CUSTOMERS, "risk", {"parameters": {"criterion": "goodness", **parameters}})
    nodes = service.tree(model)
    return model, int(max(nodes[0]["children"], key=lambda child: sum(nodes[child]["counts"])))


@pytest.mark.parametrize("place", ["larose_root", "larose_assets_not_low"])
def test_larose_binary_splits(service: Service, place: str) -> None:
    """Goodness and the other measures of the eight customers' binary splits, at the root and beside low assets."""
    model, below = larose(service, {"nominal": "one_vs_rest"})
    listed = service.splits(model, {"node": 0 if place == "larose_root" else below})
    splits = by_category(listed)
    for split in listed:
        if split["split"]["type"] == "threshold":
            splits[f"income<={split['split']['below']:g}"] = split
    expected = {name: example for name, example in WORKED[place].items() if "=" in name}
    assert splits.keys() == expected.keys()
    for name, example in expected.items():
        assert sorted(sizes(splits[name])) == sorted(example["n"])
        assert_scores(splits[name], example)


@pytest.mark.parametrize("place", ["larose_root", "larose_assets_not_low"])
def test_larose_multiway_splits(service: Service, place: str) -> None:
    """Savings and assets with a branch for each category; goodness stays undefined above two branches."""
    examples = {name.split()[0]: example for name, example in WORKED[place].items() if "multiway" in name}
    assert examples.keys() == {"savings", "assets"}
    for feature, example in examples.items():
        groups = [dict(zip(ORDER["larose8"], branch, strict=True)) for branch in example["counts"]]
        scores = service.score(groups)
        assert_scores({"scores": scores}, example)
        assert (scores["goodness"] is None) == (len(groups) > 2), feature


def test_larose_tree(service: Service) -> None:
    """Low assets first, all bad; then high savings, or the income of 25 that parts alike; no error is left."""
    nodes = service.tree(larose(service, {})[0])
    low, others = sorted((nodes[child] for child in nodes[0]["children"]), key=lambda node: sum(node["counts"]))
    assert (feature_of(nodes[0]), low["counts"], low["leaf"]) == ("assets", [2, 0], True)
    assert (feature_of(others), others["split"]["categories"]) in (
        ("savings", [["High"], ["Low", "Medium"]]),
        ("savings", [["Low", "Medium"], ["High"]]),
    )
    assert all(0 in node["counts"] for node in nodes if node["leaf"])


@pytest.mark.parametrize("letter", ["A", "B"])
def test_positive_measures(service: Service, letter: str) -> None:
    """Positive correctness and true positive rate of the encyclopaedia's two features."""
    case = WORKED[f"wikipedia_feature_{letter}"]
    branches = [{"C": case["TP"], "NC": case["FP"]}, {"C": case["FN"], "NC": case["TN"]}]
    scores = service.score(branches, {"positive_class": "C"})
    assert scores["positive_correctness"] == case["EP"]
    assert scores["true_positive_rate"] == pytest.approx(case["TPR"], rel=1e-12)


def test_rpart_finds_the_same_textbook_roots(service: Service) -> None:
    """The best improvement of each feature by rpart: n x gini decrease of subsets and cuts at the roots."""
    for columns, target, expected in (
        (TENNIS, "Play", {"Outlook": 10 / 7, "Humidity": 9 / 7, "Wind": 3 / 7, "Temperature": 0.2285714}),
        (CUSTOMERS, "risk", {"assets": 2.083333333333, "savings": 1.35, "income": 1.35}),
    ):
        rows = len(columns[target])
        listed = service.splits(service.train(columns, target), {"node": 0})
        best = {name: max(s["scores"]["gini_gain"] for s in listed if s["feature"] == name) * rows for name in expected}
        assert best == pytest.approx(expected, rel=1e-6)
