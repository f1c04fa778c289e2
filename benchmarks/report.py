"""Findings -> Markdown."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from benchmarks.measure import Findings, Growth, Result

UNITS = {"s": 1.0, "ms": 1e3, "us": 1e6}


def write_report(findings: Mapping[str, Findings], machine: Sequence[str], commits: Mapping[str, str]) -> str:
    """The page: every case's results in one table, then how time grows."""
    lines = [
        "# Benchmarks",
        "",
        "Written by `make bench`; do not edit. The contestants of a row take turns on the same data in the same run;",
        "the times are medians. *Figure* is their time over ours (times as fast) unless the row says otherwise.",
        "",
        *(f"* {line}" for line in machine),
        "",
        "| case | work | against | ours | theirs | figure | required | | commit |",
        "|---|---|---|--:|--:|--:|---|---|---|",
    ]
    for case, found in findings.items():
        lines += [f"| {case} | {_write_result(result)} | {commits.get(case, '')} |" for result in found.results]
    for found in findings.values():
        for growth in found.growth:
            lines += ["", *_write_growth(growth)]
    return "\n".join([*lines, ""])


def summarize(findings: Mapping[str, Findings]) -> str:
    """How many requirements are met."""
    verdicts = [result.verdict for found in findings.values() for result in found.results if result.verdict]
    return ", ".join(f"{verdicts.count(verdict)} {verdict}" for verdict in ("pass", "FAIL", "not measured"))


def _write_result(result: Result) -> str:
    ours, theirs = (_write_amount(amount, result.unit) for amount in (result.ours, result.theirs))
    figure = result.note if result.figure is None else f"{result.figure:.3g}"
    verdict = f"**{result.verdict}**" if result.verdict == "FAIL" else result.verdict
    return f"{result.work} | {result.against} | {ours} | {theirs} | {figure} | {result.bound or ''} | {verdict}"


def _write_amount(amount: float | None, unit: str) -> str:
    if amount is None:
        return ""
    if unit == "s":
        shown = next((u for u in UNITS if amount * UNITS[u] >= 1), "us")
        return f"{amount * UNITS[shown]:.3g} {shown}"
    return f"{amount:,.0f} {unit}" if amount >= 100 or amount == int(amount) else f"{amount:.3g} {unit}"


def _write_growth(growth: Growth) -> list[str]:
    lines = [
        f"Time over {growth.along} ({growth.fixed}):",
        "",
        f"| {growth.along} | time | times the one before |",
        "|--:|--:|--:|",
    ]
    before = None
    for size, seconds in growth.points:
        lines.append(f"| {size} | {_write_amount(seconds, 's')} | {f'{seconds / before:.3g}' if before else ''} |")
        before = seconds
    return lines
