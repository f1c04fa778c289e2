"""A store with jobs in it, on SQLite and on PostgreSQL."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from pathlib import Path

import pytest

from service.settings import Settings
from service.store.models import ModelStore


@pytest.fixture
def settings(tmp_path: Path, database_url: str) -> Settings:
    """Settings over an empty database and directory, for each kind of database."""
    return dataclasses.replace(Settings(models_url=str(tmp_path / "models")), database_url=database_url)


@pytest.fixture
def store(settings: Settings) -> Iterator[ModelStore]:
    """An empty store."""
    store = ModelStore.open(settings)
    yield store
    store.close()
