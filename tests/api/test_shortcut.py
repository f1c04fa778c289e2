"""The short way of a prediction answers what the full stack would, or leaves the request to it."""

from __future__ import annotations

import dataclasses
import json
import logging
from typing import TYPE_CHECKING, Any

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from werkzeug.test import Client, TestResponse

from service.api.shortcut import Shortcut
from service.api.state import State
from service.settings import Settings
from service.store import ModelStore
from tests.making import open_app

if TYPE_CHECKING:
    from collections.abc import Iterable, Iterator

    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment
    from flask import Flask

    from tests.conftest import MakeApp

MIXED: dict[str, list[Any]] = {
    "float": [0.5, 1.5, -2.25, None, 1e300, 0.0, 7.5, 2.5],
    "whole": [1, 2**53, 2**53 + 1, 2**63 - 1, -(2**63), 0, None, 3],
    "name": ["a", "b", "ü", "a", None, "c", "b", "a"],
    "label": [1, "1", True, 2.5, False, 1, None, "x"],
    "flag": [True, False, True, None, False, True, True, False],
    "size": ["S", "M", "L", "S", "M", None, "L", "S"],
}
SCHEMA = {"label": "nominal", "size": {"kind": "ordinal", "categories": ["S", "M", "L"]}}
NAMES = list(MIXED)
CLASSES = ["p", "q", "r", "p", "q", "r", "p", "q"]
TRAININGS: dict[str, dict[str, Any]] = {
    "cart": {"target": "y"},
    "id3": {"target": "y", "algorithm": "id3", "parameters": {"numeric": "ordinal"}},
    "branch": {"target": "y", "parameters": {"missing": "branch"}},
    "numbers": {"target": "z", "task": "regression"},
    "surrogate": {"target": "y", "parameters": {"missing": "surrogate"}},
    "fractional": {"target": "y", "parameters": {"missing": "fractional", "nominal": "multiway"}},
    "fractional_numbers": {"target": "z", "task": "regression", "parameters": {"missing": "fractional"}},
    "refusing": {"target": "y", "parameters": {"missing": "refuse"}},
    "labels": {"target": "label", "features": ["float", "whole", "name"], "missing_target": "drop"},
}
USUAL = {
    "float": st.floats(-1e9, 1e9) | st.sampled_from([0, 3, 2**53 + 1, 2**64 - 1, -(2**63)]),
    "whole": st.integers(-(2**63), 2**64 - 1) | st.sampled_from([2**53, 2**53 + 1, 2**63, 0.5, 2.0**53, -0.0]),
    "name": st.sampled_from(["a", "b", "ü", "c"]),
    "label": st.sampled_from([1, 1.0, True, False, "1", 2.5, "x"]),
    "flag": st.booleans(),
    "size": st.sampled_from(["S", "M", "L"]),
}
ODD = st.sampled_from([None, 0, 1, 1.0, 2.0**70, 10**30, True, "", "a:b", 'c"d', "new", [], [1], {}, {"k": 1}])


