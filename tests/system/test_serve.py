"""The command itself: what a new user sees, and what an operator sees when a setting is wrong."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.running import PROJECT, RunningServer, Serve, wait_until

pytestmark = pytest.mark.system


needs_curl = pytest.mark.skipif(shutil.which("curl") is None, reason="the printed commands are for curl")


def command(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    """Run `treewright` to its end."""
    return subprocess.run(
        [sys.executable, "-m", "service", *arguments],
        cwd=PROJECT,
        env=os.environ | environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


def paste_commands(server: RunningServer) -> list[Any]:
    """Run the printed commands through bash, as a user would paste them; returns the JSON that each printed."""
    wait_until(lambda: server.output().count("\ncurl ") == 3, "three commands were printed")
    lines = [line for line in server.output().splitlines() if line.startswith("curl ")]
    pasted = [subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=True) for line in lines]
    return [json.loads(done.stdout) for done in pasted]


@needs_curl
def test_first_start_trains_the_sample_and_its_commands_work(serve: Serve) -> None:
    """The three printed commands train play-tennis, list the sample's best root splits and predict two passengers."""
    server = serve(TREEWRIGHT_SAMPLE="true")
    trained, listed, predicted = paste_commands(server)
    assert (trained["name"], trained["version"]) == ("play-tennis", 1)
    sample = server.client.get("/models/titanic").body
    assert sample["training"]["rows"] == 1309
    assert listed["model"]["id"] == predicted["model"]["id"] == sample["id"]
    assert [split["rank"] for split in listed["splits"]] == [1, 2, 3]
    assert listed["splits"][0]["feature"] == "sex"
    assert predicted["predictions"] == ["yes", "no"]
    assert f"http://127.0.0.1:{server.client.port}" in server.output()


@needs_curl
def test_later_starts_train_no_second_sample(serve: Serve) -> None:
    """A store that holds a model is left as it is, and the printed commands use the sample that is there."""
    server = serve(TREEWRIGHT_SAMPLE="true")
    paste_commands(server)
    server.stop()
    server = serve(TREEWRIGHT_SAMPLE="true")
    assert paste_commands(server)[1]["model"]["name"] == "titanic"
    assert server.client.get("/models/titanic").body["version"] == 1


@needs_curl
def test_commands_work_without_the_sample(serve: Serve) -> None:
    """With TREEWRIGHT_SAMPLE=false nothing is trained, and the commands ask the model that the first one trains."""
    server = serve(TREEWRIGHT_SAMPLE="false")
    trained, listed, predicted = paste_commands(server)
    assert listed["model"]["id"] == predicted["model"]["id"] == trained["id"]
    assert predicted["predictions"] == ["No"]
    assert server.client.get("/models/titanic").status == 404


def test_sample_command_draws_a_bar(serve: Serve) -> None:
    """`treewright sample` trains as a job of the running server, draws a bar to its end, and names the model."""
    server = serve(TREEWRIGHT_WORKER="true")
    done = command("sample", PORT=str(server.client.port))
    assert done.returncode == 0, done.stderr
    assert "training" in done.stdout
    record = server.client.get("/models/titanic-validated").body
    assert done.stdout.rstrip().endswith(f"model {record['id']}")
    assert record["metrics"]["cross_validation"]["folds"] == 10
    assert command("sample", PORT="1").returncode == 1


def test_health_command_tells_a_ready_server(serve: Serve) -> None:
    """`treewright health` exits with 0 while the server is ready, and with 1 and the reason once it has gone."""
    server = serve()
    port = str(server.client.port)
    assert command("health", PORT=port).returncode == 0
    server.stop()
    done = command("health", PORT=port)
    assert done.returncode == 1
    assert f"no answer on port {port}" in done.stderr


@pytest.mark.parametrize(
    ("variable", "value"),
    [("TREEWRIGHT_MAX_ROWS", "many"), ("TREEWRIGHT_MODELS_URL", "s3://bucket/models"), ("PORT", "70000")],
)
def test_a_wrong_setting_stops_the_start(variable: str, value: str) -> None:
    """A setting that cannot be used ends the command at once, naming the variable, without a stack trace."""
    done = command("serve", **{variable: value})
    assert done.returncode in {1, 2}
    assert variable in done.stderr
    assert "Traceback" not in done.stderr


def test_a_models_directory_that_cannot_be_used_stops_the_start(tmp_path: Path) -> None:
    """Where the store cannot be opened no worker is started; the command names the variable."""
    (tmp_path / "file").touch()
    done = command("serve", TREEWRIGHT_MODELS_URL=str(tmp_path / "file"))
    assert done.returncode == 1
    assert done.stderr.startswith("Error: TREEWRIGHT_MODELS_URL: ")
    assert "Traceback" not in done.stderr
