"""Jobs, and the workers that run them. Written out: later changes of the tables must not change the past."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0002"
down_revision = "0001"


def upgrade() -> None:
    """Create the tables of background work."""
    op.create_table(
        "jobs",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("namespace", sa.String(64), nullable=False),
        sa.Column("kind", sa.String(32), nullable=False),
        sa.Column("subject", sa.JSON, nullable=False),
        sa.Column("request_sha256", sa.String(64), nullable=False),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("state", sa.String(16), nullable=False),
        sa.Column("started", sa.DateTime(timezone=True)),
        sa.Column("ended", sa.DateTime(timezone=True)),
        sa.Column("attempt", sa.Integer, nullable=False),
        sa.Column("lost", sa.Integer, nullable=False),
        sa.Column("worker", sa.String(32)),
        sa.Column("progress", sa.Float, nullable=False),
        sa.Column("cancelling", sa.Boolean, nullable=False),
        sa.Column("model_id", sa.String(32)),
        sa.Column("result", sa.JSON),
        sa.Column("problem", sa.JSON),
    )
    op.create_index("jobs_newest", "jobs", ["namespace", "created", "id"])
    op.create_index("jobs_by_state", "jobs", ["namespace", "state"])
    op.create_table(
        "workers",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("namespace", sa.String(64), nullable=False),
        sa.Column("seen", sa.DateTime(timezone=True), nullable=False),
    )
