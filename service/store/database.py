"""The database behind the store: SQLite in a file, or PostgreSQL; brought up to date whenever it is opened."""

from __future__ import annotations

import json
import sqlite3
import uuid
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, cast

from alembic import command
from alembic.config import Config
from alembic.util import CommandError
from sqlalchemy import URL, Connection, Engine, create_engine, event, func, make_url, select
from sqlalchemy.exc import ArgumentError, DBAPIError
from sqlalchemy.orm import Session, sessionmaker

from service.core.errors import Fault
from service.errors import SettingsError
from service.settings import Settings, variable_of
from service.store.tables import NAMESPACE, InstallationRow
from service.store.watch import SqliteWatch, Watch

MIGRATIONS = Path(__file__).parent / "migrations"
SQLITE_FILE = "treewright.db"
BUSY_SECONDS = 30
MIGRATION_LOCK = 0x7265_6577  # any number that nothing else in the database locks


class Database:
    """Sessions on one database; `installation` is its own id, which a copy of its rows keeps.

    ``directory`` is one that all processes on the database share.
    """

    def __init__(self, engine: Engine, directory: Path) -> None:
        self._engine = engine
        self._reader = sessionmaker(engine, expire_on_commit=False)
        self._writer = sessionmaker(engine.execution_options(writes=True), expire_on_commit=False)
        self.installation = _migrate(engine)
        sqlite = engine.dialect.name == "sqlite"
        self._watch = _watch_sqlite(engine) if sqlite else Watch(directory / f".{self.installation}-mark")

    @classmethod
    def open(cls, settings: Settings) -> Database:
        """Connect, and create or migrate the tables; call it once in each process, with a lock held.

        Raises `SettingsError` when the URL leads to nothing usable.
        """
        engine = _create_engine(locate_database(settings))
        try:
            return cls(engine, settings.models_directory())
        except BaseException as error:
            engine.dispose()
            if isinstance(error, CommandError):
                raise _unusable(f"the database was written by a later release ({error})") from error
            if isinstance(error, DBAPIError):
                raise _unusable(f"the database cannot be opened ({error.orig})") from error
            raise

    def reading(self) -> AbstractContextManager[Session]:
        """A session that sees everything committed before its first question."""
        return self._reader.begin()

    @contextmanager
    def snapshot(self) -> Iterator[Session]:
        """A session that sees one moment throughout, however long it reads; on SQLite every session does."""
        with self._reader.begin() as session:
            if session.get_bind().dialect.name == "postgresql":
                session.connection(execution_options={"isolation_level": "REPEATABLE READ"})
            yield session

    @contextmanager
    def writing(self) -> Iterator[Session]:
        """A session that commits at its end; on SQLite it has the only write lock from its start."""
        try:
            with self._writer.begin() as session:
                yield session
        finally:
            self._watch.leave_mark()

    def moment(self) -> object:
        """Equals an earlier one only if what was read from the database since then is still true, as far as is known.

        What any process of the service on this machine writes ends a moment. Other writers do so on SQLite, while on
        PostgreSQL a moment ends within a second.
        """
        return self._watch.moment()

    def close(self) -> None:
        """Close the connections."""
        self._watch.close()
        self._engine.dispose()


def locate_database(settings: Settings) -> URL:
    """The URL for SQLAlchemy: by default SQLite beside the models, psycopg 3 for PostgreSQL.

    Raises `SettingsError` for one that cannot be used.
    """
    if not settings.database_url:
        return URL.create("sqlite", database=str(settings.models_directory() / SQLITE_FILE))
    try:
        url = make_url(settings.database_url)
    except ArgumentError:
        raise _unusable("this is not a database URL") from None  # whose text may hold a password
    backend = url.drivername.partition("+")[0]
    if backend in ("postgresql", "postgres"):
        return url.set(drivername="postgresql+psycopg")
    if backend != "sqlite":
        raise _unusable(f"{backend} is not supported; SQLite and PostgreSQL are")
    if url.database in (None, "", ":memory:"):
        raise _unusable("SQLite needs a file, which the workers share")
    return url


def _create_engine(url: URL) -> Engine:
    try:
        # NaN is not JSON: a record that holds one is a mistake of ours, better refused here than by a reader.
        # Its errors do not show the values: they may be anyone's data, and errors are logged.
        engine = create_engine(url, json_serializer=partial(json.dumps, allow_nan=False), hide_parameters=True)
    except ModuleNotFoundError as error:
        message = f"the driver for this database is not installed ({error.name}): pip install treewright[postgresql]"
        raise _unusable(message) from error
    if url.get_backend_name() == "sqlite":
        event.listen(engine, "connect", _prepare_sqlite)
        event.listen(engine, "begin", _begin_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401 - a sqlite3.Connection, in a wrapper
    connection.isolation_level = None  # sqlite3 would begin transactions by itself, and only before writes
    for pragma in (f"busy_timeout={BUSY_SECONDS * 1000}", "journal_mode=WAL", "foreign_keys=ON", "synchronous=FULL"):
        connection.execute(f"PRAGMA {pragma}")


def _begin_sqlite(connection: Connection) -> None:
    # A writer takes the lock at once: one that has read first could not wait for another, it would fail.
    writes = connection.get_execution_options().get("writes", False)
    connection.exec_driver_sql("BEGIN IMMEDIATE" if writes else "BEGIN")


def _watch_sqlite(engine: Engine) -> SqliteWatch:
    """A watch on a connection outside of the pool, which any thread may use: sqlite3 serializes their calls."""
    taken = engine.raw_connection()
    connection = cast("sqlite3.Connection", taken.driver_connection)
    taken.detach()
    _, _, file = connection.execute("PRAGMA database_list").fetchone()
    return SqliteWatch(connection, Path(f"{file}-mark"))


def _migrate(engine: Engine) -> str:
    """Bring the tables up to date in one transaction; returns the id of the installation, made at the first time."""
    with engine.execution_options(writes=True).begin() as connection:
        if connection.dialect.name == "postgresql":
            connection.execute(select(func.pg_advisory_xact_lock(MIGRATION_LOCK)))
        config = Config()
        config.set_main_option("script_location", str(MIGRATIONS).replace("%", "%%"))
        config.attributes["connection"] = connection
        command.upgrade(config, "head")
        with Session(connection) as session:
            row = session.scalars(select(InstallationRow)).one_or_none()
            if row is None:
                row = InstallationRow(id=uuid.uuid4().hex, namespace=NAMESPACE)
                session.add(row)
                session.flush()
            return row.id


def _unusable(message: str) -> SettingsError:
    variable = variable_of("database_url")
    return SettingsError(f"{variable}: {message}", Fault(variable, message))
