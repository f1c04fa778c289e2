"""What Alembic runs: the revisions, in the transaction that the caller has begun and will commit."""

from __future__ import annotations

from alembic import context

from service.store.tables import Base

context.configure(
    connection=context.config.attributes["connection"],
    target_metadata=Base.metadata,
    render_as_batch=True,  # SQLite alters a table by copying it
)
context.run_migrations()
