"""What the store is given and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Retention = Literal["data", "summary", "none"]


@dataclass(frozen=True)
class ModelDraft:
    """A trained model before it is stored.

    ``body`` is the JSON-able part of the record; ``tree`` and ``data`` are plain dicts of arrays (and of what JSON
    knows), never instances of our classes, so that files outlive the code that wrote them. ``data`` is what is
    retained for the audit, None with retention "none".
    """

    name: str | None
    body: Mapping[str, Any]
    tree: Mapping[str, Any]
    data: Mapping[str, Any] | None = None
    retention: Retention = "none"
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class ModelRecord:
    """What is known of a stored model without opening its files; ``version`` is None when ``name`` is."""

    id: str
    name: str | None
    version: int | None
    created: datetime
    description: str
    tags: Mapping[str, str]
    retention: Retention
    body: Mapping[str, Any]
    tree_sha256: str
    data_sha256: str | None
