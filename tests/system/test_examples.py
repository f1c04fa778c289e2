"""The scripts in examples/ do what they promise, against a real server."""

from __future__ import annotations

import ast
import json
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

from tests.running import PROJECT, Serve

pytestmark = pytest.mark.system

ROWS = 200
SCHEMA = {"grade": {"kind": "ordinal", "categories": ["S", "M", "L", "XL"]}}
PLAIN: list[dict[str, Any]] = [
    {"target": "risk"},
    {"target": "cost"},
    {"target": "risk", "parameters": {"missing": "branch", "nominal": "multiway", "empty_branches": True}},
    {"target": "risk", "parameters": {"missing": "branch", "nominal": "one_vs_rest"}},
    {"target": "cost", "parameters": {"nominal": "multiway", "max_leaf_nodes": 12}},
    {"target": "risk", "algorithm": "id3", "parameters": {"missing": "branch", "numeric": "ordinal"}},
]
"""Models that every script rebuilds."""
MODELS: list[dict[str, Any]] = [
    *PLAIN,
    {"target": "risk", "parameters": {"missing": "surrogate", "min_samples_leaf": 5}},
    {"target": "risk", "algorithm": "c45"},
    {"target": "cost", "parameters": {"missing": "fractional", "min_samples_leaf": 5}},
    {"target": "risk", "algorithm": "rpart"},
    {"target": "risk", "algorithm": "j48"},
]


def make_columns(seed: int, gaps: float = 0.1) -> dict[str, list[Any]]:
    """Columns of every kind with a share of the cells missing, and two targets."""
    random = np.random.default_rng(seed)
    size, real = random.integers(0, 30, ROWS), random.random(ROWS).round(2)
    kind, grade = random.integers(0, 4, ROWS), random.integers(0, 4, ROWS)
    cost = size / 5 + 3 * (kind == 1) + grade + random.normal(0, 1, ROWS).round(2)
    columns: dict[str, list[Any]] = {
        "size": size.tolist(),
        "real": real.tolist(),
        "kind": [["a", "b", "c", "d"][code] for code in kind],
        "grade": [["S", "M", "L", "XL"][code] for code in grade],
    }
    for cells in columns.values():
        for row in np.flatnonzero(random.random(ROWS) < gaps).tolist():
            cells[row] = None
    return columns | {"cost": cost.tolist(), "risk": np.where(cost > 6, "high", "low").tolist()}


@pytest.mark.parametrize(("script", "models"), [("rebuild_tree", PLAIN), ("rebuild_any_tree", MODELS)])
def test_rebuild_tree(serve: Serve, script: str, models: list[dict[str, Any]]) -> None:
    """From `/tree` and `/splits` alone the scripts predict what the service does, whatever the tree is made of."""
    server = serve()
    others = make_columns(2)
    rows = [dict(zip(others, cells, strict=True)) for cells in zip(*others.values(), strict=True)]
    rows[0] |= {"kind": "e"}  # a category that training did not see
    for number, (gaps, model) in enumerate([(0.0, models[0]), *((0.1, model) for model in models)]):
        name, columns = f"m{number}", make_columns(1, gaps)
        data = {name: columns[name] for name in ("size", "real", "kind", "grade", model["target"])}
        record = server.client.post("/train", {"data": {"columns": data}, "schema": SCHEMA, "name": name, **model})
        assert record.status == 201, record.body
        assert record.body["tree"]["nodes"] > 3
        expected = server.client.post(f"/models/{name}/predict", {"data": {"records": rows}}).body["predictions"]
        url = f"http://127.0.0.1:{server.client.port}/models/{name}"
        command = [sys.executable, f"examples/{script}.py", url]
        done = subprocess.run(command, cwd=PROJECT, input=json.dumps(rows), capture_output=True, text=True, check=False)
        assert done.returncode == 0, done.stderr
        if model["target"] == "risk":
            assert json.loads(done.stdout) == expected, model
        else:
            assert json.loads(done.stdout) == pytest.approx(expected), model


def test_thirty_lines() -> None:
    """The short script has at most thirty lines of code: its docstring and blank lines do not count."""
    text = (PROJECT / "examples/rebuild_tree.py").read_text()
    code = text.removeprefix(f'"""{ast.get_docstring(ast.parse(text), clean=False)}"""')
    assert len([line for line in code.splitlines() if line.strip()]) <= 30
