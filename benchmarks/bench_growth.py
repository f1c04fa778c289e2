"""How our training time grows, and the memory that it takes."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise
from pathlib import Path
from statistics import median
from time import perf_counter

from benchmarks.measure import Bound, Findings, Growth, Options, Result, race, read_memory, reset_peak_memory
from benchmarks.ours import fit, make_fit
from benchmarks.problems import Problem, make_numbers

AT_MOST = 11.0
MOST_MEMORY = 2.5
SHARE = 0.25
"""The part of the machine's memory that the matrix of a case may take; the rest is for training and for others."""


def rows(options: Options) -> Findings:
    """Ten times the rows, twice or as often as memory allows."""
    sizes = [options.rows // 100, options.rows // 10, options.rows, options.rows * 10]
    sizes = [size for size in sizes if size >= 100 and size * options.columns * 8 < SHARE * _total_memory()]
    points = [(size, _time(make_numbers(options.seed, size, options.columns), options)) for size in sizes]
    fixed = f"{options.columns} columns, 2 classes, depth {options.depth}"
    findings = Findings(growth=[Growth("rows", fixed, [(f"{n:,}", s) for n, s in points])])
    for (fewer, before), (more, after) in pairwise(points[1:]):
        work = f"ten times the rows: {fewer:,} to {more:,}"
        bound = Bound("at most", AT_MOST)
        findings.results.append(Result(work, "times the time", after, before, "s", after / before, bound))
    return findings


def columns(options: Options) -> Findings:
    """Five to eighty columns."""
    count = options.limit(100_000)
    problems = {number: make_numbers(options.seed, count, number) for number in (5, 10, 20, 40, 80)}
    fixed = f"{count:,} rows, 2 classes, depth {options.depth}"
    return _grow("columns", fixed, problems, lambda _: options.depth, options)


def classes(options: Options) -> Findings:
    """Two to a hundred classes."""
    count = options.limit(100_000)
    problems = {n: make_numbers(options.seed, count, options.columns, n) for n in (2, 3, 5, 10, 30, 100)}
    fixed = f"{count:,} x {options.columns}, depth {options.depth}"
    return _grow("classes", fixed, problems, lambda _: options.depth, options)


def depth(options: Options) -> Findings:
    """One level to as many as there are."""
    problem = make_numbers(options.seed, options.limit(100_000), options.columns)
    depths: tuple[int | None, ...] = (1, 2, 5, 10, 15, 20, None)
    fixed = f"{problem.shape}, 2 classes"
    return _grow("depth", fixed, dict.fromkeys(depths, problem), lambda size: size, options)


def memory(options: Options) -> Findings:
    """Peak memory while training, as a multiple of the matrix; this process does nothing else."""
    before = read_memory("VmRSS")
    problem = make_numbers(options.seed, options.limit(1_000_000), options.columns)
    fit(make_numbers(options.seed, 100, options.columns), 2)
    reset_peak_memory()
    fit(problem, options.depth)
    return Findings([_judge_memory(problem, before)])


def memory_huge(options: Options) -> Findings:
    """The same at ten times the rows, if this machine holds them."""
    if options.rows * 10 * options.columns * 8 > SHARE * _total_memory():
        return Findings()
    before = read_memory("VmRSS")
    problem = make_numbers(options.seed, options.rows * 10, options.columns)
    reset_peak_memory()
    fit(problem, options.depth)
    return Findings([_judge_memory(problem, before)])


def _judge_memory(problem: Problem, before: int) -> Result:
    """What this process held at its peak beyond the interpreter; the matrix itself counts."""
    peak, matrix = read_memory("VmHWM") - before, problem.matrix.nbytes
    work = f"peak memory, train {problem.shape} floats"
    mebibyte = 2**20
    times = "times the float64 matrix, which counts itself"
    return Result(work, times, peak / mebibyte, matrix / mebibyte, "MiB", peak / matrix, Bound("at most", MOST_MEMORY))


def _grow(
    along: str, fixed: str, problems: dict[int | None, Problem] | dict[int, Problem],
    depth_of: Callable[[int | None], int | None], options: Options,
) -> Findings:  # fmt: skip
    """All sizes take turns."""
    contestants = {str(size or "unlimited"): make_fit(p, depth_of(size)) for size, p in problems.items()}
    return Findings(growth=[Growth(along, fixed, list(race(contestants, options.repeats, 0.0).items()))])


def _time(problem: Problem, options: Options) -> float:
    """Median seconds; the sizes of a row series are not all held at once, so they cannot take turns."""
    contestant, seconds = make_fit(problem, options.depth), []
    for _ in range(options.repeats):
        began = perf_counter()
        contestant()
        seconds.append(perf_counter() - began)
    return median(seconds)


def _total_memory() -> int:
    for line in Path("/proc/meminfo").read_text(encoding="ascii").splitlines():
        if line.startswith("MemTotal"):
            return int(line.split()[1]) * 1024
    return 0


CASES = {
    "growth-rows": rows,
    "growth-columns": columns,
    "growth-classes": classes,
    "growth-depth": depth,
    "memory": memory,
    "memory-huge": memory_huge,
}
