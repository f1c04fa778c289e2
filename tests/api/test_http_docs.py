"""The examples in docs/http.md do what is written there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from service.api.errors import PROBLEMS
from tests.examples import shows

if TYPE_CHECKING:
    from flask import Flask
    from flask.testing import FlaskClient

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
EXAMPLE = re.compile(
    r"```http\n(\w+) (\S+)\n((?:[\w-]+: .*?\n)*)(.*?)```\n(?:\n```(json|csv) (\d+)\n(.*?)```)?", re.DOTALL
)


def test_examples(client: FlaskClient) -> None:
    """Each request on the page gets the status and the answer beneath it, in the order of the page."""
    examples = EXAMPLE.findall(PAGE)
    assert len(examples) == PAGE.count("```http") > 0
    for method, path, lines, body, kind, status, written in examples:
        headers = dict(line.split(": ") for line in lines.splitlines())
        response = client.open(path, method=method, headers=headers, json=json.loads(body) if body.strip() else None)
        assert response.status_code == int(status or 204), path
        if kind == "csv":
            assert shows(written, response.text.replace("\r\n", "\n")), (path, response.text)
        elif written:
            assert shows(json.loads(written), response.json), (path, response.json)


def test_statuses() -> None:
    """The page's table has every status that an error can get."""
    listed = {int(status) for status in re.findall(r"^\| (\d{3}) \|", PAGE, re.MULTILINE)}
    assert listed >= {status for status, _ in PROBLEMS.values()} | {405, 500}


def test_routes(app: Flask) -> None:
    """The table at the top has every route, and no other."""
    table = PAGE.split("\n## ")[0]
    listed = set()
    for methods, path in re.findall(r"((?:`?[A-Z]+`?(?:, | and )?)+) (/[^`\s]+)", table):
        listed |= {(method, re.sub("<.*?>", "<>", path)) for method in re.findall("[A-Z]+", methods)}
    served = {
        (method, re.sub("<.*?>", "<>", rule.rule))
        for rule in app.url_map.iter_rules()
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
        if not rule.rule.startswith("/docs/")
    }
    assert listed == served
