"""Streams are written column by column: what comes out is what row by row would, to the last byte."""

from __future__ import annotations

from typing import Any

import numpy as np
import pyarrow as pa
import pytest

from service.core.schema import Column, Table
from service.core.tree import Tree
from service.formats.layout import Chunk, lay_out
from service.formats.writers import ARROW, CSV, NDJSON, WRITERS
from service.listing.query import SplitQuery
from service.listing.source import DataSource, DataView, make_recent, open_source
from service.readers.cells import Declared
from service.rendering.candidates import show_parts
from service.store.records import ModelRecord
from service.training import TrainingRequest, train
from tests.making import Trainer, make_table

ROWS = 80
INFINITE = float("inf")
BIG = 2**53

DECLARED = {"size": Declared("ordinal", ("S", "M", "L"))}


def make_columns(gaps: bool) -> dict[str, list[Any]]:
    """All kinds of features, under names that want quoting, and targets of all kinds."""
    generator = np.random.default_rng(11)
    columns: dict[str, list[Any]] = {
        "small, large": (10.0 ** generator.integers(-20, 20, ROWS)).tolist(),
        'the "x"': generator.normal(size=ROWS).round(1).tolist(),
        "big": (BIG + generator.integers(-9, 9, ROWS)).tolist(),
        "whole": generator.integers(0, 9, ROWS).tolist(),
        "same": [1.5] * ROWS,
        "flag": (generator.random(ROWS) < 0.5).tolist(),
        "name": generator.choice(["p", "q,r", 'say "r"', "é\n"], ROWS).tolist(),
        "size": generator.choice(["S", "M", "L"], ROWS).tolist(),
    }
    noise = generator.normal(size=ROWS) + np.array(columns['the "x"']) + np.array(columns["whole"]) / 4
    if gaps:
        for i in range(0, ROWS, 7):
            columns['the "x"'][i] = columns["name"][i + 1] = columns["whole"][(i + 2) % ROWS] = None
    columns["weight"] = generator.choice([0.1, 1.0, 2.5], ROWS).tolist()
    columns["y"] = np.where(noise > 1, "b", np.where(noise < -1, "c", "a")).tolist()
    columns["z"], columns["events"] = noise.tolist(), np.abs(noise).round().tolist()
    return columns


FEATURES = ("small, large", 'the "x"', "big", "whole", "same", "flag", "name", "size")
DEEP = {"max_depth": 3}
TRAININGS: list[dict[str, Any]] = [
    {"parameters": DEEP | {"min_samples_leaf": 3}},
    {"weight": "weight", "parameters": DEEP | {"missing": "branch", "criterion": "entropy", "min_weight_leaf": 4.0}},
    {"weight": "weight", "parameters": DEEP | {"missing": "fractional"}},
    {"parameters": DEEP | {"missing": "surrogate", "threshold_value": "data"}},
    {"algorithm": "c45"},
    {"parameters": DEEP | {"nominal": "multiway", "empty_branches": True, "criterion": "entropy"}},
    {"parameters": DEEP | {"nominal": "multiway", "missing": "branch"}},
    {"parameters": DEEP | {"nominal": "one_vs_rest", "reuse_features": "never"}},
    {"target": "z", "parameters": DEEP},
    {"target": "z", "weight": "weight", "parameters": DEEP | {"missing": "surrogate"}},
    {"target": "z", "parameters": DEEP | {"criterion": "absolute_error"}},
    {"target": "events", "task": "regression", "parameters": DEEP | {"criterion": "poisson"}},
    {"target": ("z", "events"), "parameters": DEEP | {"missing": "fractional"}},
    {
        "target": "name",
        "dissimilarity": {"metric": "hamming"},
        "parameters": {"max_depth": 1},
        "features": FEATURES[:4],
    },
]


def train_on(trainer: Trainer, gaps: bool, training: dict[str, Any]) -> ModelRecord:
    """A model of the columns above."""
    request = TrainingRequest(
        make_table(make_columns(gaps and training.get("target") != "name"), DECLARED),
        **{"target": "y", "features": FEATURES, **training},
    )
    return train(request, trainer.store, trainer.settings)


@pytest.mark.parametrize("gaps", [False, True])
@pytest.mark.parametrize("training", TRAININGS, ids=str)
def test_columns_and_rows_are_written_alike(trainer: Trainer, training: dict[str, Any], gaps: bool) -> None:
    """Of every kind of model the columns of all candidates are the same bytes, or the same Arrow table, as the rows.

    However many are written at a time, and whether nodes are listed at once or surveyed.
    """
    record = train_on(trainer, gaps, training)
    tree = Tree.from_arrays(trainer.store.load_tree(record))
    plain = open_source(record, tree, trainer.store, make_recent())
    assert isinstance(plain, DataSource)
    surveyed = DataSource(record.id, plain.audited, make_recent(), large=0, uncounted=0)
    layout = lay_out(tree, plain.measures, {})
    query = SplitQuery(sort="position")

    for source, most in ((plain, 10**6), (plain, 7), (surveyed, ROWS)):
        nodes = np.arange(tree.nodes if most > ROWS else 2)
        rows = [row for view in source.view_nodes(nodes, query) for row in view.render(0, 10**6)]
        chunks: list[Chunk] = [chunk for view in source.stream_nodes(nodes, query) for chunk in view.stream(0, most)]
        assert [row for chunk in chunks for row in show_parts(chunk)] == rows  # type: ignore[arg-type] # of data
        for media_type in (NDJSON, CSV):
            write = WRITERS[media_type]
            assert b"".join(write(chunks, layout)) == b"".join(write([rows], layout))
        by_column, by_row = (
            pa.ipc.open_stream(b"".join(WRITERS[ARROW](written, layout))).read_all() for written in (chunks, [rows])
        )
        assert by_column.schema == by_row.schema
        assert by_column.to_pylist() == by_row.to_pylist()


@pytest.mark.parametrize("edge", [INFINITE, -INFINITE])
def test_infinite_neighbours(trainer: Trainer, edge: float) -> None:
    """An infinite value beside a threshold is a word in JSON and CSV, and a number in Arrow."""
    answers = Column("y", "nominal", np.array([0, 1, 0, 1], np.int32), ("a", "b"))
    table = Table((Column("x", "numeric", np.array([edge, 1.0, 2.0, 3.0])), answers), 4)
    record = train(TrainingRequest(table, "y"), trainer.store, trainer.settings)
    tree = Tree.from_arrays(trainer.store.load_tree(record))
    source = open_source(record, tree, trainer.store, make_recent())
    (view,) = source.view_nodes(np.array([0]), SplitQuery(sort="position"))
    assert isinstance(view, DataView)
    layout, rows = lay_out(tree, source.measures, {}), view.render(0, 9)
    assert str(edge) in str(rows).replace("Infinity", "inf")
    for write in (WRITERS[NDJSON], WRITERS[CSV]):
        assert b"".join(write(view.stream(0, 9), layout)) == b"".join(write([rows], layout))
    batches = pa.ipc.open_stream(b"".join(WRITERS[ARROW](view.stream(0, 9), layout))).read_all()
    assert edge in [*batches["below"].to_pylist(), *batches["above"].to_pylist()]
