"""A model as rpart would hold it, made from the HTTP API's answers alone: the record, `/tree` and `/splits`.

rpart's words (rpart 4.1.19): `improve` is the node's weight times the gain, under altered class weights and in nats;
for numbers it is the gain as a share of the node's variance, for events all that the deviance falls by. The branch of
lower mean (of the class's number, or of the target) is the left one. Nodes are numbered 1, and 2n and 2n + 1 below n.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from tests.oracle.contract import Service
from tests.reference.r_printing import signif

TIED = 1e-10
"""Improvements closer than this, relative to the greater, are equal: the first feature and the first cut come first."""
UNIT = {"information_gain": math.log(2), "poisson_deviance_reduction": 2.0}
"""rpart's entropy is in nats, ours in bits; ours is half the deviance."""


@dataclass(frozen=True)
class Split:
    """A row of `fit$splits`.

    ``count`` is the rows that it was scored on, or those that a surrogate sent; ``improve`` is the agreement of a
    surrogate. ``ncat``: -1 where `<` goes left, 1 where it goes right, or the number of categories. ``sides`` has an
    L, R or - (not seen here) for each category.
    """

    feature: str
    count: int
    ncat: int
    improve: float
    index: float = math.nan
    sides: str = ""
    adj: float = 0.0


@dataclass(frozen=True)
class Node:
    """A row of `fit$frame`, and its rows of `fit$splits`: primary ones, the one taken first, then surrogates."""

    number: int
    n: int
    dev: float
    answer: str | float
    events: float | None = None
    counts: Sequence[float] = ()
    probabilities: Sequence[float] = ()
    share: float = 1.0
    primary: Sequence[Split] = ()
    surrogates: Sequence[Split] = ()

    @property
    def leaf(self) -> bool:
        """Whether nothing is below."""
        return not self.primary


@dataclass(frozen=True)
class Fit:
    """A tree; ``nodes`` by rpart's number, in order of their print: a node, all below its left, all below its right."""

    features: Mapping[str, Sequence[str]]
    classes: Sequence[str]
    nodes: Mapping[int, Node]
    complexity: Mapping[int, float] = field(default_factory=dict)
    cptable: Sequence[tuple[float, int, float]] = ()
    importance: Mapping[str, float] = field(default_factory=dict)


