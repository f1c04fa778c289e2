"""Requests that their callers may repeat: under one key the work is done once, and the answer is kept.

Who comes first with a key holds it, and shows life while at work; a holder that has died is replaced. What the work
makes is noted by the very commit that makes it, so that a crash before the answer was kept does not make it twice.
"""

from __future__ import annotations

from datetime import datetime, timedelta

from sqlalchemy import delete
from sqlalchemy.exc import IntegrityError
from sqlalchemy.orm import Session

from service.core.errors import Fault
from service.errors import Conflict, InvalidRequest
from service.store.clock import Clock, read_clock
from service.store.database import Database
from service.store.naming import new_id
from service.store.records import KeptAnswer, KeyClaim
from service.store.space import told_when_full
from service.store.tables import NAMESPACE, IdempotencyRow

KEPT = timedelta(days=1)
"""How long an answer is kept."""
LEASE = timedelta(seconds=15)
"""A holder who has not shown life for so long is taken for dead."""

AT_WORK = "a request with this idempotency key is being worked on; ask again for its answer"


class KeyStore:
    """The keys of one database."""

    def __init__(self, database: Database, clock: Clock = read_clock) -> None:
        self._database = database
        self._clock = clock

    def claim(self, key: str, fingerprint: str) -> KeyClaim | KeptAnswer:
        """The right to do the work, or what came of it.

        ``fingerprint`` is the hash of the request. Raises `Conflict` while another request is at it, `InvalidRequest`
        where the key was used for a different request.
        """
        try:
            return self._claim(key, fingerprint, self._clock())
        except IntegrityError:  # on PostgreSQL two may find that the key is not there
            raise Conflict(AT_WORK) from None

    def _claim(self, key: str, fingerprint: str, now: datetime) -> KeyClaim | KeptAnswer:
        with told_when_full(), self._database.writing() as session:
            session.execute(delete(IdempotencyRow).where(IdempotencyRow.created < now - KEPT))
            row = session.get(IdempotencyRow, (NAMESPACE, key), with_for_update=True)
            if row is None:
                row = IdempotencyRow(namespace=NAMESPACE, key=key, fingerprint=fingerprint, created=now)
                session.add(row)
            elif row.fingerprint != fingerprint:
                message = "this key was used for another request; give each request a key of its own"
                raise InvalidRequest("the idempotency key cannot be used", Fault("Idempotency-Key", message))
            elif row.model_id or row.job_id:
                return KeptAnswer(row.status, row.headers or {}, row.body, row.model_id, row.job_id)
            elif row.seen >= now - LEASE:
                raise Conflict(AT_WORK)
            row.holder, row.seen = new_id(), now
            return KeyClaim(key, row.holder)

    def show_life(self, claim: KeyClaim) -> None:
        """Say that the holder is still at work."""
        with self._database.writing() as session:
            row = _find_held(session, claim)
            if row is not None:
                row.seen = self._clock()

    def keep(self, claim: KeyClaim, answer: KeptAnswer) -> None:
        """Keep what was answered, for a day."""
        with self._database.writing() as session:
            row = _find_held(session, claim)
            if row is not None:
                row.status, row.headers, row.body = answer.status, dict(answer.headers), answer.body

    def release(self, claim: KeyClaim) -> None:
        """Give a key back, for nothing was made: the caller may mend the request and use it again."""
        with self._database.writing() as session:
            row = _find_held(session, claim)
            if row is not None and not (row.model_id or row.job_id):
                session.delete(row)


def note_made(session: Session, claim: KeyClaim, *, model_id: str | None = None, job_id: str | None = None) -> None:
    """Note what a request has made, in the transaction that records it.

    Raises `Conflict` where the holder was taken for dead and another request has the key now.
    """
    row = _find_held(session, claim)
    if row is None:
        raise Conflict("another request with this idempotency key has taken over")
    row.model_id, row.job_id = model_id, job_id


def _find_held(session: Session, claim: KeyClaim) -> IdempotencyRow | None:
    row = session.get(IdempotencyRow, (NAMESPACE, claim.key), with_for_update=True)
    return row if row is not None and row.holder == claim.holder else None
