"""Stores on real SQLite files, each in a directory of its own; where a test asks for it, on PostgreSQL too."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.settings import Settings
from service.store import ModelStore


@pytest.fixture
def settings(tmp_path: Path) -> Settings:
    """Settings that lead into an empty directory."""
    return Settings(models_url=str(tmp_path / "models"))


@pytest.fixture
def open_store(settings: Settings) -> Iterator[Callable[[], ModelStore]]:
    """Open the same store again, as another worker would; all are closed at the end."""
    stores: list[ModelStore] = []

    def open_another() -> ModelStore:
        stores.append(ModelStore.open(settings))
        return stores[-1]

    yield open_another
    for store in stores:
        store.close()


@pytest.fixture
def store(open_store: Callable[[], ModelStore]) -> ModelStore:
    """An empty store."""
    return open_store()


@pytest.fixture
def any_store(tmp_path: Path, database_url: str) -> Iterator[ModelStore]:
    """An empty store, on SQLite and then on PostgreSQL."""
    settings = dataclasses.replace(Settings(models_url=str(tmp_path / "models")), database_url=database_url)
    store = ModelStore.open(settings)
    yield store
    store.close()
