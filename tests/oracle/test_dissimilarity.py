"""Trees of dissimilarities against plain loops over pairs, node by node, through HTTP."""

from __future__ import annotations

import math
import random
from collections.abc import Callable, Sequence
from itertools import product
from typing import Any

import pytest

from tests.oracle.contract import Service, way

Distance = Callable[[int, int], float]


def make_table(seed: int, rows: int = 40) -> dict[str, list[Any]]:
    """Numbers, more categories than are tried exhaustively and gaps; targets of numbers and words that go with them."""
    draw = random.Random(seed)  # noqa: S311 - a fixed sequence, not a secret
    town = [draw.choice("abcdefghi") for _ in range(rows)]
    number = [draw.choice([None, *range(8)]) for _ in range(rows)]
    return {
        "town": town,
        "number": number,
        "pole": [draw.choice(["n", "s", None]) for _ in range(rows)],
        "u": [("abcdefghi".index(t) % 3) + draw.randrange(2) for t in town],
        "v": [(n or 0) // 3 + draw.randrange(3) for n in number],
        "word": [draw.choice(["red", "green"]) if t in "abcd" else "blue" for t in town],
        "w": [draw.choice([1, 1, 2, 3]) for _ in range(rows)],
    }


def euclidean(table: dict[str, list[Any]]) -> Distance:
    """Of u and v."""
    return lambda i, j: math.hypot(table["u"][i] - table["u"][j], table["v"][i] - table["v"][j])


def cityblock(table: dict[str, list[Any]]) -> Distance:
    """Of u and v."""
    return lambda i, j: abs(table["u"][i] - table["u"][j]) + abs(table["v"][i] - table["v"][j])


def hamming(table: dict[str, list[Any]]) -> Distance:
    """Of u and word."""
    return lambda i, j: ((table["u"][i] != table["u"][j]) + (table["word"][i] != table["word"][j])) / 2


CASES = {
    "euclidean": (["u", "v"], {"metric": "euclidean"}, euclidean),
    "cityblock": (["u", "v"], {"metric": "cityblock"}, cityblock),
    "hamming": (["u", "word"], None, hamming),
}


def spread(table: dict[str, list[Any]], distance: Distance, rows: Sequence[int]) -> float:
    """Half the mean dissimilarity over all ordered pairs."""
    weight = table["w"]
    total = sum(weight[row] for row in rows)
    return math.fsum(weight[i] * weight[j] * distance(i, j) for i, j in product(rows, rows)) / (2 * total * total)


@pytest.mark.parametrize("name", CASES)
@pytest.mark.parametrize("more", [{}, {"missing": "branch", "nominal": "multiway"}, {"nominal": "one_vs_rest"}])
def test_every_node(service: Service, name: str, more: dict[str, Any]) -> None:
    """Impurity, medoid and all candidates of every node are those of plain loops, by a metric and by its matrix."""
    targets, asked, metric = CASES[name]
    table = make_table(len(name))
    distance = metric(table)
    rows = range(len(table["w"]))
    data = {column: table[column] for column in ("town", "number", "pole", "w", *targets)}
    body: dict[str, Any] = {
        "data": {"columns": data},
        "target": targets,
        "weight": "w",
        "dissimilarity": asked,
        "parameters": {"criterion": "dissimilarity", "max_depth": 3, **more},
    }
    model = service.record(body)["id"]
    check(service, model, table, distance, targets)
    body["dissimilarity"] = {"matrix": [[distance(i, j) for j in rows] for i in rows]}
    again = service.record(body)["id"]
    assert service.tree(again) == service.tree(model)


def check(
    service: Service, model: str, table: dict[str, list[Any]], distance: Distance, targets: Sequence[str]
) -> None:
    """All nodes, their listings and the predictions of the training rows."""
    nodes = service.tree(model)
    listing = service.listing(model)
    members = {0: list(range(len(table["w"])))}
    for node in nodes:
        rows = members[node["node"]]
        assert node["n"] == len(rows)
        assert node["impurity"] == pytest.approx(spread(table, distance, rows), rel=1e-9, abs=1e-12)
        sums = {i: math.fsum(table["w"][j] * distance(i, j) for j in rows) for i in rows}
        medoids = [i for i in rows if sums[i] <= min(sums.values()) + 1e-9]
        assert node["prediction"] == min([table[target][i] for target in targets] for i in medoids)
        listed = [split for split in listing["splits"] if split["node"] == node["node"]]
        for split in listed:
            check_candidate(table, distance, rows, split)
        if node["leaf"]:
            continue
        chosen = next(split for split in listed if split["chosen"])
        assert chosen["score"] == pytest.approx(max(s["score"] for s in listed if s["admissible"]), rel=1e-9)
        assert chosen["score"] == pytest.approx(node["score"])
        for row in rows:
            child = node["children"][way(chosen["split"], table[chosen["feature"]][row])]
            members.setdefault(child, []).append(row)
    answer = service.predict(model, {name: table[name] for name in ("town", "number", "pole")})
    leaf = {row: node for node in nodes if node["leaf"] for row in members[node["node"]]}
    assert answer["leaves"] == [leaf[row]["node"] for row in sorted(leaf)]
    assert answer["predictions"] == [leaf[row]["prediction"] for row in sorted(leaf)]


def check_candidate(
    table: dict[str, list[Any]], distance: Distance, rows: Sequence[int], split: dict[str, Any]
) -> None:
    """Cost and reduction are those of the rows that the split parts."""
    parts: dict[int, list[int]] = {}
    for row in rows:
        parts.setdefault(way(split["split"], table[split["feature"]][row]), []).append(row)
    weight = {part: sum(table["w"][row] for row in inside) for part, inside in parts.items()}
    whole = sum(weight.values())
    cost = math.fsum(weight[part] / whole * spread(table, distance, inside) for part, inside in parts.items())
    assert split["scores"]["dissimilarity_cost"] == pytest.approx(cost, rel=1e-9, abs=1e-11)
    gain = spread(table, distance, rows) - cost
    assert split["scores"]["dissimilarity_reduction"] == pytest.approx(gain, rel=1e-9, abs=1e-11)
    assert split["score"] == split["scores"]["dissimilarity_reduction"]
    shown = sorted((branch["known"]["n"], branch["known"]["impurity"]) for branch in split["branches"])
    expected = sorted((len(inside), spread(table, distance, inside)) for inside in parts.values())
    for (n, impurity), (other, exact) in zip(shown, expected, strict=True):
        assert n == other
        assert impurity == pytest.approx(exact, rel=1e-9, abs=1e-11)


@pytest.mark.parametrize("alpha", [None, 0.1])
def test_squared_distances_give_the_variance(service: Service, alpha: float | None) -> None:
    """By squared Euclidean distances the impurity is the sum of the variances, the tree that of several targets.

    So it is when both are pruned: the risk of a sum of two variances is twice that of their mean.
    """
    table = make_table(7)
    data = {name: table[name] for name in ("town", "number", "u", "v")}
    plain, pairs = (
        service.tree(
            service.record(
                {
                    "data": {"columns": data},
                    "target": ["u", "v"],
                    "parameters": {"nominal": "one_vs_rest"}
                    | ({} if alpha is None else {"pruning": "cost_complexity", "alpha": times * alpha}),
                    "dissimilarity": metric,
                }
            )["id"]
        )
        for metric, times in ((None, 1), ({"metric": "sqeuclidean"}, 2))
    )
    assert len(plain) >= 5
    assert [(node["feature"], node["split"], node["n"]) for node in pairs] == [
        (node["feature"], node["split"], node["n"]) for node in plain
    ]
    assert [node["impurity"] for node in pairs] == pytest.approx([2 * node["impurity"] for node in plain], rel=1e-9)
