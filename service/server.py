"""Gunicorn around the application, and what a new installation is greeted with."""

from __future__ import annotations

import json
import logging
import os
import shlex
import subprocess
import sys
import threading
from importlib.util import find_spec
from typing import TYPE_CHECKING, Any

import click
import numpy.ma
import numpy.random  # noqa: F401 - numpy loads both when they are first used, which takes 40 ms of a request
from gunicorn.app.base import BaseApplication
from gunicorn.glogging import Logger

from service.app import create_app
from service.gthread import Worker
from service.large_body import make_room, read_in_one_go
from service.memory import keep_freed_memory, leave_out_of_collections
from service.samples import DAYS, PASSENGERS, train_tennis, train_titanic
from service.store import ModelStore
from service.store.mapping import raise_descriptor_limit
from service.telemetry import configure_logging

if TYPE_CHECKING:
    from flask import Flask

    from service.settings import Settings

RESTART_SECONDS = 1.0

logger = logging.getLogger(__name__)


def run(settings: Settings, host: str, port: int) -> None:
    """Serve in this process and its workers, so that signals to the command reach gunicorn; ends by exiting.

    Raises `SettingsError` when the store cannot be opened.
    """
    configure_logging(settings.log_level)
    raise_descriptor_limit()
    # What cannot be opened is told here, once, and not by each worker in turn; a database is migrated before the fork.
    ModelStore.open(settings).close()
    Server(settings, host, port).run()


class SharedLog(Logger):  # type: ignore[misc] # gunicorn has no types
    """Gunicorn's messages among ours, as the same lines of JSON."""

    def setup(self, cfg: Any) -> None:  # noqa: ANN401 - gunicorn has no types
        """Let the root logger write what gunicorn's own handler would."""
        super().setup(cfg)
        self.error_log.handlers.clear()
        self.error_log.propagate = True


class Server(BaseApplication):  # type: ignore[misc] # gunicorn has no types
    """Gunicorn without its own command line and files: what can be set stands in `Settings`."""

    def __init__(self, settings: Settings, host: str, port: int) -> None:
        self.settings, self.host, self.port = settings, host, port
        self.worker: WorkerProcess | None = None
        super().__init__()

    def load_config(self) -> None:
        """Set what differs from gunicorn's defaults."""
        options = {
            "bind": f"[{self.host}]:{self.port}" if ":" in self.host else f"{self.host}:{self.port}",
            "worker_class": Worker,
            "workers": self.settings.workers,
            "threads": self.settings.threads,
            "timeout": self.settings.timeout,
            # Whoever sends SIGTERM says by the SIGKILL after it how long an answer may take (`docker stop --time`).
            "graceful_timeout": self.settings.timeout,
            "loglevel": self.settings.log_level.lower(),
            "logger_class": SharedLog,
            "control_socket_disable": True,  # it would lie in the home directory, which a container may not have
            "post_worker_init": self.greet,
            "pre_request": lambda _, req: read_in_one_go(req),
            "when_ready": self.prepare,
            "on_exit": self.stop_worker,
        }
        for name, value in options.items():
            self.cfg.set(name, value)

    def load(self) -> Flask:
        """The application; each worker makes its own after the fork, since database connections must not cross it."""
        return create_app(self.settings)

    def greet(self, worker: Any) -> None:  # noqa: ANN401 - gunicorn has no types
        """Begin a worker; the first welcomes the user beside its requests, for the service answers meanwhile."""
        keep_freed_memory()
        leave_out_of_collections()
        logger.info("worker ready", extra={"worker": worker.pid})
        if worker.age == 1:
            threading.Thread(target=welcome, args=(worker.wsgi, self.settings, self.address()), daemon=True).start()

    def prepare(self, arbiter: Any) -> None:  # noqa: ANN401 - gunicorn has no types
        """What the first process does before it forks the web ones."""
        for listener in arbiter.LISTENERS:
            make_room(listener.sock)
        self.start_worker()

    def start_worker(self) -> None:
        """Run the jobs of this installation in a process beside the web ones, and start it anew when it dies."""
        if self.settings.worker and find_spec("dbos") is not None:
            self.worker = WorkerProcess()
            threading.Thread(target=self.worker.keep, daemon=True).start()

    def stop_worker(self, _arbiter: object) -> None:
        """End it: what it is at goes back to the queue."""
        if self.worker is not None:
            self.worker.stop(self.settings.timeout)

    def address(self) -> str:
        """Where a browser on this machine finds the service."""
        everywhere = self.host in {"0.0.0.0", "::"}  # noqa: S104 - compared, not bound
        return f"http://{'127.0.0.1' if everywhere else self.host}:{self.port}"


class WorkerProcess:
    """`treewright worker` as a child, with the settings of this process; it ends by itself when its parent is gone."""

    def __init__(self) -> None:
        self._stopping = threading.Event()
        self._process = self._start()

    def _start(self) -> subprocess.Popen[bytes]:
        command = [sys.executable, "-m", "service", "worker", "--parent", str(os.getpid())]
        return subprocess.Popen(command)  # noqa: S603 - nothing in it comes from outside

    def keep(self) -> None:
        """Start it again whenever it has died, until `stop`."""
        while not self._stopping.wait(RESTART_SECONDS):
            if self._process.poll() is not None:
                logger.warning("the worker for jobs has died; starting another")
                self._process = self._start()

    def stop(self, seconds: float) -> None:
        """Ask it to end, wait so long, and end it then."""
        self._stopping.set()
        self._process.terminate()
        try:
            self._process.wait(seconds)
        except subprocess.TimeoutExpired:
            self._process.kill()


def welcome(app: Flask, settings: Settings, address: str) -> None:
    """Train the sample model where there is no model yet, then print the address and three commands to try."""
    client = app.test_client()
    if settings.sample and not client.get("/models?limit=1").get_json()["models"]:
        answer = client.post("/train", json=train_titanic())
        if answer.status_code != 201:
            logger.error("the sample model was not trained: %s", answer.get_data(as_text=True))
    has_sample = client.get("/models/titanic").status_code == 200
    lines = ["", f"Treewright serves at {address}, its API described at {address}/docs. Three commands to try:", ""]
    click.echo("\n".join([*lines, *commands(address, has_sample), ""]))


def commands(address: str, has_sample: bool) -> list[str]:
    """Command lines that train, list splits and predict; without the sample the first one's model serves all three."""
    model, rows = ("titanic", PASSENGERS) if has_sample else ("play-tennis", DAYS)
    return [
        _post(f"{address}/train", train_tennis()),
        f"curl -s '{address}/models/{model}/splits?node=0&top=3'",
        _post(f"{address}/models/{model}/predict", {"data": {"records": rows}}),
    ]


def _post(url: str, body: dict[str, Any]) -> str:
    return f"curl -s {url} -H 'Content-Type: application/json' -d {shlex.quote(json.dumps(body))}"
