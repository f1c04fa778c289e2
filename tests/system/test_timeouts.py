"""Work that takes longer than a worker may be silent is neither cut off nor lost."""

from __future__ import annotations

from datetime import datetime
from typing import Any

import pytest

from tests.running import Serve, train_numbers, wait_until

pytestmark = pytest.mark.system

LATER = {"Prefer": "respond-async"}
SECONDS = 1
ROWS = 90_000
SLOW = {"class_weight": "balanced"}
"""What makes a training of so many rows take longer than the timeout."""


def test_a_job_longer_than_the_timeout(serve: Serve) -> None:
    """A training that takes longer than the timeout tells its state throughout, and ends as it should (S3)."""
    server = serve(TREEWRIGHT_WORKER="true", TREEWRIGHT_TIMEOUT=str(SECONDS))
    client = server.client
    refused = train_numbers(ROWS, loss=[[0, 1, 1], [1, 0, 1], [1, 1, 0]])
    jobs = [client.ask("POST", "/train", body, LATER) for body in (train_numbers(ROWS, **SLOW), refused)]
    assert [job.status for job in jobs] == [202, 202]
    web = server.workers()
    seen: list[dict[str, Any]] = []

    def has_ended() -> bool:
        answers = [client.get(job.headers["Location"]) for job in jobs]
        assert [answer.status for answer in answers] == [200, 200]
        seen.append(answers[0].body)
        return all(answer.body["ended"] for answer in answers)

    wait_until(has_ended, "both had ended", 180)
    good, bad = (client.get(job.headers["Location"]).body for job in jobs)
    took = datetime.fromisoformat(good["ended"]) - datetime.fromisoformat(good["started"])
    assert took.total_seconds() > SECONDS
    assert good["state"] == "succeeded"
    assert {job["state"] for job in seen} >= {"running", "succeeded"}
    progress = [job["progress"] for job in seen]
    assert progress == sorted(progress)
    assert (bad["state"], bad["problem"]["status"]) == ("failed", 422)
    assert [model["id"] for model in client.get("/models").body["models"]] == [good["model"]]
    assert server.workers() == web, "no worker was replaced"


def test_waited_for_longer_than_the_timeout(serve: Serve) -> None:
    """A caller who waits for a long training is answered all the same: its process is at work, not silent (S3)."""
    server = serve(TREEWRIGHT_TIMEOUT=str(SECONDS))
    web = server.workers()
    answer = server.client.post("/train", train_numbers(ROWS, **SLOW))
    assert answer.status == 201, answer.body
    assert answer.body["training"]["rows"] == ROWS
    assert server.workers() == web


def test_stopped_with_less_time_than_a_job_takes(serve: Serve) -> None:
    """SIGTERM with a grace shorter than the training: the job is given back, and ends after the next start (S3)."""
    settings = {"TREEWRIGHT_WORKER": "true", "TREEWRIGHT_TIMEOUT": str(SECONDS), "TREEWRIGHT_JOB_LEASE": "2"}
    server = serve(**settings)
    job = server.client.ask("POST", "/train", train_numbers(ROWS, **SLOW), LATER).headers["Location"]
    wait_until(lambda: server.client.get(job).body["state"] == "running", "it ran")
    server.stop()
    server = serve(**settings)
    assert server.client.get(job).body["state"] in {"queued", "running"}
    wait_until(lambda: server.client.get(job).body["ended"] is not None, "it had ended", 180)
    assert server.client.get(job).body["state"] == "succeeded"
    assert len(server.client.get("/models").body["models"]) == 1
