"""Jobs on real servers that are killed at random: none is lost, none runs twice to two models, none is stuck."""

from __future__ import annotations

import os
import random
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from http.client import HTTPConnection, HTTPException
from pathlib import Path
from typing import Any

import pytest

from tests.running import RunningServer, Serve, train_numbers, wait_until

pytestmark = pytest.mark.system

ROUNDS = 200
LATER = {"Prefer": "respond-async"}


@pytest.fixture
def start(serve: Serve, database_url: str) -> Serve:
    """Start a server with a worker for jobs, on each kind of database in turn."""

    def begin(**environment: str) -> RunningServer:
        settings = {"TREEWRIGHT_WORKER": "true", "TREEWRIGHT_JOB_LEASE": "2", "TREEWRIGHT_DATABASE_URL": database_url}
        return serve(**settings | environment)

    return begin


def find_worker(server: RunningServer) -> int | None:
    """The process that runs the jobs of a server, by what the system says of its children."""
    for entry in Path("/proc").iterdir():
        with suppress(OSError, ValueError):
            command = (entry / "cmdline").read_bytes().split(b"\0")
            if b"worker" in command and command[command.index(b"--parent") + 1] == b"%d" % server.process.pid:
                return int(entry.name)
    return None


def list_all(server: RunningServer, what: str) -> list[dict[str, Any]]:
    """All jobs or models, over all pages."""
    found, path = [], f"/{what}?limit=1000"
    while path:
        page = server.client.get(path).body
        found += page[what]
        path = page["next"]
    return found


def has_ended(server: RunningServer, job_id: str) -> bool:
    """Whether nothing will change any more about a job."""
    return server.client.get(f"/jobs/{job_id}").body["ended"] is not None


@contextmanager
def killing(server: list[RunningServer], start: Serve, seed: int) -> Iterator[None]:
    """SIGKILL the worker again and again at random moments; now and then everything, and start it anew."""
    stop = threading.Event()
    chance = random.Random(seed)  # noqa: S311 - to be repeated, not to be secret

    def kill() -> None:
        while not stop.wait(chance.uniform(0.5, 3)):
            if chance.random() < 0.15:
                server[0].kill()
                server[0] = start()
            elif worker := find_worker(server[0]):
                with suppress(ProcessLookupError):
                    os.kill(worker, signal.SIGKILL)

    thread = threading.Thread(target=kill)
    thread.start()
    try:
        yield
    finally:
        stop.set()
        thread.join()


def test_killed_at_random(start: Serve) -> None:
    """After 200 submissions, a quarter of them cancelled, every job has ended, and every success is one model."""
    body = train_numbers(1500, 5)
    server = [start()]
    accepted, cancelled = set[str](), set[str]()
    chance = random.Random(5)  # noqa: S311 - as above
    with killing(server, start, 7):
        while len(accepted) < ROUNDS:
            with suppress(OSError, HTTPException):
                answer = server[0].client.ask("POST", "/train", body, LATER)
                assert answer.status == 202, answer.body
                accepted.add(answer.body["id"])
                if chance.random() < 0.25:
                    time.sleep(chance.uniform(0, 0.3))
                    cancelled.add(answer.body["id"])
                    server[0].client.ask("DELETE", f"/jobs/{answer.body['id']}")
            time.sleep(chance.uniform(0, 0.1))
    wait_until(lambda: all(job["ended"] for job in list_all(server[0], "jobs")), "every job had ended", 240)
    jobs, models = list_all(server[0], "jobs"), list_all(server[0], "models")
    assert accepted <= {job["id"] for job in jobs}
    states = {job["id"]: job["state"] for job in jobs}
    assert {states[job_id] for job_id in accepted - cancelled} == {"succeeded"}
    assert {states[job_id] for job_id in cancelled} <= {"succeeded", "cancelled"}
    made = [job["model"] for job in jobs if job["state"] == "succeeded"]
    assert sorted(made) == sorted(model["id"] for model in models)
    assert sorted(model["version"] for model in models) == list(range(1, len(models) + 1))
    assert all(job["model"] is None for job in jobs if job["state"] == "cancelled")
    assert list(server[0].models.rglob("request.joblib")) == []


