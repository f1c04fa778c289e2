"""The worked examples in docs/ are true: each call on the page prints what stands below it."""

from __future__ import annotations

import json
import re
from typing import TYPE_CHECKING

import pytest

from service.samples import train_titanic
from tests.examples import run_curl, shows
from tests.running import PROJECT

if TYPE_CHECKING:
    from pathlib import Path

    from flask.testing import FlaskClient

PAGES = sorted(page.name for page in (PROJECT / "docs").glob("examples-*.md"))
BLOCK = re.compile(r"```(\w+)\n(.*?)```", re.DOTALL)


@pytest.fixture
def installation(client: FlaskClient, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> FlaskClient:
    """A new installation with its sample model, in a directory where the data of the page are."""
    assert client.post("/train", json=train_titanic()).status_code == 201
    for name in ("service", "tests"):
        (tmp_path / name).symlink_to(PROJECT / name)
    monkeypatch.chdir(tmp_path)
    return client


@pytest.mark.parametrize("page", PAGES)
def test_every_call(installation: FlaskClient, page: str) -> None:
    """In the order of the page: Python is run, and each command prints the JSON that follows it; only … is left out."""
    text = (PROJECT / "docs" / page).read_text(encoding="utf-8")
    answers, compared = [], 0
    for language, block in BLOCK.findall(text):
        if language == "python":
            exec(compile(block, page, "exec"), {})  # noqa: S102 - the page's own lines
        elif language == "sh":
            answers.append((block, run_curl(installation, block)))
        else:
            command, answer = answers.pop()
            assert shows(json.loads(block), answer, whole=True), (command, answer)
            compared += 1
    assert compared > 5
    assert answers == []


def test_pages() -> None:
    """There are two, and the README names them."""
    readme = (PROJECT / "README.md").read_text(encoding="utf-8")
    assert len(PAGES) >= 2
    assert all(f"docs/{page}" in readme for page in PAGES)
