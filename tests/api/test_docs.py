"""The description of the API is whole, true, and readable without a network."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, Any

import pytest

from service import __version__

if TYPE_CHECKING:
    from collections.abc import Iterator

    from flask import Flask
    from flask.testing import FlaskClient

UNDESCRIBED = {"/openapi.json", "/docs", "/docs/static/<path:filename>"}


@pytest.fixture
def document(client: FlaskClient) -> dict[str, Any]:
    """The OpenAPI document."""
    body: dict[str, Any] = client.get("/openapi.json").json
    return body


def walk(value: object) -> Iterator[dict[str, Any]]:
    """Every object in a JSON value."""
    if isinstance(value, dict):
        yield value
    for inner in value.values() if isinstance(value, dict) else value if isinstance(value, list) else ():
        yield from walk(inner)


def schema_of(document: dict[str, Any], path: str, method: str, status: str) -> dict[str, Any]:
    """The schema of an answer."""
    contents = document["paths"][path][method]["responses"][status]["content"]
    content = contents.get("application/json") or contents["application/problem+json"]
    schema: dict[str, Any] = content["schema"]
    return resolve(document, schema)


def resolve(document: dict[str, Any], schema: dict[str, Any]) -> dict[str, Any]:
    """A schema behind its reference."""
    if "$ref" in schema:
        return document["components"]["schemas"][schema["$ref"].rpartition("/")[2]]
    return schema


def differences(document: dict[str, Any], schema: dict[str, Any], value: Any, place: str = "") -> Iterator[str]:  # noqa: ANN401
    """Where a value is not what a schema describes: types, properties that are required, and any that are not told."""
    schema = resolve(document, schema)
    if "anyOf" in schema:
        if all(list(differences(document, one, value)) for one in schema["anyOf"]):
            yield f"{place}: none of the alternatives"
        return
    kinds = {"string": str, "integer": int, "number": (int, float), "boolean": bool, "array": list, "object": dict,
             "null": type(None)}  # fmt: skip
    told = schema.get("type", list(kinds))
    if not any(isinstance(value, kinds[kind]) for kind in ([told] if isinstance(told, str) else told)):
        yield f"{place}: {value!r} is not {told}"
    elif isinstance(value, list):
        for index, inner in enumerate(value):
            yield from differences(document, schema.get("items", {}), inner, f"{place}/{index}")
    elif isinstance(value, dict) and "properties" in schema:
        yield from (f"{place}: lacks {name}" for name in schema.get("required", ()) if name not in value)
        for name, inner in value.items():
            if name in schema["properties"]:
                yield from differences(document, schema["properties"][name], inner, f"{place}/{name}")
            else:
                yield f"{place}: {name} is not described"


def test_every_route_is_described(app: Flask, document: dict[str, Any]) -> None:
    """The paths and methods of the document are exactly those of the application."""
    served = {
        (re.sub(r"<(\w+)>", r"{\1}", rule.rule), method.lower())
        for rule in app.url_map.iter_rules()
        if rule.rule not in UNDESCRIBED
        for method in (rule.methods or set()) - {"HEAD", "OPTIONS"}
    }
    described = {
        (path, method) for path, item in document["paths"].items() for method in item if method != "parameters"
    }
    assert described == served


def test_document_is_whole(document: dict[str, Any]) -> None:
    """It is OpenAPI 3.1 of this version, references lead somewhere, operations have summaries, answers and problems."""
    assert document["openapi"].startswith("3.1")
    assert document["info"]["version"] == __version__
    names = {f"#/components/schemas/{name}" for name in document["components"]["schemas"]}
    assert {found["$ref"] for found in walk(document) if isinstance(found.get("$ref"), str)} == names
    operations = [item[method] for item in document["paths"].values() for method in item if method != "parameters"]
    assert len({operation["operationId"] for operation in operations}) == len(operations)
    for operation in operations:
        assert operation["summary"].endswith(".")
        answers = operation["responses"]
        assert any(status.startswith("2") for status in answers)
        for status, described in answers.items():
            if not status.startswith("2"):
                assert described["content"] == {
                    "application/problem+json": {"schema": {"$ref": "#/components/schemas/Problem"}}
                }
        assert "default" in answers
        if "requestBody" in operation:
            assert operation["requestBody"]["required"]
            assert {"400", "413", "415", "422"} <= set(answers)


def test_path_parameters_are_described(document: dict[str, Any]) -> None:
    """Every parameter in a path has a description."""
    for path, item in document["paths"].items():
        told = {one["name"] for one in item.get("parameters", ()) if one["in"] == "path" and one["description"]}
        assert told == set(re.findall(r"{(\w+)}", path))


def test_answers_are_as_described(
    client: FlaskClient, document: dict[str, Any], model: dict[str, Any], tennis: dict[str, list[Any]]
) -> None:
    """Real answers of every resource have the types that are told, all that is required and nothing untold."""
    tennis["warmth"] = [2 * degrees for degrees in tennis["temperature"]]
    by_number = {"data": {"columns": tennis}, "target": "temperature", "name": "warm"}
    rows = {"data": {"columns": {name: cells for name, cells in tennis.items() if name != "play"}}}
    numbers = {"data": {"columns": {name: cells for name, cells in tennis.items() if name != "temperature"}}}
    warmer = {**tennis, "temperature": tennis["warmth"]}
    described = {"feature": "temperature", "split": {"type": "threshold", "threshold": 70}}
    score = {"branches": [{"T": 2, "F": 1}, {"T": 1}]}
    reference = "/models/{reference}"
    calls: list[tuple[str, str, str, Any]] = [
        ("/train", "post", "/train", by_number),
        ("/models", "get", "/models", None),
        (reference, "get", f"/models/{model['id']}", None),
        (reference, "patch", "/models/golf", {"tags": {"a": "b"}}),
        (f"{reference}/splits", "get", "/models/golf/splits", None),
        (f"{reference}/splits", "get", "/models/warm/splits", None),
        (f"{reference}/tree", "get", "/models/golf/tree", None),
        (f"{reference}/tree", "get", "/models/warm/tree", None),
        (f"{reference}/predict", "post", "/models/golf/predict", rows),
        (f"{reference}/predict", "post", "/models/warm/predict", numbers),
        (f"{reference}/explain", "post", "/models/golf/explain", {**rows, "shapley": True}),
        (f"{reference}/explain", "post", "/models/warm/explain", {**numbers, "shapley": True}),
        (f"{reference}/evaluate", "post", "/models/golf/evaluate", {"data": {"columns": tennis}}),
        (f"{reference}/evaluate", "post", "/models/warm/evaluate", {"data": {"columns": tennis}}),
        ("/train", "post", "/train", {**by_number, "target": ["temperature", "warmth"], "name": "several"}),
        (f"{reference}/evaluate", "post", "/models/several/evaluate", {"data": {"columns": tennis}}),
        (f"{reference}/importance", "get", "/models/golf/importance", None),
        (f"{reference}/importance", "post", "/models/golf/importance", {"data": {"columns": tennis}}),
        (f"{reference}/stability", "get", "/models/golf/stability?resamples=3", None),
        (f"{reference}/stability", "get", "/models/warm/stability?resamples=3", None),
        ("/models/{name}/aliases/{alias}", "put", "/models/golf/aliases/champion", {"version": 1}),
        ("/models/{name}/aliases", "get", "/models/golf/aliases", None),
        (f"{reference}/splits/score", "post", "/models/golf/splits/score", described),
        (f"{reference}/compare", "post", "/models/golf/compare", {"with": "golf", **rows}),
        (f"{reference}/compare", "post", "/models/warm/compare", {"with": "warm", **numbers}),
        (f"{reference}/card", "get", "/models/golf/card", None),
        (f"{reference}/card", "get", "/models/warm/card", None),
        (f"{reference}/verify", "post", "/models/golf/verify", {}),
        (f"{reference}/verify", "post", "/models/warm/verify", {"data": {"columns": warmer}}),
        ("/audit-log", "get", "/audit-log", None),
        ("/audit-log/verify", "get", "/audit-log/verify", None),
        ("/jobs", "get", "/jobs", None),
        ("/splits/score", "post", "/splits/score", score),
        ("/health/live", "get", "/health/live", None),
        ("/health/ready", "get", "/health/ready", None),
    ]
    for path, method, url, body in calls:
        response = client.open(url, method=method.upper(), json=body)
        described = schema_of(document, path, method, str(response.status_code))
        assert list(differences(document, described, response.json)) == [], (method, url)
    gone = client.get("/models/none")
    assert list(differences(document, schema_of(document, reference, "get", "404"), gone.json)) == []


def test_page_needs_no_network(client: FlaskClient) -> None:
    """The page loads its script and the document from here alone, which its policy makes the browser hold to."""
    page = client.get("/docs")
    assert page.mimetype == "text/html"
    text = page.get_data(as_text=True)
    assert not re.findall(r"""(?:src|href|url)=["'](?:https?:)?//""", text)
    for url in re.findall(r"""(?:src|spec-url)=["']([^"']+)""", text):
        with client.get(url) as response:
            assert response.status_code == 200
    assert 'load-fonts="false"' in text
    assert "default-src 'none'" in page.headers["Content-Security-Policy"]
    assert client.get("/docs/").get_data(as_text=True) == text


def test_licence_is_beside_the_script(client: FlaskClient) -> None:
    """The script that is shipped has its licence beside it."""
    with client.get("/docs/static/rapidoc-LICENSE.txt") as response:
        assert "MIT License" in response.get_data(as_text=True)
