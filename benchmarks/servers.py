"""Servers to send requests to: ours, a Flask view that does nothing under the same gunicorn, and MLServer."""

from __future__ import annotations

import json
import os
import socket
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.client import HTTPConnection, HTTPException
from pathlib import Path

import numpy as np

from benchmarks.machine import PROJECT
from benchmarks.problems import Problem

MLSERVER = Path(os.environ.get("BENCH_MLSERVER", PROJECT / ".bench" / "mlserver" / "bin" / "python"))
PATIENCE = 90.0
Environment = Mapping[str, str]


@contextmanager
def serve_ours(folder: Path, **changes: str) -> Iterator[int]:
    """The service with one worker and its default number of threads, models in ``folder``; gives the port."""
    settings = _settings(folder) | changes
    with _serve([sys.executable, "-m", "service", "serve"], "/health/ready", folder, settings) as port:
        yield port


@contextmanager
def serve_bare(folder: Path) -> Iterator[int]:
    """A constant answer from the same gunicorn, started with the same settings."""
    with _serve([sys.executable, "-m", "benchmarks.bare"], "/", folder, _settings(folder)) as port:
        yield port


@contextmanager
def serve_mlserver(folder: Path, known: Problem, depth: int) -> Iterator[int]:
    """scikit-learn's tree behind MLServer, without its pool of workers: a small model answers sooner so."""
    port, other, metrics = (find_port() for _ in range(3))
    np.savez(folder / "data.npz", matrix=known.matrix, answers=known.answers)
    script = Path(__file__).with_name("mlserver_model.py")
    subprocess.run([MLSERVER, script, folder / "data.npz", str(depth), folder / "model.joblib"], check=True)  # noqa: S603
    ports = {"http_port": port, "grpc_port": other, "metrics_port": metrics}
    settings = {"host": "127.0.0.1", "parallel_workers": 0, "debug": False, **ports}
    (folder / "settings.json").write_text(json.dumps(settings), encoding="utf-8")
    implementation = "mlserver_sklearn.SKLearnModel"
    model = {"name": "tree", "implementation": implementation, "parameters": {"uri": "./model.joblib", "version": "1"}}
    (folder / "model-settings.json").write_text(json.dumps(model), encoding="utf-8")
    command = [str(MLSERVER.with_name("mlserver")), "start", str(folder)]
    with _serve(command, "/v2/models/tree/ready", folder, {"PORT": str(port)}) as ready:
        yield ready


def find_port() -> int:
    """A port of this machine that nobody listens on."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


def _settings(folder: Path) -> dict[str, str]:
    models = {"TREEWRIGHT_MODELS_URL": str(folder / "models"), "TREEWRIGHT_SAMPLE": "false"}
    return {"PORT": str(find_port()), "TREEWRIGHT_WORKERS": "1", **models}


@contextmanager
def _serve(command: list[str], ready: str, folder: Path, environment: Environment) -> Iterator[int]:
    """Start it, wait until ``ready`` answers, stop it at the end; raises RuntimeError with its log if it never does."""
    inherited = {name: value for name, value in os.environ.items() if not name.startswith("TREEWRIGHT_")}
    log, port = folder / "log", int(environment["PORT"])
    with log.open("wb") as output:
        process = subprocess.Popen(  # noqa: S603 - the commands above
            command, cwd=PROJECT, env=inherited | dict(environment), stdout=output, stderr=subprocess.STDOUT
        )
    try:
        deadline = time.monotonic() + PATIENCE
        while not _answers(port, ready):
            if process.poll() is not None or time.monotonic() > deadline:
                raise RuntimeError(f"{' '.join(command)} did not start:\n{log.read_text(encoding='utf-8')[-3000:]}")
            time.sleep(0.1)
        yield port
    finally:
        process.terminate()
        try:
            process.wait(20)
        except subprocess.TimeoutExpired:
            process.kill()
            process.wait()


def _answers(port: int, path: str) -> bool:
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", path)
        return connection.getresponse().status == 200
    except (OSError, HTTPException):
        return False
    finally:
        connection.close()
