"""The store of models: what training puts in, and what prediction, audit and listings get out."""

from __future__ import annotations

import contextlib
import logging
from collections.abc import Callable, Mapping
from datetime import datetime
from functools import partial
from typing import Any, TypeAlias, TypeVar

from sqlalchemy import select
from sqlalchemy.exc import SQLAlchemyError

from service.core.errors import Fault
from service.errors import DamagedModel, NotRetained, SettingsError
from service.settings import Settings, variable_of
from service.store import locks
from service.store.adding import add_row
from service.store.aliases import AliasStore, refuse_aliased
from service.store.audit_log import AuditLog, append, describe
from service.store.cache import RecentlyUsed, UntilChanged
from service.store.clock import Clock, read_clock
from service.store.database import Database
from service.store.files import ModelFiles, Part
from service.store.idempotency import KeyStore
from service.store.inspection import Inspector
from service.store.jobs import JobStore
from service.store.naming import check_description, check_name, check_tags, is_name, new_id
from service.store.queries import cursor_after, find_row, list_rows, tag_rows
from service.store.records import Claim, KeyClaim, ModelDraft, ModelRecord
from service.store.space import told_when_full
from service.store.tables import InstallationRow, ModelRow

# In the class below `list` is the method.
Page: TypeAlias = tuple[list[ModelRecord], str | None]
Problems: TypeAlias = list[str]
Condition: TypeAlias = Callable[[ModelRecord], None]
"""Raises where the record is not what the caller has in mind."""

Made = TypeVar("Made")

log = logging.getLogger(__name__)


def _always(_: ModelRecord) -> None:
    """The condition that is always met."""


