"""Whatever stands in a path where an id, a name or an alias belongs, on every route: it reaches nothing (S8)."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import quote

import pytest
from hypothesis import HealthCheck, given
from hypothesis import settings as hypothesis_settings
from hypothesis import strategies as st

if TYPE_CHECKING:
    from flask import Flask
    from flask.testing import FlaskClient

    from service.settings import Settings
    from tests.api.conftest import Expect

# Names with a slash, an escape, dots, a trailing space or NUL: mlflow issue 3738, ExoPlayer issue 2267.
HOSTILE = [
    "..", "../golf", "..\\golf", "golf/..", "golf ", " golf", "golf\t", "golf\n", "golf\0", "\0", "%6f", "g%6flf",
    "%00", "%2e%2e", "golf%2f..", "/etc/passwd", "//golf", "file:///etc/passwd", "~", "C:\\golf", "golf@", "golf@@1",
    "golf@..", "golf@1/..", "golf@\0", "GOLF", "gölf", "g\u200bolf", "\u202egolf", "\ud800", "golf;1", "golf?x",
    "golf#x", "'", '"', "' OR 1=1 --", "*", "{}", "x" * 300, "golf@" + "x" * 300, "0" * 32, "-", "_", ".", ".lock",
    ".opening",
]  # fmt: skip
IDENTIFIERS = {"reference", "job_id", "alias", "name"}
METHODS = ("GET", "POST", "PATCH", "PUT", "DELETE")


def escape(text: str) -> str:
    """The text as one segment of a path, every character of it."""
    return quote(text.encode("utf-8", "surrogatepass"), safe="")


def list_places(app: Flask) -> list[tuple[str, str, str]]:
    """Method, path and argument of every route that has an identifier in its path, others of them being right."""
    right = {"reference": "golf", "name": "golf", "alias": "champion", "job_id": "0" * 32}
    found = []
    for rule in app.url_map.iter_rules():
        for argument in rule.arguments & IDENTIFIERS:
            path = rule.rule
            for name in rule.arguments - {argument}:
                path = path.replace(f"<{name}>", right.get(name, "0")).replace(f"<int:{name}>", "0")
            found += [(m, path.replace(f"<{argument}>", "{}"), argument) for m in METHODS if m in (rule.methods or ())]
    return sorted(found)


def read_tree(folder: Path) -> dict[str, bytes]:
    """Every file below a folder but those of the database, with what is in it."""
    return {
        str(path.relative_to(folder)): path.read_bytes()
        for path in folder.rglob("*")
        if path.is_file() and "treewright.db" not in path.name
    }


@pytest.fixture
def around(settings: Settings, model: dict[str, Any], client: FlaskClient) -> Path:
    """The folder around the models, with files that a path out of them would lead to; the model has an alias."""
    outside = settings.models_directory().parent
    (outside / "golf").mkdir()
    (outside / "golf" / "model.joblib").write_text("not ours")
    assert client.put("/models/golf/aliases/champion", json={"version": model["version"]}).status_code in {200, 201}
    return outside


def test_every_route(app: Flask, client: FlaskClient, around: Path, problem_of: Expect) -> None:
    """By any method a hostile text is a 404, or a 4xx for what else is wrong, and no file anywhere has changed."""
    before, record = read_tree(around), client.get("/models/golf").json
    places = list_places(app)
    assert {argument for _, _, argument in places} >= {"reference", "job_id", "alias"}
    assert len(places) > 20
    for method, path, _ in places:
        for text in HOSTILE:
            response = client.open(path.format(escape(text)), method=method, json=None if method == "GET" else {})
            assert 400 <= response.status_code < 500, (method, path, text, response.status_code)
            problem_of(response, response.status_code)
    assert read_tree(around) == before
    assert client.get("/models/golf").json == record
    assert client.get("/models/golf@champion").json["id"] == record["id"]
    assert len(client.get("/models").json["models"]) == 1


@pytest.mark.parametrize("text", [text for text in HOSTILE if text != "\ud800"] + [""])  # JSON cannot say half a pair
@pytest.mark.parametrize("headers", [{}, {"Prefer": "respond-async"}], ids=["waited for", "as a job"])
def test_creation(
    client: FlaskClient, places_of: Expect, tennis: dict[str, list[Any]], text: str, headers: dict[str, str]
) -> None:
    """No model gets such a name, waited for or as a job, and nothing is written."""
    body = {"data": {"columns": tennis}, "target": "play", "name": text}
    assert set(places_of(client.post("/train", json=body, headers=headers), 422)) == {"/name"}
    assert client.get("/models").json["models"] == client.get("/jobs").json["jobs"] == []


@pytest.mark.usefixtures("around")
@given(text=st.text(min_size=1, max_size=80))
@hypothesis_settings(max_examples=60, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
def test_any_text(client: FlaskClient, text: str) -> None:
    """Any text at all as a reference, an alias or a job is found, because it is one, or is a 404."""
    known = {"golf", "golf@1", "golf@champion", client.get("/models/golf").json["id"]}
    for path in ("/models/{}", "/models/{}/tree", "/jobs/{}", "/models/golf/aliases/{}"):
        response = client.get(path.format(escape(text)))
        assert response.status_code == 404 or text in known | {"champion"}, (path, text)
