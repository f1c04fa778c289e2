"""The columns of rpart's printcp that hold no randomness: rpart 4.1.19 on R 4.2.2."""

from __future__ import annotations

import re
from typing import Any

import pytest

from tests.oracle.contract import DATA, Service, read_columns

LIMITS = {"min_samples_split": 20, "min_samples_leaf": 7, "cp": 0.01}
FULL = {"cp": 0}
PRIORS = {"priors": {"absent": 0.65, "present": 0.35}}
ROW = re.compile(r"^\d+ +[\d.]+ +\d+ +[\d.]+")


def read_tables(name: str, variant: str | None = None) -> list[list[tuple[float, int, float]]]:
    """CP, nsplit and rel error of each table in a file of rpart's output, or in one of its variants."""
    text = (DATA / name).read_text()
    if variant:
        text = text.split(f"###### {variant} ######")[1].split("######")[0]
    tables: list[list[tuple[float, int, float]]] = []
    inside = False
    for line in text.splitlines():
        if "CP nsplit" in line:
            tables.append([])
            inside = True
        elif inside and ROW.match(line):
            cells = line.split()
            tables[-1].append((float(cells[1]), int(cells[2]), float(cells[3])))
        else:
            inside = False
    return tables


def list_path(service: Service, model: str, **query: str) -> list[dict[str, Any]]:
    """The path of a model."""
    response = service.client.get(f"/models/{model}/pruning", query_string=query)
    assert response.status_code == 200, response.get_data(as_text=True)
    return list(response.get_json()["path"])


def assert_table(path: list[dict[str, Any]], expected: list[tuple[float, int, float]]) -> None:
    """The path has rpart's rows, to the digits printed."""
    assert len(expected) > 1
    assert [step["splits"] for step in path] == [splits for _, splits, _ in expected]
    assert [step["cp"] for step in path] == pytest.approx([cp for cp, _, _ in expected], rel=1e-6, abs=5e-9)
    assert [step["relative_error"] for step in path] == pytest.approx([e for _, _, e in expected], rel=1e-6, abs=5e-8)


@pytest.mark.parametrize(
    ("name", "variant", "parameters"),
    [
        ("kyphosis", "gini", LIMITS),
        ("kyphosis", "information", LIMITS | {"criterion": "entropy"}),
        ("kyphosis", "prior65", LIMITS | {"criterion": "entropy"} | PRIORS),
        ("kyphosis", "full", FULL),
        ("iris", "gini", LIMITS),
        ("iris", "information", LIMITS | {"criterion": "entropy"}),
        ("iris", "full", FULL),
    ],
)
def test_the_cp_table(service: Service, name: str, variant: str, parameters: dict[str, Any]) -> None:
    """Training with rpart's cp alone gives a tree with the splits of the table's last row, and the whole table."""
    target = {"kyphosis": "Kyphosis", "iris": "Species"}[name]
    model = service.train(read_columns(f"rpart_{name}.csv"), target, {"parameters": parameters})
    expected = read_tables(f"rpart_{name}.txt", variant)[0]
    assert_table(list_path(service, model), expected)
    nodes = service.tree(model)
    assert sum(not node["leaf"] for node in nodes) == expected[-1][1]
    assert [step["current"] for step in list_path(service, model)] == [False] * (len(expected) - 1) + [True]


@pytest.mark.parametrize(("place", "more"), [(0, PRIORS), (1, {"loss": [[0, 4], [3, 0]]})])
def test_priors_and_losses(service: Service, place: int, more: dict[str, Any]) -> None:
    """Under priors, and under losses, risks are what rpart calls them, and so are the tables."""
    model = service.train(read_columns("rpart_kyphosis.csv"), "Kyphosis", {"parameters": LIMITS | more})
    assert_table(list_path(service, model), read_tables("rpart_kyphosis_prior_loss.txt")[place])


def test_pruning_afterwards_is_growing_with_cp(service: Service) -> None:
    """The unlimited tree of kyphosis pruned by cp .1 has the two splits that its table has there."""
    columns = read_columns("rpart_kyphosis.csv")
    full = service.train(columns, "Kyphosis", {"parameters": FULL, "name": "kyphosis"})
    response = service.client.post(f"/models/{full}/prune", json={"cp": 0.1})
    assert response.status_code == 201
    pruned = response.get_json()
    assert pruned["tree"]["leaves"] == 3
    assert pruned["pruning"]["cp"] == pytest.approx(0.07843137, abs=5e-9)
    grown = service.tree(service.train(columns, "Kyphosis", {"parameters": {"cp": 0.1}}))
    assert [node["counts"] for node in service.tree(pruned["id"])] == [node["counts"] for node in grown]


def test_where_breiman_and_rpart_differ(service: Service) -> None:
    """By information the root of kyphosis is worth 5 errors for 3 splits; rpart calls it 3 for 2 (cp .0882)."""
    parameters = LIMITS | {"criterion": "entropy"}
    model = service.train(read_columns("rpart_kyphosis.csv"), "Kyphosis", {"parameters": parameters})
    assert list_path(service, model)[0]["cp"] == pytest.approx(3 / 2 / 17)
    assert list_path(service, model, sequence="breiman")[0]["cp"] == pytest.approx(5 / 3 / 17)