class ModelStore:
    """Models of one database and one directory, shared by the threads of a process.

    What another process adds, changes or deletes is seen: records are kept only until the database says that something
    was written to it. Loaded files, and what was made of them, are kept by id, which never changes its meaning.
    ``jobs`` are the records of background work, ``requests`` the files of what is asked for in those that are open;
    ``aliases`` the words for versions, ``keys`` the answers to requests that may be repeated, ``log`` the audit log.
    """

    def __init__(
        self, database: Database, files: ModelFiles, requests: ModelFiles, cached: int, clock: Clock = read_clock
    ) -> None:
        self._database = database
        self._files, self.open_scratch = files, files.open_scratch
        self.requests = requests
        self.jobs = JobStore(database, clock)
        self.aliases = AliasStore(database, clock)
        self.keys = KeyStore(database, clock)
        self.log = AuditLog(database)
        self._inspector = Inspector(database, files)
        self._clock = clock
        self._found: UntilChanged[str, ModelRecord] = UntilChanged(cached, database.moment)
        self._loaded: RecentlyUsed[tuple[str, Part], dict[str, Any]] = RecentlyUsed(cached)
        self._made: RecentlyUsed[str, Any] = RecentlyUsed(cached)

    @classmethod
    def open(cls, settings: Settings, clock: Clock = read_clock) -> ModelStore:
        """Open the store, creating or migrating it, and clear what crashes left; once in each process, after a fork.

        Raises `SettingsError` when the database or the directory cannot be used.
        """
        directory = settings.models_directory()
        try:
            directory.mkdir(parents=True, exist_ok=True)
            # SQLite does not wait, it fails, when two switch a new file to write-ahead logging at once.
            with locks.alone(directory / ".opening"):
                database = Database.open(settings)
            # A folder for each database: a sweep cannot reach what the records of another one vouch for.
            files = ModelFiles(directory / database.installation)
            requests = ModelFiles(directory / f"{database.installation}-requests")
        except OSError as error:
            variable = variable_of("models_url")
            message = f"the directory cannot be used ({error})"
            raise SettingsError(f"{variable}: {message}", Fault(variable, message)) from error
        store = cls(database, files, requests, settings.cached_models, clock)
        files.sweep(store._list_ids, {"data": partial(store._list_ids, with_data=True)})
        requests.sweep(store.jobs.open_ids)
        return store

    def close(self) -> None:
        """Close the connections to the database; loaded trees stay usable."""
        self._database.close()

    def add(self, draft: ModelDraft, claim: Claim | None = None, key: KeyClaim | None = None) -> ModelRecord:
        """Store a model and give it its id and, if it has a name, its version: 1, 2, 3 and so on without a gap.

        The files are written first, the record last: what has a record is whole. With a ``claim`` the same commit ends
        the job that made the model, with a ``key`` it notes the model as the answer to a request that may be repeated.
        Raises `InvalidRequest` for a name, tag or description that cannot be used, `StorageFull` when there is no
        room, `JobStopped` where the claim is void, `Conflict` where another request took the key over; then nothing is
        stored.
        """
        check_name(draft.name)
        check_description(draft.description)
        check_tags(draft.tags)
        parts: dict[Part, Mapping[str, Any]] = {"model": draft.tree}
        if draft.data is not None:
            parts["data"] = draft.data
        model_id = new_id()
        with told_when_full(), self._files.writing():
            try:
                hashes = self._files.write(model_id, parts)
                with self._database.writing() as session:
                    return add_row(session, model_id, draft, hashes, self._clock, claim, key)
            except BaseException:
                self._remove_unrecorded(model_id)
                raise

    def find(self, reference: str) -> ModelRecord:
        """The model with this id, the newest of this name, or ``name@version``; raises `NotFound`."""
        return self._found.get(reference, lambda: self._find(reference))

    def update(
        self,
        reference: str,
        *,
        tags: Mapping[str, str] | None = None,
        description: str | None = None,
        condition: Condition = _always,
    ) -> ModelRecord:
        """Replace a model's tags, its description or both (None: as they are).

        ``condition`` is asked about the record as it is now, and may raise. Raises `NotFound`, `InvalidRequest` or
        `StorageFull`.
        """
        check_tags(tags or {})
        check_description(description or "")
        with told_when_full(), self._database.writing() as session:
            row = find_row(session, reference, lock=True)
            condition(row.record())
            row.revision += 1
            if description is not None:
                row.description = description
            if tags is not None:
                row.tags = tag_rows(tags)
            changed = {"tags": tags is not None, "description": description is not None, "revision": row.revision}
            append(session, describe(row, "change", changed))
            return row.record()

    def delete(self, reference: str, *, condition: Condition = _always) -> None:
        """Delete one model; who has it loaded can go on reading it.

        ``condition`` is as in `update`. Raises `NotFound`, and `Conflict` for a bare name that has several versions and
        for a version that an alias means.
        """
        with told_when_full(), self._database.writing() as session:
            row = find_row(session, reference, lock=True, only=True)
            condition(row.record())
            refuse_aliased(session, row)
            model_id = row.id
            entry = describe(row, "delete", {"tree_sha256": row.tree_sha256})
            session.delete(row)
            append(session, entry)
        # After the commit: a crash in between leaves files without a record, for a sweep, never the reverse.
        self._files.remove(model_id)
        self._loaded.drop((model_id, "model"))
        self._loaded.drop((model_id, "data"))
        self._made.drop(model_id)

    def drop_data(self, reference: str, *, condition: Condition = _always) -> ModelRecord:
        """Delete what a model keeps for the audit; the model stays. Where there is nothing, nothing happens.

        ``condition`` is as in `update`. Raises `NotFound`, and `Conflict` for a bare name that has several versions.
        """
        with told_when_full(), self._database.writing() as session:
            row = find_row(session, reference, lock=True, only=True)
            condition(row.record())
            if row.data_sha256 is not None:
                entry = describe(row, "delete_data", {"retained_sha256": row.data_sha256, "retention": row.retention})
                row.retention, row.data_sha256 = "none", None
                row.revision += 1
                append(session, entry)
            record = row.record()
        # After the commit, as in `delete`.
        self._files.remove(record.id, "data")
        self._loaded.drop((record.id, "data"))
        return record

    def note_total(self, record: ModelRecord, total: int) -> None:
        """Keep how many candidate splits the model's whole listing has; its revision stays, for nobody changed it.

        What does not work is logged: the count will be made again.
        """
        if record.splits_total is not None:
            return
        try:
            with self._database.writing() as session:
                row = session.get(ModelRow, record.id)
                if row is not None and row.data_sha256 == record.data_sha256:
                    row.splits_total = total
        except SQLAlchemyError:
            log.warning("the number of splits was not kept", exc_info=True)

    def load_tree(self, record: ModelRecord) -> dict[str, Any]:
        """The stored ``tree``: a dict of memory-mapped, read-only arrays, shared with all callers, not to be changed.

        Raises `NotFound` when the model was deleted meanwhile, `DamagedModel` when its file is not what was stored.
        """
        return self._load(record, "model", record.tree_sha256)

    def load_as(self, record: ModelRecord, make: Callable[[dict[str, Any]], Made]) -> Made:
        """What ``make`` makes of the stored ``tree``, made once for each id: give the same ``make`` for all models.

        Raises what `load_tree` raises.
        """
        made: Made = self._made.get(record.id, lambda: make(self.load_tree(record)))
        return made

    def load_data(self, record: ModelRecord) -> dict[str, Any]:
        """The stored ``data``, as `load_tree` gives the tree; raises `NotRetained` when there is none."""
        if record.data_sha256 is None:
            raise NotRetained(
                f"model {record.id} keeps nothing for the audit: it was trained with retain='none', or its data were "
                "deleted; train it again with retain='data'"
            )
        return self._load(record, "data", record.data_sha256)

    def check(self) -> Problems:
        """What keeps the store from working now, in words that tell a stranger no more than names; empty when ready."""
        problems: Problems = []
        try:
            with self._database.reading() as session:
                session.scalars(select(InstallationRow.id)).one()
            problems += self._inspector.describe_broken()
        except SQLAlchemyError:
            log.warning("the database does not answer", exc_info=True)
            problems.append("the database does not answer")
        if not (self._files.is_writable() and self.requests.is_writable()):
            problems.append("the models directory cannot be written to")
        return problems

    def list(
        self,
        *,
        name: str | None = None,
        tag: tuple[str, str | None] | None = None,
        since: datetime | None = None,
        until: datetime | None = None,
        limit: int,
        cursor: str | None = None,
    ) -> Page:
        """Up to ``limit`` models, newest first, and the cursor of what follows (None at the end).

        ``tag`` is a key with its value, or with None for any value; made at ``since`` or later, before ``until``.
        Raises `InvalidRequest` for a cursor or tag that cannot be one.
        """
        if name is not None and not is_name(name):
            return [], None
        if tag is not None:
            check_tags({tag[0]: tag[1] or ""})
        with self._database.reading() as session:
            rows = list_rows(session, name=name, tag=tag, since=since, until=until, after=cursor, limit=limit + 1)
            page = rows[:limit]
            return [row.record() for row in page], cursor_after(page[-1]) if len(rows) > limit else None

    def _find(self, reference: str) -> ModelRecord:
        with self._database.reading() as session:
            return find_row(session, reference).record()

    def _remove_unrecorded(self, model_id: str) -> None:
        """Remove the files of a failed `add`, unless it cannot be known that it failed: then a sweep will know."""
        with contextlib.suppress(SQLAlchemyError):
            if model_id not in self._list_ids():
                self._files.remove(model_id)

    def _list_ids(self, *, with_data: bool = False) -> set[str]:
        """The ids of all models in all namespaces, or of those that keep something for the audit."""
        ids = select(ModelRow.id)
        with self._database.reading() as session:
            return set(session.scalars(ids.where(ModelRow.data_sha256.is_not(None)) if with_data else ids))

    def _load(self, record: ModelRecord, part: Part, sha256: str) -> dict[str, Any]:
        try:
            return self._loaded.get((record.id, part), partial(self._files.load, record.id, part, sha256))
        except OSError as error:
            now = self._find(record.id)  # deleted meanwhile: NotFound
            if part == "data" and now.data_sha256 is None:
                return self.load_data(now)  # NotRetained
            what = "is missing" if isinstance(error, FileNotFoundError) else "cannot be opened"
            raise DamagedModel(f"the {part} file of model {record.id} {what}") from error
