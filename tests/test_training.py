"""The training use case: what a record says, what is kept, and what parameters do to a tree."""

from __future__ import annotations

import dataclasses
import hashlib
import json
import platform
import struct
from collections import Counter
from typing import Any

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service import __version__
from service.auditing import list_splits, show_tree
from service.core.errors import CoreError
from service.core.schema import Column, Table
from service.errors import NotRetained
from service.listing.query import SplitQuery
from service.prediction import Picked, predict
from service.provenance import hash_data
from service.readers.cells import Declared
from service.settings import Settings
from service.store.records import ModelRecord
from service.telemetry import ACTOR
from service.training import TrainingRequest, train
from tests.making import Trainer, make_table

SLOWLY = settings(max_examples=25, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
XOR = {"a": [0, 0, 1, 1], "b": [0, 1, 0, 1], "y": list("nyyn")}
LINE = {"x": [1, 2, 3, 4, 5, 6], "y": list("aababb")}


def tree_of(trainer: Trainer, record: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - a record
    """The nodes of a model."""
    nodes: list[dict[str, Any]] = show_tree(record, trainer.store)["nodes"]
    return nodes


def share_rows(trainer: Trainer, record: ModelRecord, asked: Table) -> npt.NDArray[np.float64]:
    """(row, class) the probabilities of the rows."""
    picked: Picked = predict(record, asked, trainer.store)["probabilities"]
    return picked.items[picked.which]


def shape_of(trainer: Trainer, record: Any) -> list[Any]:  # noqa: ANN401 - a record
    """The splits and answers of a model, node by node."""
    return [(node["feature"], node["split"], node["prediction"]) for node in tree_of(trainer, record)]


# ------------------------------------------------------------------------------------------------------- warnings


@pytest.mark.parametrize(
    ("columns", "more", "warning"),
    [
        ({"x": [1, 2], "y": ["a", "a"]}, {}, 'target "y" is constant'),
        ({"x": [1], "y": ["a"]}, {}, "only one row"),
        ({"y": ["a", "b"]}, {}, "no feature"),
        ({"x": [1, 1], "y": ["a", "b"]}, {}, "no split is admissible"),
        (XOR, {}, "no split is admissible"),
        ({"x": [1, 2, 3], "y": [1, 2, 2]}, {}, '"task": "classification"'),
    ],
)
def test_warnings(trainer: Trainer, columns: dict[str, Any], more: dict[str, Any], warning: str) -> None:
    """A model that may not be what was meant says why, in one warning."""
    (told,) = trainer(columns, **more).body["warnings"]
    assert warning in told


@pytest.mark.parametrize(
    ("columns", "parameters"),
    [
        (LINE, {}),
        (LINE, {"max_depth": 0}),
        (LINE, {"max_leaf_nodes": 1}),
        ({"x": [1, 2, 3], "y": [1.5, 2.0, 2.0]}, {}),
        ({"x": [1, 2, 3] * 4, "y": list(range(12))}, {}),
    ],
)
def test_no_warning(trainer: Trainer, columns: dict[str, Any], parameters: dict[str, Any]) -> None:
    """What was asked for, and a target that is clearly a number, are no reason to warn."""
    assert trainer(columns, parameters=parameters).body["warnings"] == []


def test_the_depth_of_the_service_is_told(trainer: Trainer) -> None:
    """Growth that the service's limit stopped says so; a request for more is refused at the parameter."""
    shallow = Trainer(trainer.store, dataclasses.replace(trainer.settings, max_depth=2))
    record = shallow({"x": list(range(16)), "y": list("ab" * 8)})
    assert record.body["tree"]["depth"] == 2
    assert record.body["parameters"]["max_depth"] is None
    assert "stopped at depth 2" in record.body["warnings"][0]
    with pytest.raises(CoreError, match="/parameters/max_depth"):
        shallow(LINE, parameters={"max_depth": 3})


# ------------------------------------------------------------------------------------------------------ the record


def test_the_record(trainer: Trainer) -> None:
    """A record has the parameters resolved, the schema, sizes, the fit and the seconds that the clock says."""
    ticks = iter([10.0, 12.5])
    request = TrainingRequest(make_table(LINE), "y", positive_class="b", name="line", tags={"k": "v"})
    record = train(request, trainer.store, trainer.settings, clock=lambda: next(ticks))
    body = record.body
    assert body["training"]["seconds"] == 2.5
    assert (body["training"]["rows"], body["training"]["columns"]) == (6, 1)
    assert body["schema"] == {
        "features": [{"name": "x", "kind": "numeric"}],
        "target": {"name": "y", "kind": "nominal", "classes": ["a", "b"], "positive_class": "b"},
    }
    assert (body["parameters"]["criterion"], body["task"]) == ("gini", "classification")
    assert body["tree"] == {"nodes": 7, "leaves": 4, "depth": 3}
    assert body["metrics"] == {"accuracy": 1.0}
    assert (record.name, record.version, record.tags) == ("line", 1, {"k": "v"})


def test_the_fit_of_a_regression(trainer: Trainer) -> None:
    """By hand: the stump parts .5, .5, 3.5 from 9.5, which leaves squares of 1 + 1 + 4 of 54."""
    metrics = trainer({"x": [1, 2, 3, 4], "y": [0.5, 0.5, 3.5, 9.5]}, parameters={"max_depth": 1}).body["metrics"]
    assert metrics == pytest.approx({"r2": 1 - 6 / 54, "mae": 1.0, "rmse": 1.5**0.5}, rel=1e-12)


@pytest.mark.parametrize(
    ("target", "more", "task"),
    [
        (["a", "b", "a", "b"], {}, "classification"),
        ([True, False, True, False], {}, "classification"),
        ([1, 2, 1, 2], {}, "regression"),
        ([1, 2, 1, 2], {"task": "classification"}, "classification"),
        ([1, 2, 1, 2], {"positive_class": 2}, "classification"),
        ([1, 2, 1, 2], {"algorithm": "c45"}, "classification"),
        ([1, 2, 1, 2], {"algorithm": "j48"}, "classification"),
        ([1, 2, 1, 2], {"parameters": {"criterion": "entropy"}}, "classification"),
    ],
)
def test_the_task_is_found(trainer: Trainer, target: list[Any], more: dict[str, Any], task: str) -> None:
    """The task follows from what was asked for, else from the target's kind."""
    assert trainer({"x": [1, 2, 3, 4], "y": target}, **more).body["task"] == task


def test_only_classes_that_occur(trainer: Trainer) -> None:
    """Declared categories of the target without a row are no classes; those that occur keep the order given."""
    declared = {"y": Declared("ordinal", ("low", "middle", "high"))}
    request = TrainingRequest(make_table({"x": [1, 2], "y": ["high", "low"]}, declared), "y")
    record = train(request, trainer.store, trainer.settings)
    assert record.body["schema"]["target"]["classes"] == ["low", "high"]


# ------------------------------------------------------------------------------------------------------ the hash


def column(name: str = "x", cells: Any = (1, 2), kind: Any = "numeric", known: Any = ()) -> Column:  # noqa: ANN401 - any
    """A column of whole numbers, or of codes."""
    return Column(name, kind, np.array(cells, np.int64 if kind == "numeric" else np.int32), tuple(known))


def test_the_hash_names_the_data(trainer: Trainer) -> None:
    """Equal data have one hash; another value, order, name, kind, category or gap has another."""
    gap = dataclasses.replace(column(), missing=np.array([False, True]))
    other = [
        column(cells=(1, 3)), column(cells=(2, 1)), column("z"), column(kind="nominal", cells=(0, 1), known="ab"),
        column(kind="nominal", cells=(0, 1), known="ac"), column(kind="ordinal", cells=(0, 1), known="ab"), gap,
        Column("x", "numeric", np.array([1.0, 2.0])),
    ]  # fmt: skip
    hashes = {hash_data([column()]), hash_data([column(), column()]), *(hash_data([one]) for one in other)}
    assert len(hashes) == len(other) + 2
    assert hash_data([column()]) == hash_data([column()])
    assert trainer(LINE).body["training"]["data_sha256"] == trainer(LINE).body["training"]["data_sha256"]


def test_what_the_hash_is_of(trainer: Trainer) -> None:
    """Weights belong to the data; other columns, and rows that were not learnt from, do not."""
    line = {**LINE, "w": [1.0, 2.0] * (len(LINE["x"]) // 2) + [1.0] * (len(LINE["x"]) % 2)}
    weighted = trainer(line, features=("x",), weight="w").body["training"]
    plain = trainer(line, features=("x",)).body["training"]
    assert (weighted["weight"], plain["weight"]) == ("w", None)
    assert plain["data_sha256"] == trainer(LINE, features=("x",)).body["training"]["data_sha256"]
    longer = {"x": [*line["x"], 7], "y": [*line["y"], line["y"][0]], "w": [*line["w"], 0]}
    again = trainer(longer, features=("x",), weight="w").body["training"]
    hashes = {plain["data_sha256"], weighted["data_sha256"], again["data_sha256"]}
    assert (len(hashes), again["data_sha256"]) == (2, weighted["data_sha256"])


def test_the_canonical_form(trainer: Trainer) -> None:
    """The hash can be worked out by hand, from what the documentation says of it."""
    columns = {
        "n": [3, None, 5, 7], "x": [0.5, 1.5, None, 2.5], "c": ["b", "a", None, "b"], "y": ["q", "p", "r", "p"],
        "w": [1, 2, 0, 1],
    }  # fmt: skip
    parts = [
        json.dumps(["n", "numeric", [], "<i8"]).encode(), struct.pack("<3q", 3, 0, 7), bytes([0, 1, 0]),
        json.dumps(["x", "numeric", [], "<f8"]).encode(), struct.pack("<3d", 0.5, 1.5, 2.5),
        json.dumps(["c", "nominal", ["a", "b"], "<i4"]).encode(), struct.pack("<3i", 1, 0, 1),
        json.dumps(["y", "nominal", ["p", "q"], "<i4"]).encode(), struct.pack("<3i", 1, 0, 0),
        json.dumps(["w", "numeric", [], "<i8"]).encode(), struct.pack("<3q", 1, 2, 1),
    ]  # fmt: skip
    record = trainer(columns, weight="w")
    assert record.body["training"]["data_sha256"] == hashlib.sha256(b"".join(parts)).hexdigest()


def test_where_a_model_comes_from(trainer: Trainer) -> None:
    """The record names the releases that decide its digits, the rule of ties, and that no key asked."""
    origin = trainer(LINE).body["provenance"]
    versions = {"treewright": __version__, "numpy": np.__version__, "python": platform.python_version()}
    assert origin == {"versions": versions, "tie_rule": 1, "asked_by": None}


def test_who_asked(trainer: Trainer) -> None:
    """Where a key asks, the record and the audit log have its id."""
    token = ACTOR.set("key-7")
    try:
        record = trainer(LINE)
    finally:
        ACTOR.reset(token)
    made = trainer.store.log.find_made(record.id)
    assert made is not None
    assert (record.body["provenance"]["asked_by"], made.actor) == ("key-7", "key-7")


# ------------------------------------------------------------------------------------------------------ weights


@SLOWLY
@given(
    st.lists(
        st.tuples(st.integers(0, 5), st.sampled_from("ab"), st.sampled_from([0, 1, 2])), min_size=1, max_size=15
    ).filter(lambda rows: any(weight for *_, weight in rows))
)
def test_weights_are_repeated_rows(trainer: Trainer, rows: list[tuple[int, str, int]]) -> None:
    """Weight 0 is no row, weight 2 is two: without limits the tree is that of the rows written out."""
    weighted = {"x": [x for x, _, _ in rows], "y": [y for _, y, _ in rows], "w": [w for *_, w in rows]}
    repeated = [row for row in rows for _ in range(row[2])]
    plain = {"x": [x for x, _, _ in repeated], "y": [y for _, y, _ in repeated]}
    assert shape_of(trainer, trainer(weighted, weight="w")) == shape_of(trainer, trainer(plain))


@pytest.mark.parametrize("weights", [[1, -1, 1], [1, None, 1]])
def test_what_is_no_weight(trainer: Trainer, weights: list[Any]) -> None:
    """A negative or missing weight is a fault at its cell."""
    with pytest.raises(CoreError) as caught:
        trainer({"x": [1, 2, 3], "y": list("aab"), "w": weights}, weight="w")
    assert [fault.place for fault in caught.value.faults] == ["/data/columns/w/1"]


def test_no_row_is_left(trainer: Trainer) -> None:
    """Rows that all weigh nothing, or all lack a target that may be dropped, are no data."""
    with pytest.raises(CoreError, match="/data: no row"):
        trainer({"x": [1, 2], "y": list("ab"), "w": [0, 0]}, weight="w")
    with pytest.raises(CoreError, match="/data: no row"):
        trainer({"x": [1, 2], "y": [None, None]}, missing_target="drop", task="regression")


# ------------------------------------------------------------------------------------------------------ parameters


def test_class_weights_are_weights(trainer: Trainer) -> None:
    """Weighing class b three times gives the tree and the probabilities of weighing its rows so."""
    rows = {"x": [1, 1, 1, 2, 2, 3, 3, 3], "y": list("aabaabbb")}
    heavy = trainer(rows, parameters={"class_weight": {"a": 1, "b": 3}, "max_depth": 1})
    by_row = {**rows, "w": [3 if y == "b" else 1 for y in rows["y"]]}
    expected = trainer(by_row, weight="w", parameters={"max_depth": 1})
    asked = make_table({"x": [1, 2, 3]})
    assert shape_of(trainer, heavy) == shape_of(trainer, expected)
    left, right = (share_rows(trainer, record, asked) for record in (heavy, expected))
    assert left == pytest.approx(right, rel=1e-12)
    assert tree_of(trainer, heavy)[0]["counts"] == [4, 4], "the counts stay those of the data"


def test_balanced_is_equal_priors(trainer: Trainer) -> None:
    """Balanced class weights and equal priors give the same tree and probabilities, of one half at the root."""
    rows = {"x": [1, 2, 3, 4, 5, 6, 7, 8], "y": list("aaaababa")}
    balanced = trainer(rows, parameters={"class_weight": "balanced"})
    priors = trainer(rows, parameters={"priors": {"a": 1, "b": 1}})
    assert shape_of(trainer, balanced) == shape_of(trainer, priors)
    stump = trainer(rows, parameters={"priors": {"a": 1, "b": 1}, "max_depth": 0})
    assert share_rows(trainer, stump, make_table({"x": [1]})).tolist() == [[pytest.approx(0.5), pytest.approx(0.5)]]


def test_a_loss_changes_answers_and_not_probabilities(trainer: Trainer) -> None:
    """Where missing b costs nine times as much, a leaf of one b and four a answers b, and still says one fifth."""
    rows = {"x": [1] * 5, "y": list("aaaab")}
    record = trainer(rows, parameters={"loss": [[0, 1], [9, 0]]})
    asked = make_table({"x": [1]})
    assert predict(record, asked, trainer.store)["predictions"] == ["b"]
    assert share_rows(trainer, record, asked).tolist() == [[0.8, 0.2]]


@pytest.mark.parametrize(
    ("parameters", "place"),
    [
        ({"priors": {"a": 1}}, "/parameters/priors"),
        ({"class_weight": {"a": 1, "b": 1, "c": 1}}, "/parameters/class_weight"),
        ({"loss": [[0, 1, 1], [1, 0, 1], [1, 1, 0]]}, "/parameters/loss"),
        ({"monotonic": {"z": "up"}}, "/parameters/monotonic/z"),
        ({"monotonic": {"name": "up"}}, "/parameters/monotonic/name"),
    ],
)
def test_parameters_that_do_not_fit_the_data(trainer: Trainer, parameters: dict[str, Any], place: str) -> None:
    """Classes and features that are not there are faults at the parameter."""
    with pytest.raises(CoreError) as caught:
        trainer({**LINE, "name": list("pqpqpq")}, parameters=parameters)
    assert [fault.place for fault in caught.value.faults] == [place]


def test_monotonic_classes(trainer: Trainer) -> None:
    """A dip in an otherwise rising share is smoothed away when the feature is said to go up, and only then."""
    rows = {"x": [1, 1, 2, 2, 3, 3, 4, 4], "y": list("aaabaabb")}
    free, bound = trainer(rows), trainer(rows, parameters={"monotonic": {"x": "up"}})
    asked = make_table({"x": [1, 2, 3, 4]})
    shares = [share_rows(trainer, record, asked)[:, 1].tolist() for record in (free, bound)]
    assert shares[0] == [0, 0.5, 0, 1]
    assert shares[1] == sorted(shares[1])
    assert shares[1][3] == 1


# ------------------------------------------------------------------------------------------------------ retention


def test_what_is_kept(trainer: Trainer) -> None:
    """Data keep every candidate, a summary the best of each feature with their ranks among all, none nothing."""
    rows = {"x": list(range(20)), "z": [i * 7 % 20 for i in range(20)], "y": list("ab" * 5 + "ba" * 5)}
    few = Trainer(trainer.store, dataclasses.replace(trainer.settings, summary_splits=2))
    whole, brief, nothing = (
        few(rows, retain=kept, parameters={"max_depth": 2}) for kept in ("data", "summary", "none")
    )

    def ask(record: Any, **query: Any) -> dict[str, Any]:  # noqa: ANN401 - a record and its query
        return list_splits(record, SplitQuery(limit=1000, **query), few.store, few.settings)

    full, kept = ask(whole), ask(brief)
    assert kept["retention"] == "summary"
    assert kept["warnings"]
    assert not full["warnings"]
    assert kept["nodes"] == full["nodes"]
    expected, taken = [], Counter[tuple[int, str]]()
    for split in full["splits"]:  # best first
        place = (split["node"], split["feature"])
        if split["rank"] is not None and taken[place] < 2:
            expected.append(split)
            taken[place] += 1
    ranked = [split for split in kept["splits"] if split["rank"] is not None]
    assert ranked == expected
    assert len(ranked) < len(full["splits"]) / 2
    assert ask(brief, chosen=True)["splits"] == ask(whole, chosen=True)["splits"]
    with pytest.raises(NotRetained, match="retain"):
        ask(nothing)


def test_retention_follows_the_setting(trainer: Trainer) -> None:
    """What a request leaves open the setting decides."""
    frugal = Trainer(trainer.store, dataclasses.replace(trainer.settings, retain="none"))
    assert frugal(LINE).retention == "none"
    assert frugal(LINE, retain="data").retention == "data"


def test_limits_are_settings(trainer: Trainer) -> None:
    """More classes than the setting allows are refused with its name; a huge target is refused at its cell."""
    strict = Trainer(trainer.store, Settings(models_url=trainer.settings.models_url, max_classes=2))
    with pytest.raises(CoreError, match="TREEWRIGHT_MAX_CLASSES"):
        strict({"x": [1, 2, 3], "y": list("abc")})
    with pytest.raises(CoreError, match="/data/columns/y/2"):
        trainer({"x": [1, 2, 3], "y": [0.5, 1.5, 1e200]})
