"""How many candidate splits a model lists. Written out: later changes must not change the past."""

from __future__ import annotations

import sqlalchemy as sa
from alembic import op

revision = "0005"
down_revision = "0004"


def upgrade() -> None:
    """Add the count, which nobody knows yet."""
    op.add_column("models", sa.Column("splits_total", sa.BigInteger))
