"""The same candidates, scores and trees as rpart 4.1.19 on R 4.2.2."""

from __future__ import annotations

import csv
import math
import re
from dataclasses import dataclass
from typing import Any

import pytest

from tests.oracle.contract import DATA, Service, feature_of, read_columns

CRITERION = {"gini": "gini", "information": "entropy"}
LINE = re.compile(r"^ *(\d+)\) (?:root|(\S+?)(<|>=) *(\S+)) (\d+) +\d+ (\S+) \((.*?)\) *(\*?)$")


@dataclass(frozen=True)
class Node:
    """A line of rpart's print: `lower` says whether the rows below the threshold are the ones that came here."""

    feature: str | None
    threshold: float
    lower: bool
    size: int
    label: str
    leaf: bool


def rpart_tree(name: str, variant: str) -> dict[int, Node]:
    """The printed tree of one variant, by rpart's node numbers (children of k are 2k and 2k + 1)."""
    text = (DATA / f"rpart_{name}.txt").read_text()
    section = text.split(f"###### {variant} ######")[1].split("== printcp ==")[0].split("== print ==")[1]
    nodes = {}
    for number, feature, sign, threshold, size, label, _, leaf in filter(None, map(match, section.splitlines())):
        cut = float(threshold) if threshold else math.nan
        nodes[int(number)] = Node(feature, cut, sign == "<", int(size), label, leaf == "*")
    return nodes


def match(line: str) -> tuple[Any, ...] | None:
    """The parts of a printed node's line; None for any other line."""
    found = LINE.match(line)
    return found.groups() if found else None


def rpart_improvements(name: str, variant: str) -> list[dict[str, Any]]:
    """The primary splits of `fit$splits` in the order printed; a count of 0 marks a surrogate."""
    text = (DATA / f"rpart_{name}.txt").read_text()
    section = text.split(f"###### {variant} ######")[1].split("== fit$splits")[1].split("== variable")[0]
    rows = [line.split() for line in section.splitlines()[2:] if line.strip()]
    names = ("feature", "count", "ncat", "improve", "index")
    parsed = [dict(zip(names, [row[0], *map(float, row[1:5])], strict=True)) for row in rows]
    return [row for row in parsed if row["count"]]


def train(service: Service, name: str, criterion: str, limits: dict[str, int]) -> str:
    """A tree of the data set of that name; its target is what rpart predicted."""
    target = {"kyphosis": "Kyphosis", "iris": "Species"}[name]
    columns = read_columns(f"rpart_{name}.csv")
    return service.train(columns, target, {"parameters": {"criterion": criterion, **limits}})


def test_every_root_candidate_of_kyphosis(service: Service) -> None:
    """All 85 cuts are listed, with rpart's improvement by gini, by information in nats, and goodness, to 1e-9."""
    with (DATA / "rpart_kyphosis_root_candidates.csv").open() as file:
        expected = {(row["feature"], float(row["threshold"])): row for row in csv.DictReader(file)}
    model = train(service, "kyphosis", "gini", {"max_depth": 1})
    listed = {(split["feature"], split["split"]["threshold"]): split for split in service.splits(model, {"node": 0})}
    assert len(expected) == 85
    assert listed.keys() == expected.keys()
    for key, row in expected.items():
        scores, branches = listed[key]["scores"], listed[key]["branches"]
        assert [branch["known"]["n"] for branch in branches] == [int(row["n_left_lt"]), int(row["n_right_ge"])]
        assert scores["gini_gain"] * 81 == pytest.approx(float(row["improve_gini_n"]), rel=1e-9, abs=1e-9)
        nats = scores["information_gain"] * 81 * math.log(2)
        assert nats == pytest.approx(float(row["improve_entropy_nats_n"]), rel=1e-9, abs=1e-9)
        assert scores["goodness"] == pytest.approx(float(row["phi"]), rel=1e-9, abs=1e-9)


@pytest.mark.parametrize("variant", ["gini", "information"])
@pytest.mark.parametrize("name", ["kyphosis", "iris"])
def test_the_splits_of_rparts_trees(service: Service, name: str, variant: str) -> None:
    """Wherever rpart split under minsplit 20 and minbucket 7, the node here has the same cut, sizes and majority."""
    limits = {"min_samples_split": 20, "min_samples_leaf": 7}
    nodes = service.tree(train(service, name, CRITERION[variant], limits))
    expected = rpart_tree(name, variant)
    assert compare(nodes, 0, expected, 1) == sum(not node.leaf for node in expected.values()) >= 2


@pytest.mark.parametrize("name", ["kyphosis", "iris"])
def test_the_top_of_rparts_unlimited_tree(service: Service, name: str) -> None:
    """Without limits the nodes of the first two levels are the same."""
    nodes = service.tree(train(service, name, "gini", {"min_samples_split": 2, "min_samples_leaf": 1, "max_depth": 2}))
    expected = {key: node for key, node in rpart_tree(name, "full").items() if key < 8}
    inner = {key for key in expected if 2 * key in expected}
    shallow = {key: Node(**{**vars(node), "leaf": key not in inner}) for key, node in expected.items()}
    assert compare(nodes, 0, shallow, 1) == len(inner)


def compare(nodes: list[dict[str, Any]], here: int, expected: dict[int, Node], there: int) -> int:
    """Walk both trees from the nodes given; how many inner nodes they share. Fails where the shared part differs."""
    ours, theirs = nodes[here], expected[there]
    assert sum(ours["counts"]) == theirs.size
    assert ours["prediction"] == theirs.label
    if theirs.leaf:
        return 0
    left, right = expected[2 * there], expected[2 * there + 1]
    assert (left.feature, left.threshold) == (right.feature, right.threshold)
    assert feature_of(ours) == left.feature
    assert ours["split"]["threshold"] == pytest.approx(left.threshold, rel=1e-6)
    lower, upper = ours["children"]
    first, second = (lower, upper) if left.lower else (upper, lower)
    return 1 + compare(nodes, first, expected, 2 * there) + compare(nodes, second, expected, 2 * there + 1)


@pytest.mark.parametrize("variant", ["gini", "information"])
@pytest.mark.parametrize("name", ["kyphosis", "iris"])
def test_the_best_cut_of_each_feature_at_each_split(service: Service, name: str, variant: str) -> None:
    """The best cut of each feature that rpart lists scores the same here, and its `<` is our `<=` at the midpoint."""
    limits = {"min_samples_split": 20, "min_samples_leaf": 7}
    model = train(service, name, CRITERION[variant], limits)
    measure, unit = {"gini": ("gini_gain", 1.0), "information": ("information_gain", math.log(2))}[variant]
    listed = service.splits(model, {"admissible": "true"})
    expected = rpart_improvements(name, variant)
    for row in expected:
        best = [
            split
            for split in listed
            if split["feature"] == row["feature"]
            and sum(branch["known"]["n"] for branch in split["branches"]) == row["count"]
            and split["split"]["threshold"] == pytest.approx(row["index"], rel=1e-12)
        ]
        scaled = [split["scores"][measure] * row["count"] * unit for split in best]
        assert any(math.isclose(improve, row["improve"], rel_tol=1e-9, abs_tol=1e-9) for improve in scaled), row
    assert len(expected) >= 8
