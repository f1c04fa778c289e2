"""Errors over HTTP: one payload for every status and every route, that gives nothing away."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from service import errors
from service.api.errors import PROBLEMS
from service.core.errors import CoreError, Fault, InvalidData
from service.errors import DamagedModel, ServiceError, SettingsError

if TYPE_CHECKING:
    from flask import Flask
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect

BODY_ROUTES = [
    ("POST", "/train"),
    ("POST", "/splits/score"),
    ("POST", "/models/none/predict"),
    ("PATCH", "/models/none"),
]
ROUTES = [
    *BODY_ROUTES,
    ("GET", "/models"),
    ("GET", "/models/none"),
    ("DELETE", "/models/none"),
    ("GET", "/models/none/splits"),
    ("GET", "/models/none/tree"),
    ("GET", "/health/live"),
    ("GET", "/health/ready"),
]


def all_below(kind: type[Exception]) -> set[type[Exception]]:
    """The classes that derive from one."""
    return {kind for direct in kind.__subclasses__() for kind in (direct, *all_below(direct))}


def test_table_is_complete() -> None:
    """Every error that a request can meet has its status; settings are read before there are requests."""
    assert set(PROBLEMS) == (all_below(ServiceError) | all_below(CoreError)) - {SettingsError}


@pytest.mark.parametrize("kind", PROBLEMS, ids=lambda kind: kind.__name__)
def test_each_error_has_its_problem(app: Flask, problem_of: Expect, kind: type[Any]) -> None:
    """An error that a view raises is answered with its status, its type, its message and its faults."""
    fault = Fault("/data/columns/age/17", "is wrong")

    @app.get("/raise")
    def fail() -> str:
        raise kind(fault) if issubclass(kind, CoreError) else kind("is wrong", fault)

    body = problem_of(app.test_client().get("/raise"), PROBLEMS[kind][0])
    assert body["title"] == PROBLEMS[kind][1]
    assert body["detail"] == "is wrong"
    assert body["errors"] == [{"place": "/data/columns/age/17", "message": "is wrong"}]
    assert body["type"].startswith("urn:treewright:")


def test_types_tell_problems_apart(app: Flask) -> None:
    """No two errors share a type, though they may share a status."""

    @app.get("/raise/<name>")
    def fail(name: str) -> str:
        kind: Any = next(kind for kind in PROBLEMS if kind.__name__ == name)
        raise kind(Fault("", "is wrong")) if issubclass(kind, CoreError) else kind("is wrong")

    client = app.test_client()
    types = {client.get(f"/raise/{kind.__name__}").json["type"] for kind in PROBLEMS}
    assert len(types) == len(PROBLEMS)


def test_many_faults_are_summarized(app: Flask, problem_of: Expect) -> None:
    """The detail has the first of many faults and their number; errors has them all."""

    @app.get("/raise")
    def fail() -> str:
        raise InvalidData([Fault("/a", "First."), Fault("/b", "Second.")])

    body = problem_of(app.test_client().get("/raise"), 422)
    assert body["detail"] == "First. (2 faults; each is listed in errors.)"
    assert len(body["errors"]) == 2


def test_service_unavailable_says_when(app: Flask, problem_of: Expect) -> None:
    """A 503 has Retry-After."""

    @app.get("/raise")
    def fail() -> str:
        raise DamagedModel("no")

    response = app.test_client().get("/raise")
    problem_of(response, 503)
    assert int(response.headers["Retry-After"]) > 0


def test_unexpected_errors_give_nothing_away(app: Flask, problem_of: Expect, caplog: pytest.LogCaptureFixture) -> None:
    """A bug is a 500 without trace, path or message; the log has them, and the id that the answer carries (S16)."""

    @app.get("/raise")
    def fail() -> str:
        raise RuntimeError("secret /models/other.joblib")

    response = app.test_client().get("/raise", headers={"X-Request-Id": "bug-1"})
    problem_of(response, 500)
    text = response.get_data(as_text=True)
    assert not any(word in text for word in ("secret", "Traceback", ".py", "joblib", "RuntimeError"))
    assert response.headers["X-Request-Id"] == "bug-1"
    assert "secret /models/other.joblib" in caplog.text


@pytest.mark.parametrize(
    "path",
    ["/", "/nothing", "/models/a/b", "/models/a/splits/b", "//train", "/train//", "/models/..%2f..%2fetc%2fpasswd"],
)
def test_unknown_path(client: FlaskClient, problem_of: Expect, path: str) -> None:
    """A path of no resource is a 404, never a redirect."""
    assert problem_of(client.get(path), 404)["type"] == "about:blank"


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_wrong_method(client: FlaskClient, problem_of: Expect, method: str, path: str) -> None:
    """A method that a resource does not have is a 405 that lists those it has."""
    response = client.put(path)
    problem_of(response, 405)
    assert method in response.headers["Allow"]


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_options_and_slash(client: FlaskClient, method: str, path: str) -> None:
    """With and without a slash at the end it is the same resource, and OPTIONS lists its methods (S14)."""
    for one in (path, path + "/"):
        response = client.options(one)
        assert (response.status_code, response.location) == (200, None)
        assert method in response.headers["Allow"]
        assert "Content-Type" not in response.headers


def test_settings_error_is_no_problem() -> None:
    """An error without a status is not dressed up as one: it shows as the bug it is."""
    from service.api.errors import answer_error  # noqa: PLC0415 - beside what it is about

    with pytest.raises(errors.SettingsError):
        answer_error(errors.SettingsError("TREEWRIGHT_X"))
