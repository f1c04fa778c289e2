"""Aliases, revisions of records, idempotency keys. Written out: later changes must not change the past."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0003"
down_revision = "0002"


def upgrade() -> None:
    """Create the tables, and count the changes of records from 1 on."""
    op.add_column("models", sa.Column("revision", sa.Integer, nullable=False, server_default="1"))
    op.create_table(
        "aliases",
        sa.Column("namespace", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("alias", sa.String(64), primary_key=True),
        sa.Column("version", sa.Integer, nullable=False),
        sa.Column("previous", sa.Integer),
        sa.Column("revision", sa.Integer, nullable=False),
        sa.Column("moved", sa.DateTime(timezone=True), nullable=False),
    )
    op.create_table(
        "idempotency",
        sa.Column("namespace", sa.String(64), primary_key=True),
        sa.Column("key", sa.String(255), primary_key=True),
        sa.Column("fingerprint", sa.String(64), nullable=False),
        sa.Column("holder", sa.String(32), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
        sa.Column("model_id", sa.String(32)),
        sa.Column("job_id", sa.String(32)),
        sa.Column("status", sa.Integer),
        sa.Column("headers", sa.JSON),
        sa.Column("body", sa.LargeBinary),
    )
    op.create_index("idempotency_oldest", "idempotency", ["namespace", "created"])
