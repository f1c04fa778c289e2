"""Has anyone written to the database? Asked before each request, so the answer has to be all but free.

The processes of the service tell each other by a mark in a file that they share in memory. Of others SQLite's
`PRAGMA data_version` knows. But it makes system calls, for which the interpreter lets another thread run: under load
that takes longer than the prediction. So it is asked a few times a second. PostgreSQL may be written to by other
machines, which do not share the mark: there a moment also ends by itself.
"""

from __future__ import annotations

import mmap
import os
import sqlite3
from collections.abc import Callable
from pathlib import Path
from time import monotonic

MARK_BYTES = 16
PRAGMA_SECONDS = 0.05
LONGEST_SECONDS = 1.0
"""Nothing that another machine changed is believed for longer."""


class Watch:
    """Hears of what the processes of this machine write; ``mark`` is the file that they share."""

    def __init__(self, mark: Path, clock: Callable[[], float] = monotonic) -> None:
        self._clock = clock
        with mark.open("a+b") as file:
            file.truncate(MARK_BYTES)
            self._mark = mmap.mmap(file.fileno(), MARK_BYTES)

    def moment(self) -> object:
        """Equals an earlier one only if no `leave_mark` came in between, of this machine, and no more than a second."""
        return self._clock() // LONGEST_SECONDS, self._mark[:]

    def leave_mark(self) -> None:
        """End the moment for all processes; to be called when something was committed."""
        # Nobody needs to count: a mark that is half written, or written by two at once, is new all the same.
        self._mark[:] = os.urandom(MARK_BYTES)

    def close(self) -> None:
        """Nobody may ask any more."""
        self._mark.close()


class SqliteWatch(Watch):
    """Hears of every writer, through a connection of its own, which never writes."""

    def __init__(self, connection: sqlite3.Connection, mark: Path, clock: Callable[[], float] = monotonic) -> None:
        super().__init__(mark, clock)
        self._connection = connection
        self._version: object = None
        self._ask_at = clock()

    def moment(self) -> object:
        """Equals an earlier one only if no `leave_mark` came in between, of this process or another.

        Nor any other commit, but for the last `PRAGMA_SECONDS`.
        """
        now = self._clock()
        if now >= self._ask_at:
            self._ask_at = now + PRAGMA_SECONDS
            try:
                self._version = self._connection.execute("PRAGMA data_version").fetchone()
            except sqlite3.Error:
                self._version = object()  # unlike any: who asks the database next will hear what is wrong
        return self._version, self._mark[:]

    def close(self) -> None:
        """Close the connection; nobody may ask any more."""
        super().close()
        self._connection.close()
