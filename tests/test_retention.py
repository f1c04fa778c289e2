"""What a model keeps for the audit can be taken out as it was put in."""

from __future__ import annotations

import io
import json
from typing import Any

import joblib
import numpy as np
import pytest

from service.core.audit import list_candidates
from service.core.tree import Tree
from service.errors import DamagedModel, NotRetained
from service.rendering.candidates import show_candidates
from service.retention import FEW_LEVELS, pack_data, unpack_data, unpack_summary, unpack_training
from service.store.records import ModelRecord
from tests.core.making import audit, classes, grow, labels, numbers, values
from tests.making import Trainer

MANY = [float(i) + 0.25 for i in range(40)]
COLUMNS = [
    numbers("few", [i % 3 + 0.5 for i in range(40)]),
    numbers("many", [None if i % 7 == 0 else cell for i, cell in enumerate(MANY)]),
    numbers("whole", [2**53 + i % 5 for i in range(40)]),
    numbers("gaps", [None if i % 4 == 0 else i % 3 for i in range(40)]),
    numbers("counts", [None if i == 5 else i * i for i in range(40)]),
    labels("name", [None if i % 9 == 0 else "pqr"[i % 3] for i in range(40)]),
    labels("size", ["SML"[i % 3] for i in range(40)], ["S", "M", "L"], "ordinal"),
]


def read_back(plain: dict[str, Any]) -> dict[str, Any]:
    """What the store makes of a dict of arrays."""
    file = io.BytesIO()
    joblib.dump(plain, file)
    file.seek(0)
    stored: dict[str, Any] = joblib.load(file)
    return stored


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("regression", [False, True])
def test_data_give_the_same_candidates(trainer: Trainer, regression: bool, weighted: bool) -> None:
    """Candidates weighed from what was stored are those of the training: numbers few and many, gaps, categories."""
    weight = [0.1 + i % 3 for i in range(40)] if weighted else None
    marks = ["ab"[(i * i) % 7 % 2] for i in range(40)]
    target = values([i * 1.3 % 5 for i in range(40)], weight) if regression else classes(marks, weight)
    learnt = grow(COLUMNS, target, {"max_depth": 3})
    record = describe(trainer, learnt.learner.parameters.as_dict())
    before = audit(learnt, target)
    after = unpack_data(record, learnt.tree, read_back(pack_data(learnt, target)))
    for group in before.groups:
        shown = []
        for audited in (before, after):
            listing = list_candidates(audited, group)
            shown.append(show_candidates(audited, listing, np.arange(len(listing.node)), listing.rank))
        assert shown[0] == shown[1]
        assert shown[0]


def describe(trainer: Trainer, parameters: dict[str, Any]) -> ModelRecord:
    """A record with these parameters."""
    record = trainer({"x": [1, 2], "y": ["a", "b"]})
    record.body["parameters"].update(parameters)  # type: ignore[attr-defined] # a plain dict inside
    return record


def test_what_recurs_is_kept_as_codes() -> None:
    """A column of few values takes a byte a row, one whose values differ is kept as it is."""
    rows = 5_000
    columns = [numbers("few", [i % 100 * 0.5 for i in range(rows)]), numbers("many", [i * 0.5 for i in range(rows)])]
    target = classes(["ab"[i % 2] for i in range(rows)])
    packed = pack_data(grow(columns, target, {"max_depth": 1}), target)
    few, many = packed["features"]
    assert few["codes"].nbytes == rows
    assert len(few["values"]) == 100
    assert many["numbers"].nbytes == 8 * rows
    assert rows < FEW_LEVELS


def test_another_layout_is_refused(trainer: Trainer) -> None:
    """Data of a layout that this release does not know are damaged, not misread."""
    record = trainer({"x": [1, 2], "y": ["a", "b"]})
    data = dict(trainer.store.load_data(record)) | {"layout": 99}
    tree = Tree.from_arrays(trainer.store.load_tree(record))
    with pytest.raises(DamagedModel, match="99"):
        unpack_data(record, tree, data)
    with pytest.raises(DamagedModel, match="99"):
        unpack_summary(record, data, 0)


def test_summaries_are_compressed(trainer: Trainer) -> None:
    """What a summary keeps of a node takes less than a third of its text, and is read by itself."""
    rows = 400
    columns: dict[str, list[Any]] = {f"x{i}": [(row * (i + 3)) % 97 / 7 for row in range(rows)] for i in range(5)}
    record = trainer(columns | {"y": ["ab"[row * row % 11 % 2] for row in range(rows)]}, retain="summary")
    data = trainer.store.load_data(record)
    for node in (0, 1):
        head, kept = unpack_summary(record, data, node)
        assert head["node"] == node
        assert {row["node"] for row in kept} == {node}
        assert int(data["offset"][node + 1] - data["offset"][node]) < len(json.dumps([head, kept])) / 3


