"""The database is made and migrated by opening it, and an unusable one is told without its password."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

import pytest
from alembic.autogenerate import compare_metadata
from alembic.migration import MigrationContext
from sqlalchemy import create_engine, event, inspect, text
from sqlalchemy.dialects import postgresql
from sqlalchemy.schema import CreateIndex, CreateTable

from service.errors import SettingsError, StorageFull
from service.settings import Settings
from service.store import ModelStore, locks
from service.store.database import Database, locate_database
from service.store.tables import Base
from tests.store.making import draft

ON_SQLITE = pytest.mark.parametrize("database_url", [""], ids=["sqlite"])
"""For what is SQLite's alone."""


@pytest.fixture
def database(settings: Settings) -> Iterator[Database]:
    """A database that was just made."""
    settings.models_directory().mkdir()
    database = Database.open(settings)
    yield database
    database.close()


def connect(settings: Settings) -> sqlite3.Connection:
    """A connection past the store."""
    return sqlite3.connect(settings.models_directory() / "treewright.db")


def test_migrations_make_the_tables(database: Database) -> None:
    """The migrations lead to exactly the tables that the code uses, with their indices and constraints."""
    with database._engine.connect() as connection:
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []


def test_every_table_has_a_namespace(database: Database) -> None:
    """Each of our tables has a namespace column from the start."""
    inspector = inspect(database._engine)
    tables = set(inspector.get_table_names()) - {"alembic_version"}
    assert tables == {
        "installation",
        "names",
        "models",
        "tags",
        "jobs",
        "workers",
        "aliases",
        "idempotency",
        "audit_log",
        "audit_heads",
    }
    for table in tables:
        assert "namespace" in {column["name"] for column in inspector.get_columns(table)}


def test_tables_for_postgresql() -> None:
    """The tables can be said in PostgreSQL's language: times with their zone, bodies in JSON that keeps its order."""
    dialect = postgresql.dialect()  # type: ignore[no-untyped-call] # as SQLAlchemy ships it
    statements = [str(CreateTable(table).compile(dialect=dialect)) for table in Base.metadata.sorted_tables]
    statements += [
        str(CreateIndex(index).compile(dialect=dialect))
        for table in Base.metadata.sorted_tables
        for index in table.indexes
    ]
    said = "\n".join(statements)
    assert "created TIMESTAMP WITH TIME ZONE NOT NULL" in said
    assert "body JSON NOT NULL" in said
    assert "CREATE INDEX tags_lookup ON tags (namespace, key)" in said


@ON_SQLITE
def test_sqlite_is_set_up_for_several_processes(database: Database) -> None:
    """Readers and a writer do not block each other, writers wait, keys are checked, commits are flushed."""
    with database.reading() as session:
        found = {
            name: session.connection().exec_driver_sql(f"PRAGMA {name}").scalar()
            for name in ("journal_mode", "busy_timeout", "foreign_keys", "synchronous")
        }
    assert found == {"journal_mode": "wal", "busy_timeout": 30_000, "foreign_keys": 1, "synchronous": 2}


@ON_SQLITE
def test_a_reader_does_not_wait_for_a_writer(store: ModelStore, settings: Settings) -> None:
    """While another connection holds the write lock, models are found."""
    record = store.add(draft("a"))
    writer = connect(settings)
    writer.execute("BEGIN IMMEDIATE")
    assert store.find("a") == record
    writer.close()


def test_opened_by_many_at_once(settings: Settings) -> None:
    """Stores that open a fresh directory at the same moment make one database between them."""
    with ThreadPoolExecutor(8) as pool:
        stores = list(pool.map(lambda _: ModelStore.open(settings), range(8)))
    record = stores[0].add(draft("a"))
    assert all(store.find("a") == record for store in stores)
    assert len({store._database.installation for store in stores}) == 1
    for store in stores:
        store.close()


