"""Requests under an `Idempotency-Key` on real servers that are stopped and killed: each is done exactly once."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from contextlib import suppress
from http.client import HTTPException
from typing import Any

import pytest

from tests.running import Answer, RunningServer, Serve, train_numbers, wait_until

pytestmark = pytest.mark.system

LATER = {"Prefer": "respond-async"}
SIZES = [500, 3_000, 10_000, 30_000, 60_000]
"""Rows of trainings that a kill strikes at different moments: answered, stored, growing, still being read."""


def send(server: RunningServer, key: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
    """The answer to a training under a key."""
    return server.client.ask("POST", "/train", body, {"Idempotency-Key": key, **headers})


def send_all(server: RunningServer, bodies: Mapping[str, Any], headers: Mapping[str, str]) -> list[threading.Thread]:
    """Send each from a thread of its own; what cuts the answer off is no failure."""

    def attempt(key: str) -> None:
        with suppress(OSError, HTTPException):
            send(server, key, bodies[key], headers)

    threads = [threading.Thread(target=attempt, args=(key,)) for key in bodies]
    for thread in threads:
        thread.start()
    return threads


def send_again(server: RunningServer, key: str, body: Mapping[str, Any], headers: Mapping[str, str]) -> Answer:
    """The answer, however long the one that was killed holds the key."""
    answers: list[Answer] = []

    def is_answered() -> bool:
        time.sleep(0.5)
        answers.append(send(server, key, body, headers))
        assert answers[-1].status in {201, 202, 409}, answers[-1].body
        return answers[-1].status != 409

    wait_until(is_answered, "the key was free", 120)
    return answers[-1]


@pytest.mark.parametrize("headers", [{}, LATER], ids=["waited for", "as jobs"])
def test_killed_in_the_middle(serve: Serve, database_url: str, headers: dict[str, str]) -> None:
    """Trainings that SIGKILL strikes are sent again under their keys: each has one model, and one answer."""
    settings = {
        "TREEWRIGHT_DATABASE_URL": database_url,
        "TREEWRIGHT_WORKER": "true" if headers else "false",
        "TREEWRIGHT_JOB_LEASE": "2",
    }
    bodies = {f"key-{rows}": train_numbers(rows) | {"name": f"rows-{rows}"} for rows in SIZES}
    server = serve(**settings)
    threads = send_all(server, bodies, headers)
    wait_until(lambda: not all(thread.is_alive() for thread in threads), "the first was answered", 60)
    assert any(thread.is_alive() for thread in threads) or headers, "all was over before the kill"
    server.kill()
    for thread in threads:
        thread.join()
    server = serve(**settings)
    answers = {key: send_again(server, key, body, headers) for key, body in bodies.items()}
    if headers:
        jobs = [answer.body["links"]["self"] for answer in answers.values()]
        wait_until(lambda: all(server.client.get(job).body["ended"] for job in jobs), "every job had ended", 240)
        assert {server.client.get(job).body["state"] for job in jobs} == {"succeeded"}
    models = server.client.get("/models?limit=100").body["models"]
    assert sorted((model["name"], model["version"]) for model in models) == sorted(
        (body["name"], 1) for body in bodies.values()
    )
    for key, body in bodies.items():
        again = send(server, key, body, headers)
        assert (again.status, again.body["id"]) == (answers[key].status, answers[key].body["id"])
        assert again.headers["Idempotent-Replayed"] == "true"
    assert len(server.client.get("/models?limit=100").body["models"]) == len(models)


def test_across_a_restart(serve: Serve) -> None:
    """After a clean end and a new start the same answer is given again, and another body is refused."""
    body = train_numbers(200, 3)
    server = serve()
    first = send(server, "k", body, {})
    assert server.stop() == 0
    server = serve()
    again = send(server, "k", body, {})
    assert (again.status, again.body, again.headers["Location"]) == (201, first.body, first.headers["Location"])
    other = send(server, "k", body | {"name": "other"}, {})
    assert (other.status, [fault["place"] for fault in other.body["errors"]]) == (422, ["Idempotency-Key"])
    assert len(server.client.get("/models").body["models"]) == 1
