"""The time that the store writes down; tests give it another clock."""

from __future__ import annotations

from collections.abc import Callable
from datetime import UTC, datetime
from typing import TypeAlias

Clock: TypeAlias = Callable[[], datetime]


def read_clock() -> datetime:
    """The time now, in UTC."""
    return datetime.now(UTC)
