"""A model that is trained again is the same to the last bit, and whatever is not is named."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pytest
from sqlalchemy import text

from service.core.errors import InvalidData
from service.core.parameters import PRESETS, resolve
from service.errors import InvalidRequest, NotRetained
from service.pruning import PruningRequest, prune_model
from service.store.records import ModelRecord
from service.verifying import check_retained, declare_columns, repeat_request, verify
from tests.making import Trainer, make_table

Columns = dict[str, list[Any]]
ROWS = 240


@pytest.fixture
def columns() -> Columns:
    """Numbers whole and broken, labels, truth values, gaps, weights, and targets that depend on some of them."""
    random = np.random.default_rng(11)
    whole, broken = random.integers(-20, 20, ROWS), random.normal(size=ROWS)
    label, flag = random.choice([*"abcdefgh"], ROWS), random.random(ROWS) < 0.4
    noise = random.normal(size=ROWS)
    score = whole / 10 + broken + (label < "d") + noise
    columns: Columns = {
        "whole": whole.tolist(),
        "broken": broken.tolist(),
        "label": label.tolist(),
        "flag": flag.tolist(),
        "w": random.choice([0, 0.5, 1, 2], ROWS).tolist(),
        "y": np.where(score > 1, "high", np.where(score > -0.5, "middle", "low")).tolist(),
        "z": (score * 3).tolist(),
        "count": random.poisson(np.exp(score / 3)).tolist(),
    }
    for name in ("whole", "broken", "label", "flag"):
        for row in np.flatnonzero(random.random(ROWS) < 0.05).tolist():
            columns[name][row] = None
    return columns


FEATURES = ("whole", "broken", "label", "flag")
CASES: dict[str, dict[str, Any]] = {
    "cart": {},
    "depth": {"parameters": {"max_depth": 3}},
    "leaves": {"parameters": {"max_leaf_nodes": 9}},
    "weights": {"weight": "w", "parameters": {"class_weight": "balanced"}},
    "surrogates": {"algorithm": "rpart"},
    "c45": {"algorithm": "c45"},
    "j48": {"algorithm": "j48"},
    "id3": {"algorithm": "id3", "features": ("label", "flag")},
    "levels": {"algorithm": "id3", "features": ("whole", "label"), "parameters": {"numeric": "ordinal"}},
    "branch": {"parameters": {"missing": "branch", "nominal": "one_vs_rest"}},
    "folds": {"parameters": {"pruning": "cost_complexity", "seed": 3}},
    "numbers": {"target": "z"},
    "absolute": {"target": "z", "parameters": {"criterion": "absolute_error", "max_depth": 4}},
    "poisson": {"target": "count", "weight": "w", "parameters": {"criterion": "poisson"}},
    "several": {"target": ("z", "count"), "parameters": {"max_depth": 5}},
    "validated": {"cross_validation": 3},
    "reduced": {"parameters": {"pruning": "reduced_error", "seed": 1}},
    "reduced, balanced": {
        "weight": "w",
        "parameters": {"pruning": "reduced_error", "pruning_holdout": 0.3, "class_weight": "balanced"},
    },
    "reduced numbers": {"target": "z", "parameters": {"pruning": "reduced_error", "missing": "surrogate"}},
    "pairs": {"target": "z", "parameters": {"criterion": "dissimilarity", "max_depth": 3}},
    "labels": {
        "target": ("y", "label"),
        "features": ("whole", "broken"),
        "dissimilarity": {"metric": "hamming"},
        "missing_target": "drop",
    },
}
POSTED_ONLY: dict[str, dict[str, Any]] = {
    "nothing kept": {"retain": "none"},
    "summary": {"retain": "summary"},
}


def train(trainer: Trainer, columns: Columns, case: Mapping[str, Any]) -> ModelRecord:
    """The record of a case's model."""
    return trainer(columns, **{"target": "y", "features": FEATURES} | dict(case))


def check(
    trainer: Trainer,
    record: ModelRecord,
    columns: Mapping[str, Sequence[Any]] | None = None,
    **more: Any,  # noqa: ANN401
) -> dict[str, Any]:
    """What a verification finds, on posted columns or on what was kept."""
    posted = None
    if columns is not None:
        posted = repeat_request(record, make_table(columns, declare_columns(record)), **more)
    return verify(record, posted, trainer.store, trainer.settings)


@pytest.mark.parametrize("case", CASES)
def test_on_what_was_kept(trainer: Trainer, columns: Columns, case: str) -> None:
    """Every kind of tree that keeps its data is made again from them."""
    record = train(trainer, columns, CASES[case])
    found = check(trainer, record)
    assert found["differences"] == []
    assert (found["verified"], found["identical"], found["schema"]) == (True, True, True)
    nodes = record.body["tree"]["nodes"]
    assert found["nodes"] == {"stored": nodes, "retrained": nodes, "compared": nodes, "different": 0}
    assert nodes > 3


@pytest.mark.parametrize("case", [*CASES, *POSTED_ONLY])
def test_on_posted_data(trainer: Trainer, columns: Columns, case: str) -> None:
    """Every kind of tree is made again from its data, which are known by their hash."""
    record = train(trainer, columns, {**CASES, **POSTED_ONLY}[case])
    found = check(trainer, record, columns)
    assert found["data"] == {"source": "posted", "sha256": record.body["training"]["data_sha256"], "matches": True}
    assert found["verified"], found["differences"]
    assert found["record"] == {"logged": 1, "matches": True}


