"""README.md keeps its word: its commands, their output, its picture and its table."""

from __future__ import annotations

import dataclasses
import importlib.util
import json
import re
from typing import TYPE_CHECKING, Any

import pytest

from service.settings import Settings
from tests.examples import run_curl, shows
from tests.running import PROJECT

if TYPE_CHECKING:
    from types import ModuleType

    from flask.testing import FlaskClient

README = (PROJECT / "README.md").read_text(encoding="utf-8")
EXAMPLE = re.compile(r"```sh\n(.*?)```\n\n```json\n(.*?)```", re.DOTALL)


def test_the_three_calls(client: FlaskClient) -> None:
    """Train, splits and predict, in the order of the page, print what stands below them; only … is left out."""
    examples = EXAMPLE.findall(README)
    assert len(examples) == README.count("```sh") == README.count("```json") == 3
    for command, written in examples:
        answer = run_curl(client, command)
        assert shows(json.loads(written), answer, whole=True), answer


@pytest.mark.parametrize(
    ("written", "real"),
    [
        ({"a": 1}, {"a": 1, "b": 2}),
        ({"a": 1, "…": "…"}, {"b": 2}),
        ([1, 2], [1, 2, 3]),
        ([1, 2, "…"], [1]),
        ("models/…/x", "models/7/y"),
        (0.5, 0.5000001),
        ({"a": None}, {"a": 0}),
    ],
)
def test_an_example_can_be_wrong(written: Any, real: Any) -> None:  # noqa: ANN401 - JSON
    """The comparison notices what is left out without a mark, and what is written otherwise."""
    assert not shows(written, real, whole=True)


def test_settings() -> None:
    """The settings are those of docs/settings.md, which another test compares with the code."""
    table = [line for line in README.splitlines() if line.startswith("| `TREEWRIGHT_")]
    assert len(table) == len(dataclasses.fields(Settings))
    page = (PROJECT / "docs" / "settings.md").read_text(encoding="utf-8")
    assert table == [line for line in page.splitlines() if line.startswith("| `TREEWRIGHT_")]


def test_make_targets_and_links() -> None:
    """Every `make` target and every file that the page names is there."""
    makefile = (PROJECT / "Makefile").read_text(encoding="utf-8")
    targets = set(re.findall(r"`make ([a-z-]+)`|^    make ([a-z-]+)", README, re.MULTILINE))
    names = {one or other for one, other in targets}
    assert names >= {"serve", "test"}
    assert all(re.search(rf"^{name}:", makefile, re.MULTILINE) for name in names)
    links = re.findall(r"\]\(([^)#]+)\)", README)
    assert links
    assert all((PROJECT / link).is_file() for link in links)


@pytest.fixture
def artist() -> ModuleType:
    """The script that draws the picture."""
    spec = importlib.util.spec_from_file_location("draw_tree", PROJECT / "docs" / "draw_tree.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_picture_is_of_the_sample(artist: ModuleType) -> None:
    """The tree in docs/titanic.svg is the one that the sample grows now: `python docs/draw_tree.py` draws it anew."""
    assert artist.draw(artist.ask_tree()) == artist.PICTURE.read_text(encoding="utf-8")
