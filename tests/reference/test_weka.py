"""The trees of Weka 3.6.14's Id3 and SimpleCart, as it prints them; J48's are in test_weka_j48."""

from __future__ import annotations

from tests.oracle.contract import DATA, Service
from tests.reference.weka import print_cart, print_id3, read_table, train


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
