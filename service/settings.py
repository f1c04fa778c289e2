"""The settings: one frozen table of name, default and help, read from the environment.

The fields of `Settings` are the table. ``TREEWRIGHT_MAX_ROWS=1000`` sets ``max_rows``; an empty variable is unset.
Unknown ``TREEWRIGHT_`` variables are left alone: Kubernetes sets some by itself beside a service of that name.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Literal, Self, cast, get_args, get_type_hints
from urllib.parse import unquote, urlsplit

from service.core.errors import Fault
from service.errors import SettingsError

PREFIX = "TREEWRIGHT_"

SWITCH = {"true": True, "yes": True, "on": True, "1": True, "false": False, "no": False, "off": False, "0": False}


def setting(default: object, explanation: str, *, secret: bool = False) -> Any:  # noqa: ANN401 - the field's own type
    """One row of the table: its default and its help; a ``secret`` one is not printed with the others."""
    return dataclasses.field(default=default, repr=not secret, metadata={"help": explanation})


@dataclass(frozen=True)
class Settings:
    """Every setting of the service; whole numbers are 1 or more."""

    database_url: str = setting(
        "",
        "Where records are kept: `sqlite:///file` or `postgresql://...`; empty for SQLite beside the models",
        secret=True,
    )
    models_url: str = setting("models/", "Where model files are kept: a local directory, as a path or a `file://` URL")
    cached_models: int = setting(16, "Models whose files each worker keeps open after use")
    max_body_bytes: int = setting(512 * 1024**2, "Largest body of a request, in bytes")
    max_rows: int = setting(20_000_000, "Most rows in a posted table")
    max_columns: int = setting(10_000, "Most columns in a posted table")
    max_dissimilarity_rows: int = setting(
        2_000, "Most training rows under `dissimilarity`, which takes some 100 bytes for each pair of rows"
    )
    max_classes: int = setting(1_000, "Most classes of a target")
    max_depth: int = setting(10_000, "Deepest tree that is grown, whatever a request asks for")
    max_page: int = setting(1_000, "Largest `limit` of a listing")
    max_explained_rows: int = setting(1_000, "Most rows that are explained at once")
    retain: Literal["data", "summary", "none"] = setting(
        "data", "What a model keeps for the audit unless its request says: `data`, `summary` or `none`"
    )
    summary_splits: int = setting(
        5, "Best cuts kept of each feature in each node with `retain` = `summary`, unless a request says"
    )
    max_retained_cells: int = setting(
        1_000_000_000,
        "Of more rows x columns than this the training data are not kept, whatever is asked for: a summary is",
    )
    audit_bytes: int = setting(640 * 1024**2, "Memory that each worker keeps of what recent audits weighed, in bytes")
    log_level: Literal["DEBUG", "INFO", "WARNING", "ERROR"] = setting(
        "INFO", "Least severe message that is logged: `DEBUG`, `INFO`, `WARNING` or `ERROR`"
    )
    workers: int = setting(2, "Processes that serve requests")
    threads: int = setting(4, "Threads in each process")
    timeout: int = setting(600, "Seconds after which a silent worker is replaced")
    worker: bool = setting(True, "Run a worker for jobs beside the web processes: `true` or `false`")
    job_slots: int = setting(1, "Jobs that one worker runs at the same time")
    job_cells: int = setting(10_000_000, "What goes through more rows x columns than this becomes a job by itself")
    job_lease: int = setting(15, "Seconds after which the jobs of a silent worker are taken over")
    max_jobs: int = setting(10_000, "Most jobs that wait or run; more are refused for the moment")
    sample: bool = setting(True, "Train the sample model at the first start: `true` or `false`")

    @classmethod
    def from_environment(cls, environment: Mapping[str, str]) -> Self:
        """Read ``TREEWRIGHT_<NAME>`` for every setting.

        Raises `SettingsError`, which names every variable whose value cannot be used.
        """
        values: dict[str, object] = {}
        faults: list[Fault] = []
        for name, kind in get_type_hints(cls).items():
            variable = variable_of(name)
            text = environment.get(variable, "").strip()
            if not text:
                continue
            try:
                values[name] = _parse(text, kind)
            except ValueError as error:
                faults.append(Fault(variable, str(error)))
        if faults:
            raise SettingsError("; ".join(f"{fault.place}: {fault.message}" for fault in faults), faults)
        return cls(**cast("dict[str, Any]", values))

    def models_directory(self) -> Path:
        """The local directory that ``models_url`` names; raises `SettingsError` for any other kind of URL."""
        parts = urlsplit(self.models_url)
        if "://" not in self.models_url:
            return Path(self.models_url)
        if parts.scheme == "file" and parts.netloc in ("", "localhost"):
            return Path(unquote(parts.path))
        variable = variable_of("models_url")
        message = f"{parts.scheme}:// is not supported yet; give a local directory"
        raise SettingsError(f"{variable}: {message}", Fault(variable, message))


def variable_of(name: str) -> str:
    """The environment variable of a setting: ``max_rows`` is ``TREEWRIGHT_MAX_ROWS``."""
    return PREFIX + name.upper()


def _parse(text: str, kind: Any) -> object:  # noqa: ANN401 - a type or a Literal
    """Convert a variable's text; raises ValueError with what would be right."""
    if kind is str:
        return text
    if kind is bool:
        return _parse_switch(text)
    if kind is int:
        return _parse_whole(text)
    choices = get_args(kind)
    found = next((choice for choice in choices if choice.lower() == text.lower()), None)
    if found is None:
        raise ValueError(f"{text!r} is not one of {', '.join(choices)}")
    return found


def _parse_switch(text: str) -> bool:
    if text.lower() not in SWITCH:
        raise ValueError(f"{text!r} is neither true nor false")
    return SWITCH[text.lower()]


def _parse_whole(text: str) -> int:
    try:
        number = int(text)
    except ValueError:
        raise ValueError(f"{text!r} is not a whole number") from None
    if number < 1:
        raise ValueError(f"{number} is less than 1")
    return number