class Counting:
    """Stands before the full stack and counts what comes to it."""

    def __init__(self, full: WSGIApplication) -> None:
        self.full, self.count = full, 0

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The WSGI application."""
        self.count += 1
        return self.full(environ, start_response)


class Both:
    """One request both ways."""

    def __init__(self, app: Flask) -> None:
        shortcut = app.wsgi_app
        assert isinstance(shortcut, Shortcut)
        self.full = shortcut._full
        self.behind = Counting(self.full)
        self.shortcut = Shortcut(self.behind, shortcut._state)

    def ask(self, path: str, body: bytes, *, short: bool | None = None, **more: object) -> TestResponse:
        """The answer, which both ways have to give; ``short`` says whether it has to be the short one."""
        headers: Any = {"X-Request-Id": "both-1", **more.pop("headers", {})}  # type: ignore[dict-item]
        options: Any = {"method": "POST", "content_type": "application/json", "headers": headers, **more}
        before = self.behind.count
        answers = [Client(way).open(path, data=body, **options) for way in (self.shortcut, self.full)]
        seen = [(one.status, sorted(one.headers.items()), one.get_data()) for one in answers]
        assert seen[0] == seen[1]
        if short is not None:
            assert (self.behind.count == before) == short
        return answers[0]


@pytest.fixture(scope="module")
def trained(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Both]:
    """Models of every kind of column, both ways."""
    with open_app(Settings(models_url=str(tmp_path_factory.mktemp("shortcut") / "models"))) as app:
        yield train_all(app)


def train_all(app: Flask) -> Both:
    """Train every kind of model."""
    client = app.test_client()
    columns = {**MIXED, "y": CLASSES, "z": [0.5, 1.5, 1e10, 1.25, 2.0, 3.0, 0.1, 7.0]}
    whole = {name: [cell for row, cell in enumerate(cells) if row in {0, 1, 2, 7}] for name, cells in columns.items()}
    for name, training in TRAININGS.items():
        target = training["target"]
        table = whole if name == "refusing" else columns
        table = {key: cells for key, cells in table.items() if key in {*NAMES, target}}
        body = {"data": {"columns": table}, "name": name, "schema": SCHEMA, **training}
        answer = client.post("/train", json=body)
        assert answer.status_code == 201, answer.json
    return Both(app)


def write(form: str, row: dict[str, Any], order: list[str]) -> bytes:
    """The body that posts one row in some form."""
    data: dict[str, Any] = {
        "records": {"records": [row]},
        "columns": {"columns": {name: [cell] for name, cell in row.items()}},
        "header": {"header": list(row), "rows": [list(row.values())]},
        "rows": {"rows": [[row.get(name) for name in order]]},
    }[form]
    return json.dumps({"data": data}).encode()


FORMS = st.sampled_from(["records", "columns", "header", "rows"])
MODELS = st.sampled_from(list(TRAININGS))
ROWS = st.fixed_dictionaries(USUAL)


def features_of(model: str) -> list[str]:
    """The features of a model, in order."""
    return list(TRAININGS[model].get("features", NAMES))


@settings(deadline=None, max_examples=300)
@given(model=MODELS, form=FORMS, row=ROWS, data=st.data())
def test_usual_rows(trained: Both, model: str, form: str, row: dict[str, Any], data: st.DataObject) -> None:
    """Known values of the right kinds, some missing: short, and equal to the last byte, but where gaps are refused."""
    order = features_of(model)
    gaps = data.draw(st.sets(st.sampled_from(order), max_size=3))
    names = data.draw(st.permutations(order))
    row = {name: None if name in gaps else row[name] for name in names}
    refused = bool(gaps) and model == "refusing"
    # to models of fewer rows, or of numbers as levels, some of these values are new
    short = None if model in {"refusing", "id3"} else True
    answer = trained.ask(f"/models/{model}/predict", write(form, row, order), short=short)
    assert answer.status_code == (422 if refused else 200)


@settings(deadline=None, max_examples=300)
@given(model=MODELS, form=FORMS, row=ROWS, odd=st.dictionaries(st.sampled_from([*NAMES, "more", ""]), ODD, max_size=3))
def test_odd_rows(trained: Both, model: str, form: str, row: dict[str, Any], odd: dict[str, Any]) -> None:
    """Cells of other kinds, unseen categories, further and missing columns: the same answer, whoever gives it."""
    order = features_of(model)
    posted = {name: row[name] for name in order[: len(order) - len(odd) // 3]} | odd
    trained.ask(f"/models/{model}/predict", write(form, posted, order))


FULL = {name: cells[0] for name, cells in MIXED.items()}
RECORD = write("records", FULL, NAMES)


@pytest.mark.parametrize(
    "body",
    [
        b"", b"   ", b"{", b"null", b"[]", b"{}", b'{"data": null}', b'{"data": {}}', b'{"data": {"rows": null}}',
        b'{"data": {"rows": []}}', b'{"data": {"rows": [[]]}}', b'{"data": {"rows": [[1]]}}',
        b'{"data": {"rows": [1]}}',
        b'{"data": {"records": [1]}}', b'{"data": {"columns": []}}', b'{"data": {"columns": {"float": 1}}}',
        b'{"data": {"header": 1, "rows": [[1,1,1,1,1,1]]}}', b'{"data": {"rows": [[1]], "records": []}}',
        b'{"data": {"header": ["float","float","name","label","flag","size"], "rows": [[1,1,"a",1,true,"S"]]}}',
        b'{"data": {"header": [1,2,3,4,5,6], "rows": [[1,1,"a",1,true,"S"]]}}',
        b'{"data": {"rows": [[NaN,1,"a",1,true,"S"]]}}', b'{"data": {"rows": [[1e999,1,"a",1,true,"S"]]}}',
        RECORD[:-1] + b', "data": 1}', RECORD.replace(b'{"float"', b'{"whole": 2, "float"'), RECORD[:-1],
        RECORD[:-1] + b', "parameters": {}}', b"\xff" + RECORD, RECORD + b"x", b"[" * 3000,
    ],
)  # fmt: skip
def test_bodies_that_are_wrong_or_unusual(trained: Both, body: bytes) -> None:
    """Whatever is no table of whole rows is answered by the full stack, unharmed by the attempt."""
    trained.ask("/models/cart/predict", body, short=False)


@settings(deadline=None, max_examples=100)
@given(model=MODELS, form=FORMS, rows=st.lists(ROWS, min_size=2, max_size=4), gap=st.sampled_from([None, *NAMES]))
def test_several_rows(trained: Both, model: str, form: str, rows: list[dict[str, Any]], gap: str | None) -> None:
    """Several rows are answered by the short way too, with a warning for what training did not know."""
    order = features_of(model)
    rows = [{name: row[name] for name in order} for row in rows]
    if gap in order:
        rows[0][gap] = None
    data: dict[str, Any] = {
        "records": {"records": rows},
        "columns": {"columns": {name: [row[name] for row in rows] for name in order}},
        "header": {"header": order, "rows": [list(row.values()) for row in rows]},
        "rows": {"rows": [list(row.values()) for row in rows]},
    }[form]
    refused = gap in order and model == "refusing"
    answer = trained.ask(f"/models/{model}/predict", json.dumps({"data": data}).encode(), short=not refused)
    assert len(answer.json.get("predictions", [])) == (0 if refused else len(rows))


def test_many_numbers(trained: Both) -> None:
    """A body so large that its numbers are cut out of the text is answered by the short way, whole and in order."""
    rows = [[row / 8, row, "ab"[row % 2]] for row in range(5000)]
    answer = trained.ask("/models/labels/predict", orjson.dumps({"data": {"rows": rows}}), short=True)
    assert len(answer.json["predictions"]) == 5000
    numbers = {"float": [row / 8 for row in range(5000)], "whole": list(range(5000)), "name": ["a"] * 5000}
    answer = trained.ask("/models/labels/predict", orjson.dumps({"data": {"columns": numbers}}), short=True)
    assert len(answer.json["predictions"]) == 5000


@pytest.mark.parametrize(
    ("path", "more", "short"),
    [
        ("/models/cart/predict", {}, True),
        ("/models/cart@1/predict", {}, True),
        ("/models/cart/predict", {"headers": {"Accept": "text/html", "Cookie": "a=b"}}, True),
        ("/models/cart/predict/", {}, False),
        ("//models/cart/predict", {}, False),
        ("/models/CART/predict", {}, False),
        ("/models/cart@2/predict", {}, False),
        ("/models/cart%2Fpredict/predict", {}, False),
        ("/models/none/predict", {}, False),
        ("/models/cart/predict?limit=1", {}, False),
        ("/models/cart/predict", {"content_type": "text/plain"}, False),
        ("/models/cart/predict", {"content_type": "application/json; charset=latin-1"}, False),
        ("/models/cart/predict", {"content_type": None}, False),
        ("/models/cart/predict", {"headers": {"Content-Encoding": "gzip"}}, False),
        ("/models/cart/predict", {"method": "PUT"}, False),
        ("/models/cart/predict", {"method": "GET"}, False),
        ("/models/cart/splits", {}, False),
    ],
)
def test_requests(trained: Both, path: str, more: dict[str, Any], short: bool) -> None:
    """Only the plain request takes the short way; others have the full stack's answer."""
    trained.ask(path, RECORD, short=short, **more)


