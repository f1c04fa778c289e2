"""The command behind `make bench`: each case in a process of its own, then one table."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import click

from benchmarks import (
    bench_audit,
    bench_exact,
    bench_growth,
    bench_hard,
    bench_http,
    bench_jobs,
    bench_predict,
    bench_train,
)
from benchmarks.machine import PROJECT, describe_machine, describe_mlserver, find_commit
from benchmarks.measure import Findings, Growth, Options, Result
from benchmarks.report import summarize, write_report
from benchmarks.servers import MLSERVER

CASES = (
    bench_train.CASES
    | bench_hard.CASES
    | bench_exact.CASES
    | bench_growth.CASES
    | bench_predict.CASES
    | bench_http.CASES
    | bench_jobs.CASES
    | bench_audit.CASES
)
"""Every case by name, in the order of the page; one finds out something on its own."""
PAGE = PROJECT / "docs" / "benchmarks.md"
KEPT = PROJECT / ".bench" / "results.json"
QUICK = Options(rows=1_000, depth=5, repeats=1, quick=True, load_seconds=0.3)


@click.command(context_settings={"help_option_names": ["-h", "--help"], "show_default": True})
@click.option("--only", multiple=True, help="Cases to run: names, or their beginnings; may be repeated.")
@click.option("--rows", type=click.IntRange(100), help="Rows of the largest cases; smaller ones keep theirs.")
@click.option("--columns", type=click.IntRange(1), help="Columns of numeric data.")
@click.option("--depth", type=click.IntRange(1), help="Depth of trees.")
@click.option("--repeats", type=click.IntRange(1), help="Runs at least; the median counts.")
@click.option("--seed", type=int, help="Seed of all made-up data.")
@click.option("--load-seconds", type=float, help="How long each load on a server lasts.")
@click.option(
    "--quick", is_flag=True, help="Small sizes and one run: shows that the harness works, not how fast we are."
)
@click.option("--limit", default=3600.0, help="Seconds after which a case is given up.")
@click.option("--output", type=click.Path(path_type=Path), help="Where the page goes, whatever the sizes.")
@click.option("--list", "listing", is_flag=True, help="Name the cases and stop.")
def main(
    only: tuple[str, ...],
    quick: bool,
    limit: float,
    output: Path | None,
    listing: bool,
    **sizes: Any,  # noqa: ANN401 - whole numbers and seconds
) -> None:
    """Race the service against its peers and write docs/benchmarks.md.

    The page keeps the rows of cases that are not run again. With sizes other than the default ones it is left alone,
    and the report only printed. A missed requirement is a result, not an error; a case that breaks is an error.
    """
    names = [name for name in CASES if not only or name.startswith(only)]
    if not names:
        raise click.ClickException(f"the cases are {', '.join(CASES)}")
    if listing:
        click.echo("\n".join(names))
        return
    standard = QUICK if quick else Options()
    options = replace(standard, **{name: value for name, value in sizes.items() if value is not None})
    machine, commit = _describe(options), find_commit()
    found = {}
    for name in names:
        click.echo(f"{name} ...", err=True)
        found[name] = run_apart(name, options, limit)
    commits = dict.fromkeys(names, commit)
    click.echo(write_report(found, machine, commits))
    click.echo(summarize(found))
    broken = [name for name in names if any(not result.against for result in found[name].results)]
    if output:
        output.write_text(write_report(found, machine, commits), encoding="utf-8")
    elif options == Options():
        update_page(found, machine, commits, PAGE, KEPT)
    if broken:
        raise click.ClickException(f"no result from {', '.join(broken)}")


def _describe(options: Options) -> list[str]:
    beside = describe_mlserver(MLSERVER)
    used = f"sizes: {', '.join(f'{name} {value}' for name, value in asdict(options).items())}"
    return [*describe_machine(), *([f"MLServer's environment: {beside}"] if beside else []), used]


def run_apart(name: str, options: Options, limit: float) -> Findings:
    """Run a case in a new process: no case sees the memory, threads or caches of another."""
    with tempfile.TemporaryDirectory() as folder:
        output = Path(folder) / "findings.json"
        code = "import sys; from benchmarks.__main__ import run_here; run_here(*sys.argv[1:])"
        command = [sys.executable, "-c", code, name, json.dumps(asdict(options)), str(output)]
        with subprocess.Popen(command, cwd=PROJECT, start_new_session=True) as process:  # noqa: S603 - this module
            try:
                failed = process.wait(limit)
            except BaseException as error:
                os.killpg(process.pid, 9)  # with the servers that it has started
                if not isinstance(error, subprocess.TimeoutExpired):
                    raise
                return _give_up(name, f"gave up after {limit:.0f} s")
        if failed:
            return _give_up(name, f"failed with exit code {failed}")
        return read_findings(json.loads(output.read_text(encoding="utf-8")))


def _give_up(name: str, note: str) -> Findings:
    return Findings([Result(name, "", None, None, "s", None, None, note)])


def run_here(name: str, options: str, output: str) -> None:
    """Run a case in this process and write what it found."""
    findings = CASES[name](Options(**json.loads(options)))
    Path(output).write_text(json.dumps(asdict(findings)), encoding="utf-8")


def read_findings(plain: dict[str, list[dict[str, object]]]) -> Findings:
    """Findings as `run_here` wrote them."""
    growth = [Growth(str(g["along"]), str(g["fixed"]), [(p[0], p[1]) for p in g["points"]]) for g in plain["growth"]]  # type: ignore[attr-defined]
    return Findings([Result.from_dict(result) for result in plain["results"]], growth)


def update_page(
    found: Mapping[str, Findings], machine: list[str], commits: Mapping[str, str], page: Path, kept_at: Path
) -> None:
    """Lay new findings over those kept, and write the page of all; those of another machine are dropped."""
    kept = json.loads(kept_at.read_text(encoding="utf-8")) if kept_at.exists() else {}
    if kept.get("machine") != machine[:1]:
        kept = {"machine": machine[:1], "findings": {}, "commits": {}}
    kept["findings"] |= {name: asdict(findings) for name, findings in found.items()}
    kept["commits"] |= commits
    kept_at.parent.mkdir(exist_ok=True)
    kept_at.write_text(json.dumps(kept), encoding="utf-8")
    every = {name: read_findings(kept["findings"][name]) for name in CASES if name in kept["findings"]}
    page.write_text(write_report(every, machine, kept["commits"]), encoding="utf-8")


if __name__ == "__main__":
    main(prog_name="python -m benchmarks")
