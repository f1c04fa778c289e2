"""Real servers: the command `treewright serve` in a process of its own, on a free port, with its own models."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.running import RunningServer, Serve


@pytest.fixture
def serve(tmp_path: Path) -> Iterator[Serve]:
    """Start a server, by default on the same models as the one before; settings are given as keywords."""
    started: list[RunningServer] = []

    def start(**environment: str) -> RunningServer:
        started.append(RunningServer(tmp_path / "models", tmp_path / f"log-{len(started)}", **environment))
        return started[-1]

    yield start
    for server in started:
        server.kill()
        print(server.output())  # noqa: T201 - pytest shows it when the test failed
