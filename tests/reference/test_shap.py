"""Shapley values beside those of shap, which explains scikit-learn's trees of the same rows."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.api.test_evaluate import train
from tests.oracle.contract import DATA, read_columns

if TYPE_CHECKING:
    from flask.testing import FlaskClient

CASES: list[dict[str, Any]] = json.loads((DATA / "shap_trees.json").read_text())["cases"]


@pytest.mark.parametrize("case", CASES, ids=[f"{case['target']}-{case['nodes']}-{case['weighted']}" for case in CASES])
def test_beside_shap(client: FlaskClient, case: dict[str, Any]) -> None:
    """What is expected, and what each feature adds for each class or to the number, are the same."""
    columns = read_columns(case["file"])
    taught = {name: columns[name] for name in (*case["features"], case["target"])}
    more: dict[str, Any] = {"parameters": case["parameters"]}
    if case["weighted"]:
        taught["w"] = [1.0 + row % 3 for row in range(len(columns[case["target"]]))]
        more["weight"] = "w"
    train(client, taught, case["target"], **more)
    assert client.get("/models/m").json["tree"]["nodes"] == case["nodes"]
    asked = {name: columns[name][::7] for name in case["features"]}
    body = {"data": {"columns": asked}, "shapley": True}
    told = client.post("/models/m/explain", json=body).json
    expected = told["shapley"]["expected"]
    assert (expected if "classes" in told else [expected]) == pytest.approx(case["expected"], rel=1e-6)
    for row, values in zip(told["rows"], case["values"], strict=True):
        for name, value in zip(case["features"], values, strict=True):
            assert row["shapley"][name] == pytest.approx(value, rel=1e-5, abs=1e-7)
