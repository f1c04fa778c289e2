"""The way into background work: what is asked for is flushed to disk and recorded before anybody is told of it.

The queue itself is DBOS Transact's, in the service's PostgreSQL database, or in a file beside the SQLite one. A web
process only puts jobs into it; `service.jobs.worker` takes them out.
"""

from __future__ import annotations

import logging
from collections.abc import Mapping
from contextlib import closing, suppress
from functools import cached_property
from importlib.util import find_spec
from sqlite3 import OperationalError, connect
from typing import TYPE_CHECKING, Any

from sqlalchemy import URL, Engine, create_engine, event

from service.errors import QueueFull
from service.settings import Settings
from service.store import locks
from service.store.database import locate_database
from service.store.models import ModelStore
from service.store.naming import new_id
from service.store.records import JobRecord, KeyClaim
from service.store.space import told_when_full

if TYPE_CHECKING:
    from dbos import DBOSClient

APPLICATION = "treewright"
QUEUE = "treewright-jobs"
WORKFLOW = "run_job"
VERSION = "1"
"""Raised when what is in the queue changes its meaning: a worker takes only jobs of its own version."""

log = logging.getLogger(__name__)


def locate_queue(settings: Settings) -> URL:
    """Where DBOS keeps its tables: on SQLite in a file of their own, for its writes would hold up ours."""
    url = locate_database(settings)
    if url.get_backend_name() == "sqlite":
        return url.set(database=f"{url.database}-jobs")
    return url


def open_engine(settings: Settings) -> Engine | None:
    """What DBOS is to use on SQLite, to be disposed of by who asked; None where it makes its own.

    A commit does not wait for the disk: the table `jobs` has, and what a power cut takes out of the queue is mended.
    """
    url = locate_queue(settings)
    if url.get_backend_name() != "sqlite":
        return None
    engine = create_engine(url)
    event.listen(engine, "connect", _prepare_sqlite)
    return engine


def _prepare_sqlite(connection: Any, _record: object) -> None:  # noqa: ANN401 - a sqlite3.Connection, in a wrapper
    connection.isolation_level = "IMMEDIATE"  # as DBOS has it: a writer waits for others at its start, or not at all
    for pragma in ("busy_timeout=30000", "foreign_keys=ON", "synchronous=NORMAL"):
        connection.execute(f"PRAGMA {pragma}")


def log_ahead(settings: Settings) -> None:
    """Let the queue's file on SQLite have a write-ahead log, as ours has; to be called by who makes its tables."""
    url = locate_queue(settings)
    if url.get_backend_name() == "sqlite":
        # SQLite does not wait, it fails, when two switch a new file at once, or while another process is at work.
        alone = locks.alone(settings.models_directory() / ".opening-jobs")
        with alone, closing(connect(str(url.database))) as queue, suppress(OperationalError):
            queue.execute("PRAGMA journal_mode=WAL")


def open_client(settings: Settings, engine: Engine | None) -> DBOSClient:
    """A connection to the queue, to be made after a fork; nothing is asked of the database yet."""
    from dbos import DBOSClient  # noqa: PLC0415 - an optional dependency

    return DBOSClient(
        system_database_url=locate_queue(settings).render_as_string(hide_password=False),
        system_database_engine=engine,
        application_name=APPLICATION,
        lazy=True,
        retry_connection_errors=False,
    )


class JobQueue:
    """Puts jobs into the queue; made once in each process."""

    def __init__(self, store: ModelStore, settings: Settings) -> None:
        self._store, self._settings = store, settings

    @classmethod
    def open(cls, store: ModelStore, settings: Settings) -> JobQueue | None:
        """The queue, or None where the extra `jobs` is not installed."""
        return cls(store, settings) if find_spec("dbos") else None

    @cached_property
    def _client(self) -> DBOSClient:
        """Made with the first job: DBOS takes longer to import than all else, and few processes meet a job."""
        return open_client(self._settings, self._engine)

    @cached_property
    def _engine(self) -> Engine | None:
        return open_engine(self._settings)

    def submit(
        self, kind: str, content: Mapping[str, Any], subject: Mapping[str, Any], key: KeyClaim | None = None
    ) -> JobRecord:
        """Queue a job: ``content`` is what it has to do, ``subject`` what listings say of it; ``key``: see `KeyStore`.

        What is returned survives the end of every process and of the power. Raises `QueueFull` and `StorageFull`; then
        nothing is queued.
        """
        if self._store.jobs.count_open() >= self._settings.max_jobs:
            raise QueueFull(f"{self._settings.max_jobs} jobs wait or run, the most that this service takes on")
        job_id, requests = new_id(), self._store.requests
        with told_when_full(), requests.writing():
            hashes = requests.write(job_id, {"request": content})
            try:
                job = self._store.jobs.add(job_id, kind, subject, hashes["request"], key)
            except BaseException:
                requests.remove(job_id)
                raise
        try:
            enqueue(self._client, job_id)
        except Exception:
            # The record is there: a worker puts it into the queue as soon as it sees that it is not.
            log.warning("the queue does not answer; the job %s waits for a worker to find it", job_id, exc_info=True)
        return job

    def submit_once(self, kind: str, content: Mapping[str, Any], subject: Mapping[str, Any]) -> JobRecord:
        """As `submit`, or the newest job that was asked for the same and has neither failed nor been cancelled."""
        return self._store.jobs.find_same(kind, subject) or self.submit(kind, content, subject)

    def cancel(self, job_id: str) -> JobRecord:
        """Ask for the end of a job; see `JobStore.cancel`."""
        job = self._store.jobs.cancel(job_id)
        if job.has_ended:
            self._store.requests.remove(job_id)
        return job

    def close(self) -> None:
        """Close the connections."""
        if "_client" in vars(self):
            self._client.destroy()
            if self._engine is not None:
                self._engine.dispose()


def enqueue(client: DBOSClient, job_id: str, workflow_id: str | None = None) -> None:
    """Put a job into the queue; to do so again changes nothing."""
    client.enqueue(
        {
            "queue_name": QUEUE,
            "workflow_name": WORKFLOW,
            "workflow_id": workflow_id or job_id,
            "app_version": VERSION,
            "application_name": APPLICATION,
        },
        job_id,
    )
