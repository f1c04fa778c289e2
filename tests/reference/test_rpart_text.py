"""What rpart 4.1.19 prints on R 4.2.2, printed from the answers of the HTTP API alone: text against text."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import pytest

from tests.oracle.contract import Service, read_columns
from tests.reference.rpart_files import Output, read_output
from tests.reference.rpart_fit import Fit, read_fit
from tests.reference.rpart_printing import print_cp, print_summary, print_tree

FREE = {"min_samples_split": 2, "min_samples_leaf": 1, "cp": 0}
STAGEC = ["age", "eet", "g2", "grade", "gleason", "ploidy"]
PLOIDY = {"ploidy": ["diploid", "tetraploid", "aneuploid"]}
PRIORS = {"absent": 0.65, "present": 0.35}


@dataclass(frozen=True)
class Case:
    """One fit: the file that has it, its data and target, what differs from rpart's settings, and R's `digits`."""

    file: str
    data: str
    target: str
    variant: str | None = None
    place: int = 0
    parameters: dict[str, Any] = field(default_factory=dict)
    compete: int = 4
    digits: int = 7
    tree_digits: int = 7
    features: Sequence[str] | None = None
    categories: Mapping[str, Sequence[str]] = field(default_factory=dict)

    def __str__(self) -> str:
        return f"{self.file}-{self.variant or self.place}"

    def train(self, service: Service) -> Fit:
        """The model of this case, read through the API."""
        columns = read_columns(f"{self.data}.csv")
        body = {"data": {"columns": columns}, "target": self.target}
        if self.variant == "exp":
            exposure = rescale_time(columns["pgtime"], columns["pgstat"])
            rate = [events / time for events, time in zip(columns["pgstat"], exposure, strict=True)]
            body |= {"data": {"columns": columns | {"exposure": exposure, "rate": rate}}, "weight": "exposure"}
        kinds = {name: {"kind": "nominal", "categories": levels} for name, levels in self.categories.items()}
        more = {"features": self.features, "schema": kinds, "algorithm": "rpart", "parameters": self.parameters}
        return read_fit(service, service.record(body | more), self.compete)

    def expected(self) -> Output:
        """What R printed."""
        return read_output(self.file, self.variant, self.place)


def rescale_time(time: Sequence[float], event: Sequence[float]) -> list[float]:
    """Times on the scale on which all rows together have one event per unit of time (rpart.exp of rpart 4.1.19).

    That is the cumulative hazard: between two times of events it rises by the events by the time that rows spent there.
    """
    ends = sorted({at for at, one in zip(time, event, strict=True) if one})
    edges = [0.0, *ends[:-1], max(time)]
    hazard = [0.0]
    for begin, end in pairwise(edges):
        spent = sum(min(at, end) - begin for at in time if at > begin)
        events = sum(one for at, one in zip(time, event, strict=True) if begin < at <= end)
        hazard.append(hazard[-1] + events / spent * (end - begin))
    return [float(at) for at in np.interp(time, edges, hazard)]


CASES = [
    Case("kyphosis", "rpart_kyphosis", "Kyphosis", "gini"),
    Case("kyphosis", "rpart_kyphosis", "Kyphosis", "information", parameters={"criterion": "entropy"}),
    Case("kyphosis", "rpart_kyphosis", "Kyphosis", "prior65", parameters={"criterion": "entropy", "priors": PRIORS}),
    Case("kyphosis", "rpart_kyphosis", "Kyphosis", "full", parameters=FREE, compete=10),
    Case(
        "kyphosis_prior_loss", "rpart_kyphosis", "Kyphosis", parameters={"priors": PRIORS}, digits=8, tree_digits=10
    ),
    Case(
        "kyphosis_prior_loss", "rpart_kyphosis", "Kyphosis", place=1, parameters={"loss": [[0, 4], [3, 0]]}, digits=8,
        tree_digits=10,
    ),
    Case("iris", "rpart_iris", "Species", "gini", compete=10),
    Case("iris", "rpart_iris", "Species", "information", parameters={"criterion": "entropy"}, compete=10),
    Case("iris", "rpart_iris", "Species", "full", parameters=FREE, compete=10),
    Case(
        "stagec", "rpart_stagec", "progstat", "class", features=STAGEC, categories=PLOIDY,
    ),
    Case(
        "stagec", "rpart_stagec", "rate", "exp", features=STAGEC, categories=PLOIDY,
        parameters={"criterion": "poisson", "rate_prior": 1, "surrogate_count": "rows"},
    ),
    Case(
        "cartestframe", "rpart_cartestframe", "Mileage", "anova", compete=10,
        features=["Weight", "Type", "Price", "Country", "Reliability", "HP", "Disp."],
    ),
    Case("larose8", "larose8", "risk", parameters=FREE, compete=9),
    Case("playtennis", "playtennis", "Play", parameters=FREE, compete=9),
]  # fmt: skip


@pytest.mark.parametrize("case", [case for case in CASES if case.expected().tree], ids=str)
def test_tree(service: Service, case: Case) -> None:
    """The text of `print(fit)` is ours, to the last digit and blank."""
    assert print_tree(case.train(service), case.tree_digits) == case.expected().tree


@pytest.mark.parametrize("case", [case for case in CASES if case.expected().cp], ids=str)
def test_cp(service: Service, case: Case) -> None:
    """The text of `printcp(fit)` is ours, but for the columns that depend on how R dealt the folds."""
    assert print_cp(case.train(service), case.digits) == case.expected().cp


@pytest.mark.parametrize("case", CASES, ids=str)
def test_summary(service: Service, case: Case) -> None:
    """The text of `summary(fit)` is ours: cp table, importance, nodes with their primary and surrogate splits."""
    expected = case.expected().summary
    assert len(expected) > 30
    assert print_summary(case.train(service), case.digits) == expected


@pytest.mark.parametrize("case", CASES, ids=str)
def test_splits(service: Service, case: Case) -> None:
    """The rows of `fit$splits` are ours, in order: improvement, agreement and adjusted agreement to twelve digits."""
    expected = case.expected().splits
    nodes = case.train(service).nodes.values()
    ours = [split for node in nodes for split in [*node.primary, *node.surrogates]]
    assert len(ours) == len(expected) >= 3
    for split, row in zip(ours, expected, strict=True):
        assert (split.feature, split.count, split.ncat, split.sides) == (row.feature, row.count, row.ncat, row.sides)
        assert (split.improve, split.adj) == pytest.approx((row.improve, row.adj), rel=1e-12, abs=1e-12)
        assert row.sides or math.isclose(split.index, row.index, rel_tol=1e-14)


@pytest.mark.parametrize("case", [case for case in CASES if case.expected().importance], ids=str)
def test_importance(service: Service, case: Case) -> None:
    """The numbers of `fit$variable.importance` are ours, in order, to twelve digits."""
    expected = case.expected().importance or {}
    importance = case.train(service).importance
    assert list(importance) == list(expected)
    assert importance == pytest.approx(expected, rel=1e-12)
