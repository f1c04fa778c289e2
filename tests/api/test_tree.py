"""The tree over HTTP: node by node, breadth first."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect


def test_nodes(client: FlaskClient, model: dict[str, Any]) -> None:
    """Nodes are numbered as they stand, know each other, and a parent's classes are those of its children."""
    body = client.get("/models/golf/tree").json
    nodes = body["nodes"]
    assert body["classes"] == ["no", "yes"]
    assert [node["node"] for node in nodes] == list(range(model["tree"]["nodes"]))
    assert [node["depth"] for node in nodes] == sorted(node["depth"] for node in nodes)
    assert sum(node["leaf"] for node in nodes) == model["tree"]["leaves"]
    assert nodes[0]["counts"] == [5, 9]
    for node in nodes:
        children = [nodes[child] for child in node["children"]]
        assert node["leaf"] == (node["split"] is None) == (not children) == (node["reason"] is not None)
        assert all(child["parent"] == node["node"] and child["depth"] == node["depth"] + 1 for child in children)
        if children:
            sums = [sum(counts) for counts in zip(*(child["counts"] for child in children), strict=True)]
            assert sums == node["counts"]


def test_regression(client: FlaskClient) -> None:
    """A regression tree has means instead of classes."""
    columns = {"x": [1, 2], "y": [0.5, 1.5]}
    client.post("/train", json={"data": {"columns": columns}, "target": "y", "name": "r"})
    body = client.get("/models/r/tree").json
    assert body["classes"] is None
    assert [node["mean"] for node in body["nodes"]] == [1.0, 0.5, 1.5]
    assert all("counts" not in node for node in body["nodes"])


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize("reference", ["none", "golf@2"])
def test_no_such_model(client: FlaskClient, problem_of: Expect, reference: str) -> None:
    """A model that is not there is a 404."""
    problem_of(client.get(f"/models/{reference}/tree"), 404)
