"""The records of jobs: every way from state to state, and that only the newest attempt takes them."""

from __future__ import annotations

import dataclasses
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from service.errors import Conflict, InvalidRequest, JobStopped, NotFound
from service.settings import Settings
from service.store import ModelStore
from service.store.jobs import JobStore
from service.store.naming import new_id
from service.store.records import Claim
from service.store.tables import NAMESPACE, JobRow
from tests.jobs.making import add_job
from tests.store.making import draft


@pytest.fixture
def store(tmp_path: Path, database_url: str) -> Iterator[ModelStore]:
    """An empty store on each kind of database."""
    settings = dataclasses.replace(Settings(models_url=str(tmp_path / "models")), database_url=database_url)
    store = ModelStore.open(settings)
    yield store
    store.close()


@pytest.fixture
def jobs(store: ModelStore) -> JobStore:
    """Its jobs."""
    return store.jobs


def begin(jobs: JobStore, job_id: str, worker: str = "w") -> Claim:
    """Start a job that can be started."""
    claim = jobs.begin(job_id, worker, 3)
    assert claim is not None
    return claim


def test_a_job_that_succeeds(store: ModelStore, jobs: JobStore) -> None:
    """Queued, running, succeeded, each with its time; the result is kept."""
    job = add_job(store)
    assert (job.state, job.attempt, job.started, job.ended) == ("queued", 0, None, None)
    claim = begin(jobs, job.id)
    running = jobs.find(job.id)
    assert (running.state, running.attempt) == ("running", 1)
    assert running.started is not None
    assert jobs.report(claim, 0.5)
    assert jobs.end(claim, "succeeded", result={"accuracy": 1.0})
    ended = jobs.find(job.id)
    assert (ended.state, ended.progress, ended.result) == ("succeeded", 1.0, {"accuracy": 1.0})
    assert ended.ended is not None
    assert ended.has_ended


def test_progress_never_falls(store: ModelStore, jobs: JobStore) -> None:
    """A later attempt that is not as far yet does not take back what was said."""
    claim = begin(jobs, add_job(store).id)
    jobs.report(claim, 0.5)
    jobs.report(claim, 0.2)
    assert jobs.find(claim.job_id).progress == 0.5


def test_only_the_newest_attempt_counts(store: ModelStore, jobs: JobStore) -> None:
    """Whatever an attempt says after another has begun is void: its progress, its end, its model."""
    old = begin(jobs, add_job(store).id)
    new = begin(jobs, old.job_id, "other")
    assert new.attempt == 2
    assert jobs.should_stop(old)
    assert not jobs.should_stop(new)
    assert not jobs.report(old, 0.9)
    assert not jobs.end(old, "failed")
    with pytest.raises(JobStopped):
        store.add(draft("a"), old)
    assert store.list(limit=1) == ([], None)
    assert jobs.find(old.job_id).state == "running"


def test_a_model_and_its_job_are_one(store: ModelStore, jobs: JobStore) -> None:
    """Storing the model ends the job; a second time there is no job left to end, and no second model."""
    claim = begin(jobs, add_job(store).id)
    record = store.add(draft("a"), claim)
    ended = jobs.find(claim.job_id)
    assert (ended.state, ended.model_id) == ("succeeded", record.id)
    with pytest.raises(JobStopped):
        store.add(draft("a"), claim)
    assert [model.id for model in store.list(limit=9)[0]] == [record.id]
    assert store.add(draft("a")).version == 2


def test_cancelled_before_it_is_stored(store: ModelStore, jobs: JobStore) -> None:
    """A model whose job was cancelled meanwhile is not stored, and no file of it is left."""
    claim = begin(jobs, add_job(store).id)
    assert jobs.cancel(claim.job_id).state == "running"
    with pytest.raises(JobStopped):
        store.add(draft("a"), claim)
    assert store.list(limit=1) == ([], None)
    assert jobs.end(claim, "cancelled")


def test_cancelling(store: ModelStore, jobs: JobStore) -> None:
    """What waits ends at once and stays ended; what has ended cannot be cancelled, but for what was."""
    job = add_job(store)
    assert jobs.cancel(job.id).state == "cancelled"
    assert jobs.cancel(job.id).state == "cancelled"
    assert jobs.begin(job.id, "w", 3) is None
    claim = begin(jobs, add_job(store).id)
    jobs.end(claim, "failed", problem={"kind": "X", "message": "", "faults": []})
    with pytest.raises(Conflict):
        jobs.cancel(claim.job_id)


def test_cancelled_while_nobody_ran_it(store: ModelStore, jobs: JobStore) -> None:
    """A job whose worker died after the cancellation ends when the next one takes it up."""
    claim = begin(jobs, add_job(store).id)
    jobs.cancel(claim.job_id)
    assert jobs.begin(claim.job_id, "other", 3) is None
    assert jobs.find(claim.job_id).state == "cancelled"


