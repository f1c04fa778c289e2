"""A training request is the same after it was written to disk."""

from __future__ import annotations

from dataclasses import fields

import numpy as np
import pytest

from service.evaluation import EvaluationRequest
from service.importance import PermutationRequest
from service.jobs.requests import pack, pack_permutation, unpack, unpack_permutation
from service.store.models import ModelStore
from service.store.naming import new_id
from service.training import TrainingRequest
from tests.jobs.making import make_request


@pytest.mark.parametrize(
    "request_",
    [
        make_request(),
        make_request(features=("real",), weight="whole", task="classification", algorithm="c45"),
        make_request(parameters={"max_depth": 3, "loss": [[0, 1], [2, 0]]}, positive_class="high", tags={"a": "b"}),
    ],
)
def test_round_trip(store: ModelStore, request_: TrainingRequest) -> None:
    """Every field and every column, its categories, codes and missing cells included, comes back as it went."""
    job_id = new_id()
    hashes = store.requests.write(job_id, {"request": pack(request_)})
    back = unpack(store.requests.load(job_id, "request", hashes["request"]), TrainingRequest)
    for field in fields(request_):
        if field.name != "table":
            assert getattr(back, field.name) == getattr(request_, field.name), field.name
    assert back.table.rows == request_.table.rows
    for ours, theirs in zip(back.table.columns, request_.table.columns, strict=True):
        assert (ours.name, ours.kind, ours.categories) == (theirs.name, theirs.kind, theirs.categories)
        assert ours.values.dtype == theirs.values.dtype
        np.testing.assert_array_equal(ours.values, theirs.values)
        np.testing.assert_array_equal(ours.is_missing(), theirs.is_missing())


def test_evaluations(store: ModelStore) -> None:
    """Rows to evaluate, and how to mix them up, come back as they went, cells of each kind included."""
    table = make_request().table
    asked = PermutationRequest(EvaluationRequest(table, ["risk"], "whole", "drop"), "brier", 7, 3)
    job_id = new_id()
    hashes = store.requests.write(job_id, {"request": {"request": pack_permutation(asked)}})
    plain = store.requests.load(job_id, "request", hashes["request"])["request"]
    back = unpack_permutation(plain)
    assert (back.metric, back.repeats, back.seed) == ("brier", 7, 3)
    assert (back.rows.targets, back.rows.weight, back.rows.missing_target) == (["risk"], "whole", "drop")
    for ours, theirs in zip(back.rows.table.columns, table.columns, strict=True):
        assert (ours.name, ours.kind, ours.categories) == (theirs.name, theirs.kind, theirs.categories)
        np.testing.assert_array_equal(ours.values, theirs.values)
        np.testing.assert_array_equal(ours.is_missing(), theirs.is_missing())
    assert unpack(plain, EvaluationRequest).weight == "whole"
