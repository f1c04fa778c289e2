"""Timing contestants against each other, and judging what came out."""

from __future__ import annotations

import resource
from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median
from time import perf_counter
from typing import Any, Literal

Contestant = Callable[[], object]

ENOUGH_SECONDS = 1.0
"""A race whose contestants each ran so long in all is not repeated further."""
MOST_REPEATS = 200


@dataclass(frozen=True)
class Options:
    """What the command line asked for; a case may be smaller than ``rows`` says, never larger."""

    rows: int = 1_000_000
    columns: int = 20
    depth: int = 10
    repeats: int = 3
    seed: int = 20250601
    quick: bool = False
    load_seconds: float = 4.0

    def limit(self, rows: int) -> int:
        """The rows of a case that has so many unless fewer were asked for."""
        return min(rows, self.rows)


@dataclass(frozen=True)
class Bound:
    """What a figure must reach."""

    kind: Literal["at least", "at most"]
    value: float

    def holds(self, figure: float) -> bool:
        """Whether the figure reaches it."""
        return figure >= self.value if self.kind == "at least" else figure <= self.value

    def __str__(self) -> str:
        return f"{self.kind} {self.value:.3g}"


@dataclass(frozen=True)
class Result:
    """One row of the table: ours and theirs in ``unit``, and the figure that the bound is about.

    ``figure`` is None where the peer is not installed or a run did not finish; ``note`` says so then.
    """

    work: str
    against: str
    ours: float | None
    theirs: float | None
    unit: str
    figure: float | None
    bound: Bound | None = None
    note: str = ""

    @property
    def verdict(self) -> str:
        """`pass`, `FAIL`, or `not measured`, or nothing where nothing was required."""
        if self.figure is None:
            return "not measured"
        if self.bound is None:
            return ""
        return "pass" if self.bound.holds(self.figure) else "FAIL"

    def as_dict(self) -> dict[str, Any]:
        """Plain values, for `from_dict`."""
        return asdict(self)

    @classmethod
    def from_dict(cls, plain: Mapping[str, Any]) -> Result:
        """The result that `as_dict` described."""
        bound = plain["bound"]
        return cls(**{**plain, "bound": None if bound is None else Bound(**bound)})


@dataclass(frozen=True)
class Growth:
    """How our time changes along one size: ``points`` are (size, seconds), ascending."""

    along: str
    fixed: str
    points: list[tuple[str, float]]


@dataclass
class Findings:
    """What a case found out."""

    results: list[Result] = field(default_factory=list)
    growth: list[Growth] = field(default_factory=list)


def race(contestants: Mapping[str, Contestant], repeats: int, enough: float = ENOUGH_SECONDS) -> dict[str, float]:
    """The median seconds of each contestant; they take turns, so that a slow minute of the machine strikes all.

    Everyone runs ``repeats`` times, and short ones go on until the quickest has run for ``enough`` seconds in all.
    """
    seconds: dict[str, list[float]] = {name: [] for name in contestants}
    rounds = 0
    while rounds < repeats or (rounds < MOST_REPEATS and min(map(sum, seconds.values())) < enough):
        for name, contestant in contestants.items():
            began = perf_counter()
            contestant()
            seconds[name].append(perf_counter() - began)
        rounds += 1
    return {name: median(values) for name, values in seconds.items()}


def compare(
    work: str, contestants: Mapping[str, Contestant | None], bounds: Mapping[str, float | None], options: Options
) -> list[Result]:
    """Race "ours" against the peers (None: not installed); ``bounds`` say how many times faster we must be."""
    present = {name: contestant for name, contestant in contestants.items() if contestant is not None}
    seconds = race(present, options.repeats, 0.0 if options.quick else ENOUGH_SECONDS)
    ours, results = seconds["ours"], []
    for peer in contestants:
        if peer == "ours":
            continue
        least = bounds.get(peer)
        bound = None if least is None else Bound("at least", least)
        theirs = seconds.get(peer)
        note = "not installed" if theirs is None else ""
        results.append(Result(work, peer, ours, theirs, "s", theirs and theirs / ours, bound, note))
    return results


def reset_peak_memory() -> None:
    """Let the peak begin anew at what this process holds now (Linux)."""
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")


def read_memory(what: Literal["VmRSS", "VmHWM"]) -> int:
    """Bytes this process holds (VmRSS), or held at its peak (VmHWM)."""
    for line in Path("/proc/self/status").read_text(encoding="ascii").splitlines():
        if line.startswith(what):
            return int(line.split()[1]) * 1024
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss * 1024
