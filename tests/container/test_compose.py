"""The services of compose.yaml work together: proxy, web, worker and PostgreSQL, each run as the file says.

The images of others cannot be pulled everywhere: PostgreSQL and nginx run as processes of this machine, the latter with
the project's configuration.
"""

from __future__ import annotations

import os
import shutil
import socket
import subprocess
import tempfile
import uuid
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass
from http.client import HTTPConnection
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.container.conftest import HARDENED, docker
from tests.postgresql import run_postgresql
from tests.running import PROJECT, Client, train_numbers, wait_until

pytestmark = pytest.mark.container


@dataclass
class Composed:
    """The running services: a client of the proxy, and the names of two containers."""

    client: Client
    web: str
    worker: str


def find_port() -> int:
    """A port that is free now."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        return int(probe.getsockname()[1])


@pytest.fixture
def composed(image: str) -> Iterator[Composed]:
    """All services of the file, with a database and a volume of their own."""
    services: dict[str, Any] = yaml.safe_load((PROJECT / "compose.yaml").read_text())["services"]
    name = f"treewright-test-{uuid.uuid4().hex[:12]}"
    port, proxy_port = find_port(), find_port()
    with ExitStack() as stack:
        database = stack.enter_context(run_postgresql())
        directory = Path(database.partition("host=")[2])
        directory.chmod(0o755)  # the container's user has to reach the socket
        stack.callback(docker, "volume", "rm", name)
        for service in ("web", "worker"):
            environment = services[service]["environment"] | {"TREEWRIGHT_DATABASE_URL": database, "PORT": str(port)}
            given = [part for key, value in environment.items() for part in ("--env", f"{key}={value}")]
            places = ["--volume", f"{name}:/models", "--volume", f"{directory}:{directory}", "--network", "host"]
            options = ["--detach", "--name", f"{name}-{service}", *HARDENED, *places, *given]
            docker("run", *options, image, *services[service]["command"])
            stack.callback(docker, "rm", "--force", f"{name}-{service}")
        # not in pytest's directory, which is closed to others: started by root, nginx works as another user
        proxy = Path(stack.enter_context(tempfile.TemporaryDirectory(prefix="treewright-proxy-")))
        proxy.chmod(0o777)
        stack.enter_context(run_proxy(proxy, port, proxy_port))
        client = Client(proxy_port)
        wait_until(client.is_ready, "the service was ready behind its proxy", 60)
        yield Composed(client, f"{name}-web", f"{name}-worker")


def run_proxy(directory: Path, port: int, proxy_port: int) -> Any:  # noqa: ANN401 - a context manager
    """Nginx with the project's configuration, but for the places that the test's services are at."""
    text = (PROJECT / "deploy" / "nginx.conf").read_text()
    text = text.replace("server web:8000;", f"server 127.0.0.1:{port};")
    text = text.replace("listen 8080;", f"listen 127.0.0.1:{proxy_port};").replace("/tmp/", f"{directory}/")  # noqa: S108
    path = directory / "nginx.conf"
    path.write_text(text)
    nginx = shutil.which("nginx") or "/usr/sbin/nginx"
    assert Path(nginx).exists(), "the proxy is not installed: apt-get install nginx-light"
    subprocess.run([nginx, "-t", "-c", str(path)], check=True)
    return Running(subprocess.Popen([nginx, "-c", str(path), "-g", "daemon off;"]))


class Running:
    """A process that ends with its context."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self.process = process

    def __enter__(self) -> None:
        """Nothing to do: it runs."""

    def __exit__(self, *_: object) -> None:
        """End it."""
        self.process.terminate()
        self.process.wait(30)


def read_log(container: str) -> str:
    """What a container has written to either stream."""
    done = subprocess.run([os.environ["DOCKER"], "logs", container], capture_output=True, text=True, check=True)
    return done.stdout + done.stderr


def test_a_job_through_all_services(composed: Composed) -> None:
    """A training sent to the proxy is queued by web and done by the worker container; its events come through."""
    later = {"Prefer": "respond-async"}
    accepted = composed.client.ask("POST", "/train", train_numbers(30_000), later)
    assert accepted.status == 202, accepted.body
    job = accepted.body["id"]
    connection = HTTPConnection("127.0.0.1", composed.client.port, timeout=120)
    connection.request("GET", f"/jobs/{job}/events")
    states = [line.split()[1].decode() for line in connection.getresponse() if line.startswith(b"event: ")]
    connection.close()
    assert states[0] in ("queued", "running")
    assert states[-1] == "succeeded"
    assert composed.client.get("/models/numbers").body["id"] == composed.client.get(f"/jobs/{job}").body["model"]
    assert "job begins" in read_log(composed.worker)


def test_problems_come_through(composed: Composed) -> None:
    """The proxy passes problems on as they are."""
    answer = composed.client.post("/train", {"data": {}})
    assert (answer.status, answer.headers["Content-Type"]) == (422, "application/problem+json")


def test_both_stop_in_good_order(composed: Composed) -> None:
    """Web and worker end by themselves when they are asked to, with exit code 0."""
    for container in (composed.web, composed.worker):
        docker("stop", "--time", "30", container)
        assert docker("inspect", "--format", "{{.State.ExitCode}}", container) == "0"
