"""The tables, for SQLite and PostgreSQL alike; `service/store/migrations` builds them, a test compares the two."""

from __future__ import annotations

from datetime import UTC, datetime
from typing import Any

from sqlalchemy import (
    JSON,
    BigInteger,
    Boolean,
    DateTime,
    Dialect,
    Float,
    ForeignKey,
    Index,
    Integer,
    LargeBinary,
    String,
    Text,
    UniqueConstraint,
)
from sqlalchemy.orm import DeclarativeBase, Mapped, mapped_column, relationship
from sqlalchemy.types import TypeDecorator

from service.store.records import AliasRecord, JobRecord, JobState, ModelRecord, Retention

NAMESPACE = "default"
"""The namespace of every row, until there are several."""


class UtcDateTime(TypeDecorator[datetime]):
    """An aware datetime in UTC, on databases that know time zones and on SQLite, which does not."""

    impl = DateTime(timezone=True)
    cache_ok = True

    def process_bind_param(self, value: datetime | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002 - interface
        """Store UTC."""
        return None if value is None else value.astimezone(UTC)

    def process_result_value(self, value: Any | None, dialect: Dialect) -> datetime | None:  # noqa: ARG002, ANN401 - interface
        """Say again that it is UTC."""
        if not isinstance(value, datetime):
            return None
        return value.replace(tzinfo=UTC) if value.tzinfo is None else value.astimezone(UTC)


class Base(DeclarativeBase):
    """The root of the tables."""


class InstallationRow(Base):
    """This database's own id, in the one row of the table: it names the folder of its model files."""

    __tablename__ = "installation"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    namespace: Mapped[str] = mapped_column(String(64))


class NameRow(Base):
    """A name and the last version given out under it, which outlives the versions: no number is used twice."""

    __tablename__ = "names"

    namespace: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    last_version: Mapped[int] = mapped_column(Integer)


class ModelRow(Base):
    """A model's record."""

    __tablename__ = "models"
    __table_args__ = (
        UniqueConstraint("namespace", "name", "version", name="models_version"),
        Index("models_newest", "namespace", "created", "id"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    namespace: Mapped[str] = mapped_column(String(64))
    name: Mapped[str | None] = mapped_column(String(128))
    version: Mapped[int | None] = mapped_column(Integer)
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    description: Mapped[str] = mapped_column(Text)
    retention: Mapped[Retention] = mapped_column(String(16))
    # JSON, not JSONB: it keeps the order of keys, 1 and 1.0 apart, and NUL in a category.
    body: Mapped[dict[str, Any]] = mapped_column(JSON)
    tree_sha256: Mapped[str] = mapped_column(String(64))
    data_sha256: Mapped[str | None] = mapped_column(String(64))
    revision: Mapped[int] = mapped_column(Integer, server_default="1")
    splits_total: Mapped[int | None] = mapped_column(BigInteger)
    tags: Mapped[list[TagRow]] = relationship(
        cascade="all, delete-orphan", passive_deletes=True, lazy="selectin", order_by="TagRow.position"
    )

    def record(self) -> ModelRecord:
        """The row as the store gives it out."""
        return ModelRecord(
            id=self.id,
            name=self.name,
            version=self.version,
            created=self.created,
            description=self.description,
            tags={tag.key: tag.value for tag in self.tags},
            retention=self.retention,
            body=self.body,
            tree_sha256=self.tree_sha256,
            data_sha256=self.data_sha256,
            revision=self.revision,
            splits_total=self.splits_total,
        )


class TagRow(Base):
    """One tag of one model; ``position`` keeps them in the order in which they were given."""

    __tablename__ = "tags"
    __table_args__ = (Index("tags_lookup", "namespace", "key"),)

    model_id: Mapped[str] = mapped_column(ForeignKey("models.id", ondelete="CASCADE"), primary_key=True)
    key: Mapped[str] = mapped_column(String(128), primary_key=True)
    namespace: Mapped[str] = mapped_column(String(64))
    value: Mapped[str] = mapped_column(Text)
    position: Mapped[int] = mapped_column(Integer)


class JobRow(Base):
    """One piece of background work; ``attempt`` counts its starts, and only the newest may say how it ended.

    ``lost`` counts the workers that died of it.
    """

    __tablename__ = "jobs"
    __table_args__ = (
        Index("jobs_newest", "namespace", "created", "id"),
        Index("jobs_by_state", "namespace", "state"),
    )

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    namespace: Mapped[str] = mapped_column(String(64))
    kind: Mapped[str] = mapped_column(String(32))
    subject: Mapped[dict[str, Any]] = mapped_column(JSON)
    request_sha256: Mapped[str] = mapped_column(String(64))
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    state: Mapped[JobState] = mapped_column(String(16))
    started: Mapped[datetime | None] = mapped_column(UtcDateTime)
    ended: Mapped[datetime | None] = mapped_column(UtcDateTime)
    attempt: Mapped[int] = mapped_column(Integer)
    lost: Mapped[int] = mapped_column(Integer)
    worker: Mapped[str | None] = mapped_column(String(32))
    progress: Mapped[float] = mapped_column(Float)
    cancelling: Mapped[bool] = mapped_column(Boolean)
    model_id: Mapped[str | None] = mapped_column(String(32))
    # none_as_null: "no result" is asked for by IS NULL
    result: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))
    problem: Mapped[dict[str, Any] | None] = mapped_column(JSON(none_as_null=True))

    def record(self) -> JobRecord:
        """The row as the store gives it out."""
        return JobRecord(
            id=self.id,
            kind=self.kind,
            subject=self.subject,
            request_sha256=self.request_sha256,
            created=self.created,
            state=self.state,
            started=self.started,
            ended=self.ended,
            attempt=self.attempt,
            progress=self.progress,
            cancelling=self.cancelling,
            model_id=self.model_id,
            result=self.result,
            problem=self.problem,
        )


class WorkerRow(Base):
    """A worker that runs jobs; it lives as long as ``seen`` is renewed."""

    __tablename__ = "workers"

    id: Mapped[str] = mapped_column(String(32), primary_key=True)
    namespace: Mapped[str] = mapped_column(String(64))
    seen: Mapped[datetime] = mapped_column(UtcDateTime)


class AliasRow(Base):
    """A word for one version of a name, such as ``champion``, with the version that it meant before."""

    __tablename__ = "aliases"

    namespace: Mapped[str] = mapped_column(String(64), primary_key=True)
    name: Mapped[str] = mapped_column(String(128), primary_key=True)
    alias: Mapped[str] = mapped_column(String(64), primary_key=True)
    version: Mapped[int] = mapped_column(Integer)
    previous: Mapped[int | None] = mapped_column(Integer)
    revision: Mapped[int] = mapped_column(Integer)
    moved: Mapped[datetime] = mapped_column(UtcDateTime)

    def record(self) -> AliasRecord:
        """The row as the store gives it out."""
        return AliasRecord(self.name, self.alias, self.version, self.previous, self.revision, self.moved)


class IdempotencyRow(Base):
    """A request that its caller may repeat: who is at it, or what was answered.

    ``seen`` is renewed by the ``holder``; ``model_id`` or ``job_id`` is written by the commit that makes one.
    """

    __tablename__ = "idempotency"
    __table_args__ = (Index("idempotency_oldest", "namespace", "created"),)

    namespace: Mapped[str] = mapped_column(String(64), primary_key=True)
    key: Mapped[str] = mapped_column(String(255), primary_key=True)
    fingerprint: Mapped[str] = mapped_column(String(64))
    holder: Mapped[str] = mapped_column(String(32))
    created: Mapped[datetime] = mapped_column(UtcDateTime)
    seen: Mapped[datetime] = mapped_column(UtcDateTime)
    model_id: Mapped[str | None] = mapped_column(String(32))
    job_id: Mapped[str | None] = mapped_column(String(32))
    status: Mapped[int | None] = mapped_column(Integer)
    headers: Mapped[dict[str, str] | None] = mapped_column(JSON(none_as_null=True))
    body: Mapped[bytes | None] = mapped_column(LargeBinary)


class AuditLogRow(Base):
    """One entry of the audit log; texts are kept as they were hashed."""

    __tablename__ = "audit_log"
    __table_args__ = (
        Index("audit_log_by_model", "namespace", "model", "number"),
        Index("audit_log_by_name", "namespace", "name", "number"),
    )

    namespace: Mapped[str] = mapped_column(String(64), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger, primary_key=True, autoincrement=False)
    time: Mapped[str] = mapped_column(String(32))
    action: Mapped[str] = mapped_column(String(32))
    model: Mapped[str | None] = mapped_column(String(32))
    name: Mapped[str | None] = mapped_column(String(128))
    version: Mapped[int | None] = mapped_column(Integer)
    alias: Mapped[str | None] = mapped_column(String(64))
    actor: Mapped[str | None] = mapped_column(String(128))
    request: Mapped[str | None] = mapped_column(String(128))
    details: Mapped[str] = mapped_column(Text)
    previous: Mapped[str] = mapped_column(String(64))
    sha256: Mapped[str] = mapped_column(String(64))


class AuditHeadRow(Base):
    """The number and the hash of the last entry of the audit log; who appends holds this row."""

    __tablename__ = "audit_heads"

    namespace: Mapped[str] = mapped_column(String(64), primary_key=True)
    number: Mapped[int] = mapped_column(BigInteger)
    sha256: Mapped[str] = mapped_column(String(64))
