"""Talking to a server that really runs: what the system tests and the container tests share."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from http.client import HTTPConnection, HTTPException, HTTPResponse
from pathlib import Path
from typing import Any

import numpy as np

PROJECT = Path(__file__).parents[1]


@dataclass(frozen=True)
class Answer:
    """A status, the headers and the JSON body (None where there is none)."""

    status: int
    headers: dict[str, str]
    body: Any


@dataclass(frozen=True)
class Client:
    """Sends each request over a connection of its own, so that any worker may take it."""

    port: int
    timeout: float = 60

    def get(self, path: str) -> Answer:
        """The answer to GET."""
        return self.ask("GET", path)

    def post(self, path: str, body: Any) -> Answer:  # noqa: ANN401 - any JSON
        """The answer to POST with a JSON body."""
        return self.ask("POST", path, body)

    def ask(
        self,
        method: str,
        path: str,
        body: Any = None,  # noqa: ANN401 - any JSON
        headers: Mapping[str, str] | None = None,
    ) -> Answer:
        """The answer to one request."""
        connection = HTTPConnection("127.0.0.1", self.port, timeout=self.timeout)
        content = None if body is None else json.dumps(body).encode()
        try:
            kind = {"Content-Type": "application/json"} if content else {}
            connection.request(method, path, content, {**kind, **(headers or {})})
            return read_answer(connection.getresponse())
        finally:
            connection.close()

    def is_ready(self) -> bool:
        """Whether the service answers that it is ready; a proxy that cannot reach it answers otherwise."""
        try:
            return self.get("/health/ready").status == 200
        except (OSError, HTTPException, ValueError):
            return False

    def begin_post(self, path: str, body: Any) -> HalfSent:  # noqa: ANN401 - any JSON
        """Send the headers and half of the body: a request that stays in flight until its rest is sent."""
        return HalfSent(self.port, path, json.dumps(body).encode(), self.timeout)


class HalfSent:
    """A POST whose second half is still to come."""

    def __init__(self, port: int, path: str, content: bytes, timeout: float) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=timeout)
        lines = [f"POST {path} HTTP/1.1", "Host: localhost", "Content-Type: application/json"]
        head = "\r\n".join([*lines, f"Content-Length: {len(content)}", "", ""])
        half = len(content) // 2
        self.socket.sendall(head.encode() + content[:half])
        self.rest = content[half:]

    def finish(self) -> Answer:
        """Send the rest and read the answer."""
        with self.socket:
            self.socket.sendall(self.rest)
            response = HTTPResponse(self.socket, method="POST")
            response.begin()
            return read_answer(response)


def read_answer(response: HTTPResponse) -> Answer:
    """The whole of a response."""
    content = response.read()
    return Answer(response.status, dict(response.getheaders()), json.loads(content) if content else None)


def wait_until(condition: Callable[[], bool], what: str, seconds: float = 30) -> None:
    """Poll until the condition holds; raises TimeoutError with what was waited for."""
    deadline = time.monotonic() + seconds
    while not condition():
        if time.monotonic() > deadline:
            raise TimeoutError(f"waited {seconds} s until {what}")
        time.sleep(0.05)


def is_alive(pid: int) -> bool:
    """Whether there is a process of this id."""
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    return True


class RunningServer:
    """One `treewright serve`; what it prints goes to a file."""

    def __init__(self, models: Path, log: Path, **environment: str) -> None:
        self.models = models
        self.log = log
        with socket.create_server(("127.0.0.1", 0)) as probe:
            port = probe.getsockname()[1]
        inherited = {name: value for name, value in os.environ.items() if not name.startswith("TREEWRIGHT_")}
        given = {
            "PORT": str(port),
            "TREEWRIGHT_MODELS_URL": str(models),
            "TREEWRIGHT_SAMPLE": "false",
            "TREEWRIGHT_WORKER": "false",
            **environment,
        }
        self.environment = inherited | given
        with log.open("wb") as output:
            # A session of its own: SIGKILL to the group ends master and workers at one stroke.
            self.process = subprocess.Popen(
                [sys.executable, "-m", "service", "serve"],
                cwd=PROJECT,
                env=self.environment,
                stdout=output,
                stderr=subprocess.STDOUT,
                start_new_session=True,
            )
        self.client = Client(port)
        try:
            wait_until(lambda: self.process.poll() is not None or self.has_started(), "both workers were ready")
            assert self.process.poll() is None, self.output()
        except BaseException:
            self.kill()
            raise

    def has_started(self) -> bool:
        """Whether both workers are ready: one suspended while it starts may hold a lock that the other needs."""
        return len(self.workers()) == 2 and self.client.is_ready()

    def output(self) -> str:
        """What it has printed so far."""
        return self.log.read_text(encoding="utf-8")

    def workers(self) -> list[int]:
        """The process ids of the workers that have become ready and live."""
        return [pid for pid in map(int, re.findall(r'"worker": ?(\d+)', self.output())) if is_alive(pid)]

    @contextmanager
    def only(self, worker: int) -> Iterator[Client]:
        """A client whose requests this worker must answer, since all others are suspended meanwhile."""
        others = [pid for pid in self.workers() if pid != worker]
        for pid in others:
            os.kill(pid, signal.SIGSTOP)
        try:
            yield self.client
        finally:
            for pid in others:
                os.kill(pid, signal.SIGCONT)

    def stop(self) -> int:
        """Ask it to end and wait; returns its exit code."""
        self.process.terminate()
        return self.process.wait(60)

    def kill(self) -> None:
        """SIGKILL to master and workers, as when the power goes."""
        if self.process.poll() is None:
            os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait(60)


Serve = Callable[..., RunningServer]


def train_numbers(rows: int, columns: int = 20, **parameters: Any) -> dict[str, Any]:  # noqa: ANN401 - parameters of every kind
    """The body of a training on random numbers whose target leans on two of them."""
    generator = np.random.default_rng(7)
    values = generator.normal(size=(columns, rows)).round(6)
    target = np.where(values[0] * values[1] + generator.normal(size=rows) > 0, "yes", "no")
    data = {f"x{number}": column.tolist() for number, column in enumerate(values)}
    return {
        "name": "numbers",
        "target": "target",
        "parameters": parameters,
        "data": {"columns": data | {"target": target.tolist()}},
    }
