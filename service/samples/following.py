"""The sample command: a training sent to a running service as a job, and followed by a bar."""

from __future__ import annotations

import json
from collections.abc import Iterator
from http.client import HTTPConnection
from typing import Any

import click

from service.samples import train_titanic

STEPS = 1000
"""The bar's length in steps of progress."""
FOLDS = 10


def run_sample(port: int) -> None:
    """Train the sample as a job of the service on this machine, with a cross-validation, and show how far it is.

    Raises ClickException when nothing answers, or when the job ends otherwise than well.
    """
    body = train_titanic() | {"name": "titanic-validated", "cross_validation": FOLDS, "parameters": {}}
    job = _post(port, "/train", body)
    if "state" not in job:
        click.echo(f"trained model {job['id']}: this service has no jobs (pip install treewright[jobs])")
        return
    click.echo(f"job {job['id']}")
    last = job
    with click.progressbar(length=STEPS, label="training", show_eta=True) as bar:
        for event in _follow(port, job["links"]["events"]):
            last = event
            bar.update(round(event["progress"] * STEPS) - bar.pos)
    if last["state"] != "succeeded":
        raise click.ClickException(f"the job has {last['state']}: {(last['problem'] or {}).get('detail', '')}")
    click.echo(f"model {last['model']}")


def _post(port: int, path: str, body: dict[str, Any]) -> dict[str, Any]:
    headers = {"Content-Type": "application/json", "Prefer": "respond-async"}
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", path, json.dumps(body), headers)
        response = connection.getresponse()
        answer: dict[str, Any] = json.loads(response.read())
    except OSError as error:
        raise click.ClickException(f"no answer on port {port}: {error}") from error
    finally:
        connection.close()
    if response.status not in {201, 202}:
        raise click.ClickException(str(answer.get("detail")))
    return answer


def _follow(port: int, path: str) -> Iterator[dict[str, Any]]:
    """The events of a job, each as the job is then."""
    connection = HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("GET", path)
        for line in connection.getresponse():
            if line.startswith(b"data: "):
                yield json.loads(line.removeprefix(b"data: "))
    finally:
        connection.close()
