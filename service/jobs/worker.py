"""The process that runs jobs: DBOS Transact hands them out, and this keeps what it cannot know.

Which workers live: each renews a lease. Whoever finds that one has run out puts the jobs of that worker back into the
queue. And what is in the queue: a job whose record was written by a process that died before it queued it, or whose
workflow ended without it, is queued again.
"""

from __future__ import annotations

import logging
import os
import signal
import threading
from collections.abc import Callable, Iterable
from datetime import UTC, datetime, timedelta
from time import monotonic
from typing import TYPE_CHECKING

from service.jobs.queue import (
    APPLICATION,
    QUEUE,
    VERSION,
    WORKFLOW,
    enqueue,
    locate_queue,
    log_ahead,
    open_client,
    open_engine,
)
from service.jobs.runner import Runner
from service.memory import keep_freed_memory
from service.settings import Settings
from service.store.mapping import raise_descriptor_limit
from service.store.models import ModelStore
from service.store.naming import new_id
from service.telemetry import configure_logging

if TYPE_CHECKING:
    from dbos import DBOSClient
    from sqlalchemy import Engine

QUEUE_SECONDS = 0.2
"""How often an idle worker looks into the queue."""
SETTLED = timedelta(seconds=5)
"""A younger job may still be on its way into the queue."""
MEND_SECONDS = 10.0
ACTIVE = ["ENQUEUED", "PENDING", "DELAYED"]

log = logging.getLogger(__name__)


def run(settings: Settings, parent: int | None = None) -> None:
    """Run jobs until SIGTERM or SIGINT, or until the process ``parent`` has gone.

    What runs then goes back to the queue. Raises `SettingsError` when the store cannot be opened.
    """
    configure_logging(settings.log_level)
    raise_descriptor_limit()
    keep_freed_memory()
    stop = threading.Event()
    for number in (signal.SIGTERM, signal.SIGINT):
        signal.signal(number, lambda *_: stop.set())
    store = ModelStore.open(settings)
    worker = new_id()
    store.jobs.show_life(worker)
    runner = Runner(store, settings, worker, stop.is_set)
    engine = open_engine(settings)
    close = _launch(settings, worker, runner, engine)
    client = open_client(settings, engine)
    log.info("worker for jobs ready", extra={"job_worker": worker})
    try:
        _keep(store, client, settings, worker, stop, lambda: parent is not None and os.getppid() != parent)
    finally:
        stop.set()
        close()
        client.destroy()
        if engine is not None:
            engine.dispose()
        store.jobs.give_up(worker)
        store.close()


def _launch(settings: Settings, worker: str, runner: Runner, engine: Engine | None) -> Callable[[], None]:
    """Let DBOS hand jobs to the runner; returns what ends that."""
    from dbos import DBOS  # noqa: PLC0415 - an optional dependency

    logging.getLogger("dbos").setLevel(logging.WARNING)
    log_ahead(settings)
    DBOS(
        config={
            "name": APPLICATION,
            "system_database_url": locate_queue(settings).render_as_string(hide_password=False),
            "system_database_engine": engine,
            "application_version": VERSION,
            "executor_id": worker,
            "log_level": "WARNING",
            "notification_listener_polling_interval_sec": 1.0,
        }
    )

    @DBOS.workflow(name=WORKFLOW, max_recovery_attempts=None)
    def run_job(job_id: str) -> None:
        runner.run(job_id)

    DBOS.launch()
    DBOS.register_queue(QUEUE, worker_concurrency=settings.job_slots, polling_interval_sec=QUEUE_SECONDS)
    return lambda: DBOS.destroy(workflow_completion_timeout_sec=settings.job_lease)


def _keep(
    store: ModelStore, client: DBOSClient, settings: Settings, worker: str, stop: threading.Event,
    is_orphaned: Callable[[], bool],
) -> None:  # fmt: skip
    """Renew the lease, take over from the dead, and mend the queue, until the worker has to stop."""
    beat = settings.job_lease / 3
    mended = -MEND_SECONDS
    seen = monotonic()
    while not stop.wait(min(1.0, beat)) and not is_orphaned():
        now = monotonic()
        try:
            if now - seen >= beat:
                seen = now
                store.jobs.show_life(worker)
                take_over(store, client, timedelta(seconds=settings.job_lease))
            if now - mended >= MEND_SECONDS:
                mended = now
                mend_queue(store, client)
        except Exception:
            log.warning("the jobs cannot be looked after now", exc_info=True)


def take_over(store: ModelStore, client: DBOSClient, lease: timedelta) -> None:
    """Put what dead workers were at back into the queue."""
    for dead in store.jobs.find_dead(lease):
        left = client.list_workflows(status="PENDING", executor_id=dead, load_input=False, load_output=False)
        log.warning("taking over from a worker that has gone", extra={"gone": dead, "jobs": len(left)})
        for workflow in left:
            client.resume_workflow(workflow.workflow_id, queue_name=QUEUE)
        store.jobs.forget_worker(dead)


def mend_queue(store: ModelStore, client: DBOSClient) -> None:
    """Queue the jobs that have not ended and that the queue does not have."""
    before = datetime.now(UTC) - SETTLED
    waiting = {job_id for job_id, created in store.jobs.open_ids().items() if created < before}
    if not waiting:
        return
    active = client.list_workflows(status=ACTIVE, load_input=False, load_output=False)
    for job_id in sorted(waiting - _jobs_of(workflow.workflow_id for workflow in active)):
        known = client.list_workflows(workflow_id_prefix=job_id, load_input=False, load_output=False)
        log.warning("a job was not in the queue", extra={"job": job_id})
        enqueue(client, job_id, f"{job_id}-{len(known)}" if known else job_id)


def _jobs_of(workflow_ids: Iterable[str]) -> set[str]:
    return {workflow_id.partition("-")[0] for workflow_id in workflow_ids}