def test_a_matrix(trainer: Trainer, columns: Columns) -> None:
    """A posted matrix belongs to the data: it is asked for again, and another one has another hash."""
    values = np.array(columns["z"])
    matrix = np.abs(values[:, None] - values).tolist()
    record = train(trainer, columns, {"target": "z", "dissimilarity": {"matrix": matrix}})
    with pytest.raises(InvalidRequest) as caught:
        check(trainer, record, columns)
    assert [fault.place for fault in caught.value.faults] == ["/dissimilarity"]
    assert check(trainer, record, columns, dissimilarity={"matrix": matrix})["verified"]
    matrix[0][1] = matrix[1][0] = 40.0
    assert not check(trainer, record, columns, dissimilarity={"matrix": matrix})["data"]["matches"]


@pytest.mark.parametrize("name", [*FEATURES, "y", "w"])
def test_one_other_cell(trainer: Trainer, columns: Columns, name: str) -> None:
    """A single cell that is not what it was is told by the hash, whether or not the tree is another one."""
    record = train(trainer, columns, {"weight": "w"})
    row = next(i for i in range(ROWS) if columns[name][i] and columns["w"][i])
    cell = columns[name][row]
    other = {"y": "low" if cell == "high" else "high", "label": "a" if cell == "h" else "h", "flag": False}
    columns[name][row] = other.get(name, 7)
    found = check(trainer, record, columns)
    assert (found["verified"], found["data"]["matches"]) == (False, False)
    if name in ("y", "w"):
        assert found["differences"][0]["node"] == 0
        assert "statistics" in found["differences"][0]["differs"]


def test_another_tree(trainer: Trainer, columns: Columns) -> None:
    """Where trees part, the first node that differs is named with both of its splits, and nothing below it."""
    record = train(trainer, columns, {})
    columns["broken"] = [None if cell is None else -cell for cell in columns["broken"]]
    columns["whole"] = [0] * ROWS
    found = check(trainer, record, columns)
    assert not found["identical"]
    (root,) = (each for each in found["differences"] if each["node"] == 0)
    assert "split" in root["differs"]
    assert root["stored"]["split"] != root["retrained"]["split"]
    assert found["nodes"]["compared"] == 1


def test_pruned_versions(trainer: Trainer, columns: Columns) -> None:
    """A version that was pruned, and one pruned from that by another risk, is grown and cut again."""
    record = train(trainer, columns, {"name": "m"})
    first = prune_model(record, PruningRequest(leaves=12), trainer.store)
    second = prune_model(first, PruningRequest(leaves=4, risk="impurity"), trainer.store)
    for pruned, logged in ((first, 2), (second, 3)):
        assert 1 < pruned.body["tree"]["leaves"] < record.body["tree"]["leaves"]
        assert check(trainer, pruned)["verified"]
        assert check(trainer, pruned, columns)["record"] == {"logged": logged, "matches": True}
    trainer.store.delete(record.id)
    assert check(trainer, first)["verified"]


def test_a_record_that_was_changed(trainer: Trainer, columns: Columns) -> None:
    """Someone who betters the figures in the database is told by the hash in the audit log."""
    record = train(trainer, columns, {"parameters": {"max_depth": 2}})
    record.body["metrics"]["accuracy"] = 0.99
    found = check(trainer, record)
    assert (found["identical"], found["record"]["matches"], found["verified"]) == (True, False, False)


def test_a_record_without_an_entry(trainer: Trainer, columns: Columns) -> None:
    """A model that is older than the log has no entry; one that is younger, and has none, was put in by hand."""
    record, _, other = (train(trainer, columns, {"parameters": {"max_depth": 2}}) for _ in range(3))
    with trainer.store._database.writing() as session:
        session.execute(text("DELETE FROM audit_log WHERE model = :model"), {"model": record.id})
    assert check(trainer, record)["record"] == {"logged": None, "matches": None}
    assert check(trainer, record)["verified"]
    with trainer.store._database.writing() as session:
        session.execute(text("UPDATE audit_log SET model = '' WHERE model = :model"), {"model": other.id})
    assert check(trainer, other)["record"] == {"logged": None, "matches": False}
    assert not check(trainer, other)["verified"]


def test_what_was_not_kept(trainer: Trainer, columns: Columns) -> None:
    """Without its data a model has to be given them, whole."""
    for case in POSTED_ONLY.values():
        record = train(trainer, columns, case)
        with pytest.raises(NotRetained, match="post"):
            check_retained(record)
        with pytest.raises(NotRetained, match="post"):
            check(trainer, record)
    record = train(trainer, columns, {"weight": "w"})
    del columns["label"], columns["w"]
    with pytest.raises(InvalidData) as caught:
        check(trainer, record, columns)
    assert [fault.place for fault in caught.value.faults] == ["/data/columns/label", "/data/columns/w"]


@pytest.mark.parametrize("algorithm", PRESETS)
@pytest.mark.parametrize(
    "posted",
    [
        {}, {"pruning": "cost_complexity"}, {"pruning": "cost_complexity", "alpha": 0.1},
        {"pruning": "reduced_error", "cp": None},
        {"pruning": "reduced_error", "pruning_holdout": 0.3, "cp": None},
        {"loss": [[0, 1], [2, 0]]}, {"cp": 0.1},
    ],
)  # fmt: skip
def test_resolved_parameters_resolve_to_themselves(algorithm: str, posted: dict[str, Any]) -> None:
    """The parameters of a record, posted again, mean what they meant."""
    resolved = resolve(algorithm, posted, "classification")
    assert resolve(algorithm, resolved.as_dict(), "classification") == resolved