def test_opening_is_done_by_one_at_a_time(settings: Settings) -> None:
    """Who opens a store waits for the one who is opening it, before a database is even made."""
    directory = settings.models_directory()
    directory.mkdir()
    with ThreadPoolExecutor(1) as pool:
        with locks.alone(directory / ".opening"):
            opening = pool.submit(ModelStore.open, settings)
            with pytest.raises(TimeoutError):
                opening.result(timeout=0.5)
            assert [path.name for path in directory.iterdir()] == [".opening"]
        opening.result(timeout=30).close()


def test_a_database_of_a_later_release(settings: Settings) -> None:
    """A revision that this release does not know stops the start, and the database stays as it is."""
    ModelStore.open(settings).close()
    engine = create_engine(locate_database(settings))
    with engine.begin() as connection:
        connection.execute(text("UPDATE alembic_version SET version_num = '9999'"))
    with pytest.raises(SettingsError, match=r"TREEWRIGHT_DATABASE_URL: .* later release"):
        ModelStore.open(settings)
    with engine.connect() as connection:
        assert connection.scalars(text("SELECT version_num FROM alembic_version")).all() == ["9999"]
    engine.dispose()


@ON_SQLITE
def test_a_file_that_is_no_database(settings: Settings) -> None:
    """Something else under the database's name stops the start and is left alone."""
    path = settings.models_directory() / "treewright.db"
    path.parent.mkdir()
    path.write_text("These are my notes, and they are long enough to be a header." * 10)
    with pytest.raises(SettingsError, match="TREEWRIGHT_DATABASE_URL"):
        ModelStore.open(settings)
    assert path.read_text().startswith("These are my notes")


@ON_SQLITE
def test_a_full_database(store: ModelStore) -> None:
    """When the database has no room for the record, the caller is told so, and nothing is left of the model."""
    event.listen(
        store._database._engine, "begin", lambda connection: connection.exec_driver_sql("PRAGMA max_page_count=1")
    )
    with pytest.raises(StorageFull):
        store.add(replace(draft("a"), description="x" * 10_000, body={"text": "x" * 10**6}))
    assert store.list(limit=1) == ([], None)
    assert list(store._files.folder.glob("*")) == [store._files.folder / ".lock"]


@pytest.mark.parametrize(
    ("url", "driver"),
    [
        ("postgresql://me@host/db", "postgresql+psycopg"),
        ("postgres://me@host/db", "postgresql+psycopg"),
        ("postgresql+psycopg://me@host/db", "postgresql+psycopg"),
        ("sqlite:////data/x.db", "sqlite"),
        ("", "sqlite"),
    ],
)
def test_urls(url: str, driver: str) -> None:
    """SQLite and PostgreSQL by any of their names lead to one driver each."""
    assert locate_database(Settings(database_url=url)).drivername == driver


def test_the_default_is_beside_the_models() -> None:
    """Without a URL the database is a file in the models directory, whatever characters that has."""
    assert locate_database(Settings(models_url="/data/50% off?/")).database == "/data/50% off?/treewright.db"


@pytest.mark.parametrize("url", ["mysql://me:secret@host/db", "secret", "sqlite://", "sqlite:///:memory:"])
def test_urls_that_cannot_be_used(url: str) -> None:
    """Any other database stops the start: the message names the variable and not the password."""
    with pytest.raises(SettingsError, match="TREEWRIGHT_DATABASE_URL") as caught:
        locate_database(Settings(database_url=url))
    assert "secret" not in str(caught.value)


def test_a_directory_with_odd_characters(tmp_path: Path) -> None:
    """Percent signs, question marks and spaces in the path are only characters."""
    store = ModelStore.open(Settings(models_url=str(tmp_path / "50% off?")))
    assert store.load_tree(store.add(draft()))["threshold"][2] == 2
    store.close()
    engine = create_engine(locate_database(Settings(models_url=str(tmp_path / "50% off?"))))
    assert inspect(engine).has_table("models")
    engine.dispose()
