"""A database of any earlier revision, with rows in it, is brought up to date by opening the store, by one of many."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import pytest
import sqlalchemy as sa
from alembic import command
from alembic.autogenerate import compare_metadata
from alembic.config import Config
from alembic.migration import MigrationContext
from alembic.script import ScriptDirectory

from service.settings import Settings
from service.store import ModelStore
from service.store.database import MIGRATIONS, locate_database
from service.store.records import KeptAnswer
from service.store.tables import NAMESPACE, Base
from tests.store.making import REPOSITORY, draft

Rows = dict[str, list[dict[str, Any]]]
THEN = datetime(2025, 6, 1, 12, tzinfo=UTC)
IDS = {what: digit * 32 for what, digit in {"installation": "1", "model": "2", "other": "3", "job": "4"}.items()}
ROWS: dict[str, Rows] = {
    "0001": {
        "installation": [{"id": IDS["installation"], "namespace": NAMESPACE}],
        "names": [{"namespace": NAMESPACE, "name": "credit", "last_version": 7}],
        "models": [
            {"id": IDS[which], "namespace": NAMESPACE, "name": "credit", "version": version, "created": THEN,
             "description": "é", "retention": "none", "body": {"b": 1, "a": [0.1, None]}, "tree_sha256": "0" * 64}
            for which, version in (("model", 6), ("other", 7))
        ],
        "tags": [{"model_id": IDS["model"], "key": "team", "namespace": NAMESPACE, "value": "risk", "position": 0}],
    },
    "0002": {
        "jobs": [{"id": IDS["job"], "namespace": NAMESPACE, "kind": "train", "subject": {"rows": 3},
                  "request_sha256": "0" * 64, "created": THEN, "state": "running", "started": THEN,
                  "attempt": 2, "lost": 1, "worker": "w", "progress": 0.5, "cancelling": False}],
        "workers": [{"id": "w", "namespace": NAMESPACE, "seen": THEN}],
    },
    "0003": {
        "aliases": [{"namespace": NAMESPACE, "name": "credit", "alias": "champion", "version": 6, "previous": 7,
                     "revision": 2, "moved": THEN}],
        "idempotency": [{"namespace": NAMESPACE, "key": "k", "fingerprint": "f", "holder": "h", "seen": THEN,
                         "created": datetime.now(UTC), "model_id": IDS["model"], "status": 201,
                         "headers": {"Location": "/x"}, "body": b"{}"}],
    },
}  # fmt: skip
"""What a release of each revision had written, in the tables that the revision made."""


def list_revisions() -> list[str]:
    """All revisions, oldest first."""
    script = ScriptDirectory(str(MIGRATIONS))
    return [revision.revision for revision in script.walk_revisions()][::-1]


REVISIONS = list_revisions()


@pytest.fixture
def engine(settings: Settings) -> Iterator[sa.Engine]:
    """A connection past the store."""
    settings.models_directory().mkdir(exist_ok=True)
    engine = sa.create_engine(locate_database(settings))
    yield engine
    engine.dispose()


@pytest.fixture
def make_old(engine: sa.Engine) -> Callable[[str], None]:
    """Makes a database as a release of that revision left it, by the statements of that time, with its rows."""

    def make(revision: str) -> None:
        with engine.begin() as connection:
            config = Config()
            config.set_main_option("script_location", str(MIGRATIONS))
            config.attributes["connection"] = connection
            command.upgrade(config, revision)
        tables = sa.MetaData()
        tables.reflect(engine)
        with engine.begin() as connection:
            for name, rows in [each for of, made in ROWS.items() if of <= revision for each in made.items()]:
                connection.execute(tables.tables[name].insert(), rows)

    return make


def check(store: ModelStore, revision: str) -> None:
    """Whether the store has what the database of that revision had, and can write to every part of it."""
    assert store._database.installation == IDS["installation"]
    record = store.find("credit@6")
    assert (record.id, record.created, record.description) == (IDS["model"], THEN, "é")
    assert (record.tags, record.body, record.revision) == ({"team": "risk"}, {"b": 1, "a": [0.1, None]}, 1)
    assert list(record.body) == ["b", "a"]
    assert store.find("credit").id == IDS["other"]
    assert store.list(tag=("team", "risk"), limit=9)[0] == [record]
    if revision >= "0002":
        job = store.jobs.find(IDS["job"])
        assert (job.state, job.attempt, job.progress, job.subject) == ("running", 2, 0.5, {"rows": 3})
        assert (job.created, job.started, job.ended, job.result) == (THEN, THEN, None, None)
    if revision >= "0003":
        champion = store.aliases.find("credit", "champion")
        assert (champion.version, champion.previous, champion.revision) == (6, 7, 2)
        kept = store.keys.claim("k", "f")
        assert isinstance(kept, KeptAnswer)
        assert (kept.status, kept.headers, kept.body) == (201, {"Location": "/x"}, b"{}")
    assert store.add(draft("credit")).version == 8
    assert store.update("credit@6", description="new").revision == 2
    store.aliases.move("credit", "challenger", 8)
    assert store.find("credit@challenger").version == 8


def test_rows_for_every_revision() -> None:
    """The revisions are one line without a gap; each that makes tables of ours has rows here until the newest."""
    assert [f"{number:04}" for number in range(1, len(REVISIONS) + 1)] == REVISIONS
    assert set(ROWS) <= set(REVISIONS)


@pytest.mark.parametrize("revision", REVISIONS)
def test_forward(
    settings: Settings, engine: sa.Engine, make_old: Callable[[str], None],
    open_store: Callable[[], ModelStore], revision: str,
) -> None:  # fmt: skip
    """A store on a database of any revision opens with the newest tables and every row, and works; again, too."""
    make_old(revision)
    store = open_store()
    with engine.connect() as connection:
        assert connection.scalars(sa.text("SELECT version_num FROM alembic_version")).all() == REVISIONS[-1:]
        context = MigrationContext.configure(connection, opts={"compare_type": True})
        assert compare_metadata(context, Base.metadata) == []
    check(store, revision)
    assert open_store().find("credit").version == 8
    assert settings.models_directory().exists()


@pytest.mark.parametrize("revision", ["nothing", REVISIONS[0], REVISIONS[-2]])
def test_sixteen_at_once(settings: Settings, make_old: Callable[[str], None], revision: str) -> None:
    """Eight threads of each of two processes open an old or an empty database: one migrates, all find the same."""
    if revision != "nothing":
        make_old(revision)
    settings.models_directory().mkdir(exist_ok=True)
    go = settings.models_directory() / "go"
    processes = [open_many(settings, go) for _ in range(2)]
    go.touch()
    outputs = [process.communicate(timeout=120) for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    said = {line for output, _ in outputs for line in output.splitlines()}
    assert len(said) == 1, outputs
    assert revision == "nothing" or said == {f"{IDS['installation']} ['credit', 'credit']"}


def open_many(settings: Settings, go: Path) -> subprocess.Popen[str]:
    """A process whose eight threads open the store when the file ``go`` is there and say what they find."""
    program = f"""
