"""Drafts to store, the files that come of them, and other processes that work on the same store."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
from sqlalchemy import create_engine, text

from service.settings import Settings
from service.store import ModelDraft
from service.store.database import locate_database

REPOSITORY = Path(__file__).parents[2]


def draft(
    name: str | None = None, *, tags: Mapping[str, str] | None = None, tree: Mapping[str, Any] | None = None
) -> ModelDraft:
    """A small model that retains nothing."""
    return ModelDraft(
        name=name, body={"algorithm": "cart"}, tree=tree or {"threshold": np.arange(5.0)}, tags=tags or {}
    )


def files_below(settings: Settings) -> list[Path]:
    """The joblib files of the store, finished or not."""
    return sorted(settings.models_directory().rglob("*.joblib"))


def model_file(settings: Settings, model_id: str, part: str = "model") -> Path:
    """Where a model's file lies."""
    return next(settings.models_directory().glob(f"*/{model_id}/{part}.joblib"))


def start(settings: Settings, program: str) -> subprocess.Popen[str]:
    """Run a program in another process, with ``store`` open and `draft` at hand; its pipes are text."""
    where = f"models_url={settings.models_url!r}, database_url={settings.database_url!r}"
    opening = (
        "from service.settings import Settings\n"
        "from service.store import ModelStore\n"
        "from tests.store.making import draft\n"
        f"store = ModelStore.open(Settings({where}))\n"
    )
    return subprocess.Popen(
        [sys.executable, "-c", opening + program],
        cwd=REPOSITORY,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


def finish(process: subprocess.Popen[str]) -> str:
    """Wait for a process that has to succeed; returns what it printed."""
    output, errors = process.communicate(timeout=60)
    assert process.returncode == 0, errors
    return output


def say(process: subprocess.Popen[str], line: str) -> None:
    """Write a line to a process that reads its standard input."""
    assert process.stdin is not None
    process.stdin.write(line + "\n")
    process.stdin.flush()


def hear(process: subprocess.Popen[str]) -> str:
    """Read the next line that a process prints."""
    assert process.stdout is not None
    return process.stdout.readline().strip()


@contextmanager
def keep_from_writing(settings: Settings) -> Iterator[None]:
    """Hold what every writer of a record needs; readers are not kept."""
    engine = create_engine(locate_database(settings))
    with engine.connect() as connection:
        sqlite = engine.dialect.name == "sqlite"
        connection.execute(text("BEGIN IMMEDIATE" if sqlite else "LOCK TABLE names, models IN EXCLUSIVE MODE"))
        yield
        connection.rollback()
    engine.dispose()
