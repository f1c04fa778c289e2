"""What is submitted is on disk and recorded, whatever the queue itself does."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from typing import Any

import pytest

from service.errors import QueueFull, StorageFull
from service.jobs.queue import JobQueue, locate_queue
from service.settings import Settings
from service.store.models import ModelStore


@pytest.fixture
def queue(store: ModelStore, settings: Settings) -> Iterator[JobQueue]:
    """The queue of a store that no worker has seen yet: DBOS's tables are not there."""
    queue = JobQueue.open(store, settings)
    assert queue is not None
    yield queue
    queue.close()


def test_recorded_though_the_queue_is_not_there(store: ModelStore, queue: JobQueue) -> None:
    """Before the first worker has made the queue's tables, a job is safe all the same."""
    job = queue.submit("train", {"a": 1}, {"rows": 3})
    assert store.jobs.find(job.id) == job
    assert store.requests.load(job.id, "request", job.request_sha256) == {"a": 1}


def test_bounded(store: ModelStore, settings: Settings) -> None:
    """One job more than the setting allows is refused, and nothing of it is kept."""
    queue = JobQueue.open(store, dataclasses.replace(settings, max_jobs=2))
    assert queue is not None
    for _ in range(2):
        queue.submit("train", {}, {})
    with pytest.raises(QueueFull):
        queue.submit("train", {}, {})
    assert len(list(settings.models_directory().rglob("request.joblib"))) == 2
    queue.close()


def test_cancelled_jobs_leave_no_file(store: ModelStore, settings: Settings, queue: JobQueue) -> None:
    """A job that is cancelled before it began takes its request with it, and makes room for another."""
    job = queue.submit("train", {}, {})
    assert queue.cancel(job.id).state == "cancelled"
    assert list(settings.models_directory().rglob("request.joblib")) == []
    assert store.jobs.count_open() == 0


def test_nothing_is_half_submitted(
    store: ModelStore, settings: Settings, queue: JobQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the record cannot be written, no request is left without one."""

    def refuse(*_: Any) -> None:  # noqa: ANN401 - whatever it is called with
        raise StorageFull("no room")

    monkeypatch.setattr(store.jobs, "add", refuse)
    with pytest.raises(StorageFull):
        queue.submit("train", {}, {})
    assert list(settings.models_directory().rglob("request.joblib")) == []


def test_a_file_of_its_own_on_sqlite() -> None:
    """On SQLite the queue does not share our file; on PostgreSQL it shares the database."""
    url = locate_queue(Settings(models_url="/data/50% off"))
    assert url.database == "/data/50% off/treewright.db-jobs"
    assert locate_queue(Settings(database_url="postgresql://me@host/db")).database == "db"