def test_long_and_lengthless_bodies(trained: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """A body that is very long, or whose length nobody tells, goes to the full stack whole."""
    padded = RECORD + b" " * (1 << 16)
    assert trained.ask("/models/cart/predict", padded, short=True).status_code == 200
    monkeypatch.setattr(trained.shortcut, "_longest", 1 << 16)
    assert trained.ask("/models/cart/predict", padded, short=False).status_code == 200
    trained.ask("/models/cart/predict", b"", short=False, environ_overrides={"CONTENT_LENGTH": ""})
    trained.ask("/models/cart/predict", b"", short=False, environ_overrides={"CONTENT_LENGTH": "²"})


def test_settings_hold(trained: Both) -> None:
    """The limits of a body and of a table's columns are the full stack's to explain."""
    state = trained.shortcut._state
    for change in ({"max_body_bytes": len(RECORD) - 1}, {"max_columns": 5}):
        limited = Shortcut(trained.behind, State(dataclasses.replace(state.settings, **change), state.store))
        before = trained.behind.count
        Client(limited).open("/models/cart/predict", method="POST", data=RECORD, content_type="application/json")
        assert trained.behind.count == before + 1


def test_log_and_request_id(trained: Both, caplog: pytest.LogCaptureFixture) -> None:
    """Both ways log one line with the same facts, and a request without an id gets a new one."""
    caplog.set_level(logging.INFO)
    trained.ask("/models/cart/predict", RECORD, short=True)
    lines = [record for record in caplog.records if record.message == "request answered"]
    facts = [{name: vars(line)[name] for name in ("name", "method", "path", "status")} for line in lines]
    assert facts == [facts[0]] * 2
    assert all(0 <= vars(line)["seconds"] < 60 for line in lines)
    client = Client(trained.shortcut)
    answers = [client.post("/models/cart/predict", data=RECORD, content_type="application/json") for _ in range(2)]
    ids = {answer.headers["X-Request-Id"] for answer in answers}
    assert len(ids) == 2
    assert all(len(one) == 32 for one in ids)


@pytest.mark.usefixtures("model")
def test_what_another_application_does_is_seen(app: Flask, make_app: MakeApp) -> None:
    """A new version, and a deletion, by another application on the store is seen by the next request."""
    body = b'{"data": {"rows": [["sunny", 70, false]]}}'
    ways, other = Both(app), make_app().test_client()
    assert ways.ask("/models/golf/predict", body, short=True).json["model"]["version"] == 1
    data = {"columns": {"outlook": ["rain", "sunny"], "temperature": [1, 2], "windy": [True, False], "y": ["a", "b"]}}
    assert other.post("/train", json={"data": data, "target": "y", "name": "golf"}).status_code == 201
    answer = ways.ask("/models/golf/predict", body, short=True)
    assert (answer.json["model"]["version"], answer.json["predictions"]) == (2, ["b"])
    assert other.delete("/models/golf@2").status_code == 204
    assert ways.ask("/models/golf/predict", body, short=True).json["model"]["version"] == 1
    assert other.delete("/models/golf").status_code == 204
    assert ways.ask("/models/golf/predict", body, short=False).status_code == 404


def test_a_store_that_fails(trained: Both, monkeypatch: pytest.MonkeyPatch) -> None:
    """An unexpected error is the full stack's, which meets it too and answers with a problem."""

    def fail(self: ModelStore, reference: str) -> None:
        raise RuntimeError(reference)

    monkeypatch.setattr(ModelStore, "find", fail)
    answer = trained.ask("/models/cart/predict", RECORD, short=False)
    assert (answer.status_code, answer.content_type) == (500, "application/problem+json")
