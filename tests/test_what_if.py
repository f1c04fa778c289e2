"""A described split is compared with the candidates of a large node without a listing, and the answer is the same."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from service.core.tree import Tree
from service.listing.source import DataSource, make_recent, open_source
from service.what_if import score_at
from tests.making import Trainer

ROWS = 200
SPLITS: list[tuple[str, dict[str, Any]]] = [
    *(("x", {"type": "threshold", "threshold": at}) for at in (-9, -1.01, 0.0, 0.37, 0.81, 1.9)),
    *(("z", {"type": "threshold", "threshold": at}) for at in (-0.5, 0.07)),
    ("z", {"type": "missing"}),
    ("name", {"type": "subset", "categories": [["p", "q"]]}),
]
TRAININGS: list[dict[str, Any]] = [
    {},
    {"parameters": {"criterion": "entropy", "min_samples_leaf": 9}},
    {"parameters": {"missing": "surrogate"}},
    {"algorithm": "c45"},
    {"target": "cost"},
]


@pytest.mark.parametrize("training", TRAININGS, ids=str)
def test_large_nodes(trainer: Trainer, training: dict[str, Any]) -> None:
    """At the root and its children rank, best and gap of good and bad splits are those of the whole listing."""
    generator = np.random.default_rng(5)
    x, z = generator.normal(size=ROWS).round(2), generator.normal(size=ROWS)
    columns: dict[str, list[Any]] = {
        "x": x.tolist(),
        "z": [None if i % 6 == 0 else cell for i, cell in enumerate(z.tolist())],
        "name": generator.choice(list("pqr"), ROWS).tolist(),
        "y": np.where(x + z / 2 + generator.normal(size=ROWS) / 3 > 0.4, "b", "a").tolist(),
    }
    columns["cost"] = (x + z).round(1).tolist()
    record = trainer(columns, features=["x", "z", "name"], **training)
    plain = open_source(record, Tree.from_arrays(trainer.store.load_tree(record)), trainer.store, make_recent())
    assert isinstance(plain, DataSource)
    large = DataSource(record.id, plain.audited, make_recent(), large=0, uncounted=0)
    ranks = []
    for node in range(min(plain.audited.tree.nodes, 3)):
        for feature, split in SPLITS:
            scored = score_at(plain, node, feature, split)
            assert score_at(large, node, feature, split) == scored
            ranks.append(scored["split"]["rank"])
        best = scored["best"]
        described = {name: best["split"][name] for name in ("type", "threshold", "categories") if name in best["split"]}
        first = score_at(large, node, best["feature"], described)
        assert first == score_at(plain, node, best["feature"], described)
        assert first["gap"] == 0
    assert None in ranks
    assert len(set(ranks)) > 5
