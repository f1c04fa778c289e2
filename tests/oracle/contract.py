"""The HTTP contract as its tests use it: requests that must succeed, listings across pages, and the way of a row.

A split is followed by its description alone, as the listing and the tree give it, so what predicts, what is listed
and what is drawn are compared with one another and not with the code that made them.
"""

from __future__ import annotations

import csv
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

from flask.testing import FlaskClient

DATA = Path(__file__).parents[1] / "data"
OTHERWISE = -1
"""Where a row stops that has a category its node knows nothing of."""


@dataclass(frozen=True)
class Service:
    """A client that asserts success and hands back the bodies."""

    client: FlaskClient

    def train(self, data: Mapping[str, Sequence[Any]], target: str, more: Mapping[str, Any] | None = None) -> str:
        """Post the columns; the new model's id."""
        return str(self.record({"data": {"columns": data}, "target": target, **(more or {})})["id"])

    def record(self, body: Mapping[str, Any]) -> dict[str, Any]:
        """Post a training request; the model's record."""
        response = self.client.post("/train", json=body)
        assert response.status_code == 201, response.get_data(as_text=True)
        return dict(response.get_json())

    def tree(self, model: str) -> list[dict[str, Any]]:
        """The nodes, in order of their number."""
        response = self.client.get(f"/models/{model}/tree")
        assert response.status_code == 200, response.get_data(as_text=True)
        return list(response.get_json()["nodes"])

    def listing(self, model: str, query: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """The splits and nodes of all pages, as one body."""
        url: str | None = f"/models/{model}/splits?{urlencode(dict(query or {}) | {'limit': 1000})}"
        pages = []
        while url:
            response = self.client.get(url)
            assert response.status_code == 200, response.get_data(as_text=True)
            pages.append(response.get_json())
            url = pages[-1]["next"]
        nodes = {node["node"]: node for page in pages for node in page["nodes"]}
        splits = [split for page in pages for split in page["splits"]]
        return {**pages[0], "nodes": list(nodes.values()), "splits": splits}

    def splits(self, model: str, query: Mapping[str, Any] | None = None) -> list[dict[str, Any]]:
        """The listed splits of all pages."""
        return list(self.listing(model, query)["splits"])

    def predict(self, model: str, data: Mapping[str, Sequence[Any]]) -> dict[str, Any]:
        """Post the columns to be predicted; the whole answer."""
        response = self.client.post(f"/models/{model}/predict", json={"data": {"columns": data}})
        assert response.status_code == 200, response.get_data(as_text=True)
        return dict(response.get_json())

    def score(self, branches: Sequence[Mapping[str, float]], more: Mapping[str, Any] | None = None) -> dict[str, Any]:
        """Every measure of a partition that is given by its counts."""
        response = self.client.post("/splits/score", json={"branches": branches, **(more or {})})
        assert response.status_code == 200, response.get_data(as_text=True)
        body = response.get_json()
        return {**body.get("scores", body)}


def read_columns(name: str | Path, text: Collection[str] = ()) -> dict[str, list[Any]]:
    """The columns of a CSV file among the tests' data, None where a cell is empty.

    Numbers where all cells of a column are numbers, unless it is named as ``text``.
    """
    with (DATA / name).open(newline="") as file:
        header, *rows = csv.reader(file)
    columns = {column: [row[place] for row in rows] for place, column in enumerate(header)}
    return {
        column: (column not in text and numbers(cells)) or [cell or None for cell in cells]
        for column, cells in columns.items()
    }


def numbers(cells: Sequence[str]) -> list[float | None]:
    """The cells as numbers; empty when one of them is neither a number nor empty."""
    try:
        return [float(cell) if cell else None for cell in cells]
    except ValueError:
        return []


def feature_of(node: Mapping[str, Any]) -> str | None:
    """The feature that a node of the tree asks; None for a leaf."""
    return node.get("feature") or (node["split"] or {}).get("feature")


def children_of(nodes: Sequence[Mapping[str, Any]], node: Mapping[str, Any]) -> dict[str, dict[str, Any]]:
    """The children of a nominal node by the categories that lead there, joined by commas."""
    groups = [",".join(map(str, group)) for group in node["split"]["categories"]]
    return {group: dict(nodes[child]) for group, child in zip(groups, node["children"], strict=True)}


def way(split: Mapping[str, Any], value: object) -> int:
    """The branch that a value takes at a split; `OTHERWISE` for a category that the split does not name."""
    if split["type"] == "missing":
        return 0 if value is None else 1
    if split["type"] == "constant":
        return 0
    if value is None:
        return missing_way(split)
    if split["type"] == "threshold":
        return 0 if value <= split["threshold"] else 1
    for place, categories in enumerate(split["categories"]):
        if any(value == other and isinstance(value, bool) == isinstance(other, bool) for other in categories):
            return place
    return OTHERWISE


def missing_way(split: Mapping[str, Any]) -> int:
    """The branch of the missing at a split that saw some in training: named, numbered, or where null stands."""
    if "missing" in split:
        return {"left": 0, "right": 1, "branch": 2}.get(split["missing"], split["missing"])
    return next(place for place, categories in enumerate(split["categories"]) if None in categories)
