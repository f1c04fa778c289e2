"""The trees of Weka 3.6.14, as it prints them: J48 with its options, Id3 and SimpleCart."""

from __future__ import annotations

import pytest

from tests.oracle.contract import DATA, Service
from tests.reference.weka import print_cart, print_id3, print_tree, read_printed, read_size, read_table, train

UNPRUNED = {"pruning": None}


@pytest.mark.parametrize("name", ["weather_nominal", "weather_numeric"])
def test_j48_unpruned(service: Service, name: str) -> None:
    """By the preset `j48` without pruning the tree of J48 -U: every line, and so every split, weight and class."""
    nodes = train(service, name, {"algorithm": "j48", "parameters": UNPRUNED})
    assert print_tree(nodes) == read_printed(name, "-U")
    assert (sum(node["leaf"] for node in nodes), len(nodes)) == read_size(name, "-U")


def test_id3(service: Service) -> None:
    """By `id3` the tree that Weka's Id3 prints of the nominal weather."""
    printed = (DATA / "weka_id3_weather_nominal.txt").read_text()
    nodes = train(service, "weather_nominal", {"algorithm": "id3"})
    assert print_id3(nodes).strip() == printed.split("Id3\n")[1].split("Time taken")[0].strip()


def test_simple_cart(service: Service) -> None:
    """By `cart` without limits the tree that Weka's SimpleCart -M 1 -U prints of the nominal weather."""
    printed = (DATA / "weka_simplecart_weather_nominal.txt").read_text()
    columns, schema = read_table("weather_nominal")
    nodes = train(service, "weather_nominal", {"algorithm": "cart"})
    shown = print_cart(nodes, {name: said["categories"] for name, said in schema.items()}, columns)
    assert shown == printed.split("CART Decision Tree\n")[1].split("Number of Leaf Nodes: 7")[0].strip()
    assert f"Number of Leaf Nodes: {sum(node['leaf'] for node in nodes)}\n" in printed
    assert f"Size of the Tree: {len(nodes)}\n" in printed