class Reader:
    """Reads one model; class weights are those of rpart's priors and losses."""

    def __init__(self, service: Service, record: Mapping[str, Any], compete: int) -> None:
        self.service, self.compete = service, compete
        self.model = record["id"]
        schema = record["schema"]
        self.features = {one["name"]: list(map(str, one.get("categories", ()))) for one in schema["features"]}
        self.order = {name: place for place, name in enumerate(self.features)}
        self.classes = list(map(str, schema["target"].get("classes", ())))
        self.tree = service.tree(self.model)
        listing = service.listing(self.model, {"admissible": "true"})
        self.measure, self.listed = listing["measure"], listing["splits"]
        self.first_left: dict[int, bool] = {}
        root = self.tree[0]
        if self.classes:
            counts, parameters = root["counts"], record["parameters"]
            total = sum(counts)
            priors = parameters["priors"] or dict(zip(self.classes, counts, strict=True))
            self.priors = [priors[name] / sum(priors.values()) for name in self.classes]
            self.loss = parameters["loss"] or [[float(i != j) for j in range(len(counts))] for i in range(len(counts))]
            altered = [prior * sum(row) for prior, row in zip(self.priors, self.loss, strict=True)]
            self.shown = [prior * total / count for prior, count in zip(self.priors, counts, strict=True)]
            self.scored = [part / sum(altered) * total / count for part, count in zip(altered, counts, strict=True)]

    def read(self) -> Fit:
        """The whole fit."""
        nodes: dict[int, Node] = {}
        waiting = [(1, 0)]
        while waiting:
            number, place = waiting.pop()
            node = self.tree[place]
            primary = [] if node["leaf"] else self.rank_primary(node)
            if primary:
                self.first_left[number] = self.goes_left(primary[0])
            nodes[number] = self.make_node(number, node, primary)
            if primary:
                lower, upper = node["children"]
                left, right = (lower, upper) if self.first_left[number] else (upper, lower)
                waiting += [(2 * number + 1, right), (2 * number, left)]
        path = self.read_path()
        cptable = [(step["cp"], step["splits"], step["relative_error"]) for step in path]
        complexity, importance = self.find_complexity(path), self.read_importance()
        return Fit(self.features, self.classes, nodes, complexity, cptable, importance)

    def read_importance(self) -> dict[str, float]:
        """What splits gained, and their surrogates with them, the most first, of equals by name."""
        response = self.service.client.get(f"/models/{self.model}/importance?surrogates=true")
        assert response.status_code == 200, response.get_data(as_text=True)
        unit = UNIT.get(self.measure, 1.0)
        gains = {one["feature"]: one["gain"] * unit for one in response.get_json()["features"] if one["gain"]}
        return dict(sorted(gains.items(), key=lambda item: (-signif(item[1], 12), item[0])))

    def read_path(self) -> list[dict[str, Any]]:
        """The subtrees that pruning leads through, from the root alone."""
        response = self.service.client.get(f"/models/{self.model}/pruning")
        assert response.status_code == 200, response.get_data(as_text=True)
        return list(response.get_json()["path"])

    def find_complexity(self, path: Sequence[Mapping[str, Any]]) -> dict[int, float]:
        """The complexity parameter of each split: the least cp at which the pruned tree is without it."""
        complexity: dict[int, float] = {}
        for step in path:
            if not step["current"]:
                response = self.service.client.post(f"/models/{self.model}/prune", json={"leaves": step["leaves"]})
                assert response.status_code == 201, response.get_data(as_text=True)
                kept = find_inner(self.service.tree(response.get_json()["id"]), self.first_left)
                complexity |= dict.fromkeys(self.first_left.keys() - kept, step["cp"])
        return complexity

    def make_node(self, number: int, node: Mapping[str, Any], primary: Sequence[Mapping[str, Any]]) -> Node:
        """A node with its statistics in rpart's words."""
        splits = [self.make_split(node, one) for one in primary]
        stands = [self.make_surrogate(number, one) for one in node.get("surrogates", ())]
        if not self.classes:
            dev, events = self.measure_numbers(node)
            return Node(number, node["n"], dev, node["prediction"], events, primary=splits, surrogates=stands)
        shown = [count * factor for count, factor in zip(node["counts"], self.shown, strict=True)]
        answer = self.classes.index(str(node["prediction"]))
        dev = sum(weight * row[answer] for weight, row in zip(shown, self.loss, strict=True))
        return Node(
            number, node["n"], dev, self.classes[answer], None, node["counts"], [one / sum(shown) for one in shown],
            sum(shown) / self.tree[0]["weight"], splits, stands,
        )  # fmt: skip

    def measure_numbers(self, node: Mapping[str, Any]) -> tuple[float, float | None]:
        """The deviance about the answer, and the number of events where rates were learnt."""
        if self.measure != "poisson_deviance_reduction":
            return node["variance"] * node["weight"], None
        events, answer = node["mean"] * node["weight"], node["prediction"]
        more = events * math.log(node["mean"] / answer) if events else 0.0
        return 2 * (node["impurity"] * node["weight"] + more - events + answer * node["weight"]), events

    def rank_primary(self, node: Mapping[str, Any]) -> list[dict[str, Any]]:
        """The best candidate of each feature, best first; the one taken, and ``compete`` others."""
        mine = [one for one in self.listed if one["node"] == node["node"] and one["split"]["type"] in WEIGHED]
        best: dict[str, dict[str, Any]] = {}
        for one in sorted(mine, key=self.position):
            rival = best.get(one["feature"])
            if rival is None or one["score"] > rival["score"] * (1 + TIED):
                best[one["feature"]] = one
        ranked: list[dict[str, Any]] = []
        for one in best.values():
            behind = [place for place, other in enumerate(ranked) if one["score"] > other["score"] * (1 + TIED)]
            ranked.insert(min(behind, default=len(ranked)), one)
        assert ranked[0]["chosen"], (node["node"], ranked[0])
        return ranked[: 1 + self.compete]

    def position(self, candidate: Mapping[str, Any]) -> tuple[int, float]:
        """By feature, and thresholds from below; subsets stay as they are listed."""
        return self.order[candidate["feature"]], candidate["split"].get("threshold", -candidate["score"])

    def make_split(self, node: Mapping[str, Any], candidate: Mapping[str, Any]) -> Split:
        """A primary split."""
        known = [branch["known"] for branch in candidate["branches"]]
        gain = candidate["scores"][self.measure] * UNIT.get(self.measure, 1.0)
        improve = gain / node["variance"] if self.measure == "variance_reduction" else gain * self.weigh(node)
        count = sum(branch["n"] for branch in known)
        first_left = self.goes_left(candidate)
        split, feature = candidate["split"], candidate["feature"]
        if split["type"] == "threshold":
            return Split(feature, count, -1 if first_left else 1, improve, split["threshold"])
        sides = self.spell_sides(feature, split["categories"], first_left)
        return Split(feature, count, len(sides), improve, sides=sides)

    def make_surrogate(self, number: int, surrogate: Mapping[str, Any]) -> Split:
        """A surrogate of the node; its sides are those of the node's own split."""
        feature, split, first_left = surrogate["feature"], surrogate["split"], self.first_left[number]
        count, agree, adj = surrogate["n"], surrogate["agree"], surrogate["adj"]
        if split["type"] == "threshold":
            left = (split["below_to"] == "left") == first_left
            return Split(feature, count, -1 if left else 1, agree, split["threshold"], adj=adj)
        sides = self.spell_sides(feature, split["categories"], first_left)
        return Split(feature, count, len(sides), agree, sides=sides, adj=adj)

    def spell_sides(self, feature: str, groups: Sequence[Sequence[Any]], first_left: bool) -> str:
        """L, R or - for each category of a feature, of which two ``groups`` are told apart."""
        left, right = groups if first_left else reversed(groups)
        names = [set(map(str, left)), set(map(str, right))]
        return "".join("L" if one in names[0] else "R" if one in names[1] else "-" for one in self.features[feature])

    def weigh(self, stats: Mapping[str, Any]) -> float:
        """The weight of a node or branch under altered class weights."""
        if not self.classes:
            return float(stats["weight"])
        return sum(count * factor for count, factor in zip(stats["counts"], self.scored, strict=True))

    def goes_left(self, candidate: Mapping[str, Any]) -> bool:
        """Whether the first branch is the left one for rpart: where its mean is lower."""
        means = [self.read_mean(branch["known"]) for branch in candidate["branches"]]
        return means[0] < means[1]

    def read_mean(self, stats: Mapping[str, Any]) -> float:
        """The mean of the target, or of the class's number under altered weights."""
        if not self.classes:
            return float(stats["mean"])
        weights = [count * factor for count, factor in zip(stats["counts"], self.scored, strict=True)]
        return sum(place * weight for place, weight in enumerate(weights)) / sum(weights)


def find_inner(tree: Sequence[Mapping[str, Any]], first_left: Mapping[int, bool]) -> set[int]:
    """The rpart numbers of the inner nodes of a tree, whose first branch is the left one where it says so."""
    inner, waiting = set(), [(1, 0)]
    while waiting:
        number, place = waiting.pop()
        if not tree[place]["leaf"]:
            inner.add(number)
            first = 2 * number + (not first_left[number])
            waiting += zip([first, 4 * number + 1 - first], tree[place]["children"], strict=True)
    return inner


WEIGHED = ("threshold", "subset")
"""The types of split that rpart knows."""


def read_fit(service: Service, record: Mapping[str, Any], compete: int = 4) -> Fit:
    """The model as rpart would hold it, with ``compete`` (`maxcompete`) primary splits beside the one taken."""
    return Reader(service, record, compete).read()
