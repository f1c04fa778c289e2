"""How long the audit of a large model takes, and what a process that streams its listing holds in memory."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace
from itertools import islice
from time import perf_counter, process_time
from typing import Any

import numpy as np

from benchmarks.machine import PROJECT
from benchmarks.measure import Bound, Findings, Options, Result, read_memory
from benchmarks.problems import make_numbers
from service.auditing import list_splits
from service.core.schema import Column, Table
from service.core.tree import Tree
from service.formats.writers import ARROW, CSV, NDJSON
from service.listing.query import SplitQuery
from service.listing.source import Recent, make_recent
from service.settings import Settings
from service.store.models import ModelStore
from service.store.records import ModelRecord
from service.streaming import stream_splits
from service.training import TrainingRequest, train
from service.what_if import score_described

AT_ROOT, AT_SMALL = 1.0, 0.2
"""Seconds that a question may take."""
C45_DEPTH = 3
"""C4.5's cuts of large nodes are all sorted, so a deep tree would take minutes; the root is the same."""
MEASURES = {"classification": "goodness", "regression": "pairwise_variance_reduction", "c45": "goodness"}
"""Kinds of models, and the measure that splits are ranked by instead of their own."""
SMALL = 2_000
"""About so many rows has the small node that is asked about."""
STREAMED = 20_000
"""A whole listing is streamed of a model of so many rows."""
CHUNKS = 600
"""Of the root's stream of the largest model so many chunks are read."""
MOST_MEMORY = {"classification": 2.5, "c45": 2.5, "regression": 3.0, "regression with gaps": 3.0}
"""Kinds of models, and how many times the matrix a process may hold that streams a listing of theirs."""
GAPS = 0.1
"""The share of cells that are missing where there are gaps."""
MEBIBYTE = 2**20


@dataclass(frozen=True)
class Audit:
    """A stored model and what asks about it."""

    record: ModelRecord
    store: ModelStore
    settings: Settings

    def ask(self, recent: Recent, **query: Any) -> float:  # noqa: ANN401 - fields of a query
        """The seconds that a page takes."""
        began = perf_counter()
        list_splits(self.record, SplitQuery(**query), self.store, self.settings, recent)
        return perf_counter() - began


@contextmanager
def open_audit(options: Options, rows: int, kind: str = "classification") -> Iterator[Audit]:
    """A model of so many rows, in a store of its own."""
    with tempfile.TemporaryDirectory() as folder:
        settings = replace(Settings(), models_url=folder)
        store = ModelStore.open(settings)
        numbers = kind.startswith("regression")
        problem = make_numbers(options.seed, rows, options.columns, None if numbers else 2)
        if kind.endswith("gaps"):
            problem.matrix[np.random.default_rng(options.seed).random(problem.matrix.shape) < GAPS] = np.nan
        if numbers:
            target = Column("the answer", "numeric", problem.answers)
        else:
            names = tuple(str(label) for label in problem.target.classes)
            target = Column("the answer", "nominal", problem.answers.astype(np.int32), names)
        table = Table((*problem.columns, target), rows)
        request = TrainingRequest(table, target.name, parameters={"max_depth": options.depth})
        if kind == "c45":
            request = replace(request, algorithm="c45", parameters={"max_depth": min(options.depth, C45_DEPTH)})
        yield Audit(train(request, store, settings), store, settings)
        store.close()


def audit(options: Options) -> Findings:
    """Pages at the root, each the first time after a start, and again; then of a small node of a model that is open."""
    findings = Findings()
    rows = options.limit(1_000_000)
    for kind, measure in MEASURES.items():
        work = f"audit {rows:,} x {options.columns}, {kind}"
        with open_audit(options, rows, kind) as asked:
            tree = Tree.from_arrays(asked.store.load_tree(asked.record))
            small, names = int(np.abs(tree.rows - SMALL).argmin()), [feature.name for feature in tree.features]
            # what the root was split by is easy, what says nothing needs most candidates to be counted
            split, poor = names[int(tree.feature[0])], names[-1]
            at_root: dict[str, dict[str, Any]] = {
                "top 10": {"top": 10},
                "first page": {},
                "chosen": {"chosen": True},
                "first page of the feature that splits it": {"feature": split},
                "first page of a poor feature": {"feature": poor},
                "best of a poor feature": {"feature": poor, "top": 1},
                "inadmissible": {"admissible": False},
                f"top 10 by {measure}": {"measure": measure, "top": 10},
            }
            recent = make_recent()
            for question, query in at_root.items():
                recent = make_recent(asked.settings.audit_bytes)
                _ask_twice(findings, asked, recent, f"{work}, root, {question}", AT_ROOT, node=0, **query)
            node = f"{work}, node of {tree.rows[small]:,} rows"
            _ask_twice(findings, asked, recent, f"{node}, first page", AT_SMALL, node=small)
            _ask_twice(findings, asked, recent, f"{node}, one feature", AT_SMALL, node=small, feature=poor)
    return findings