def test_what_kills_its_workers_fails(store: ModelStore, jobs: JobStore) -> None:
    """A job that three workers died of is not given to a fourth."""
    job = add_job(store)
    for _ in range(3):
        begin(jobs, job.id)
    assert jobs.begin(job.id, "w", 3) is None
    ended = jobs.find(job.id)
    assert ended.state == "failed"
    assert ended.problem is not None
    assert ended.problem["kind"] == "WorkerLost"


def test_released_jobs_do_not_count_as_lost(store: ModelStore, jobs: JobStore) -> None:
    """A worker that stops in good order gives its job back as often as it likes."""
    job = add_job(store)
    for _ in range(5):
        jobs.release(begin(jobs, job.id))
    assert jobs.find(job.id).state == "queued"
    begin(jobs, job.id)


def test_begun_by_one(store: ModelStore, jobs: JobStore) -> None:
    """Eight who begin a job at once get eight different attempts, of which one can end it."""
    job = add_job(store)
    with ThreadPoolExecutor(8) as pool:
        claims = list(pool.map(lambda n: jobs.begin(job.id, f"w{n}", 100), range(8)))
    assert sorted(claim.attempt for claim in claims if claim) == list(range(1, 9))
    assert sum(jobs.end(claim, "succeeded") for claim in claims if claim) == 1


def test_listing(store: ModelStore, jobs: JobStore) -> None:
    """Newest first, page by page, by state if asked; jobs added between pages shift nothing."""
    ids = [add_job(store).id for _ in range(5)]
    begin(jobs, ids[1])
    first, cursor = jobs.list(limit=2)
    add_job(store)
    second, cursor = jobs.list(limit=2, cursor=cursor)
    third, end = jobs.list(limit=2, cursor=cursor)
    assert [job.id for job in first + second + third] == ids[::-1]
    assert end is None
    assert [job.id for job in jobs.list(state="running", limit=9)[0]] == [ids[1]]
    with pytest.raises(InvalidRequest):
        jobs.list(limit=1, cursor="nonsense")


def test_open_jobs(store: ModelStore, jobs: JobStore) -> None:
    """Those that have not ended are known, with when they were asked for."""
    ended, waiting = begin(jobs, add_job(store).id), add_job(store)
    jobs.end(ended, "failed")
    assert jobs.open_ids() == {waiting.id: waiting.created}
    assert jobs.count_open() == 1


@pytest.mark.parametrize("job_id", ["", "x", "0" * 32, "../../etc/passwd", "0" * 31 + "\0"])
def test_no_such_job(jobs: JobStore, job_id: str) -> None:
    """What is no job's id finds none."""
    with pytest.raises(NotFound):
        jobs.find(job_id)


def test_leases(store: ModelStore) -> None:
    """A worker is dead when it was not seen for the lease, or has said that it ends, until it is forgotten."""
    now = datetime(2025, 6, 1, tzinfo=UTC)
    jobs = JobStore(store._database, lambda: now)
    jobs.show_life("a")
    jobs.show_life("b")
    assert jobs.find_dead(timedelta(seconds=10)) == []
    now += timedelta(seconds=11)
    jobs.show_life("b")
    assert jobs.find_dead(timedelta(seconds=10)) == ["a"]
    jobs.give_up("b")
    assert sorted(jobs.find_dead(timedelta(seconds=10))) == ["a", "b"]
    jobs.forget_worker("a")
    assert jobs.find_dead(timedelta(seconds=10)) == ["b"]


def test_a_thousand_jobs(store: ModelStore) -> None:
    """Pages of 1,000 jobs, many of one moment, have each once and in order, while jobs are added, run and end."""
    now = datetime(2025, 6, 1, tzinfo=UTC)
    jobs = JobStore(store._database, lambda: now)
    ids = [new_id() for _ in range(1000)]
    moments = {job_id: now - timedelta(seconds=place // 150) for place, job_id in enumerate(ids)}
    with store._database.writing() as session:
        session.add_all(
            JobRow(
                id=job_id, namespace=NAMESPACE, kind="test", subject={}, request_sha256="", created=moments[job_id],
                state="queued", attempt=0, lost=0, progress=0.0, cancelling=False,
            )
            for job_id in ids
        )  # fmt: skip
    expected = sorted(ids, key=lambda job_id: (moments[job_id], job_id), reverse=True)
    found: list[str] = []
    waiting: list[str] = []
    cursor = queued_cursor = None
    while cursor or not found:
        page, cursor = jobs.list(limit=101, cursor=cursor)
        found += [job.id for job in page]
        queued, queued_cursor = jobs.list(state="queued", limit=101, cursor=queued_cursor)
        waiting += [job.id for job in queued]
        now += timedelta(seconds=1)
        jobs.add(new_id(), "test", {}, "")
        for job in (page[0], page[-1]):  # one of each has ended when the next page is asked for
            jobs.end(begin(jobs, job.id), "succeeded")
    assert found == expected
    assert len(waiting) == len(set(waiting)) >= 1000 - 2 * 10
    assert waiting == [job_id for job_id in expected if job_id in set(waiting)]
    assert jobs.count_open() == 1000 + 10 - 20
