"""Where listings come from: only what is asked for is weighed, and what was weighed is used again."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any

import numpy as np
import pytest

from service.core.tree import Tree
from service.listing.query import SplitQuery
from service.listing.source import RECENT_BYTES, WHOLE, DataSource, Recent, make_recent, open_source
from service.store.cache import RecentlyUsed
from service.store.records import ModelRecord
from tests.making import Trainer

ROWS = 4_000


class Noted(RecentlyUsed[Any, Any]):
    """Room for a few things, which notes what had to be made."""

    def __init__(self, size: int = 100) -> None:
        super().__init__(size)
        self.made: list[Hashable] = []

    def get(self, key: Any, load: Callable[[], Any]) -> Any:  # noqa: ANN401 - as its base
        """The value, noted if it is new."""
        return super().get(key, lambda: (self.made.append(key), load())[1])


@pytest.fixture
def record(trainer: Trainer) -> ModelRecord:
    """A model of so many rows that its nodes are weighed in several groups."""
    generator = np.random.default_rng(3)
    columns: dict[str, list[Any]] = {f"x{i}": generator.normal(size=ROWS).tolist() for i in range(10)}
    columns["name"] = generator.choice(list("pqr"), ROWS).tolist()
    columns["y"] = np.where(generator.normal(size=ROWS) + columns["x0"] > 0, "b", "a").tolist()
    return trainer(columns, parameters={"max_depth": 4})


def open_model(trainer: Trainer, record: ModelRecord, recent: Recent) -> tuple[DataSource, Tree]:
    """Where the record's listings come from, and its tree."""
    tree = Tree.from_arrays(trainer.store.load_tree(record))
    source = open_source(record, tree, trainer.store, recent)
    assert isinstance(source, DataSource)
    return source, tree


def test_nothing_is_weighed_before_it_is_asked_for(trainer: Trainer, record: ModelRecord) -> None:
    """Looking at the first of all nodes weighs the root and no other."""
    recent = Noted()
    source, tree = open_model(trainer, record, recent)
    views = source.view_nodes(np.arange(tree.nodes), SplitQuery())
    assert recent.made == [(record.id, WHOLE)]
    assert next(views).node == 0
    assert recent.made == [(record.id, WHOLE), (record.id, 0)]
    assert [view.node for view in views] == list(range(1, tree.nodes))
    assert len(recent.made) > 4


def test_what_was_weighed_is_used_again(trainer: Trainer, record: ModelRecord) -> None:
    """Another question about the same node, also after opening the model anew, weighs nothing."""
    recent = Noted()
    for query in (SplitQuery(node=0), SplitQuery(node=0, measure="twoing"), SplitQuery(node=0, feature="name", top=2)):
        source, _ = open_model(trainer, record, recent)
        (view,) = source.view_nodes(np.array([0]), query)
        assert len(view) > 0
    assert recent.made == [(record.id, WHOLE), (record.id, 0)]


def test_the_answer_does_not_depend_on_what_is_kept(trainer: Trainer, record: ModelRecord) -> None:
    """With room for all and with room for nothing the candidates of all nodes are the same."""
    pages = []
    for recent in (make_recent(), RecentlyUsed[Any, Any](0)):
        source, tree = open_model(trainer, record, recent)
        pages.append([view.render(0, 40) for view in source.view_nodes(np.arange(tree.nodes), SplitQuery())])
    assert pages[0] == pages[1]


def test_what_is_kept_is_bounded(trainer: Trainer, record: ModelRecord) -> None:
    """A listing counts with at least its candidates' class weights, scores and ranks, so the bound is one of memory."""
    sizes = []

    class Weighed(Noted):
        def get(self, key: Any, load: Callable[[], Any]) -> Any:  # noqa: ANN401 - as its base
            value = super().get(key, load)
            sizes.append(value.count_bytes())
            return value

    source, _ = open_model(trainer, record, Weighed())
    (view,) = source.view_nodes(np.array([0]), SplitQuery())
    assert sizes[1] > len(view) * 8 * (2 * 2 + 2)
    assert sum(sizes) < RECENT_BYTES


def test_by_position_and_by_rank(trainer: Trainer, record: ModelRecord) -> None:
    """Both orders have the same candidates; `top` takes the best of them in either."""
    source, _ = open_model(trainer, record, make_recent())
    shown = {}
    for sort in ("rank", "position"):
        (view,) = source.view_nodes(np.array([1]), SplitQuery(sort=sort, top=25))  # type: ignore[arg-type] # two literals
        shown[sort] = view.render(0, 25)
    assert [split["rank"] for split in shown["rank"]] == list(range(1, 26))
    assert sorted(shown["position"], key=lambda split: split["rank"]) == shown["rank"]
    features = [split["feature"] for split in shown["position"]]
    assert features == sorted(features, key=[*(f"x{i}" for i in range(10)), "name"].index)
