"""The candidates that rpart 4.1.19 on R 4.2.2 weighs and does not print; `test_rpart_text` has those that it prints."""

from __future__ import annotations

import csv
import math

import pytest

from tests.oracle.contract import DATA, Service, read_columns


def test_every_root_candidate_of_kyphosis(service: Service) -> None:
    """All 85 cuts are listed, with rpart's improvement by gini, by information in nats, and goodness, to 1e-9."""
    with (DATA / "rpart_kyphosis_root_candidates.csv").open() as file:
        expected = {(row["feature"], float(row["threshold"])): row for row in csv.DictReader(file)}
    model = service.train(read_columns("rpart_kyphosis.csv"), "Kyphosis", {"parameters": {"max_depth": 1}})
    listed = {(split["feature"], split["split"]["threshold"]): split for split in service.splits(model, {"node": 0})}
    assert len(expected) == 85
    assert listed.keys() == expected.keys()
    for key, row in expected.items():
        scores, branches = listed[key]["scores"], listed[key]["branches"]
        assert [branch["known"]["n"] for branch in branches] == [int(row["n_left_lt"]), int(row["n_right_ge"])]
        assert scores["gini_gain"] * 81 == pytest.approx(float(row["improve_gini_n"]), rel=1e-9, abs=1e-9)
        nats = scores["information_gain"] * 81 * math.log(2)
        assert nats == pytest.approx(float(row["improve_entropy_nats_n"]), rel=1e-9, abs=1e-9)
        assert scores["goodness"] == pytest.approx(float(row["phi"]), rel=1e-9, abs=1e-9)
