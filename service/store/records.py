"""What the store is given and what it gives back."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Any, Literal

Retention = Literal["data", "summary", "none"]
JobState = Literal["queued", "running", "succeeded", "failed", "cancelled"]
LogAction = Literal[
    "train", "prune", "change", "delete", "delete_data", "move_alias", "roll_back_alias", "delete_alias", "verify"
]
ENDED: tuple[JobState, ...] = ("succeeded", "failed", "cancelled")
"""The states that a job does not leave again."""


@dataclass(frozen=True)
class ModelDraft:
    """A trained model before it is stored.

    ``body`` is the JSON-able part of the record; ``tree`` and ``data`` are plain dicts of arrays (and of what JSON
    knows), never instances of our classes, so that files outlive the code that wrote them. ``data`` is what is
    retained for the audit, None with retention "none". ``action`` is what the audit log says of its making.
    """

    name: str | None
    body: Mapping[str, Any]
    tree: Mapping[str, Any]
    data: Mapping[str, Any] | None = None
    retention: Retention = "none"
    description: str = ""
    tags: Mapping[str, str] = field(default_factory=dict)
    action: LogAction = "train"


@dataclass(frozen=True)
class ModelRecord:
    """What is known of a stored model without opening its files; ``version`` is None when ``name`` is.

    ``revision`` counts the changes of what can be changed. ``splits_total`` is how many candidates a whole listing
    has, None until one was streamed.
    """

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
    revision: int = 1
    splits_total: int | None = None

    def summary(self) -> dict[str, Any]:
        """Which model it is, as answers about it say."""
        return {"id": self.id, "name": self.name, "version": self.version}


@dataclass(frozen=True)
class JobRecord:
    """A piece of background work and how far it is.

    ``subject`` is what a listing says of it, ``request_sha256`` the hash of the file that holds the request.
    ``attempt`` counts its starts: a job whose worker died is started again. ``progress`` is from 0 to 1;
    ``cancelling`` says that someone asked for its end. ``model_id``, ``result`` and ``problem`` are how it ended.
    """

    id: str
    kind: str
    subject: Mapping[str, Any]
    request_sha256: str
    created: datetime
    state: JobState
    started: datetime | None
    ended: datetime | None
    attempt: int
    progress: float
    cancelling: bool
    model_id: str | None
    result: Mapping[str, Any] | None
    problem: Mapping[str, Any] | None

    @property
    def has_ended(self) -> bool:
        """True where nothing will change any more."""
        return self.state in ENDED


@dataclass(frozen=True)
class Claim:
    """The right to end a job: that of its newest attempt."""

    job_id: str
    attempt: int


@dataclass(frozen=True)
class AliasRecord:
    """A word for one version of a name; ``previous`` is the version that it meant before, ``revision`` counts moves."""

    name: str
    alias: str
    version: int
    previous: int | None
    revision: int
    moved: datetime


@dataclass(frozen=True)
class KeyClaim:
    """The right to answer a request that its caller may repeat: whoever holds its key now."""

    key: str
    holder: str


@dataclass(frozen=True)
class KeptAnswer:
    """What a request was answered with; without a ``body``, what it made, of which the answer can be told again."""

    status: int | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes | None = None
    model_id: str | None = None
    job_id: str | None = None


@dataclass(frozen=True)
class LogDraft:
    """What the audit log is told: what was done, to which model or alias; ``details`` are JSON without floats."""

    action: LogAction
    model: str | None = None
    name: str | None = None
    version: int | None = None
    alias: str | None = None
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class LogEntry:
    """An entry of the audit log: its ``sha256`` is that of all the rest as JSON.

    ``actor`` is the id of the key under which it was asked for, ``request`` the id of the request, ``previous`` the
    hash of the entry before.
    """

    number: int
    time: str
    action: str
    model: str | None
    name: str | None
    version: int | None
    alias: str | None
    actor: str | None
    request: str | None
    details: Mapping[str, Any]
    previous: str
    sha256: str


@dataclass(frozen=True)
class LogCheck:
    """What a check of the chain found: how many entries are whole, its end, and where it breaks first (None)."""

    entries: int
    last_number: int
    last_sha256: str
    broken: int | None
    reason: str | None
