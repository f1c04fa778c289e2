"""The trees of Weka 3.6.14, as it prints them: J48 with its options, Id3 and SimpleCart."""

from __future__ import annotations

import pytest

from tests.oracle.contract import Service
from tests.reference.weka import print_tree, read_printed, read_size, train

UNPRUNED = {"pruning": None}


@pytest.mark.parametrize("name", ["weather_nominal", "weather_numeric"])
def test_j48_unpruned(service: Service, name: str) -> None:
    """By the preset `j48` without pruning the tree of J48 -U: every line, and so every split, weight and class."""
    nodes = train(service, name, {"algorithm": "j48", "parameters": UNPRUNED})
    assert print_tree(nodes) == read_printed(name, "-U")
    assert (sum(node["leaf"] for node in nodes), len(nodes)) == read_size(name, "-U")