import time, pathlib
from concurrent.futures import ThreadPoolExecutor
from service.settings import Settings
from service.store import ModelStore

settings = Settings(models_url={settings.models_url!r}, database_url={settings.database_url!r})

def open_one(_):
    store = ModelStore.open(settings)
    said = store._database.installation + " " + str([model.name for model in store.list(limit=9)[0]])
    store.close()
    return said

while not pathlib.Path({str(go)!r}).exists():
    time.sleep(0.01)
with ThreadPoolExecutor(8) as pool:
    print(*pool.map(open_one, range(8)), sep="\\n")
"""
    return subprocess.Popen(
        [sys.executable, "-c", program],
        cwd=REPOSITORY,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )


@pytest.mark.parametrize("database_url", ["postgresql"], indirect=True)
def test_alone_by_the_lock_of_the_database(settings: Settings, make_old: Callable[[str], None]) -> None:
    """Machines that share a PostgreSQL but no directory migrate it one after the other: its own lock keeps them."""
    make_old(REVISIONS[0])
    others = [Settings(models_url=f"{settings.models_url}-{n}", database_url=settings.database_url) for n in range(16)]
    with ThreadPoolExecutor(16) as pool:
        stores = list(pool.map(ModelStore.open, others))
    for store in stores:
        assert store.find("credit").version == 7
        store.close()


@pytest.mark.parametrize("revision", REVISIONS[:-1])
def test_all_or_nothing(
    engine: sa.Engine, make_old: Callable[[str], None], open_store: Callable[[], ModelStore],
    monkeypatch: pytest.MonkeyPatch, revision: str,
) -> None:  # fmt: skip
    """A migration that dies before its commit leaves the database as it was; the next start brings it forward."""
    make_old(revision)
    upgrade = command.upgrade

    def die(config: Config, to: str) -> None:
        upgrade(config, to)
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr(command, "upgrade", die)
        with pytest.raises(KeyboardInterrupt):
            open_store()
    with engine.connect() as connection:
        assert connection.scalars(sa.text("SELECT version_num FROM alembic_version")).all() == [revision]
    check(open_store(), revision)
