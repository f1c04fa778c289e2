"""The audit use case: pages and their cursors, what is refused, and splits scored from counts alone."""

from __future__ import annotations

import dataclasses
from typing import Any

import numpy as np
import pytest

from service.auditing import PAGE_CELLS, list_splits, score_branches, show_tree
from service.core.errors import InvalidData, UnsuitableTask
from service.errors import InvalidRequest, NotFound
from service.listing.query import SplitQuery
from service.store.records import ModelRecord
from tests.making import Trainer


def ask(trainer: Trainer, record: ModelRecord, **query: Any) -> dict[str, Any]:  # noqa: ANN401 - fields of a query
    """One page."""
    return list_splits(record, SplitQuery(**query), trainer.store, trainer.settings)


def follow(trainer: Trainer, record: ModelRecord, **query: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - as above
    """All pages."""
    pages = [ask(trainer, record, **query)]
    while pages[-1]["next"]:
        pages.append(ask(trainer, record, **query, cursor=pages[-1]["next"]))
    return pages


@pytest.fixture
def record(trainer: Trainer) -> ModelRecord:
    """A small model with some forms of splits."""
    columns = {
        "x": [1, 2, 3, 4, 5, None, 7, 8],
        "name": ["p", "q", "r", "p", "q", "r", None, "p"],
        "y": list("aababbab"),
    }
    return trainer(columns, positive_class="b")


@pytest.mark.parametrize("limit", [1, 3, 7])
@pytest.mark.parametrize("query", [{}, {"sort": "position"}, {"top": 2}, {"measure": "twoing"}, {"feature": "name"}])
def test_pages_make_the_whole(trainer: Trainer, record: ModelRecord, query: dict[str, Any], limit: int) -> None:
    """Pages of any size hold together what one page holds, each with the heads of its nodes, `total` in all."""
    whole = ask(trainer, record, limit=1000, **query)
    pages = follow(trainer, record, limit=limit, **query)
    assert [split for page in pages for split in page["splits"]] == whole["splits"]
    assert {page["total"] for page in pages} == {len(whole["splits"])}
    for page in pages:
        assert len(page["splits"]) <= limit
        assert [head["node"] for head in page["nodes"]] == sorted({split["node"] for split in page["splits"]})
    heads = {head["node"]: head for page in pages for head in page["nodes"]}
    assert list(heads.values()) == whole["nodes"]


def test_pages_obey_the_setting(trainer: Trainer, record: ModelRecord) -> None:
    """No page is longer than the setting, whatever is asked for."""
    short = dataclasses.replace(trainer.settings, max_page=2)
    page = list_splits(record, SplitQuery(limit=1000), trainer.store, short)
    assert len(page["splits"]) == 2
    assert page["next"]


def test_a_page_through_many_rows_ends_early(trainer: Trainer) -> None:
    """Where each node has one candidate to show, a page of all nodes stops after so many cells; the next goes on."""
    rows = PAGE_CELLS // 8
    generator = np.random.default_rng(5)
    columns: dict[str, Any] = {f"x{i}": generator.integers(0, 50, rows).tolist() for i in range(5)}
    columns["y"] = [("b" if a + b > 48 else "a") for a, b in zip(columns["x0"], columns["x1"], strict=True)]
    record = trainer(columns, parameters={"max_depth": 3})
    pages = follow(trainer, record, chosen=True)
    nodes = show_tree(record, trainer.store)["nodes"]
    assert len(pages) > 1
    assert pages[0]["total"] is None
    assert len(pages[0]["splits"]) < 10
    assert [s["node"] for page in pages for s in page["splits"]] == [n["node"] for n in nodes if not n["leaf"]]
    assert ask(trainer, record, limit=1)["total"] is None
    trainer.store.note_total(record, 77)
    assert ask(trainer, trainer.store.find(record.id), limit=1)["total"] == 77
    assert ask(trainer, trainer.store.find(record.id), limit=1, chosen=True)["total"] is None


@pytest.mark.parametrize("cursor", ["", "x", "é", "MA", "OTk6MA", "MDotMQ", "0:0"])
def test_cursors_of_nowhere(trainer: Trainer, record: ModelRecord, cursor: str) -> None:
    """What is not a cursor of this listing, or of a node that is not in it, is refused at its argument."""
    with pytest.raises(InvalidRequest) as caught:
        ask(trainer, record, cursor=cursor)
    assert [fault.place for fault in caught.value.faults] == ["?cursor"]


@pytest.mark.parametrize(
    ("query", "place"), [({"feature": "z"}, "?feature"), ({"measure": "variance_reduction"}, "?measure")]
)
def test_what_is_not_there(trainer: Trainer, record: ModelRecord, query: dict[str, Any], place: str) -> None:
    """A feature or measure that the model does not have is refused with those it has."""
    with pytest.raises(InvalidRequest, match=r"there is no|has no") as caught:
        ask(trainer, record, **query)
    assert [fault.place for fault in caught.value.faults] == [place]


@pytest.mark.parametrize("node", [-1, 99])
def test_no_such_node(trainer: Trainer, record: ModelRecord, node: int) -> None:
    """A node beyond the tree is not found."""
    with pytest.raises(NotFound, match=f"no node {node}"):
        ask(trainer, record, node=node)


def test_filters_agree_with_the_whole(trainer: Trainer, record: ModelRecord) -> None:
    """Each filter gives exactly the candidates of the whole listing that it describes, in their order."""
    whole = ask(trainer, record, limit=1000)["splits"]
    for query, fits in (
        ({"node": 1}, lambda s: s["node"] == 1),
        ({"type": "missing"}, lambda s: s["split"]["type"] == "missing"),
        ({"type": "subset"}, lambda s: s["split"]["type"] == "subset"),
        ({"admissible": False}, lambda s: not s["admissible"]),
        ({"chosen": True, "feature": "x"}, lambda s: s["chosen"] and s["feature"] == "x"),
    ):
        assert ask(trainer, record, limit=1000, **query)["splits"] == [split for split in whole if fits(split)], query


def test_another_measure(trainer: Trainer, record: ModelRecord) -> None:
    """By another measure the ranks follow it, lower costs first, while `chosen` stays with what the tree took."""
    by_gain = ask(trainer, record, node=0)["splits"]
    for measure, sign in (("positive_correctness", 1), ("gini_cost", -1), ("goodness", 1)):
        page = ask(trainer, record, node=0, measure=measure)
        assert page["measure"] == measure
        ranked = [split for split in page["splits"] if split["rank"]]
        scores = [sign * split["scores"][measure] for split in ranked]
        assert scores == sorted(scores, reverse=True)
        assert [split["rank"] for split in ranked] == list(range(1, len(ranked) + 1))
        assert [s["split"] for s in page["splits"] if s["chosen"]] == [s["split"] for s in by_gain if s["chosen"]]


def test_a_leaf_is_audited_too(trainer: Trainer) -> None:
    """A node that stayed a leaf lists what it might have done, nothing of it chosen."""
    record = trainer({"x": [1, 2, 3, 4], "y": list("abab")}, parameters={"max_depth": 1})
    leaf = next(n["node"] for n in show_tree(record, trainer.store)["nodes"] if n["leaf"] and n["n"] > 1)
    page = ask(trainer, record, node=leaf)
    assert page["nodes"][0]["reason"] == "max_depth"
    assert page["splits"]
    assert not any(split["chosen"] for split in page["splits"])
    assert page["splits"][0]["rank"] == 1


# ------------------------------------------------------------------------------------------------------ scores


def test_scores_from_counts() -> None:
    """T, T, F against T: cost 1/3, gain 1/24, goodness 2 x 3/4 x 1/4 x 2/3; what needs a positive class is null."""
    scores = score_branches([{"T": 2, "F": 1}, {"T": 1}], None)
    assert scores["gini_cost"] == pytest.approx(1 / 3, rel=1e-15)
    assert scores["gini_gain"] == pytest.approx(1 / 24, rel=1e-12)
    assert scores["goodness"] == pytest.approx(0.25, rel=1e-12)
    assert (scores["positive_correctness"], scores["true_positive_rate"]) == (None, None)
    assert score_branches([{"T": 2, "F": 1}, {"T": 1}], "F")["true_positive_rate"] == 1


def test_one_branch_and_many() -> None:
    """One branch gains nothing and costs its impurity; three have no goodness."""
    alone = score_branches([{"T": 1, "F": 1}], None)
    assert (alone["gini_cost"], alone["gini_gain"], alone["gain_ratio"]) == (0.5, 0, None)
    assert score_branches([{"T": 1}, {"F": 1}, {"T": 1}], None)["goodness"] is None


@pytest.mark.parametrize(
    ("branches", "positive", "error"),
    [
        ([], None, InvalidData),
        ([{}], None, InvalidData),
        ([{"T": 0}, {"F": 0}], None, InvalidData),
        ([{"T": 1}, {"F": 1}], "X", UnsuitableTask),
        ([{"T": 1, "F": 1}, {"U": 1}], "T", UnsuitableTask),
    ],
)
def test_what_cannot_be_scored(branches: list[dict[str, float]], positive: str | None, error: type[Exception]) -> None:
    """Weights that sum to nothing, and a positive class that is not one of two, are refused."""
    with pytest.raises(error):
        score_branches(branches, positive)
