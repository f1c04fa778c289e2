"""Prediction in process: a large batch, and a single row."""

from __future__ import annotations

import numpy as np

from benchmarks import ours, peers
from benchmarks.measure import Bound, Findings, Options, Result, compare, race
from benchmarks.problems import make_numbers

TRAINED_ON = 100_000
LOOPS = 1000
MOST_MICROSECONDS = 15.0


def batch(options: Options) -> Findings:
    """A million rows down a tree of depth 10, against scikit-learn's `predict` on a matrix by rows."""
    known = make_numbers(options.seed, options.limit(TRAINED_ON), options.columns)
    posted = make_numbers(options.seed + 1, options.limit(1_000_000), options.columns)
    tree, rows = ours.fit(known, options.depth).tree, len(posted.answers)
    sklearn = peers.sklearn_fit(known, options.depth)
    model = sklearn and sklearn()
    usual, ideal = np.ascontiguousarray(posted.matrix), np.ascontiguousarray(posted.matrix, np.float32)
    contestants = {
        "ours": lambda: ours.predict_batch(tree, posted.columns, rows),
        "scikit-learn": model and (lambda: model.predict(usual)),
        "scikit-learn, given float32": model and (lambda: model.predict(ideal)),
    }
    work = f"predict {posted.shape} at depth {options.depth}"
    return Findings(compare(work, contestants, {"scikit-learn": 1.5}, options))


def one_row(options: Options) -> Findings:
    """One row in process, in microseconds."""
    problem = make_numbers(options.seed, options.limit(TRAINED_ON), options.columns)
    predict = ours.make_predict_one(ours.fit(problem, options.depth).tree, problem, 7)

    def loop() -> None:
        for _ in range(LOOPS):
            predict()

    micro = race({"ours": loop}, 5, 0.0)["ours"] / LOOPS * 1e6
    bound = Bound("at most", MOST_MICROSECONDS)
    return Findings([Result("predict one row in process", "microseconds", micro, None, "us", micro, bound)])


CASES = {"predict": batch, "predict-one": one_row}
