"""Locks between processes: advisory locks on a file, which the kernel releases when their holder dies."""

from __future__ import annotations

import fcntl
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path


@contextmanager
def shared(path: Path) -> Iterator[None]:
    """Hold the lock together with others who share it, waiting for whoever has it alone."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_SH)
        yield


@contextmanager
def alone(path: Path) -> Iterator[None]:
    """Hold the lock alone, waiting for all others."""
    with path.open("ab") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        yield


@contextmanager
def alone_if_free(path: Path) -> Iterator[bool]:
    """Hold the lock alone if nobody has it now; yields whether it is held."""
    with path.open("ab") as file:
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            yield False
        else:
            yield True
