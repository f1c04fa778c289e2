"""Public data sets through a server that really runs: trained, audited and asked, and nothing is lost on the way."""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any
from urllib.parse import urlencode

import pytest

from tests.datasets import DATASETS, Dataset
from tests.oracle.contract import OTHERWISE, feature_of, read_columns, way
from tests.running import RunningServer

pytestmark = pytest.mark.system

LIMITS = {"min_samples_leaf": 5, "max_depth": 6}
NAMES = list(DATASETS)
Train = Callable[..., dict[str, Any]]


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[RunningServer]:
    """One server for all data sets."""
    directory = tmp_path_factory.mktemp("datasets")
    server = RunningServer(directory / "models", directory / "log")
    yield server
    server.kill()


@pytest.fixture(scope="module")
def train(server: RunningServer) -> Train:
    """Trains on a data set, once for each way of treating what is missing; the record."""
    trained: dict[tuple[str, str], dict[str, Any]] = {}

    def ask(name: str, missing: str = "direction") -> dict[str, Any]:
        if (name, missing) not in trained:
            data = DATASETS[name]
            body = {"data": {"columns": data.columns}, "target": data.target, "name": name}
            answer = server.client.post("/train", body | {"parameters": LIMITS | {"missing": missing}})
            assert answer.status == 201, answer.body
            trained[name, missing] = answer.body
        return trained[name, missing]

    return ask


