"""How far a growth is, and whether it may go on: asked after each level, said to the database now and then."""

from __future__ import annotations

from collections.abc import Callable
from math import log2
from time import monotonic

from service.core.grow import Progress
from service.errors import JobStopped
from service.store.jobs import JobStore
from service.store.records import Claim

REPORT_SECONDS = 0.5
"""Progress is written so often at most: a commit waits for the disk."""
POLL_SECONDS = 0.05
"""Cancellation is asked for so often at most: levels of small nodes come faster."""


class Reporter:
    """Tells the store how far an attempt is, and stops it when it has been cancelled, replaced or called off.

    ``should_end`` says that the worker has to stop.
    """

    def __init__(
        self,
        jobs: JobStore,
        claim: Claim,
        should_end: Callable[[], bool] = lambda: False,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self._jobs, self._claim, self._clock = jobs, claim, clock
        self._should_end = should_end
        self._reported = self._polled = clock()

    def report(self, progress: float) -> None:
        """Say how much of the whole is done, 0 to 1. Raises `JobStopped` when the job must not go on."""
        now = self._clock()
        if self._should_end():
            raise JobStopped("the worker is stopping")
        if now - self._reported >= REPORT_SECONDS:
            self._reported = self._polled = now
            goes_on = self._jobs.report(self._claim, progress)
        elif now - self._polled >= POLL_SECONDS:
            self._polled = now
            goes_on = not self._jobs.should_stop(self._claim)
        else:
            return
        if not goes_on:
            raise JobStopped("the job was cancelled, or another worker has taken it over")


def follow_growth(report: Callable[[float], None], rows: int, max_depth: int | None) -> Progress:
    """What growth is to call: its progress by rows x levels done, of those that a tree of such data may take.

    A row whose leaf is found is done with all levels. Without a limit a tree is taken to end at twice the depth that
    it had if it were balanced.
    """
    deepest = 2 * log2(rows + 1) + 1
    levels = deepest if max_depth is None else max(min(float(max_depth), deepest), 1.0)

    def progress(depth: int, entries: int) -> None:
        remaining = max(levels - depth, 1.0)
        report(max(0.0, 1.0 - entries * remaining / (rows * levels)))

    return progress
