"""The command ``treewright``: serve models, run jobs, try both, or ask whether a server is ready."""

from __future__ import annotations

import os
from http.client import HTTPConnection

import click

from service.errors import SettingsError
from service.settings import Settings

PORT = click.option(
    "--port", envvar="PORT", default=8000, type=click.IntRange(1, 65535), show_default=True, show_envvar=True
)


@click.group(context_settings={"help_option_names": ["-h", "--help"]})
def main() -> None:
    """Train decision trees, list every split they weighed, and serve their predictions."""


@main.command()
@click.option("--host", envvar="TREEWRIGHT_HOST", default="127.0.0.1", show_default=True, show_envvar=True)
@PORT
def serve(host: str, port: int) -> None:
    """Serve until stopped; SIGTERM lets the requests in flight finish, Ctrl-C does not wait for them."""
    # Imported here, so that `health`, which a container engine runs every few seconds, costs no web framework.
    from service.server import run  # noqa: PLC0415

    try:
        run(Settings.from_environment(os.environ), host, port)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error


@main.command()
@click.option("--parent", type=int, hidden=True, help="End when this process, which started the worker, has gone.")
def worker(parent: int | None) -> None:
    """Run jobs until stopped; what runs then goes back to the queue. `serve` starts one by itself."""
    try:
        from service.jobs.worker import run  # noqa: PLC0415 - as above
    except ModuleNotFoundError as error:
        raise click.ClickException(f"jobs need the extra `jobs` ({error.name} is not installed)") from error
    try:
        run(Settings.from_environment(os.environ), parent)
    except SettingsError as error:
        raise click.ClickException(str(error)) from error


@main.command()
@PORT
def sample(port: int) -> None:
    """Send a sample training to the server on this machine, as a job, and follow it by a bar."""
    from service.samples.following import run_sample  # noqa: PLC0415 - as above

    run_sample(port)


@main.command()
@PORT
def health(port: int) -> None:
    """Exit with 0 when the server on this machine is ready, else with 1 and the reason."""
    connection = HTTPConnection("127.0.0.1", port, timeout=5)
    try:
        connection.request("GET", "/health/ready")
        response = connection.getresponse()
        answer = response.read().decode()
    except OSError as error:
        raise click.ClickException(f"no answer on port {port}: {error}") from error
    if response.status != 200:
        raise click.ClickException(answer)


if __name__ == "__main__":
    main(prog_name="treewright")