def _ask_twice(findings: Findings, asked: Audit, recent: Recent, work: str, most: float, **query: Any) -> None:  # noqa: ANN401 - fields of a query
    """Note the seconds of a question the first time, and again."""
    for when in ("first", "again"):
        seconds = asked.ask(recent, **query)
        findings.results.append(Result(work, when, seconds, None, "s", seconds, Bound("at most", most)))


def audit_what_if(options: Options) -> Findings:
    """Splits of one's own at the root, each the first time and again: on the feature that was asked, and a poor one."""
    findings = Findings()
    rows = options.limit(1_000_000)
    with open_audit(options, rows) as asked:
        tree = Tree.from_arrays(asked.store.load_tree(asked.record))
        recent = make_recent(asked.settings.audit_bytes)
        features, chosen = tree.features, int(tree.feature[0])
        poor = next(number for number in reversed(range(len(features))) if number != chosen or len(features) == 1)
        for work, feature in (("where it was asked", chosen), ("poor", poor)):
            split = {"type": "threshold", "threshold": float(tree.threshold[0]) * 0.9}
            for when in ("first", "again"):
                began = perf_counter()
                score_described(asked.record, 0, features[feature].name, split, asked.store, recent)
                seconds, case = (
                    perf_counter() - began,
                    f"audit {rows:,} x {options.columns}, root, a split of one's own, {work}",
                )
                findings.results.append(Result(case, when, seconds, None, "s", seconds, Bound("at most", AT_ROOT)))
    return findings


def audit_stream(options: Options) -> Findings:
    """Whole listings as NDJSON, CSV and Arrow: splits a second."""
    findings = Findings()
    rows = options.limit(STREAMED)
    with open_audit(options, rows) as asked:
        for name, media_type in (("NDJSON", NDJSON), ("CSV", CSV), ("Arrow", ARROW)):
            began, size = process_time(), 0
            for part in stream_splits(asked.record, SplitQuery(), asked.store, make_recent(), media_type):
                size += len(part)
            seconds = process_time() - began
            count = asked.store.find(asked.record.id).splits_total or 0  # kept at the end of a stream
            work = (
                f"stream {rows:,} x {options.columns}, all nodes, {name}: {count:,} splits, {size / MEBIBYTE:,.0f} MiB"
            )
            findings.results.append(Result(work, "splits per second of a core", seconds, None, "s", count / seconds))
    return findings


def audit_memory(options: Options) -> Findings:
    """What a process that streams the root of a large model holds at its peak, as a multiple of the matrix."""
    rows, findings = options.limit(1_000_000), Findings()
    matrix = rows * options.columns * 8
    code = "import sys; from benchmarks.bench_audit import stream_root; stream_root(*sys.argv[1:])"
    for kind, most in MOST_MEMORY.items():
        with open_audit(options, rows, kind) as asked:
            command = [sys.executable, "-c", code, str(asked.settings.models_url), asked.record.id]
            output = subprocess.run(command, cwd=PROJECT, check=True, capture_output=True).stdout  # noqa: S603 - this module
        peak = int(output)
        work = f"peak memory of the process that streams the root of {rows:,} x {options.columns}, {kind}"
        # a small matrix is less than the process itself
        bound = None if options.quick else Bound("at most", most)
        times = "times the float64 matrix"
        findings.results.append(Result(work, times, peak / MEBIBYTE, matrix / MEBIBYTE, "MiB", peak / matrix, bound))
    return findings


def stream_root(models_url: str, model: str) -> None:
    """Read a part of the root's stream in this process, and print its peak memory."""
    store = ModelStore.open(replace(Settings(), models_url=models_url))
    for _ in islice(stream_splits(store.find(model), SplitQuery(node=0), store, make_recent(), NDJSON), CHUNKS):
        pass
    sys.stdout.write(str(read_memory("VmHWM")))


CASES = {"audit": audit, "audit-what-if": audit_what_if, "audit-stream": audit_stream, "audit-memory": audit_memory}