def test_a_long_job_survives_its_worker(start: Serve) -> None:
    """A training that is under way when its worker is killed is taken up by the next one, and ends."""
    server = start()
    job = server.client.ask("POST", "/train", train_numbers(60_000), LATER).body["id"]
    wait_until(lambda: server.client.get(f"/jobs/{job}").body["state"] == "running", "it ran")
    worker = find_worker(server)
    assert worker is not None
    os.kill(worker, signal.SIGKILL)
    wait_until(lambda: has_ended(server, job), "it had ended", 120)
    ended = server.client.get(f"/jobs/{job}").body
    assert ended["state"] == "succeeded"
    assert [model["id"] for model in list_all(server, "models")] == [ended["model"]]


def test_cancelled_within_a_level(start: Serve) -> None:
    """A training that would take minutes ends soon after it was cancelled, and the worker is free again."""
    server = start()
    job = server.client.ask("POST", "/train", train_numbers(100_000) | {"algorithm": "c45"}, LATER).body["id"]
    wait_until(lambda: server.client.get(f"/jobs/{job}").body["progress"] > 0, "it was under way")
    assert server.client.ask("DELETE", f"/jobs/{job}").status == 202
    wait_until(lambda: has_ended(server, job), "it had ended", 30)
    assert server.client.get(f"/jobs/{job}").body["state"] == "cancelled"
    other = server.client.ask("POST", "/train", train_numbers(100, 3), LATER).body["id"]
    wait_until(lambda: has_ended(server, other), "the next one had ended")
    assert server.client.get(f"/jobs/{other}").body["state"] == "succeeded"


def test_stopped_in_good_order(start: Serve) -> None:
    """SIGTERM ends web and worker with exit code 0, and the job under way goes on after the next start."""
    server = start()
    job = server.client.ask("POST", "/train", train_numbers(60_000), LATER).body["id"]
    wait_until(lambda: server.client.get(f"/jobs/{job}").body["state"] == "running", "it ran")
    worker = find_worker(server)
    assert server.stop() == 0
    assert worker is not None
    assert not Path(f"/proc/{worker}").exists()
    again = start()
    wait_until(lambda: has_ended(again, job), "it had ended", 120)
    assert again.client.get(f"/jobs/{job}").body["state"] == "succeeded"


def test_no_worker_is_left_behind(start: Serve) -> None:
    """When the server alone is killed, its worker ends by itself: nobody would stop it any more."""
    server = start()
    wait_until(lambda: find_worker(server) is not None, "the worker was there")
    worker = find_worker(server)
    os.kill(server.process.pid, signal.SIGKILL)
    wait_until(lambda: not Path(f"/proc/{worker}").exists(), "the worker had gone")


def test_events_arrive_as_they_happen(start: Serve) -> None:
    """A follower of a long job hears of it before its end: the events are not held back."""
    server = start()
    job = server.client.ask("POST", "/train", train_numbers(60_000), LATER).body["id"]
    connection = HTTPConnection("127.0.0.1", server.client.port, timeout=120)
    connection.request("GET", f"/jobs/{job}/events")
    stream = connection.getresponse()
    states = []
    while line := stream.readline():
        if line.startswith(b"event: "):
            states.append(line.split()[1].decode())
            if len(states) == 1:
                assert not has_ended(server, job)
    connection.close()
    assert states[-1] == "succeeded"
    assert "running" in states


def test_jobs_wait_for_the_first_worker(start: Serve) -> None:
    """A job that was accepted before any worker had made the queue is found by the first one, and done."""
    server = start(TREEWRIGHT_WORKER="false")
    job = server.client.ask("POST", "/train", train_numbers(100, 3), LATER)
    assert job.status == 202
    server.stop()
    again = start()
    wait_until(lambda: has_ended(again, job.body["id"]), "it had ended", 60)
    assert again.client.get(f"/jobs/{job.body['id']}").body["state"] == "succeeded"
