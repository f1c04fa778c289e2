"""docs/architecture.md names what there is: the rooms of the house in their order, and each file of the core."""

from __future__ import annotations

import re
import tomllib

from tests.running import PROJECT

PAGE = (PROJECT / "docs" / "architecture.md").read_text(encoding="utf-8")


def read_names(heading: str) -> list[list[str]]:
    """What the first column of the table below a heading names, row by row."""
    _, table = PAGE.split(f"\n| {heading} |", 1)
    rows = table.split("\n\n", 1)[0].splitlines()[2:]
    return [re.findall(r"`(\w+)`", row.split(" | ")[0]) for row in rows]


def test_rooms() -> None:
    """The rooms are the layers of the first contract on imports, from the top down."""
    project = tomllib.loads((PROJECT / "pyproject.toml").read_text(encoding="utf-8"))
    layers = project["tool"]["importlinter"]["contracts"][0]["layers"]
    assert read_names("room") == [layer.split(" | ") for layer in layers]


def test_files_of_the_core() -> None:
    """Each is named once, and no other."""
    files = [path.stem for path in (PROJECT / "service" / "core").glob("*.py") if path.stem != "__init__"]
    assert sorted(name for row in read_names("file") for name in row) == sorted(files)
