"""rpart's variable importance: what splits gained, and what their surrogates are credited with."""

from __future__ import annotations

import math
from typing import Any

import pytest

from tests.oracle.contract import Service, read_columns
from tests.reference.rpart_files import read_output

RPART = {"missing": "surrogate", "min_samples_split": 20, "min_samples_leaf": 7, "cp": 0.01}
FREE = {"min_samples_split": 2, "min_samples_leaf": 1, "cp": 0}
KYPHOSIS = ("kyphosis", "rpart_kyphosis", "Kyphosis", None)
IRIS = ("iris", "rpart_iris", "Species", None)
CARS = ("cartestframe", "rpart_cartestframe", "Mileage",
        ["Weight", "Type", "Price", "Country", "Reliability", "HP", "Disp."])  # fmt: skip
STAGES = ("stagec", "rpart_stagec", "progstat", ["age", "eet", "g2", "grade", "gleason", "ploidy"])
ENTROPY = {"criterion": "entropy"}
PRIORS = {"priors": {"absent": 0.65, "present": 0.35}}


@pytest.mark.parametrize(
    ("files", "variant", "parameters"),
    [
        (KYPHOSIS, "gini", {}), (KYPHOSIS, "information", ENTROPY), (KYPHOSIS, "prior65", {**ENTROPY, **PRIORS}),
        (KYPHOSIS, "full", FREE), (IRIS, "gini", {}), (IRIS, "information", ENTROPY), (IRIS, "full", FREE),
        (CARS, "anova", {}), (STAGES, "class", {}),
    ],
)  # fmt: skip
def test_importance(
    service: Service, files: tuple[str, str, str, list[str] | None], variant: str, parameters: dict[str, Any]
) -> None:
    """`fit$variable.importance` to its printed digits; rpart takes logarithms of base e, we of base 2."""
    file, data, target, features = files
    expected = read_output(file, variant).importance
    assert expected
    asked = {"target": target, "features": features, "parameters": RPART | parameters}
    record = service.record({"data": {"columns": read_columns(f"{data}.csv")}, **asked})
    shown = service.client.get(f"/models/{record['id']}/importance?surrogates=true").get_json()
    unit = math.log(2) if parameters.get("criterion") == "entropy" else 1.0
    found = {one["feature"]: one["gain"] * unit for one in shown["features"] if one["gain"] > 0}
    assert list(found) == list(expected)
    assert found == pytest.approx(expected, rel=1e-12)
