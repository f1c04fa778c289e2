"""The examples in docs/http.md do what is written there."""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import TYPE_CHECKING

from service.api.errors import PROBLEMS
from tests.examples import shows

if TYPE_CHECKING:
    from flask.testing import FlaskClient

PAGE = (Path(__file__).parents[2] / "docs" / "http.md").read_text()
EXAMPLE = re.compile(r"```http\n(\w+) (\S+)\n(.*?)```\n(?:\n```json (\d+)\n(.*?)```)?", re.DOTALL)


def test_examples(client: FlaskClient) -> None:
    """Each request on the page gets the status and the answer beneath it, in the order of the page."""
    examples = EXAMPLE.findall(PAGE)
    assert len(examples) == PAGE.count("```http") > 0
    for method, path, body, status, written in examples:
        response = client.open(path, method=method, json=json.loads(body) if body.strip() else None)
        assert response.status_code == int(status or 204), path
        if written:
            assert shows(json.loads(written), response.json), (path, response.json)


def test_statuses() -> None:
    """The page's table has every status that an error can get."""
    listed = {int(status) for status in re.findall(r"^\| (\d{3}) \|", PAGE, re.MULTILINE)}
    assert listed >= {status for status, _ in PROBLEMS.values()} | {405, 500}
