"""One job from its start to its end, whatever happens on the way."""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping
from typing import Any

from service.core.errors import CoreError
from service.errors import JobStopped, ServiceError, StorageFull
from service.jobs.kinds import KINDS, Kind, Work
from service.jobs.progress import Reporter
from service.settings import Settings
from service.store.models import ModelStore
from service.store.records import Claim

MOST_LOST = 10
"""A job that so many workers died of has failed."""

log = logging.getLogger(__name__)


class WorkerStopping(BaseException):
    """Leaves a job unfinished in the queue: no Exception, for DBOS would take that for the job's end."""


class Runner:
    """Runs jobs for one worker; its threads may share it. ``should_end`` says that the worker has to stop."""

    def __init__(
        self,
        store: ModelStore,
        settings: Settings,
        worker: str,
        should_end: Callable[[], bool] = lambda: False,
        kinds: Mapping[str, Kind] | None = None,
    ) -> None:
        self._store, self._settings, self._worker = store, settings, worker
        self._should_end = should_end
        self._kinds = KINDS if kinds is None else kinds

    def run(self, job_id: str) -> None:
        """Run a job to its end, or not at all where it has ended. Raises `WorkerStopping` to leave it in the queue."""
        if self._should_end():
            raise WorkerStopping
        claim = self._store.jobs.begin(job_id, self._worker, MOST_LOST)
        if claim is not None:
            log.info("job begins", extra={"job": job_id, "attempt": claim.attempt})
            self._work(claim)
        if self._store.jobs.find(job_id).has_ended:
            self._store.requests.remove(job_id)

    def _work(self, claim: Claim) -> None:
        jobs = self._store.jobs
        try:
            result = self._perform(claim)
            if result is not None:
                jobs.end(claim, "succeeded", result=result)
        except JobStopped:
            if self._should_end() and not jobs.find(claim.job_id).cancelling:
                jobs.release(claim)
                raise WorkerStopping from None
            jobs.end(claim, "cancelled")
        except (CoreError, ServiceError) as error:
            jobs.end(claim, "failed", problem=describe(error))
        except MemoryError:
            jobs.end(claim, "failed", problem=describe(StorageFull("there is not enough memory for this job")))
        except Exception as error:
            log.exception("job failed", extra={"job": claim.job_id})
            jobs.end(claim, "failed", problem=describe(error))
        log.info("job ends", extra={"job": claim.job_id, "state": jobs.find(claim.job_id).state})

    def _perform(self, claim: Claim) -> Mapping[str, Any] | None:
        job = self._store.jobs.find(claim.job_id)
        content = self._store.requests.load(claim.job_id, "request", job.request_sha256)
        report = Reporter(self._store.jobs, claim, self._should_end).report
        return self._kinds[job.kind](content, Work(self._store, self._settings, claim, report))


def describe(error: Exception) -> dict[str, Any]:
    """An error as a job keeps it: the API says the rest, as it does for the answer to a request.

    Of an error that is not one of ours, nothing is told: its words may be about anything.
    """
    if not isinstance(error, CoreError | ServiceError):
        return {"kind": "Unexpected", "message": "", "faults": []}
    faults = [{"place": fault.place, "message": fault.message} for fault in error.faults]
    return {"kind": type(error).__name__, "message": str(error), "faults": faults}
