"""Aliases: words such as ``champion`` for one version of a name, moved in one step, with the way back kept.

Whoever moves an alias or deletes a version first takes the row of the name: no alias ever means a version that is gone.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeAlias

from sqlalchemy import delete, or_, select
from sqlalchemy.orm import Session

from service.errors import Conflict, NotFound
from service.store.audit_log import append
from service.store.clock import Clock, read_clock
from service.store.database import Database
from service.store.naming import ALIAS, check_alias, is_name
from service.store.records import AliasRecord, LogAction, LogDraft
from service.store.space import told_when_full
from service.store.tables import NAMESPACE, AliasRow, ModelRow, NameRow

Condition: TypeAlias = Callable[[AliasRecord | None], None]
"""Raises where the alias, or its absence (None), is not what the caller has in mind."""
Aliases: TypeAlias = list[AliasRecord]


def _always(_: AliasRecord | None) -> None:
    """The condition that is always met."""


class AliasStore:
    """The aliases of one database."""

    def __init__(self, database: Database, clock: Clock = read_clock) -> None:
        self._database = database
        self._clock = clock

    def find(self, name: str, alias: str) -> AliasRecord:
        """What an alias means; raises `NotFound`."""
        with self._database.reading() as session:
            return _find(session, name, alias).record()

    def list(self, name: str) -> Aliases:
        """The aliases of a name, in the order of the alphabet; raises `NotFound` for a name that nothing ever had."""
        with self._database.reading() as session:
            if not is_name(name) or session.get(NameRow, (NAMESPACE, name)) is None:
                raise NotFound(f"there is no model {name[:140]!r}")
            rows = select(AliasRow).where(AliasRow.namespace == NAMESPACE, AliasRow.name == name)
            return [row.record() for row in session.scalars(rows.order_by(AliasRow.alias))]

    def move(self, name: str, alias: str, version: int, *, condition: Condition = _always) -> AliasRecord:
        """Let an alias mean a version from now on; the one that it meant is kept for `roll_back`.

        ``condition`` is asked about what is there. Raises `NotFound` for a version that is not there, `InvalidRequest`
        for what cannot be an alias.
        """
        check_alias(alias)
        with told_when_full(), self._database.writing() as session:
            _lock_name(session, name)
            _check_version(session, name, version)
            row = session.get(AliasRow, (NAMESPACE, name, alias))
            condition(None if row is None else row.record())
            if row is None:
                row = AliasRow(
                    namespace=NAMESPACE, name=name, alias=alias, version=version, revision=1, moved=self._clock()
                )
                session.add(row)
            elif row.version != version:
                self._point(row, version)
            else:
                return row.record()
            self._note(session, "move_alias", row)
            return row.record()

    def roll_back(self, name: str, alias: str, *, condition: Condition = _always) -> AliasRecord:
        """Let an alias mean again what it meant before; done twice, nothing has changed.

        Raises `NotFound`, and `Conflict` where it never meant anything else or that version is gone.
        """
        with told_when_full(), self._database.writing() as session:
            row = _find(session, name, alias)
            _lock_name(session, name)
            session.refresh(row)
            condition(row.record())
            if row.previous is None:
                raise Conflict(f"{name}@{alias} has no previous version to go back to")
            self._point(row, row.previous)
            self._note(session, "roll_back_alias", row)
            return row.record()

    def delete(self, name: str, alias: str, *, condition: Condition = _always) -> None:
        """Forget an alias; raises `NotFound`."""
        with told_when_full(), self._database.writing() as session:
            _lock_name(session, name)
            row = _find(session, name, alias)
            condition(row.record())
            session.execute(
                delete(AliasRow).where(AliasRow.namespace == NAMESPACE, AliasRow.name == name, AliasRow.alias == alias)
            )
            self._note(session, "delete_alias", row)

    def _note(self, session: Session, action: LogAction, row: AliasRow) -> None:
        """Enter into the audit log what becomes of an alias: the version is what it means now, or meant at its end."""
        details = {"previous": row.previous, "revision": row.revision}
        append(session, LogDraft(action, None, row.name, row.version, row.alias, details))

    def _point(self, row: AliasRow, version: int) -> None:
        row.previous, row.version = row.version, version
        row.revision, row.moved = row.revision + 1, self._clock()


def refuse_aliased(session: Session, model: ModelRow) -> None:
    """Raise `Conflict` where an alias means the model, which is about to be deleted; rollbacks to it end.

    The name is locked until the end of the session: nobody points an alias at the model meanwhile.
    """
    if model.name is None:
        return
    _lock_name(session, model.name)
    mine = or_(AliasRow.version == model.version, AliasRow.previous == model.version)
    rows = select(AliasRow).where(AliasRow.namespace == NAMESPACE, AliasRow.name == model.name, mine)
    for row in session.scalars(rows).all():
        if row.version == model.version:
            raise Conflict(f"{model.name}@{row.alias} means version {model.version}: move or delete the alias first")
        row.previous = None


def _lock_name(session: Session, name: str) -> None:
    """Keep others from moving aliases of the name and from deleting its versions until the session's end."""
    session.execute(select(NameRow.name).where(NameRow.namespace == NAMESPACE, NameRow.name == name).with_for_update())


def _check_version(session: Session, name: str, version: int) -> None:
    found = select(ModelRow.id).where(
        ModelRow.namespace == NAMESPACE, ModelRow.name == name, ModelRow.version == version
    )
    if not is_name(name) or session.scalars(found).one_or_none() is None:
        raise NotFound(f"there is no model '{name[:140]}@{version}'")


def _find(session: Session, name: str, alias: str) -> AliasRow:
    row = session.get(AliasRow, (NAMESPACE, name, alias)) if is_name(name) and ALIAS.fullmatch(alias) else None
    if row is None:
        raise NotFound(f"there is no alias '{name[:140]}@{alias[:80]}'")
    return row
