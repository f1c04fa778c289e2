"""The benchmarks run, take turns, and judge rightly; how fast anything is, they alone say."""

from __future__ import annotations

import json
import subprocess
import sys
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest

from benchmarks import bench_exact, bench_hard
from benchmarks.__main__ import read_findings, run_apart, update_page
from benchmarks.load import drive
from benchmarks.measure import Bound, Findings, Growth, Options, Result, compare, race
from benchmarks.ours import fit
from benchmarks.problems import LEVELS, Problem, from_matrix, make_mixed, make_nominal, make_numbers
from benchmarks.report import summarize, write_report
from benchmarks.servers import serve_bare
from tests.running import PROJECT

QUICK = Options(rows=200, columns=4, depth=3, repeats=2, quick=True)


def test_contestants_take_turns() -> None:
    """In each round everyone runs once, in the same order."""
    calls: list[str] = []
    race({name: lambda name=name: calls.append(name) for name in ("ours", "theirs")}, 3, enough=0.0)
    assert calls == ["ours", "theirs"] * 3


def test_short_contestants_run_until_the_quickest_has_run_enough() -> None:
    """The number of repeats is a least number: what is over at once is measured more often, within limits."""
    runs = []
    race({"ours": lambda: runs.append(1)}, 2, enough=60.0)
    assert len(runs) == 200


@pytest.mark.parametrize(
    ("bound", "figure", "verdict"),
    [
        (Bound("at least", 2.0), 2.0, "pass"),
        (Bound("at least", 2.0), 1.9, "FAIL"),
        (Bound("at most", 2.0), 2.0, "pass"),
        (Bound("at most", 2.0), 2.1, "FAIL"),
        (Bound("at least", 2.0), None, "not measured"),
        (None, 5.0, ""),
    ],
)
def test_verdicts(bound: Bound | None, figure: float | None, verdict: str) -> None:
    """A bound is met at its own value, and nothing is passed that was not measured."""
    assert Result("work", "peer", 1.0, figure, "s", figure, bound).verdict == verdict


def test_a_missing_peer_is_told() -> None:
    """A peer that is not installed leaves a row that says so, and the others' rows stand."""
    missing, there = compare("work", {"ours": int, "gone": None, "there": int}, {"gone": 2.0}, QUICK)
    assert (missing.figure, missing.note, missing.verdict) == (None, "not installed", "not measured")
    assert there.figure is not None
    assert there.figure > 0


def test_report_shows_ratio_requirement_and_verdict() -> None:
    """A row has both times in readable units, how many times as fast, what was required, and the verdict."""
    result = Result("train", "peer", 0.02, 1.5, "s", 75.0, Bound("at least", 80.0))
    found = {"case": Findings([result], [Growth("rows", "20 columns", [("10", 0.5), ("100", 1.0)])])}
    page = write_report(found, ["2 cores"], {"case": "abc"})
    assert "| case | train | peer | 20 ms | 1.5 s | 75 | at least 80 | **FAIL** | abc |" in page
    assert "| 100 | 1 s | 2 |" in page
    assert summarize(found) == "0 pass, 1 FAIL, 0 not measured"


def problems() -> dict[str, Problem]:
    """One of each kind, small."""
    hard = {name: make(np.random.default_rng(1), 120, 4) for name, make in bench_hard.PROBLEMS.items()}
    return hard | {"numbers": make_numbers(1, 120, 4, 10), "mixed": make_mixed(1, 120, 4)}


@pytest.mark.parametrize("name", problems())
def test_float32_holds_the_numbers_and_columns_are_the_matrix(name: str) -> None:
    """What scikit-learn rounds stays as it is, and both sides learn from the same cells."""
    problem = problems()[name]
    with np.errstate(invalid="raise", over="raise"):
        np.testing.assert_array_equal(problem.matrix.astype(np.float32), problem.matrix)
    for column, cells in zip(problem.columns, problem.matrix.T, strict=True):
        missing = column.is_missing()
        np.testing.assert_array_equal(np.isnan(cells), missing)
        np.testing.assert_array_equal(column.values[~missing], cells[~missing])
    assert len(np.unique(problem.answers)) > 1


