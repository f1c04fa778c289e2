"""Models, their names and their tags. Written out: later changes of the tables must not change the past."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0001"
down_revision = None


def upgrade() -> None:
    """Create the first tables."""
    op.create_table(
        "installation",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("namespace", sa.String(64), nullable=False),
    )
    op.create_table(
        "names",
        sa.Column("namespace", sa.String(64), primary_key=True),
        sa.Column("name", sa.String(128), primary_key=True),
        sa.Column("last_version", sa.Integer, nullable=False),
    )
    op.create_table(
        "models",
        sa.Column("id", sa.String(32), primary_key=True),
        sa.Column("namespace", sa.String(64), nullable=False),
        sa.Column("name", sa.String(128)),
        sa.Column("version", sa.Integer),
        sa.Column("created", sa.DateTime(timezone=True), nullable=False),
        sa.Column("description", sa.Text, nullable=False),
        sa.Column("retention", sa.String(16), nullable=False),
        sa.Column("body", sa.JSON, nullable=False),
        sa.Column("tree_sha256", sa.String(64), nullable=False),
        sa.Column("data_sha256", sa.String(64)),
        sa.UniqueConstraint("namespace", "name", "version", name="models_version"),
    )
    op.create_index("models_newest", "models", ["namespace", "created", "id"])
    op.create_table(
        "tags",
        sa.Column("model_id", sa.String(32), sa.ForeignKey("models.id", ondelete="CASCADE"), primary_key=True),
        sa.Column("key", sa.String(128), primary_key=True),
        sa.Column("namespace", sa.String(64), nullable=False),
        sa.Column("value", sa.Text, nullable=False),
        sa.Column("position", sa.Integer, nullable=False),
    )
    op.create_index("tags_lookup", "tags", ["namespace", "key"])
