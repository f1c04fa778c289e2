"""The audit log and the end of its chain. Written out: later changes must not change the past."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0004"
down_revision = "0003"


def upgrade() -> None:
    """Create the tables; of what was done before, the log knows nothing."""
    op.create_table(
        "audit_log",
        sa.Column("namespace", sa.String(64), primary_key=True),
        sa.Column("number", sa.BigInteger, primary_key=True, autoincrement=False),
        sa.Column("time", sa.String(32), nullable=False),
        sa.Column("action", sa.String(32), nullable=False),
        sa.Column("model", sa.String(32)),
        sa.Column("name", sa.String(128)),
        sa.Column("version", sa.Integer),
        sa.Column("alias", sa.String(64)),
        sa.Column("actor", sa.String(128)),
        sa.Column("request", sa.String(128)),
        sa.Column("details", sa.Text, nullable=False),
        sa.Column("previous", sa.String(64), nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
    )
    op.create_index("audit_log_by_model", "audit_log", ["namespace", "model", "number"])
    op.create_index("audit_log_by_name", "audit_log", ["namespace", "name", "number"])
    op.create_table(
        "audit_heads",
        sa.Column("namespace", sa.String(64), primary_key=True),
        sa.Column("number", sa.BigInteger, nullable=False),
        sa.Column("sha256", sa.String(64), nullable=False),
    )
