"""The image, built and run hardened: an ordinary user, a read-only file system, no capabilities.

The eight customers are the example of Larose and Larose, Discovering Knowledge in Data, 2014.
"""

from __future__ import annotations

import json
import os
import subprocess
import time
import uuid
from collections.abc import Iterator
from typing import Any

import pytest

from tests.container.conftest import HARDENED, docker
from tests.running import Client, wait_until

pytestmark = pytest.mark.container

CUSTOMERS = {
    "name": "customers",
    "target": "risk",
    "data": {
        "columns": {
            "savings": ["Medium", "Low", "High", "Medium", "Low", "High", "Low", "Medium"],
            "assets": ["High", "Low", "Medium", "Medium", "Medium", "High", "Low", "Medium"],
            "income": [75, 50, 25, 50, 100, 25, 25, 75],
            "risk": ["Good", "Bad", "Bad", "Good", "Good", "Good", "Bad", "Good"],
        }
    },
}


def inspect(container: str, path: str) -> Any:  # noqa: ANN401 - any JSON
    """One part of what the engine knows of a container or image."""
    return json.loads(docker("inspect", "--format", f"{{{{json {path}}}}}", container))


@pytest.fixture
def container(image: str) -> Iterator[str]:
    """A container of the image that was just started, with a volume of its own."""
    name = f"treewright-test-{uuid.uuid4().hex[:12]}"
    options = [*HARDENED, "--publish", "127.0.0.1::8000", "--volume", f"{name}:/models", "--health-interval", "1s"]
    docker("run", "--detach", "--name", name, *options, image)
    yield name
    subprocess.run([os.environ["DOCKER"], "logs", name], check=False)  # pytest shows it when the test failed
    docker("rm", "--force", name)
    docker("volume", "rm", name)


def client_of(container: str) -> Client:
    """A client of the port that the engine chose, once the service is ready."""
    client = Client(int(docker("port", container, "8000/tcp").splitlines()[0].rpartition(":")[2]))
    wait_until(client.is_ready, "the container was ready")
    return client


def test_trains_audits_and_predicts(container: str) -> None:
    """A hardened container trains a posted table, lists the splits it weighed, and predicts."""
    client = client_of(container)
    trained = client.post("/train", CUSTOMERS)
    assert trained.status == 201, trained.body
    splits = client.get(f"{trained.headers['Location']}/splits?node=0")
    assert splits.status == 200, splits.body
    assert [split["feature"] for split in splits.body["splits"] if split["chosen"]] == ["assets"]
    assert {split["feature"] for split in splits.body["splits"]} == {"savings", "assets", "income"}
    predicted = client.post("/models/customers/predict", {"data": CUSTOMERS["data"]})
    assert predicted.status == 200, predicted.body
    assert predicted.body["predictions"] == CUSTOMERS["data"]["columns"]["risk"]


def test_first_start_trains_the_sample(container: str) -> None:
    """A new volume soon holds the sample model, and the log shows the commands to try."""
    client = client_of(container)
    wait_until(lambda: client.get("/models/titanic").status == 200, "the sample was trained")
    wait_until(lambda: docker("logs", container).count("\ncurl ") == 3, "three commands were printed")


def test_engine_sees_health(container: str) -> None:
    """The image's own check, without curl, turns the container healthy."""
    wait_until(lambda: inspect(container, ".State.Health.Status") == "healthy", "the container was healthy")


def test_health_check_fails_without_a_server(image: str) -> None:
    """The check can fail: where nothing listens it exits with 1 and says so."""
    with pytest.raises(AssertionError, match="no answer on port 8000"):
        docker("run", "--rm", *HARDENED, image, "health")


def test_stop_lets_a_request_finish(container: str) -> None:
    """A training whose body is half sent when SIGTERM comes is answered, the exit is clean, and the model is kept."""
    half_sent = client_of(container).begin_post("/train", CUSTOMERS)
    time.sleep(0.5)  # a worker has the request now
    with subprocess.Popen(
        [os.environ["DOCKER"], "stop", "--time", "30", container], stdout=subprocess.DEVNULL
    ) as stopping:
        time.sleep(1)
        assert inspect(container, ".State.Running"), "it waits for the request"
        assert half_sent.finish().status == 201
        assert stopping.wait(30) == 0
    assert inspect(container, ".State.ExitCode") == 0
    docker("start", container)
    assert client_of(container).get("/models/customers").status == 200


def test_runs_without_rights(container: str) -> None:
    """The service is an ordinary user with no capabilities who can write its models and nothing else."""
    client_of(container)
    assert docker("exec", container, "id", "-u") == "10001"
    assert "CapEff:\t0000000000000000" in docker("exec", container, "cat", "/proc/1/status")
    docker("exec", container, "touch", "/models/written")
    with pytest.raises(AssertionError, match="Read-only file system"):
        docker("exec", container, "touch", "/app/written")
    with pytest.raises(AssertionError, match="No module named pip"):
        docker("exec", container, "python", "-m", "pip", "--version")


def test_image_says_how_it_is_run(image: str) -> None:
    """Entry point and check are lists, so signals reach the service itself; a bare `docker run` serves."""
    configuration = inspect(image, ".Config")
    assert configuration["Entrypoint"] == ["python", "-m", "service"]
    assert configuration["Cmd"] == ["serve"]
    assert configuration["Healthcheck"]["Test"][0] == "CMD"
    assert configuration["StopSignal"] == "SIGTERM"
    assert configuration["User"] == "10001:10001"
    assert list(configuration["Volumes"]) == ["/models"]