def test_same_seed_same_data() -> None:
    """Data are a function of seed and size."""
    levels = LEVELS[:3]
    for make in (lambda seed: make_mixed(seed, 50, 4), lambda seed: make_nominal(seed, 50, levels)):
        np.testing.assert_array_equal(make(3).matrix, make(3).matrix)
        assert not np.array_equal(make(3).matrix, make(4).matrix, equal_nan=True)


@pytest.mark.parametrize("classes", [2, 10, None])
def test_exhaustive_check_passes_the_tree_and_finds_a_wrong_node(classes: int | None) -> None:
    """A tree as learnt has no node that differs; with one threshold moved, that node does."""
    problem = make_numbers(2, 400, 4, classes)
    learnt = fit(problem, 4)
    assert bench_exact.check_exhaustively(problem, learnt)[0] == 0
    threshold = learnt.tree.threshold.copy()
    threshold[0] += 50.0
    spoilt = replace(learnt, tree=replace(learnt.tree, threshold=threshold))
    assert bench_exact.check_exhaustively(problem, spoilt)[0] == 1


def test_exhaustive_check_of_a_regression_on_two_numbers() -> None:
    """A target of -1 and 1, whose sums are whole like counts, is still scored by its squares: the clean cut is best."""
    matrix = np.asfortranarray([[1.0, 4.0], [2.0, 3.0], [3.0, 2.0], [5.0, 9.0]])
    problem = from_matrix(matrix, np.array([-1.0, -1.0, 1.0, 1.0]))
    assert bench_exact.find_best_cut(problem, np.arange(4)) == (0, 2.5)


@pytest.mark.system
def test_load_counts_answers_and_refuses_errors(tmp_path: Path) -> None:
    """The load generator's rate is of answers of 2xx; a server that answers otherwise is an error, not a fast one."""
    with serve_bare(tmp_path) as port:
        assert drive(port, "/", b"{}", 0.2) > 0
        with pytest.raises(RuntimeError, match="404"):
            drive(port, "/nowhere", b"{}", 0.2)


def test_command_runs_cases_and_writes_where_it_is_told(tmp_path: Path) -> None:
    """Cases run in processes of their own, by the beginning of their names; the page in docs is left alone."""
    page, docs = tmp_path / "page.md", PROJECT / "docs" / "benchmarks.md"
    before = docs.read_bytes() if docs.exists() else None
    sizes = ["--quick", "--rows", "200", "--columns", "3", "--output", str(page)]
    command = [sys.executable, "-m", "benchmarks", *sizes, "--only", "train-small", "--only", "predict-o"]
    done = subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True, timeout=60)
    assert "train 200 x 3 floats" in done.stdout
    assert "predict one row in process" in page.read_text(encoding="utf-8")
    assert (docs.read_bytes() if docs.exists() else None) == before


def test_findings_survive_the_way_between_processes() -> None:
    """What a case found is the same after JSON."""
    found = Findings([Result("w", "p", 1.0, 2.0, "s", 2.0, Bound("at most", 3.0))], [Growth("rows", "", [("1", 0.1)])])
    assert read_findings(json.loads(json.dumps(asdict(found)))) == found


def test_a_case_that_takes_too_long_is_given_up() -> None:
    """After its limit a case is ended, and its row says so instead of a figure."""
    (result,) = run_apart("predict-one", QUICK, limit=0.05).results
    assert (result.verdict, result.note) == ("not measured", "gave up after 0 s")


def test_page_keeps_what_was_not_run_again(tmp_path: Path) -> None:
    """New findings replace their own case's only; findings of another machine are dropped."""
    page, kept = tmp_path / "page.md", tmp_path / "kept" / "results.json"

    def update(case: str, seconds: float, machine: str) -> str:
        found = {case: Findings([Result("w", "p", seconds, None, "s", seconds)])}
        update_page(found, [machine, "load 1"], {case: "abc"}, page, kept)
        return page.read_text(encoding="utf-8")

    update("predict", 1.0, "here")
    update("predict-one", 2.0, "here")
    text = update("predict", 3.0, "here")
    assert "| 3 s |" in text
    assert "| 2 s |" in text
    assert "| 1 s |" not in text
    assert "| 2 s |" not in update("predict", 3.0, "elsewhere")
