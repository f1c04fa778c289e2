"""Applications, tables and trainings: what tests of several parts share."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from service.core.schema import Table
from service.readers.cells import Declared
from service.readers.json_table import Limits, read_table
from service.settings import Settings
from service.store.models import ModelStore
from service.store.records import ModelRecord
from service.training import TrainingRequest, train

if TYPE_CHECKING:
    from flask import Flask

LIMITS = Limits(1_000_000, 1_000)


def make_table(columns: Mapping[str, Sequence[Any]], declared: Mapping[str, Declared] | None = None) -> Table:
    """The table that a caller would post as these columns."""
    return read_table({"columns": columns}, declared=declared or {}, order=None, limits=LIMITS)


@contextmanager
def open_app(settings: Settings) -> Iterator[Flask]:
    """An application, whose connections are closed at the end."""
    from service.api.state import store  # noqa: PLC0415 - other tests do without the web
    from service.app import create_app  # noqa: PLC0415

    app = create_app(settings)
    yield app
    with app.app_context():
        store().close()


class Trainer:
    """Trains on columns of plain Python values, into one store."""

    def __init__(self, store: ModelStore, settings: Settings) -> None:
        self.store, self.settings = store, settings

    def __call__(self, columns: Mapping[str, Sequence[Any]], target: str = "y", **more: Any) -> ModelRecord:  # noqa: ANN401 - fields of a request
        """The record of a new model."""
        return train(TrainingRequest(make_table(columns), target, **more), self.store, self.settings)
