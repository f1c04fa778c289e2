"""Stores on SQLite and on PostgreSQL, each with a database and a directory of its own."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from service.settings import Settings
from service.store import ModelStore


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings that lead to an empty directory and an empty database."""
    return Settings(models_url=str(tmp_path / "models"), database_url=database_url)


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
