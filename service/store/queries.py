"""The questions that the store asks of its tables, each in a session that the caller has begun."""

from __future__ import annotations

import base64
import binascii
from collections.abc import Callable, Mapping, Sequence
from datetime import datetime

from sqlalchemy import and_, or_, select
from sqlalchemy.dialects import postgresql, sqlite
from sqlalchemy.orm import Session

from service.core.errors import Fault
from service.errors import Conflict, InvalidRequest, NotFound
from service.store.naming import ID, Reference, parse_reference
from service.store.tables import NAMESPACE, AliasRow, JobRow, ModelRow, NameRow, TagRow

_INSERT: dict[str, Callable[[type[NameRow]], sqlite.Insert | postgresql.Insert]] = {
    "sqlite": sqlite.insert,
    "postgresql": postgresql.insert,
}


def next_version(session: Session, name: str) -> int:
    """Count the name up by one; others wait for this session's end, and if it fails the number is free again."""
    insert = _INSERT[session.get_bind().dialect.name]
    statement = (
        insert(NameRow)
        .values(namespace=NAMESPACE, name=name, last_version=1)
        .on_conflict_do_update(
            index_elements=[NameRow.namespace, NameRow.name], set_={"last_version": NameRow.last_version + 1}
        )
        .returning(NameRow.last_version)
    )
    return session.scalars(statement).one()


def find_rows(session: Session, reference: Reference, *, lock: bool = False) -> Sequence[ModelRow]:
    """The models that a reference can mean, the newest version first; only a bare name can mean several.

    With ``lock`` others who would change them wait for this session's end; on SQLite they wait for its start anyway.
    """
    statement = select(ModelRow).where(ModelRow.namespace == NAMESPACE)
    if reference.id is not None:
        statement = statement.where(ModelRow.id == reference.id)
    else:
        statement = statement.where(ModelRow.name == reference.name)
    if reference.version is not None:
        statement = statement.where(ModelRow.version == reference.version)
    if reference.alias is not None:
        meant = select(AliasRow.version).where(
            AliasRow.namespace == NAMESPACE, AliasRow.name == reference.name, AliasRow.alias == reference.alias
        )
        statement = statement.where(ModelRow.version == meant.scalar_subquery())
    if lock:
        statement = statement.with_for_update()
    # Two are enough to know that there are several.
    return session.scalars(statement.order_by(ModelRow.version.desc()).limit(2)).all()


def find_row(session: Session, reference: str, *, lock: bool = False, only: bool = False) -> ModelRow:
    """The row that a reference means, else `NotFound`; with ``only`` a bare name of several is a `Conflict`."""
    parsed = parse_reference(reference)
    rows = find_rows(session, parsed, lock=lock) if parsed else ()
    if not rows:
        raise NotFound(f"there is no model {reference[:140]!r}")
    if only and len(rows) > 1:
        raise Conflict(f"{reference} has several versions; name one, such as {reference}@{rows[0].version}")
    return rows[0]


def list_rows(
    session: Session,
    *,
    name: str | None,
    tag: tuple[str, str | None] | None,
    since: datetime | None,
    until: datetime | None,
    after: str | None,
    limit: int,
) -> Sequence[ModelRow]:
    """Up to ``limit`` models, newest first, from behind the cursor ``after``; a tag's value may be left open (None).

    Made at ``since`` or later, and before ``until``.
    """
    statement = select(ModelRow).where(ModelRow.namespace == NAMESPACE)
    if since is not None:
        statement = statement.where(ModelRow.created >= since)
    if until is not None:
        statement = statement.where(ModelRow.created < until)
    if name is not None:
        statement = statement.where(ModelRow.name == name)
    if tag is not None:
        key, value = tag
        same = TagRow.key == key if value is None else and_(TagRow.key == key, TagRow.value == value)
        statement = statement.where(ModelRow.tags.any(same))
    if after is not None:
        created, model_id = read_cursor(after)
        older = or_(ModelRow.created < created, and_(ModelRow.created == created, ModelRow.id < model_id))
        statement = statement.where(older)
    newest_first = (ModelRow.created.desc(), ModelRow.id.desc())
    return session.scalars(statement.order_by(*newest_first).limit(limit)).all()


def tag_rows(tags: Mapping[str, str]) -> list[TagRow]:
    """Rows for a model's tags, in their order."""
    pairs = enumerate(tags.items())
    return [TagRow(namespace=NAMESPACE, key=key, value=value, position=place) for place, (key, value) in pairs]


def cursor_after(row: ModelRow | JobRow) -> str:
    """The cursor of the listing's part behind ``row``; what is added or deleted meanwhile does not move it."""
    return base64.urlsafe_b64encode(f"{row.created.isoformat()} {row.id}".encode()).decode()


def read_cursor(cursor: str) -> tuple[datetime, str]:
    """The time and the id of the row that a cursor stands behind; raises `InvalidRequest`."""
    try:
        time, _, row_id = base64.urlsafe_b64decode(cursor).decode("ascii").partition(" ")
        created = datetime.fromisoformat(time)
    except (ValueError, binascii.Error):
        created, row_id = datetime.min, ""  # noqa: DTZ901 - refused below
    if created.tzinfo is None or not ID.fullmatch(row_id):
        message = "this is not a cursor of this listing; start again without one"
        raise InvalidRequest("the cursor cannot be used", Fault("/cursor", message))
    return created, row_id
