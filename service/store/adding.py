"""The record of a new model, with what the same commit says of it elsewhere."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import datetime

from sqlalchemy.orm import Session

from service.errors import JobStopped
from service.store.audit_log import append, describe_made
from service.store.files import Part
from service.store.idempotency import note_made
from service.store.jobs import settle
from service.store.queries import next_version, tag_rows
from service.store.records import Claim, KeyClaim, ModelDraft, ModelRecord
from service.store.tables import NAMESPACE, ModelRow


def add_row(
    session: Session, model_id: str, draft: ModelDraft, hashes: Mapping[Part, str], clock: Callable[[], datetime],
    claim: Claim | None, key: KeyClaim | None,
) -> ModelRecord:  # fmt: skip
    """Record a model whose files are written, settle the ``claim`` and the ``key``, and tell the audit log.

    Raises `JobStopped` where the job that made it is no longer the caller's.
    """
    if key is not None:
        note_made(session, key, model_id=model_id)
    if claim is not None and not settle(session, claim, model_id, clock()):
        raise JobStopped("the job was cancelled, or another worker has taken it over")
    row = ModelRow(
        id=model_id,
        namespace=NAMESPACE,
        name=draft.name,
        version=None if draft.name is None else next_version(session, draft.name),
        created=clock(),
        description=draft.description,
        retention=draft.retention,
        body=dict(draft.body),
        tree_sha256=hashes["model"],
        data_sha256=hashes.get("data"),
        tags=tag_rows(draft.tags),
    )
    session.add(row)
    append(session, describe_made(row, draft.action, claim))
    return row.record()
