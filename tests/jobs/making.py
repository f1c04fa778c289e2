"""Training requests, and jobs whose work the test decides."""

from __future__ import annotations

import numpy as np

from service.core.schema import Column, Table
from service.store.models import ModelStore
from service.store.naming import new_id
from service.store.records import JobRecord
from service.training import TrainingRequest


def make_request(rows: int = 60, **changes: object) -> TrainingRequest:
    """A request with a column of each kind and with missing cells."""
    generator = np.random.default_rng(3)
    whole = Column("whole", "numeric", generator.integers(0, 9, rows), missing=generator.random(rows) < 0.1)
    real = Column("real", "numeric", np.where(generator.random(rows) < 0.1, np.nan, generator.random(rows)))
    job = Column("job", "nominal", generator.integers(-1, 3, rows).astype(np.int32), ("clerk", "driver", 3))
    risk = Column("risk", "nominal", (generator.random(rows) < 0.4).astype(np.int32), ("low", "high"))
    fields = {"table": Table((whole, real, job, risk), rows), "target": "risk", "name": "credit", **changes}
    return TrainingRequest(**fields)  # type: ignore[arg-type] # what differs is the test's affair


def add_job(store: ModelStore, kind: str = "test", content: dict[str, object] | None = None) -> JobRecord:
    """A job that waits, with what it is asked to do in its file, past the queue."""
    job_id = new_id()
    hashes = store.requests.write(job_id, {"request": content or {}})
    return store.jobs.add(job_id, kind, {"about": "a test"}, hashes["request"])
