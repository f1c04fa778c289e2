"""Training in process: floats, mixed and nominal columns, deep trees, and small data."""

from __future__ import annotations

from benchmarks import peers
from benchmarks.measure import Bound, Findings, Options, Result, compare
from benchmarks.ours import make_fit
from benchmarks.problems import LEVELS, Problem, load_iris, make_mixed, make_nominal, make_numbers

SKLEARN, YDF, LIGHTGBM = "scikit-learn", "YDF CART", "LightGBM, 1 tree"
MOST_NOMINAL_SECONDS = 2.0


def two_classes(options: Options) -> Findings:
    """Floats and two classes, against exact and approximate learners."""
    problem, depth = make_numbers(options.seed, options.limit(1_000_000), options.columns), options.depth
    contestants = {
        "ours": make_fit(problem, depth),
        SKLEARN: peers.sklearn_fit(problem, depth),
        YDF: peers.ydf_fit(problem, depth),
        LIGHTGBM: peers.lightgbm_fit(problem, depth),
    }
    bounds = {SKLEARN: 25.0, YDF: 8.0, LIGHTGBM: 1.0}
    return Findings(compare(f"train {problem.shape} floats, 2 classes, depth {depth}", contestants, bounds, options))


def ten_classes(options: Options) -> Findings:
    """Floats and ten classes."""
    problem = make_numbers(options.seed, options.limit(1_000_000), options.columns, classes=10)
    return _race_sklearn(f"train {problem.shape} floats, 10 classes", problem, options.depth, 10.0, options)


def regression(options: Options) -> Findings:
    """Floats and a number to predict."""
    problem = make_numbers(options.seed, options.limit(1_000_000), options.columns, classes=None)
    return _race_sklearn(f"train {problem.shape} floats, regression", problem, options.depth, 15.0, options)


def mixed(options: Options) -> Findings:
    """Floats and whole numbers with missing cells."""
    problem = make_mixed(options.seed, options.limit(1_000_000), options.columns)
    work = f"train {problem.shape}, half whole numbers, a tenth missing"
    return _race_sklearn(work, problem, options.depth, 25.0, options)


def nominal(options: Options) -> Findings:
    """Nominal columns of few to many levels, in seconds and beside LightGBM."""
    rows, depth = options.limit(200_000), options.depth
    levels = [min(count, max(rows // 40, 5)) for count in LEVELS]
    problem = make_nominal(options.seed, rows, levels)
    lightgbm = peers.lightgbm_fit(problem, depth, nominal=True)
    work = f"train {problem.shape} nominal, {levels[0]} to {levels[-1]:,} levels, depth {depth}"
    contestants = {"ours": make_fit(problem, depth), "LightGBM, categorical_feature": lightgbm}
    (result,) = compare(work, contestants, {}, options)
    limit = Bound("at most", MOST_NOMINAL_SECONDS)
    return Findings([result, Result(work, "seconds", result.ours, None, "s", result.ours, limit)])


def unlimited(options: Options) -> Findings:
    """Floats until every leaf is pure."""
    problem = make_numbers(options.seed, options.limit(100_000), options.columns)
    return _race_sklearn(f"train {problem.shape} floats, 2 classes", problem, None, 5.0, options)


def small(options: Options) -> Findings:
    """Data so small that the fixed costs of a call count."""
    findings = Findings()
    for rows, least in ((10_000, 2.0), (1_000, 1.0)):
        problem = make_numbers(options.seed, options.limit(rows), options.columns)
        work = f"train {problem.shape} floats, 2 classes"
        findings.results += _race_sklearn(work, problem, options.depth, least, options).results
    iris = load_iris()
    if iris is not None:
        findings.results += _race_sklearn("train iris, 150 x 4, 3 classes", iris, None, 1 / 3, options).results
    return findings


def _race_sklearn(work: str, problem: Problem, depth: int | None, least: float, options: Options) -> Findings:
    contestants = {"ours": make_fit(problem, depth), SKLEARN: peers.sklearn_fit(problem, depth)}
    depths = "depth unlimited" if depth is None else f"depth {depth}"
    return Findings(compare(f"{work}, {depths}", contestants, {SKLEARN: least}, options))


CASES = {
    "train-two-classes": two_classes,
    "train-ten-classes": ten_classes,
    "train-regression": regression,
    "train-mixed": mixed,
    "train-nominal": nominal,
    "train-unlimited": unlimited,
    "train-small": small,
}