def test_narrow_numbers_are_told_as_they_were(trainer: Trainer) -> None:
    """An audit keeps what float32 holds as float32, which takes half the room, and its candidates are as before."""
    rows, generator = 9_000, np.random.default_rng(3)
    cells = generator.normal(size=(2, rows)).astype(np.float32).tolist()
    cells[1][::7] = [None] * len(cells[1][::7])
    marks = ["ab"[x > 0.1] for x in cells[0]]
    learnt = grow([numbers("x", cells[0]), numbers("gaps", cells[1])], classes(marks), {"max_depth": 2})
    record = describe(trainer, learnt.learner.parameters.as_dict())
    packed = read_back(pack_data(learnt, classes(marks)))
    audited = unpack_data(record, learnt.tree, packed)
    assert [coded.kept.dtype for coded in audited.learner.features] == [np.float32] * 2
    before, after = (list_candidates(each, np.array([0])) for each in (audit(learnt, classes(marks)), audited))
    assert before.score.tolist() == after.score.tolist()
    some = np.concatenate([np.argsort(before.rank, kind="stable")[-5:], np.arange(0, len(before.rank), 500)])
    shown = [
        show_candidates(each, listing, some, listing.rank[some])
        for each, listing in ((audit(learnt, classes(marks)), before), (audited, after))
    ]
    assert shown[0] == shown[1]
    (x, gaps), _ = unpack_training(record, learnt.tree, packed)
    assert x.kept.tolist() == audited.learner.features[0].numbers.tolist() == cells[0]
    assert (x.kept.dtype, x.numbers.dtype) == (np.float64, np.float64)
    assert np.flatnonzero(gaps.is_missing()).tolist() == [*range(0, rows, 7)]


def test_data_are_compressed(trainer: Trainer) -> None:
    """A model's file of kept data is much smaller than what it keeps, and the audit has the same numbers from it."""
    rows, generator = 30_000, np.random.default_rng(8)
    columns: dict[str, list[Any]] = {f"x{i}": generator.normal(size=rows).round(3).tolist() for i in range(3)}
    columns["name"] = generator.choice(list("pqrs"), rows).tolist()
    columns["y"] = np.where(np.array(columns["x0"]) > generator.normal(size=rows), "a", "b").tolist()
    record = trainer(columns, parameters={"max_depth": 2})
    (file,) = trainer.settings.models_directory().glob("*/*/data.joblib")
    assert file.stat().st_size < 0.6 * (3 * 8 + 1 + 4 + 1) * rows
    tree = Tree.from_arrays(trainer.store.load_tree(record))
    audited = unpack_data(record, tree, trainer.store.load_data(record))
    for i in range(3):
        assert audited.learner.features[i].numbers.tolist() == columns[f"x{i}"]
    listing = list_candidates(audited, np.array([0]))
    best = listing.rank == 1
    assert (listing.feature[best].tolist(), listing.chosen[best].tolist()) == ([0], [True])


@pytest.mark.parametrize("regression", [False, True])
def test_what_was_held_out(trainer: Trainer, regression: bool) -> None:
    """Rows held out to prune by are kept apart: the audit knows class weights by all, a retraining has all in order."""
    marks, weight = ["ab"[i % 7 % 2] for i in range(40)], [1.0 + i % 3 for i in range(40)]
    target = values([i * 1.3 % 5 for i in range(40)], weight) if regression else classes(marks, weight)
    parameters = {"pruning": "reduced_error"} | ({} if regression else {"class_weight": "balanced"})
    learnt = grow(COLUMNS, target, parameters)
    assert learnt.held is not None
    record = describe(trainer, learnt.learner.parameters.as_dict())
    data = read_back(pack_data(learnt, learnt.target))
    audited = unpack_data(record, learnt.tree, data)
    assert np.array_equal(audited.learner.objective.alteration, learnt.learner.objective.alteration)
    assert audited.target.rows == learnt.target.rows == 40 - len(learnt.held.row)
    features, whole = unpack_training(record, learnt.tree, data)
    for coded, column in zip(features, COLUMNS, strict=True):
        again = coded.as_column()
        assert np.array_equal(again.values, column.values, equal_nan=column.values.dtype.kind == "f")
        assert np.array_equal(again.missing, column.missing)
    for name in ("codes", "values", "weight"):
        assert np.array_equal(getattr(whole, name), getattr(target, name))
    del data["held"]
    with pytest.raises(NotRetained, match="post"):
        unpack_training(record, learnt.tree, data)
