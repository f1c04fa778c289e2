"""Weka's printed trees, and trees of the service printed as Weka prints its own."""

from __future__ import annotations

import csv
import json
import re
from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tests.oracle.contract import DATA, Service

SECTIONS = {"default": "### weka", "-U": "### J48 unpruned", "-B": "### J48 -B", "-R": "### J48 -R"}
TARGETS = {"weather_nominal": "play", "weather_numeric": "play"}
Nodes = Sequence[Mapping[str, Any]]


def read_printed(name: str, variant: str) -> str:
    """The tree that J48 printed for one data set and one set of options, without what follows."""
    return read_section(name, variant).split("------------------\n")[1].split("Number of Leaves")[0].strip("\n")


def read_size(name: str, variant: str) -> tuple[int, int]:
    """The number of leaves and of nodes that J48 printed."""
    section = read_section(name, variant)
    leaves, size = (re.search(pattern + r"\s*:\s*(\d+)", section) for pattern in ("Leaves", "Size of the tree"))
    assert leaves
    assert size
    return int(leaves[1]), int(size[1])


def read_confusion(name: str, variant: str) -> list[list[int]]:
    """How many rows of each class, in order, J48 answered with each class."""
    text = read_section(name, variant).split("=== Confusion Matrix ===")[1]
    return [[int(count) for count in line.split("|")[0].split()] for line in text.splitlines() if " | " in line]


def read_summary(name: str, variant: str, measure: str) -> float:
    """A number that Weka printed of J48's answers to the training rows."""
    found = re.search(rf"{measure}\s+([\d.]+)", read_section(name, variant))
    assert found
    return float(found[1])


def read_section(name: str, variant: str) -> str:
    """What is printed for one set of options."""
    text = (DATA / f"weka_j48_{name}.txt").read_text().split(SECTIONS[variant])[1]
    return re.split(r"^### ", text, flags=re.MULTILINE)[0]


def read_table(name: str) -> tuple[dict[str, list[Any]], dict[str, Any]]:
    """The columns of a data set, and the schema that names their categories in Weka's order."""
    categories: dict[str, list[str]] = json.loads((DATA / "weka_categories.json").read_text())[name]
    with (DATA / f"weka_{name}.csv").open(newline="") as file:
        header, *rows = csv.reader(file)
    cells = {column: [row[place] or None for row in rows] for place, column in enumerate(header)}
    columns: dict[str, list[Any]] = {
        column: values if column in categories else [value and number(value) for value in values]
        for column, values in cells.items()
    }
    return columns, {column: {"kind": "nominal", "categories": known} for column, known in categories.items()}


def number(cell: str) -> int | float:
    """A whole number where the cell has no point."""
    return float(cell) if "." in cell else int(cell)


def train(service: Service, name: str, more: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The nodes of the tree of a data set, whose last column is the target."""
    columns, schema = read_table(name)
    body = {"data": {"columns": columns}, "target": list(columns)[-1], "schema": schema, **more}
    return service.tree(str(service.record(body)["id"]))


def print_tree(nodes: Nodes, *, binary: bool = False) -> str:
    """The tree as J48 prints it; ``binary`` is its option -B, which prints numbers with all their digits."""
    if nodes[0]["leaf"]:
        return f": {label(nodes[0])}"
    lines: list[str] = []

    def dump(node: Mapping[str, Any], depth: int) -> None:
        for place, child in enumerate(node["children"]):
            side = describe(node["split"], place, plain if binary else rounded)
            leaf = f": {label(nodes[child])}" if nodes[child]["leaf"] else ""
            lines.append("|   " * depth + node["feature"] + side + leaf)
            if not nodes[child]["leaf"]:
                dump(nodes[child], depth + 1)

    dump(nodes[0], 0)
    return "\n".join(lines)


def describe(split: Mapping[str, Any], place: int, show: Callable[[float], str]) -> str:
    """The condition of one branch."""
    if split["type"] == "threshold":
        return (" <= ", " > ")[place] + show(split["threshold"])
    if split["type"] == "multiway":
        return f" = {split['categories'][place][0]}"
    (one,) = split["categories"][0]
    return (" = ", " != ")[place] + one


def rounded(value: float) -> str:
    """At most six digits after the point, and no more than needed."""
    return f"{value:.6f}".rstrip("0").rstrip(".")


def plain(value: float) -> str:
    """As Java prints a double."""
    return repr(float(value))


def label(node: Mapping[str, Any]) -> str:
    """A leaf: its class, its weight and, if any, that of other classes."""
    weight, wrong = sum(node["counts"]), sum(node["counts"]) - max(node["counts"])
    errors = f"/{two_digits(wrong)}" if wrong > 1e-6 else ""
    return f"{node['prediction']} ({two_digits(weight)}{errors})"


def two_digits(value: float) -> str:
    """Two digits after the point, without a zero at their end but for the first."""
    text = f"{int(value * 100 + 0.5) / 100}"
    return text if "." in text else text + ".0"


def print_id3(nodes: Nodes, here: int = 0, depth: int = 0) -> str:
    """The tree as Id3 prints it."""
    node = nodes[here]
    if node["leaf"]:
        return f": {node['prediction']}"
    sides = (
        f"\n{'|  ' * depth}{node['feature']}{describe(node['split'], place, plain)}{print_id3(nodes, child, depth + 1)}"
        for place, child in enumerate(node["children"])
    )
    return "".join(sides)


def print_cart(nodes: Nodes, categories: Mapping[str, Sequence[str]], cells: Mapping[str, Sequence[Any]]) -> str:
    """The tree of two classes as SimpleCart prints it, from its splits and the rows."""
    return "\n".join(_list_cart_lines(nodes, 0, categories, cells, list(range(len(cells["play"])))))


def _list_cart_lines(
    nodes: Nodes,
    here: int,
    categories: Mapping[str, Sequence[str]],
    cells: Mapping[str, Sequence[Any]],
    rows: list[int],
) -> list[str]:
    node = nodes[here]
    name, groups = node["feature"], node["split"]["categories"]
    first = categories["play"][0]

    def share(category: str) -> float:
        marks = [cells["play"][row] for row in rows if cells[name][row] == category]
        return marks.count(first) / len(marks)

    # the branch with the smaller share of the first class comes first, its categories by that share
    order = sorted(range(2), key=lambda place: max(map(share, groups[place])))
    left = sorted(groups[order[0]], key=lambda category: (share(category), categories[name].index(category)))
    inside = [[row for row in rows if cells[name][row] in groups[place]] for place in order]
    if len(inside[0]) >= len(inside[1]):  # what the node has not seen goes with the more
        left += [category for category in categories[name] if category not in groups[0] + groups[1]]
    lines = []
    for sign, place, below in zip(("=", "!="), order, inside, strict=True):
        child = nodes[node["children"][place]]
        head = f"{'|  ' * node['depth']}{name}{sign}" + "|".join(f"({category})" for category in left)
        if child["leaf"]:
            most = max(child["counts"])
            lines.append(f"{head}: {child['prediction']}({most}.0/{sum(child['counts']) - most}.0)")
        else:
            lines += [head, *_list_cart_lines(nodes, child["node"], categories, cells, below)]
    return lines
