"""What was done to models, as a chain: each entry has the hash of the one before it in its own.

An entry is written by the transaction that does what it tells of: both are there, or neither. Who appends takes the row
that holds the end of the chain, as the last lock of the transaction, so entries are numbered without a gap. Whoever
changes, inserts or removes an entry in the database breaks the chain there; to rewrite all of what follows and the end
as well takes everything that the service has, so keep the number and the hash of an entry elsewhere, now and then.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Mapping
from datetime import UTC, datetime
from hashlib import sha256
from typing import Any, TypeAlias

from sqlalchemy import select, update
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from service.core.errors import Fault
from service.errors import InvalidRequest
from service.store.database import Database
from service.store.naming import parse_reference
from service.store.records import Claim, LogAction, LogCheck, LogDraft, LogEntry
from service.store.space import told_when_full
from service.store.tables import NAMESPACE, AuditHeadRow, AuditLogRow, ModelRow
from service.telemetry import ACTOR, REQUEST_ID

GENESIS = "0" * 64
"""What the first entry has in place of the hash of the one before."""
AT_ONCE = 1_000
"""So many entries are in memory while the chain is checked."""

_INSERT: dict[str, Callable[[type[AuditHeadRow]], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}
_COLUMNS = (
    AuditLogRow.number, AuditLogRow.time, AuditLogRow.action, AuditLogRow.model, AuditLogRow.name, AuditLogRow.version,
    AuditLogRow.alias, AuditLogRow.actor, AuditLogRow.request, AuditLogRow.details, AuditLogRow.previous,
    AuditLogRow.sha256,
)  # fmt: skip
"""An entry, its own hash last."""

# In the class below `list` is the method.
Entry: TypeAlias = Any
"""A row of `_COLUMNS`."""
Page: TypeAlias = tuple[list[LogEntry], str | None]


def canonical(value: object) -> bytes:
    """The JSON text of a value that is always the same: keys sorted, no spaces, ASCII only.

    Raises ValueError and TypeError for what has none.
    """
    return json.dumps(value, sort_keys=True, separators=(",", ":"), allow_nan=False).encode()


def hash_json(value: object) -> str:
    """The SHA-256 of a JSON value, the same before it is stored and after."""
    return sha256(canonical(json.loads(json.dumps(value)))).hexdigest()


def append(session: Session, draft: LogDraft) -> None:
    """Add an entry to the chain in the transaction of what it tells of, whose last lock this is."""
    session.flush()
    number, previous = _take_head(session)
    content = {
        "number": number,
        "time": _show_time(datetime.now(UTC)),
        "action": draft.action,
        "model": draft.model,
        "name": draft.name,
        "version": draft.version,
        "alias": draft.alias,
        "actor": ACTOR.get(),
        "request": REQUEST_ID.get(),
        "details": dict(draft.details),
        "previous": previous,
    }
    own = sha256(canonical(content)).hexdigest()
    written = canonical(content["details"]).decode()
    session.add(AuditLogRow(namespace=NAMESPACE, **content | {"details": written}, sha256=own))
    session.execute(update(AuditHeadRow).where(AuditHeadRow.namespace == NAMESPACE).values(sha256=own))
    session.flush()


def describe_made(row: ModelRow, action: LogAction, claim: Claim | None) -> LogDraft:
    """The entry of a new model: the hashes of its record, its tree and its data, and the job or the model it is of."""
    parent = (row.body.get("pruning") or {}).get("parent")
    details = {
        "record_sha256": hash_json(row.body),
        "tree_sha256": row.tree_sha256,
        "retained_sha256": row.data_sha256,
        "data_sha256": row.body.get("training", {}).get("data_sha256"),
        "retention": row.retention,
        "job": None if claim is None else claim.job_id,
        "parent": None if parent is None else parent["id"],
    }
    return describe(row, action, {name: value for name, value in details.items() if value is not None})


def describe(row: ModelRow, action: LogAction, details: Mapping[str, Any]) -> LogDraft:
    """An entry on one model."""
    return LogDraft(action, model=row.id, name=row.name, version=row.version, details=details)


class AuditLog:
    """The chain of one database."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, draft: LogDraft) -> None:
        """An entry on what changes nothing in the database; see `append` for everything else."""
        with told_when_full(), self._database.writing() as session:
            append(session, draft)

    def find_made(self, model_id: str) -> LogEntry | None:
        """The entry that tells of a model's making; None for one that is older than the log."""
        made = select(*_COLUMNS).where(
            AuditLogRow.namespace == NAMESPACE,
            AuditLogRow.model == model_id,
            AuditLogRow.action.in_(("train", "prune")),
        )
        with self._database.reading() as session:
            row = session.execute(made.order_by(AuditLogRow.number).limit(1)).one_or_none()
            return None if row is None else _read(row)

    def find_begin(self) -> datetime | None:
        """When the first entry was written; None where there is none, or where someone has broken its time."""
        first = select(AuditLogRow.time).where(AuditLogRow.namespace == NAMESPACE).order_by(AuditLogRow.number).limit(1)
        with self._database.reading() as session:
            time = session.scalars(first).one_or_none()
        try:
            return None if time is None else datetime.fromisoformat(time)
        except ValueError:
            return None

    def list(
        self,
        *,
        model: str | None = None,
        action: LogAction | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> Page:
        """Up to ``limit`` entries, newest first, and the cursor of what follows (None at the end).

        ``model`` is a reference, also to one that was deleted; ``name@alias`` lists the moves of that alias. Raises
        `InvalidRequest` for a cursor that cannot be one.
        """
        statement = select(*_COLUMNS).where(AuditLogRow.namespace == NAMESPACE)
        if model is not None:
            reference = parse_reference(model)
            if reference is None:
                return [], None
            meant = {
                AuditLogRow.model: reference.id,
                AuditLogRow.name: reference.name,
                AuditLogRow.version: reference.version,
                AuditLogRow.alias: reference.alias,
            }
            statement = statement.where(*(column == value for column, value in meant.items() if value is not None))
        if action is not None:
            statement = statement.where(AuditLogRow.action == action)
        if since is not None:
            statement = statement.where(AuditLogRow.time >= _show_time(since))
        if until is not None:
            statement = statement.where(AuditLogRow.time < _show_time(until))
        if cursor is not None:
            statement = statement.where(AuditLogRow.number < _read_cursor(cursor))
        with self._database.reading() as session:
            rows = session.execute(statement.order_by(AuditLogRow.number.desc()).limit(limit + 1)).all()
        entries = [_read(row) for row in rows[:limit]]
        return entries, str(entries[-1].number) if len(rows) > limit else None

    def check(self, number: int | None = None, kept: str | None = None) -> LogCheck:
        """Whether the chain is whole, by working out every hash anew, and where it breaks first if it is not.

        ``kept`` is the hash that entry ``number`` had when the caller saw it, perhaps long ago.
        """
        head = select(AuditHeadRow.number, AuditHeadRow.sha256).where(AuditHeadRow.namespace == NAMESPACE)
        chain = select(*_COLUMNS).where(AuditLogRow.namespace == NAMESPACE).order_by(AuditLogRow.number)
        with self._database.snapshot() as session:
            last = session.execute(head).one_or_none()
            ends = (0, GENESIS) if last is None else (last.number, last.sha256)
            with session.execute(chain.execution_options(yield_per=AT_ONCE)) as rows:
                return _check(rows, ends, {} if number is None else {number: kept})


def _take_head(session: Session) -> tuple[int, str]:
    """The number of the next entry and the hash of the last one; others wait for the end of this session."""
    insert = _INSERT[session.get_bind().dialect.name]
    statement = (
        insert(AuditHeadRow)
        .values(namespace=NAMESPACE, number=1, sha256=GENESIS)
        .on_conflict_do_update(
            index_elements=[AuditHeadRow.namespace], set_={"number": AuditHeadRow.number + 1}
        )
        .returning(AuditHeadRow.number, AuditHeadRow.sha256)
    )  # fmt: skip
    number, previous = session.execute(statement).one()
    return number, previous


def _check(rows: Iterable[Entry], head: tuple[int, str], kept: Mapping[int, str | None]) -> LogCheck:
    count, previous = 0, GENESIS
    for row in rows:
        broken = _find_break(row, count + 1, previous, head[0], kept)
        if broken is not None:
            return LogCheck(count, *head, *broken)
        count, previous = count + 1, row.sha256
    broken = None
    if count < head[0]:
        broken = count + 1, "the entry is missing"
    elif previous != head[1]:
        broken = count, "the entry is not the one that was written last"
    elif (unseen := next((number for number in kept if not 1 <= number <= count), None)) is not None:
        broken = unseen, "the entry is missing"
    return LogCheck(count, *head, *(broken or (None, None)))


def _find_break(
    row: Entry, number: int, previous: str, last: int, kept: Mapping[int, str | None]
) -> tuple[int, str] | None:
    """What is wrong with an entry where ``number`` is due; None where nothing is."""
    if row.number != number:
        return number, "the entry is missing"
    if number > last:
        return number, "the entry was not written by the service: the chain ended before it"
    if row.previous != previous:
        return number, "the entry does not continue the one before it"
    if _work_out(row) != row.sha256:
        return number, "the entry is not what was written: its hash is another one"
    if kept.get(number, row.sha256) != row.sha256:
        return number, "the entry has another hash than the one that was kept"
    return None


def _work_out(row: Entry) -> str | None:
    """The hash of an entry by its content; None for what no entry can have."""
    content: dict[str, Any] = dict(row._mapping)
    del content["sha256"]
    try:
        details = json.loads(content["details"])
        # the text is what stands in the database: one that reads alike is another one
        if canonical(details).decode() != content["details"]:
            return None
        return sha256(canonical(content | {"details": details})).hexdigest()
    except (ValueError, TypeError):
        return None


def _read(row: Entry) -> LogEntry:
    content: dict[str, Any] = dict(row._mapping)
    try:
        content["details"] = json.loads(content["details"])
    except (ValueError, TypeError):  # someone has changed it: shown as it is, and told by `check`
        content["details"] = {"unreadable": str(content["details"])}
    return LogEntry(**content)


def _read_cursor(cursor: str) -> int:
    if not (cursor.isascii() and cursor.isdigit() and len(cursor) <= 18):
        message = "this is not a cursor of this listing; start again without one"
        raise InvalidRequest("the cursor cannot be used", Fault("/cursor", message))
    return int(cursor)


def _show_time(moment: datetime) -> str:
    """A time as its entry has it, in UTC to the microsecond: texts of one length, which sort as the times do."""
    return moment.astimezone(UTC).isoformat(timespec="microseconds")