def read_tree(server: RunningServer, record: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The nodes."""
    return list(server.client.get(record["links"]["tree"]).body["nodes"])


def list_splits(server: RunningServer, record: Mapping[str, Any], **query: object) -> dict[str, Any]:
    """All pages of a listing: splits, nodes, and the first page's total."""
    url: str | None = f"{record['links']['splits']}?{urlencode(query | {'limit': 1000})}"
    splits, nodes, total = [], {}, None
    while url:
        answer = server.client.get(url)
        assert answer.status == 200, answer.body
        splits += answer.body["splits"]
        nodes |= {node["node"]: node for node in answer.body["nodes"]}
        total, url = answer.body["total"], answer.body["next"]
    return {"splits": splits, "nodes": nodes, "total": total}


def predict(server: RunningServer, record: Mapping[str, Any], data: Dataset) -> dict[str, Any]:
    """The answers to the training rows."""
    features = {name: cells for name, cells in data.columns.items() if name != data.target}
    answer = server.client.post(record["links"]["predict"], {"data": {"columns": features}})
    assert answer.status == 200, answer.body
    return dict(answer.body)


def summarize(targets: Sequence[Any], classes: Sequence[str] | None) -> list[float]:
    """Class counts in the order of the classes; the mean of numbers."""
    if classes is None:
        return [sum(targets) / len(targets)]
    counts = Counter(targets)
    return [counts[name] for name in classes]


@pytest.mark.parametrize("name", NAMES)
def test_record(train: Train, name: str) -> None:
    """The record counts the rows that have a target, knows the kind of every column and warns only of what is so."""
    record, data = train(name), DATASETS[name]
    assert record["training"]["rows"] == len(data.targets)
    kinds = {feature["name"]: feature["kind"] for feature in record["schema"]["features"]}
    named = {column for column, cells in data.columns.items() if any(isinstance(cell, str) for cell in cells)}
    assert {column for column, kind in kinds.items() if kind == "nominal"} == named - {data.target}
    assert record["task"] == ("regression" if isinstance(data.targets[0], float) else "classification")
    assert record["tree"]["leaves"] > 5
    assert record["warnings"] == []


@pytest.mark.parametrize("missing", ["direction", "branch", "surrogate"])
@pytest.mark.parametrize("name", NAMES)
def test_every_row_reaches_the_leaf_that_the_tree_describes(
    server: RunningServer,
    train: Train,
    name: str,
    missing: str,
) -> None:
    """Each row, followed through the nodes' descriptions, ends where the service says, as do those of its leaf."""
    record, data = train(name, missing), DATASETS[name]
    nodes, answer = read_tree(server, record), predict(server, record, data)
    assert [follow(nodes, row) for row in data.rows] == answer["leaves"]
    assert answer["warnings"] == []
    classes = record["schema"]["target"].get("classes")
    for node in nodes:
        if node["leaf"]:
            targets = [
                target for target, leaf in zip(data.targets, answer["leaves"], strict=True) if leaf == node["node"]
            ]
            assert node["n"] == len(targets) >= LIMITS["min_samples_leaf"]
            assert (node["counts"] if classes else [node["mean"]]) == pytest.approx(
                summarize(targets, classes), rel=1e-12
            )
    assert answer["predictions"] == [nodes[leaf]["prediction"] for leaf in answer["leaves"]]


def follow(nodes: Sequence[Mapping[str, Any]], row: Mapping[str, Any]) -> int:
    """The node where a row stops."""
    node = nodes[0]
    while not node["leaf"]:
        branch = choose_branch(node, row)
        if branch == OTHERWISE:
            break
        node = nodes[node["children"][branch]]
    return int(node["node"])


def choose_branch(node: Mapping[str, Any], row: Mapping[str, Any]) -> int:
    """The branch that a row takes: by the split; or by the first surrogate that knows; or with what is missing."""
    value = row[feature_of(node)]
    if value is not None or not node.get("surrogates"):
        return OTHERWISE if value is None and node["split"].get("missing") == "stays" else way(node["split"], value)
    for surrogate in node["surrogates"]:
        other, split = row[surrogate["feature"]], surrogate["split"]
        if other is None:
            continue
        branch = way(split, other)
        if branch != OTHERWISE:
            return 1 - branch if split.get("below_to") == "right" else branch
    return OTHERWISE if node["split"]["missing"] == "stays" else way(node["split"], None)


@pytest.mark.parametrize("missing", ["direction", "surrogate"])
@pytest.mark.parametrize("name", NAMES)
def test_chosen_splits(server: RunningServer, train: Train, name: str, missing: str) -> None:
    """Each inner node's chosen split is its first, hands every row on, and its branches are the tree's children."""
    record = train(name, missing)
    nodes = read_tree(server, record)
    listing = list_splits(server, record, chosen="true")
    assert [split["node"] for split in listing["splits"]] == [node["node"] for node in nodes if not node["leaf"]]
    for split in listing["splits"]:
        node = nodes[split["node"]]
        assert split["rank"] == 1
        assert split["feature"] == node["feature"]
        assert split["score"] == node["score"] > 0
        routed = [branch["routed"] for branch in split["branches"]]
        kept = ("n", "counts") if "counts" in node else ("n",)
        children = [nodes[child] for child in node["children"]]
        assert [[branch[key] for key in kept] for branch in routed] == [
            [child[key] for key in kept] for child in children
        ]
        assert sum(branch["n"] for branch in routed) == node["n"]
        known = sum(branch["known"]["n"] for branch in split["branches"])
        assert known == node["n"] if missing == "direction" else known <= node["n"]


@pytest.mark.parametrize("name", NAMES)
def test_every_candidate_of_the_root(server: RunningServer, train: Train, name: str) -> None:
    """Each candidate's branches hold the node's rows, its gain is theirs, no admissible one beats the first."""
    record, data = train(name), DATASETS[name]
    listing = list_splits(server, record, node=0)
    splits, root = listing["splits"], listing["nodes"][0]
    assert len(splits) == listing["total"]
    assert {split["feature"] for split in splits} == data.columns.keys() - {data.target}
    admissible = [split for split in splits if split["admissible"]]
    assert admissible[0]["chosen"]
    assert admissible[0]["score"] >= max(split["score"] for split in admissible) - 1e-12 * root["impurity"]
    assert [split["rank"] for split in admissible] == list(range(1, len(admissible) + 1))
    for split in splits:
        branches = [branch["routed"] for branch in split["branches"]]
        assert sum(branch["n"] for branch in branches) == root["n"]
        if "counts" in root:
            assert [sum(counts) for counts in zip(*(branch["counts"] for branch in branches), strict=True)] == root[
                "counts"
            ]
        small = min(branch["n"] for branch in branches) < LIMITS["min_samples_leaf"]
        assert (split["reason"] == "min_samples_leaf") == (small and split["split"]["type"] != "constant")
        within = sum(branch["known"]["impurity"] * branch["known"]["weight"] for branch in split["branches"])
        assert split["score"] == pytest.approx(
            root["impurity"] - within / root["weight"], rel=1e-9, abs=1e-9 * root["impurity"]
        )


@pytest.mark.parametrize("name", NAMES)
def test_parted_rows(server: RunningServer, train: Train, name: str) -> None:
    """Under `fractional` children share out the weight of their node, and the leaves' answers add up to the root's."""
    record, data = train(name, "fractional"), DATASETS[name]
    nodes, answer = read_tree(server, record), predict(server, record, data)
    for node in nodes:
        if not node["leaf"]:
            children = [nodes[child] for child in node["children"]]
            assert sum(child["weight"] for child in children) == pytest.approx(node["weight"], rel=1e-9)
            assert sum(child["n"] for child in children) >= node["n"]
    leaves = [node for node in nodes if node["leaf"]]
    assert sum(leaf["weight"] for leaf in leaves) == pytest.approx(len(data.targets), rel=1e-9)
    if "probabilities" in answer:
        shares = [sum(column) for column in zip(*answer["probabilities"], strict=True)]
        assert sum(shares) == pytest.approx(len(data.targets), rel=1e-9)
        assert all(sum(row) == pytest.approx(1, rel=1e-12) for row in answer["probabilities"])


def test_missing_values_are_weighed_on_either_side(server: RunningServer, train: Train) -> None:
    """Titanic: each cut of age is listed with the 263 unknown ages left, right, and once apart from them."""
    splits = list_splits(server, train("titanic"), node=0, feature="age")["splits"]
    thresholds = [split["split"]["threshold"] for split in splits if split["split"]["type"] == "threshold"]
    ages = sorted({age for age in DATASETS["titanic"].columns["age"] if age is not None})
    assert set(Counter(thresholds).values()) == {2}
    assert len(set(thresholds)) == len(ages) - 1
    (apart,) = [split for split in splits if split["split"]["type"] == "missing"]
    assert [branch["routed"]["n"] for branch in apart["branches"]] == [263, 1046]


def test_categories_that_training_did_not_see(server: RunningServer, train: Train) -> None:
    """Boston: a row from a 93rd town gets an answer, and the answer says that the town is new."""
    record, data = train("boston"), DATASETS["boston"]
    row = data.rows[0] | {"town": "Atlantis"}
    answer = server.client.post(record["links"]["predict"], {"data": {"records": [row]}}).body
    assert len(answer["predictions"]) == 1
    assert any("Atlantis" in warning for warning in answer["warnings"])


def test_rows_without_a_target(server: RunningServer) -> None:
    """Air quality: 37 days without ozone are refused, the first of them named, or dropped on request."""
    columns = read_columns("airquality.csv")
    body = {"data": {"columns": columns}, "target": "Ozone"}
    refused = server.client.post("/train", body)
    assert refused.status == 422
    assert refused.body["errors"][0]["place"] == f"/data/columns/Ozone/{columns['Ozone'].index(None)}"
    dropped = server.client.post("/train", body | {"missing_target": "drop"})
    assert dropped.status == 201
    assert dropped.body["training"]["rows"] == 153 - 37


@pytest.mark.parametrize("name", NAMES)
def test_evaluate(server: RunningServer, train: Train, name: str) -> None:
    """What `/evaluate` measures on the training rows follows from what `/predict` answers to them, row by row."""
    record, data = train(name), DATASETS[name]
    answer, told = evaluate(server, record, data), predict(server, record, data)
    assert answer["rows"] == len(data.targets)
    if record["task"] == "regression":
        misses = [guess - target for guess, target in zip(told["predictions"], data.targets, strict=True)]
        mean = sum(data.targets) / len(misses)
        square = sum(miss**2 for miss in misses)
        expected = {
            "mae": sum(map(abs, misses)) / len(misses),
            "rmse": math.sqrt(square / len(misses)),
            "r2": 1 - square / sum((target - mean) ** 2 for target in data.targets),
        }
    else:
        assert answer["confusion"] == count_confusion(told, data)
        hits = [row[place] for place, row in enumerate(answer["confusion"])]
        places = [told["classes"].index(target) for target in data.targets]
        right = [share[place] for share, place in zip(told["probabilities"], places, strict=True)]
        recalls = [hit / sum(row) for hit, row in zip(hits, answer["confusion"], strict=True)]
        expected = {
            "accuracy": sum(hits) / len(places),
            "balanced_accuracy": sum(recalls) / len(recalls),
            "log_loss": -sum(map(math.log, right)) / len(places),
        }
    assert {metric: answer["metrics"][metric] for metric in expected} == pytest.approx(expected, rel=1e-9)
    assert record["metrics"]
    for metric, value in record["metrics"].items():
        assert value == pytest.approx(answer["metrics"][metric], rel=1e-12)


def evaluate(server: RunningServer, record: Mapping[str, Any], data: Dataset) -> dict[str, Any]:
    """The measures on the training rows."""
    answer = server.client.post(record["links"]["evaluate"], {"data": {"columns": data.columns}})
    assert answer.status == 200, answer.body
    return dict(answer.body)


def count_confusion(told: Mapping[str, Any], data: Dataset) -> list[list[int]]:
    """Rows by their class and by what they were taken for."""
    pairs = Counter(zip(data.targets, told["predictions"], strict=True))
    return [[pairs[true, guess] for guess in told["classes"]] for true in told["classes"]]


@pytest.mark.parametrize("name", NAMES)
def test_prune(server: RunningServer, train: Train, name: str) -> None:
    """A subtree off the middle of the path is the top of the tree, and errs on its rows as the path says."""
    record, data = train(name), DATASETS[name]
    answer = server.client.get(record["links"]["self"] + "/pruning").body
    path = answer["path"]
    assert [step["leaves"] for step in path] == sorted({step["leaves"] for step in path})
    assert path[0]["leaves"] == path[0]["relative_error"] == 1
    middle = path[len(path) // 2]
    pruned = server.client.post(record["links"]["self"] + "/prune", {"cp": middle["cp"]})
    assert pruned.status == 201, pruned.body
    assert pruned.body["pruning"]["parent"]["id"] == record["id"]
    assert pruned.body["tree"]["leaves"] == middle["leaves"]
    whole, top = read_tree(server, record), read_tree(server, pruned.body)
    splits = [same_split(node) for node in whole]
    assert all(same_split(node) in splits for node in top if not node["leaf"])
    metrics = evaluate(server, pruned.body, data)["metrics"]
    risk = 1 - metrics["accuracy"] if "accuracy" in metrics else metrics["rmse"] ** 2
    assert risk == pytest.approx(middle["risk"], rel=1e-9)
    assert middle["relative_error"] == pytest.approx(middle["risk"] / answer["root_risk"], rel=1e-12)


def same_split(node: Mapping[str, Any]) -> dict[str, Any]:
    """What does not depend on how the nodes are numbered."""
    return {key: value for key, value in node.items() if key not in {"node", "parent", "children"}}


@pytest.mark.parametrize("name", NAMES)
def test_importance(server: RunningServer, train: Train, name: str) -> None:
    """The gain of a feature is that of its splits, node by node, and a feature that is not asked has none."""
    record = train(name)
    gains: Counter[str] = Counter()
    for node in read_tree(server, record):
        if not node["leaf"]:
            gains[node["feature"]] += node["weight"] * node["score"]
    listed = server.client.get(record["links"]["self"] + "/importance").body["features"]
    assert {one["feature"]: one["gain"] for one in listed} == pytest.approx(
        {feature["name"]: gains[feature["name"]] for feature in record["schema"]["features"]}, rel=1e-9
    )
    assert sum(one["share"] for one in listed) == pytest.approx(1)
