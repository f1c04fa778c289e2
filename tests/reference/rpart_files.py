"""The files of rpart's output: which text belongs to which fit, and the columns that depend on chance taken out."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

from tests.oracle.contract import DATA

SIDES = {"1": "L", "2": "-", "3": "R"}


@dataclass(frozen=True)
class Row:
    """A row of `fit$splits` as printed; ``sides`` stands in for the row of `fit$csplit` that ``index`` names."""

    feature: str
    count: int
    ncat: int
    improve: float
    index: float
    adj: float
    sides: str


@dataclass(frozen=True)
class Output:
    """What R printed of one fit; what it did not print is empty."""

    tree: Sequence[str] = ()
    cp: Sequence[str] = ()
    summary: Sequence[str] = ()
    splits: Sequence[Row] = ()
    importance: Mapping[str, float] | None = None


def read_output(name: str, variant: str | None = None, place: int = 0) -> Output:
    """One fit of the file ``name``: the one headed ``variant``, or the one at ``place`` of a file without headings."""
    text = (DATA / f"rpart_{name}.txt").read_text()
    if variant is not None:
        text = text.split(f"###### {variant} ######\n")[1].split("######")[0]
    lines = re.sub(r"^== .*\n", "", text, flags=re.MULTILINE).splitlines()
    trees = [_take_tree(lines, at) for at in _find(lines, r"node\), split")]
    cps = [_take_cp(lines, at) for at in _find(lines, r"Variables actually used")]
    summaries = [_take_summary(lines, at) for at in _find(lines, r"Call:")]
    tables = [_take_splits(lines, at) for at in _find(lines, r" +count ncat")]
    importance = dict(_take_importance(lines)) or None
    return Output(trees[place] if trees else (), cps[place] if cps else (), summaries[place], tables[place], importance)


def _find(lines: Sequence[str], start: str) -> list[int]:
    return [at for at, line in enumerate(lines) if re.match(start, line)]


def _take_tree(lines: Sequence[str], at: int) -> list[str]:
    end = next(i for i in range(at + 3, len(lines) + 1) if i == len(lines) or not re.match(r" *\d+\) ", lines[i]))
    return list(lines[at - 2 : end])


def _take_cp(lines: Sequence[str], at: int) -> list[str]:
    head = next(i for i in range(at, len(lines)) if lines[i].split()[:1] == ["CP"])
    return [*lines[at:head], *_drop_chance(lines[head : lines.index("", head)])]


def _drop_chance(table: Sequence[str]) -> list[str]:
    """A cp table without xerror and xstd, which depend on how the folds fell."""
    width = table[0].index("rel error") + len("rel error")
    return [line[:width] for line in table]


def _take_summary(lines: Sequence[str], at: int) -> list[str]:
    begin = next(i for i in range(at, len(lines)) if lines[i].startswith("  n="))
    head, blank = begin + 2, lines.index("", begin + 2)
    end = next(i for i in range(blank, len(lines)) if re.match(r" +count ncat", lines[i]))
    body = list(lines[blank:end])
    while body[-2:] == ["", ""]:  # before a heading R leaves one more line empty
        body.pop()
    return [*lines[begin:head], *_drop_chance(lines[head:blank]), *body]


def _take_splits(lines: Sequence[str], at: int) -> list[Row]:
    rows = []
    for line in lines[at + 1 :]:
        cells = line.split()
        if len(cells) != 6 or cells[0].startswith("["):
            break
        rows.append((cells[0], *map(float, cells[1:])))
    matrix = {}
    for line in lines[at + 1 + len(rows) :]:
        if found := re.match(r" *\[(\d+),\] +([123 ]+)$", line):
            matrix[int(found[1])] = "".join(SIDES[cell] for cell in found[2].split())
    return [
        Row(feature, int(count), int(ncat), improve, index, adj, matrix[int(index)][: int(ncat)] if ncat > 1 else "")
        for feature, count, ncat, improve, index, adj in rows
    ]


def _take_importance(lines: Sequence[str]) -> Iterator[tuple[str, float]]:
    """The named vector at the end, if there is one; the table of splits has numbers in every line."""
    for names, numbers in pairwise(lines):
        if re.fullmatch(r" *(\d+\.\d+ *)+", numbers) and re.fullmatch(r" *([A-Za-z]\S* *)+", names):
            yield from zip(names.split(), map(float, numbers.split()), strict=True)
