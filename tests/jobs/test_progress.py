"""Progress only rises, is said now and then, and a job that must not go on is stopped."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.errors import JobStopped
from service.jobs.progress import POLL_SECONDS, REPORT_SECONDS, Reporter, follow_growth
from service.store.models import ModelStore
from service.store.records import Claim
from tests.jobs.making import add_job


class Clock:
    """A clock that the test moves."""

    now = 0.0

    def __call__(self) -> float:
        """The time."""
        return self.now


@pytest.fixture
def claim(store: ModelStore) -> Claim:
    """The right to a job that has begun."""
    claim = store.jobs.begin(add_job(store).id, "w", 3)
    assert claim is not None
    return claim


def test_reported_now_and_then(store: ModelStore, claim: Claim) -> None:
    """The first report comes after the interval, and what is said earlier waits."""
    clock = Clock()
    reporter = Reporter(store.jobs, claim, clock=clock)
    reporter.report(0.3)
    assert store.jobs.find(claim.job_id).progress == 0
    clock.now += REPORT_SECONDS
    reporter.report(0.4)
    assert store.jobs.find(claim.job_id).progress == 0.4


def test_stopped_when_cancelled(store: ModelStore, claim: Claim) -> None:
    """A cancellation is seen at the next poll, long before the next report."""
    clock = Clock()
    reporter = Reporter(store.jobs, claim, clock=clock)
    store.jobs.cancel(claim.job_id)
    clock.now += POLL_SECONDS
    with pytest.raises(JobStopped):
        reporter.report(0.1)


def test_stopped_when_replaced(store: ModelStore, claim: Claim) -> None:
    """An attempt that was taken for dead stops when it hears of the one that replaced it."""
    clock = Clock()
    reporter = Reporter(store.jobs, claim, clock=clock)
    assert store.jobs.begin(claim.job_id, "other", 3) is not None
    clock.now += REPORT_SECONDS
    with pytest.raises(JobStopped):
        reporter.report(0.9)
    assert store.jobs.find(claim.job_id).progress == 0


def test_stopped_when_the_worker_stops(store: ModelStore, claim: Claim) -> None:
    """A worker that has to end does not finish what may take long."""
    with pytest.raises(JobStopped):
        Reporter(store.jobs, claim, lambda: True).report(0.1)


@given(
    rows=st.integers(1, 10**7),
    max_depth=st.none() | st.integers(0, 60),
    steps=st.lists(st.floats(0, 1), min_size=1, max_size=40),
)
def test_growth_rises_to_the_end(rows: int, max_depth: int | None, steps: list[float]) -> None:
    """Level by level, with ever fewer rows open, progress never falls and stays between 0 and 1; at the end it is 1."""
    said: list[float] = []
    progress = follow_growth(said.append, rows, max_depth)
    entries = rows
    for depth, share in enumerate(steps):
        progress(depth, entries)
        entries = int(entries * share)
    progress(len(steps), 0)
    assert said == sorted(said)
    assert 0 <= said[0] <= said[-1] == 1
