"""Priors and losses change scores and answers as in rpart 4.1.19 on R 4.2.2."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.oracle.contract import DATA, Service, feature_of, read_columns

PRIORS = {"absent": 0.65, "present": 0.35}
LOSS = [[0, 4], [3, 0]]


def tables(name: str) -> list[list[dict[str, Any]]]:
    """The tables of splits in a file of rpart's output, surrogates (of count 0) left out."""
    found: list[list[dict[str, Any]]] = []
    open_table = False
    for line in (DATA / name).read_text().splitlines():
        cells = line.split()
        if cells[:2] == ["count", "ncat"]:
            found.append([])
            open_table = True
        elif open_table and len(cells) == 6 and cells[0].isalpha():
            if cells[1] != "0":
                found[-1].append(
                    {"feature": cells[0], "n": int(cells[1]), "improve": float(cells[3]), "cut": float(cells[4])}
                )
        else:
            open_table = False
    return found


def train(service: Service, parameters: dict[str, Any]) -> str:
    """Kyphosis under rpart's limits, two levels deep."""
    limits = {"min_samples_split": 20, "min_samples_leaf": 7, "max_depth": 2}
    return service.train(read_columns("rpart_kyphosis.csv"), "Kyphosis", {"parameters": limits | parameters})


def assert_improvements(
    service: Service, model: str, expected: list[dict[str, Any]], measure: str, unit: float, factors: list[float]
) -> None:
    """Each listed cut has the improvement given: its node's altered weight times its gain."""
    listed = service.splits(model, {"type": "threshold"})
    assert expected
    for row in expected:
        improvements = []
        for split in listed:
            counts = [
                sum(pair) for pair in zip(*(branch["known"]["counts"] for branch in split["branches"]), strict=True)
            ]
            if (split["feature"], split["split"]["threshold"], sum(counts)) == (row["feature"], row["cut"], row["n"]):
                weight = sum(count * factor for count, factor in zip(counts, factors, strict=True))
                improvements.append(split["scores"][measure] * weight * unit)
        assert any(math.isclose(each, row["improve"], rel_tol=1e-9) for each in improvements), row


@pytest.mark.parametrize(
    ("criterion", "measure", "unit", "file", "place"),
    [
        ("gini", "gini_gain", 1.0, "rpart_kyphosis_prior_loss.txt", 0),
        ("entropy", "information_gain", math.log(2), "rpart_kyphosis.txt", 2),
    ],
)
def test_priors(service: Service, criterion: str, measure: str, unit: float, file: str, place: int) -> None:
    """With priors .65 and .35 the cuts improve as rpart says, and the same two are taken: Start 12.5, then Age 34.5."""
    model = train(service, {"criterion": criterion, "priors": PRIORS})
    factors = [0.65 * 81 / 64, 0.35 * 81 / 17]
    assert_improvements(service, model, tables(file)[place], measure, unit, factors)
    nodes = service.tree(model)
    lower = nodes[nodes[0]["children"][0]]
    assert (feature_of(nodes[0]), nodes[0]["split"]["threshold"]) == ("Start", 12.5)
    assert (feature_of(lower), lower["split"]["threshold"]) == ("Age", 34.5)
    assert [nodes[child]["prediction"] for child in lower["children"]] == ["absent", "present"]
    answer = service.predict(model, {"Age": [1, 100], "Number": [3, 3], "Start": [1, 1]})
    assert answer["probabilities"][0] == pytest.approx([0.81616741896, 0.18383258104], rel=1e-9)
    assert answer["probabilities"][1] == pytest.approx([0.27932896702, 0.72067103298], rel=1e-9)


def test_losses(service: Service) -> None:
    """Where calling absent present costs 4 and present absent 3, Start is cut at 8.5 and 8 against 11 is present."""
    model = train(service, {"criterion": "gini", "loss": LOSS, "max_depth": 1})
    scale = 81 / (64 * 4 + 17 * 3)
    assert_improvements(
        service, model, tables("rpart_kyphosis_prior_loss.txt")[1], "gini_gain", 1.0, [4 * scale, 3 * scale]
    )
    nodes = service.tree(model)
    assert nodes[0]["split"]["threshold"] == 8.5
    low, high = (nodes[child] for child in nodes[0]["children"])
    assert (low["counts"], low["prediction"]) == ([8, 11], "present")
    assert (high["counts"], high["prediction"]) == ([56, 6], "absent")
    answer = service.predict(model, {"Age": [1], "Number": [1], "Start": [1]})
    assert answer["probabilities"] == [pytest.approx([8 / 19, 11 / 19])]
