"""Draw the sample model: ``python docs/draw_tree.py`` writes docs/titanic.svg from what the service answers.

Needs the project's environment (`make test` makes it). A test compares the picture with the sample's tree.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Iterator, Sequence
from html import escape
from pathlib import Path
from typing import Any

PROJECT = Path(__file__).parents[1]
PICTURE = PROJECT / "docs" / "titanic.svg"
COLUMN, ROW, MARGIN, BOX = 196, 40, 12, 168
FILL = {"yes": "#d7ebdd", "no": "#f1ded9"}


def ask_tree() -> list[dict[str, Any]]:
    """The nodes of the sample model, trained in a temporary directory."""
    sys.path.insert(0, str(PROJECT))
    from service.api.state import store  # noqa: PLC0415 - found once the project is on the path
    from service.app import create_app  # noqa: PLC0415
    from service.samples import train_titanic  # noqa: PLC0415
    from service.settings import Settings  # noqa: PLC0415

    with tempfile.TemporaryDirectory() as models:
        app = create_app(Settings(models_url=models, log_level="ERROR"))
        client = app.test_client()
        client.post("/train", json=train_titanic())
        nodes: list[dict[str, Any]] = client.get("/models/titanic/tree").get_json()["nodes"]
        with app.app_context():
            store().close()
    return nodes


def place_nodes(nodes: Sequence[dict[str, Any]]) -> list[tuple[float, float]]:
    """The left upper corner of each box: leaves one below the other, a parent midway between its children."""
    order: list[int] = []
    waiting = [0]
    while waiting:
        order.append(waiting.pop())
        waiting += reversed(nodes[order[-1]]["children"])
    row = {leaf: place for place, leaf in enumerate(node for node in order if nodes[node]["leaf"])}
    height: dict[int, float] = {}
    for node in reversed(order):
        below = nodes[node]["children"]
        height[node] = sum(height[child] for child in below) / len(below) if below else row[node] * ROW
    return [(MARGIN + node["depth"] * COLUMN, MARGIN + height[node["node"]]) for node in nodes]


def name_branches(node: dict[str, Any]) -> list[str]:
    """What leads to each child of a node."""
    split = node["split"]
    if split["type"] == "threshold":
        names = [f"{node['feature']} ≤ {split['threshold']:g}", f"{node['feature']} > {split['threshold']:g}"]
    else:
        names = [" or ".join(map(str, group)) for group in split["categories"]]
    sides = ["left", "right"]
    return [name + " or unknown" * (split.get("missing") == side) for name, side in zip(names, sides, strict=True)]


def draw_lines(nodes: Sequence[dict[str, Any]]) -> Iterator[str]:
    """The lines of the picture."""
    corner = place_nodes(nodes)
    width = max(x for x, _ in corner) + BOX + MARGIN
    height = max(y for _, y in corner) + ROW + MARGIN
    yield (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:g} {height:g}" '
        'font-family="Helvetica, Arial, sans-serif" font-size="11">'
    )
    yield f'<rect width="{width:g}" height="{height:g}" fill="#fff"/>'
    led = {
        child: name
        for node in nodes
        if not node["leaf"]
        for child, name in zip(node["children"], name_branches(node), strict=True)
    }
    for node, (x, y) in zip(nodes, corner, strict=True):
        for child in node["children"]:
            to_x, to_y = corner[child]
            yield (
                f'<path d="M{x + BOX:g} {y + 16:g}C{x + BOX + 16:g} {y + 16:g} {to_x - 16:g} {to_y + 16:g} '
                f'{to_x:g} {to_y + 16:g}" fill="none" stroke="#999"/>'
            )
        counts = f"{node['counts'][1]} of {node['n']} survived"
        yield f'<rect x="{x:g}" y="{y:g}" width="{BOX}" height="33" rx="4" fill="{FILL[node["prediction"]]}"/>'
        way = escape(led.get(node["node"], "everyone"))
        yield f'<text x="{x + 8:g}" y="{y + 14:g}" font-weight="bold">{way}</text>'
        yield f'<text x="{x + 8:g}" y="{y + 27:g}" fill="#333">{counts}</text>'
    yield "</svg>"


def draw(nodes: Sequence[dict[str, Any]]) -> str:
    """The picture of a tree of two classes."""
    return "\n".join(draw_lines(nodes)) + "\n"


if __name__ == "__main__":
    PICTURE.write_text(draw(ask_tree()), encoding="utf-8")
