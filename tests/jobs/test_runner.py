"""A job is run to its end whatever the work does, and its request is kept for as long as the job is open."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from service.core.errors import Fault, InvalidData
from service.errors import JobStopped, StorageFull
from service.jobs import kinds
from service.jobs.kinds import Work
from service.jobs.requests import pack
from service.jobs.runner import Runner, WorkerStopping
from service.settings import Settings
from service.store.models import ModelStore
from service.training import train
from tests.jobs.making import add_job, make_request


@pytest.fixture
def run(store: ModelStore, settings: Settings) -> Callable[..., str]:
    """Runs a job of which the work is given; returns its id."""

    def start(work: Callable[[Mapping[str, Any], Work], Any], should_end: Callable[[], bool] = lambda: False) -> str:
        job = add_job(store, content={"number": 5})
        Runner(store, settings, "w", should_end, {"test": work}).run(job.id)
        return job.id

    return start


def requests(settings: Settings) -> list[Path]:
    """The files of what open jobs are asked to do."""
    return list(settings.models_directory().rglob("request.joblib"))


def test_a_training(store: ModelStore, settings: Settings) -> None:
    """A job makes the model that the caller would have got by waiting, under the name that was asked for."""
    request = make_request(200)
    job = add_job(store, "train", pack(request))
    Runner(store, settings, "w").run(job.id)
    ended = store.jobs.find(job.id)
    assert ended.state == "succeeded"
    made = store.find(str(ended.model_id))
    waited = train(request, store, settings)
    assert (made.name, made.version, waited.version) == ("credit", 1, 2)
    assert made.body["training"]["data_sha256"] == waited.body["training"]["data_sha256"]
    trees = [store.load_tree(record) for record in (made, waited)]
    assert all((trees[0][name] == trees[1][name]).all() for name in ("feature", "form", "rows", "prediction"))
    assert requests(settings) == []


def test_a_result(store: ModelStore, run: Callable[..., str]) -> None:
    """What the work returns is the job's result."""
    job = store.jobs.find(run(lambda content, _: {"twice": 2 * content["number"]}))
    assert (job.state, job.result) == ("succeeded", {"twice": 10})


@pytest.mark.parametrize(
    ("error", "kind", "message"),
    [
        (InvalidData(Fault("/data/columns/a/1", "no number")), "InvalidData", "no number"),
        (StorageFull("no room"), "StorageFull", "no room"),
        (MemoryError(), "StorageFull", "memory"),
        (ZeroDivisionError("secret"), "Unexpected", ""),
    ],
)
def test_failures(
    store: ModelStore, settings: Settings, run: Callable[..., str], error: Exception, kind: str, message: str
) -> None:
    """An error ends the job with what a caller who waited would have heard; an unexpected one gives nothing away."""

    def fail(_: Mapping[str, Any], __: Work) -> None:
        raise error

    job = store.jobs.find(run(fail))
    assert job.state == "failed"
    assert job.problem is not None
    assert job.problem["kind"] == kind
    assert message in job.problem["message"]
    assert "secret" not in str(job.problem)
    assert requests(settings) == []


def test_cancelled_at_work(store: ModelStore, settings: Settings, run: Callable[..., str]) -> None:
    """Work that asks whether it may go on ends as cancelled."""

    def be_cancelled(_: Mapping[str, Any], work: Work) -> None:
        store.jobs.cancel(work.claim.job_id)
        while True:
            work.report(0.5)

    assert store.jobs.find(run(be_cancelled)).state == "cancelled"
    assert requests(settings) == []


def test_a_worker_that_stops(store: ModelStore, settings: Settings, run: Callable[..., str]) -> None:
    """A job that is cut short by its worker's end is back in the queue, with its request."""
    ends: list[bool] = []

    def be_interrupted(_: Mapping[str, Any], work: Work) -> None:
        ends.append(True)
        work.report(0.5)

    with pytest.raises(WorkerStopping):
        run(be_interrupted, lambda: bool(ends))
    job = store.jobs.list(limit=1)[0][0]
    assert job.state == "queued"
    assert len(requests(settings)) == 1
    with pytest.raises(WorkerStopping):
        Runner(store, settings, "w", lambda: True).run(job.id)


def test_a_cross_validation(store: ModelStore, settings: Settings) -> None:
    """Its trials are part of the progress, which rises over the whole job; a cancellation is heard between levels."""
    said: list[float] = []
    cancelled_at: list[float] = []

    def watch(content: Mapping[str, Any], work: Work) -> None:
        def report(progress: float) -> None:
            said.append(progress)
            if cancelled_at and progress >= cancelled_at[0]:
                raise JobStopped("cancelled")

        kinds.train(content, replace(work, report=report))

    request = pack(make_request(cross_validation={"folds": 3, "repeats": 3}))
    job = add_job(store, "train", request)
    Runner(store, settings, "w", kinds={"train": watch}).run(job.id)
    assert store.jobs.find(job.id).state == "succeeded"
    assert said == sorted(said)
    assert said[0] <= 0.1
    assert said[-1] == 1.0
    assert {round(progress, 9) for progress in said} >= {round(step / 10, 9) for step in range(1, 11)}
    cancelled_at.append(0.5)
    job = add_job(store, "train", request)
    Runner(store, settings, "w", kinds={"train": watch}).run(job.id)
    assert said[-1] == 0.5
    assert store.jobs.find(job.id).model_id is None


def test_run_again_after_its_end(store: ModelStore, settings: Settings) -> None:
    """A job that is handed out again after it has ended is left as it is: no second model."""
    job = add_job(store, "train", pack(make_request()))
    for _ in range(3):
        Runner(store, settings, "w").run(job.id)
    assert len(store.list(limit=9)[0]) == 1
    assert store.jobs.find(job.id).attempt == 1


def test_an_attempt_that_was_replaced(store: ModelStore, settings: Settings) -> None:
    """While a slow attempt trains, another one begins: the model is stored once, by the newer one."""
    job = add_job(store, "train", pack(make_request()))

    def be_slow(content: Mapping[str, Any], work: Work) -> None:
        Runner(store, settings, "other").run(job.id)
        kinds.train(content, work)

    Runner(store, settings, "w", kinds={"train": be_slow}).run(job.id)
    assert store.jobs.find(job.id).state == "succeeded"
    assert len(store.list(limit=9)[0]) == 1


def test_a_request_that_was_damaged(store: ModelStore, settings: Settings) -> None:
    """A file that is not what was written is refused unread, and the job fails."""
    job = add_job(store, "train", pack(make_request()))
    path = requests(settings)[0]
    path.write_bytes(path.read_bytes()[:-1] + b"x")
    Runner(store, settings, "w").run(job.id)
    ended = store.jobs.find(job.id)
    assert ended.problem is not None
    assert (ended.state, ended.problem["kind"]) == ("failed", "DamagedModel")
