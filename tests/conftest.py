"""An application over a temporary store, and its client; how hypothesis draws."""

from __future__ import annotations

import dataclasses
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any, Protocol

import hypothesis
import pytest

from service.settings import Settings
from service.store.models import ModelStore
from tests.making import Trainer, open_app
from tests.postgresql import make_database, run_postgresql

if TYPE_CHECKING:
    from collections.abc import Iterator
    from pathlib import Path

    from flask import Flask
    from flask.testing import FlaskClient

# the same examples in every run, at any speed; `make test ARGS=--hypothesis-profile=default` draws others
hypothesis.settings.load_profile("ci")

TENNIS: dict[str, list[Any]] = {
    "outlook": ["sunny", "sunny", "overcast", "rain", "rain", "rain", "overcast", "sunny", "sunny", "rain", "sunny",
                "overcast", "overcast", "rain"],
    "temperature": [85, 80, 83, 70, 68, 65, 64, 72, 69, 75, 75, 72, 81, 71],
    "windy": [False, True, False, False, False, True, True, False, False, False, True, True, False, True],
    "play": ["no", "no", "yes", "yes", "yes", "no", "yes", "no", "yes", "yes", "yes", "yes", "yes", "no"],
}  # fmt: skip
"""Quinlan's golf data (C4.5: Programs for Machine Learning, 1993), less the humidity."""


class MakeApp(Protocol):
    """Makes an application whose settings differ in some values."""

    def __call__(self, **changes: object) -> Flask:
        """The application."""


@pytest.fixture(scope="session")
def postgresql() -> Iterator[str]:
    """The URL of a PostgreSQL server, started for the tests that ask for it."""
    with run_postgresql() as url:
        yield url


@pytest.fixture(params=["sqlite", "postgresql"])
def database_url(request: pytest.FixtureRequest) -> str:
    """An empty database, on SQLite (beside the models) and then on PostgreSQL."""
    return "" if request.param == "sqlite" else make_database(request.getfixturevalue("postgresql"))


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings over a directory of their own."""
    return Settings(models_url=str(tmp_path / "models"))


@pytest.fixture
def make_app(settings: Settings) -> Iterator[MakeApp]:
    """Makes applications over one temporary store, and closes them."""
    with ExitStack() as made:
        yield lambda **changes: made.enter_context(open_app(dataclasses.replace(settings, **changes)))


@pytest.fixture
def app(make_app: MakeApp) -> Flask:
    """The application."""
    return make_app()


@pytest.fixture
def client(app: Flask) -> FlaskClient:
    """A client of the application."""
    return app.test_client()


@pytest.fixture
def tennis() -> dict[str, list[Any]]:
    """A copy of the golf data, by column."""
    return {name: list(cells) for name, cells in TENNIS.items()}


@pytest.fixture
def trainer(settings: Settings) -> Iterator[Trainer]:
    """Trains without HTTP, into a store of its own."""
    store = ModelStore.open(settings)
    yield Trainer(store, settings)
    store.close()
