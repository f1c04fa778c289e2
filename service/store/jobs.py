"""The records of background work: who asked for what, how far it is, how it ended, and which workers live.

A job is queued, running, then succeeded, failed or cancelled, and leaves none of the last three. Every start of a job
is a new attempt, and what an attempt reports counts only while it is the newest: a worker that was taken for dead and
comes back cannot end, or double, what another one does in its place.
"""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime, timedelta
from typing import Any, TypeAlias

from sqlalchemy import and_, delete, func, or_, select, update
from sqlalchemy.orm import Session

from service.errors import Conflict, NotFound, WorkerLost
from service.store.audit_log import append
from service.store.clock import Clock, read_clock
from service.store.database import Database
from service.store.idempotency import note_made
from service.store.naming import ID
from service.store.queries import cursor_after, read_cursor
from service.store.records import ENDED, Claim, JobRecord, JobState, KeyClaim, LogDraft
from service.store.space import told_when_full
from service.store.tables import NAMESPACE, JobRow, WorkerRow

# In the class below `list` is the method.
Page: TypeAlias = tuple[list[JobRecord], str | None]
Ids: TypeAlias = list[str]


MOST_COMPARED = 1_000
"""Among so many of the newest jobs of a kind one with the same subject is looked for."""


class JobStore:
    """Jobs and workers of one database."""

    def __init__(self, database: Database, clock: Clock = read_clock) -> None:
        self._database = database
        self._clock = clock

    def count_open(self) -> int:
        """How many jobs wait or run."""
        with self._database.reading() as session:
            count = select(func.count()).where(JobRow.namespace == NAMESPACE, JobRow.state.in_(_OPEN))
            return session.scalars(count).one()

    def add(
        self, job_id: str, kind: str, subject: Mapping[str, Any], request_sha256: str, key: KeyClaim | None = None
    ) -> JobRecord:
        """Record a job that waits; its request has been stored.

        The same commit notes it as the answer to the request that has the ``key``.
        """
        with told_when_full(), self._database.writing() as session:
            if key is not None:
                note_made(session, key, job_id=job_id)
            row = JobRow(
                id=job_id,
                namespace=NAMESPACE,
                kind=kind,
                subject=dict(subject),
                request_sha256=request_sha256,
                created=self._clock(),
                state="queued",
                attempt=0,
                lost=0,
                progress=0.0,
                cancelling=False,
            )
            session.add(row)
            session.flush()
            return row.record()

    def find(self, job_id: str) -> JobRecord:
        """The job with this id; raises `NotFound`."""
        with self._database.reading() as session:
            return _find(session, job_id).record()

    def find_same(self, kind: str, subject: Mapping[str, Any]) -> JobRecord | None:
        """The newest job of the kind on this subject that waits, runs or has succeeded; None without any."""
        useful: tuple[JobState, ...] = (*_OPEN, "succeeded")
        statement = (
            select(JobRow)
            .where(JobRow.namespace == NAMESPACE, JobRow.kind == kind, JobRow.state.in_(useful))
            .order_by(JobRow.created.desc())
            .limit(MOST_COMPARED)
        )
        with self._database.reading() as session:
            same = (row.record() for row in session.scalars(statement) if row.subject == dict(subject))
            return next(same, None)

    def list(self, *, state: JobState | None = None, limit: int, cursor: str | None = None) -> Page:
        """Up to ``limit`` jobs, newest first, and the cursor of what follows; jobs added meanwhile do not shift it."""
        statement = select(JobRow).where(JobRow.namespace == NAMESPACE)
        if state is not None:
            statement = statement.where(JobRow.state == state)
        if cursor is not None:
            created, job_id = read_cursor(cursor)
            statement = statement.where(
                or_(JobRow.created < created, and_(JobRow.created == created, JobRow.id < job_id))
            )
        with self._database.reading() as session:
            newest_first = statement.order_by(JobRow.created.desc(), JobRow.id.desc()).limit(limit + 1)
            rows = session.scalars(newest_first).all()
            page = rows[:limit]
            return [row.record() for row in page], cursor_after(page[-1]) if len(rows) > limit else None

    def begin(self, job_id: str, worker: str, most_lost: int) -> Claim | None:
        """Start a job, or start it again; None where there is nothing left to do.

        One that was cancelled while nobody ran it ends here, and so does one that ``most_lost`` workers died of.
        """
        with self._database.writing() as session:
            row = session.get(JobRow, job_id, with_for_update=True)
            if row is None or row.state in ENDED:
                return None
            if row.cancelling:
                _end(row, "cancelled", self._clock())
                return None
            row.lost += row.state == "running"
            if row.lost >= most_lost:
                _end(row, "failed", self._clock())
                message = f"the worker that ran the job died {row.lost} times: it may need more memory than there is"
                row.problem = {"kind": WorkerLost.__name__, "message": message, "faults": []}
                return None
            row.state, row.worker, row.attempt = "running", worker, row.attempt + 1
            row.started = row.started or self._clock()
            return Claim(job_id, row.attempt)

    def report(self, claim: Claim, progress: float) -> bool:
        """Say how far an attempt is; returns False where it should stop, being cancelled or replaced by another one."""
        with self._database.writing() as session:
            row = _find_held(session, claim, lock=True)
            if row is None:
                return False
            row.progress = max(row.progress, progress)
            return not row.cancelling

    def should_stop(self, claim: Claim) -> bool:
        """What `report` says, without writing anything."""
        with self._database.reading() as session:
            row = _find_held(session, claim)
            return row is None or row.cancelling

    def end(
        self,
        claim: Claim,
        state: JobState,
        *,
        result: Mapping[str, Any] | None = None,
        problem: Mapping[str, Any] | None = None,
        entry: LogDraft | None = None,
    ) -> bool:
        """End the job, if this attempt is still the one to do so; a job that makes a model ends by `settle`.

        A success that comes after the cancellation is none, as with a model. The commit of a success tells the audit
        log of it, where there is an ``entry``.
        """
        with self._database.writing() as session:
            row = _find_held(session, claim, lock=True)
            if row is None:
                return False
            if row.cancelling and state == "succeeded":
                state, result = "cancelled", None
            _end(row, state, self._clock())
            row.result = None if result is None else dict(result)
            row.problem = None if problem is None else dict(problem)
            if entry is not None and state == "succeeded":
                append(session, entry)
            return True

    def release(self, claim: Claim) -> None:
        """Put a job back into the queue, for its worker has to stop."""
        with self._database.writing() as session:
            row = _find_held(session, claim, lock=True)
            if row is not None:
                row.state, row.worker = "queued", None

    def cancel(self, job_id: str) -> JobRecord:
        """Ask for the end of a job: a queued one ends at once, a running one within a level.

        Raises `NotFound`, and `Conflict` for a job that has succeeded or failed.
        """
        with told_when_full(), self._database.writing() as session:
            row = _find(session, job_id, lock=True)
            if row.state in ("succeeded", "failed"):
                raise Conflict(f"the job has {row.state}; there is nothing left to cancel")
            if row.state == "queued":
                _end(row, "cancelled", self._clock())
            row.cancelling = True
            session.flush()
            return row.record()

    def open_ids(self) -> dict[str, datetime]:
        """The jobs that have not ended, and when each was asked for."""
        with self._database.reading() as session:
            rows = session.execute(select(JobRow.id, JobRow.created).where(JobRow.state.in_(_OPEN)))
            return {row.id: row.created for row in rows}

    def show_life(self, worker: str) -> None:
        """Renew the lease of a worker, which a first call takes out."""
        with self._database.writing() as session:
            row = session.get(WorkerRow, worker)
            if row is None:
                session.add(WorkerRow(id=worker, namespace=NAMESPACE, seen=self._clock()))
            else:
                row.seen = self._clock()

    def find_dead(self, lease: timedelta) -> Ids:
        """The workers that have not been seen for so long."""
        with self._database.reading() as session:
            return [*session.scalars(select(WorkerRow.id).where(WorkerRow.seen < self._clock() - lease))]

    def forget_worker(self, worker: str) -> None:
        """Drop a worker that has ended, after its jobs were taken over."""
        with self._database.writing() as session:
            session.execute(delete(WorkerRow).where(WorkerRow.id == worker))

    def give_up(self, worker: str) -> None:
        """Say that a worker ends now: its jobs need not wait until its lease has run out."""
        long_ago = datetime(1970, 1, 1, tzinfo=UTC)
        with self._database.writing() as session:
            session.execute(update(WorkerRow).where(WorkerRow.id == worker).values(seen=long_ago))


_OPEN: tuple[JobState, ...] = ("queued", "running")


def settle(session: Session, claim: Claim, model_id: str, moment: datetime) -> bool:
    """End the job of a model, in the transaction that records the model: both happen, or neither.

    False where the attempt has lost its claim, or was cancelled: then the model must not be recorded.
    """
    row = _find_held(session, claim, lock=True)
    if row is None or row.cancelling:
        return False
    _end(row, "succeeded", moment)
    row.model_id = model_id
    return True


def _find_held(session: Session, claim: Claim, *, lock: bool = False) -> JobRow | None:
    """The job of a claim, None where another attempt has it now, or where it has ended."""
    row = session.get(JobRow, claim.job_id, with_for_update=lock)
    return row if row is not None and row.state == "running" and row.attempt == claim.attempt else None


def _end(row: JobRow, state: JobState, moment: datetime) -> None:
    row.state, row.ended = state, moment
    if state == "succeeded":
        row.progress = 1.0


def _find(session: Session, job_id: str, *, lock: bool = False) -> JobRow:
    row = session.get(JobRow, job_id, with_for_update=lock) if ID.fullmatch(job_id) else None
    if row is None:
        raise NotFound(f"there is no job {job_id[:140]!r}")
    return row
