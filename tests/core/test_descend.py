"""The three ways down a tree agree: many rows at once, one row alone, and a walk that does what the docs say."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.core import guide
from service.core.candidates import NO_ROUTE, Form
from service.core.descend import descend
from service.core.descend_one import OneRow, Value
from service.core.learn import learn
from service.core.parameters import resolve
from service.core.schema import MISSING, UNSEEN, Column, Feature, Target
from service.core.tree import Tree, find_heaviest_branches

LEVELS = 3
INTEGERS = [-(2**63), -2, -1, 0, 1, 2**53, 2**53 + 1, 2**53 + 2, 2**63 - 2, 2**63 - 1]
FLOATS = [-np.inf, -1e300, -1.5, -0.0, 0.0, 0.1, 2.0**53, 1e300, np.inf]
FEATURES = (
    Feature("float", "numeric"),
    Feature("whole", "numeric", integer=True),
    Feature("nominal", "nominal", ("a", "b", "c")),
    Feature("boolean", "boolean", (False, True)),
    Feature("ordinal", "ordinal", ("S", "M", "L")),
)
CELLS: dict[str, st.SearchStrategy[Value]] = {
    "float": st.none() | st.sampled_from(FLOATS),
    "whole": st.none() | st.sampled_from(INTEGERS),
    "nominal": st.none() | st.sampled_from([UNSEEN, 0, 1, 2]),
    "boolean": st.none() | st.sampled_from([UNSEEN, 0, 1]),
    "ordinal": st.none() | st.sampled_from([UNSEEN, 0, 1, 2]),
}
FORMS = {
    "float": [Form.THRESHOLD, Form.MISSING],
    "whole": [Form.THRESHOLD, Form.MISSING],
    "nominal": [Form.SUBSET, Form.MULTIWAY, Form.MISSING],
    "boolean": [Form.SUBSET, Form.MISSING],
    "ordinal": [Form.THRESHOLD, Form.MULTIWAY, Form.MISSING],
}


def walk(tree: Tree, row: Sequence[Value]) -> int:
    """What the documentation says, for one row and one node after the other."""
    heaviest = find_heaviest_branches(tree)
    node = 0
    while tree.form[node] != Form.LEAF:
        feature = tree.features[tree.feature[node]]
        value, form = row[int(tree.feature[node])], tree.form[node]
        if value is None:
            learnt = 0 if form == Form.MISSING else int(tree.missing_to[node])
            branch = int(heaviest[node]) if learnt == NO_ROUTE else learnt
        elif form == Form.MISSING:
            branch = 1
        elif feature.kind == "numeric":
            # numpy's scalars compare as its arrays do
            whole = isinstance(value, int)
            branch = int(not (np.int64(value) <= tree.whole[node] if whole else value <= tree.threshold[node]))
        elif value == UNSEEN:
            return node
        elif feature.kind == "ordinal" and form == Form.THRESHOLD:
            branch = int(value > tree.whole[node])
        else:
            branch = int(tree.category_branch[tree.category_start[node] + value])
        if branch == NO_ROUTE:
            return node
        node = int(tree.first_child[node]) + branch
    return node


@st.composite
def trees(draw: st.DrawFn, names: Sequence[str] = tuple(CELLS)) -> Tree:
    """Any tree over some of the features, valid in its layout, with every form that suits them."""
    features = tuple(feature for feature in FEATURES if feature.name in names)
    nodes: list[dict[str, Any]] = [{"parent": -1, "depth": 0}]
    routes: list[int] = []
    for at, node in enumerate(nodes):  # it grows meanwhile
        if len(nodes) > 40 or node["depth"] == 8 or draw(st.integers(0, 3)) == 0:
            continue
        place = draw(st.integers(0, len(features) - 1))
        feature = features[place]
        form = draw(st.sampled_from(FORMS[feature.name]))
        branches = draw(st.integers(2, 3)) if form != Form.MISSING else 2
        node |= {"feature": place, "form": form, "first_child": len(nodes), "branches": branches}
        node["missing_to"] = draw(st.integers(NO_ROUTE, branches - 1)) if form != Form.MISSING else 0
        node["category_start"] = len(routes)
        if form in (Form.SUBSET, Form.MULTIWAY):
            routes += draw(st.lists(st.integers(NO_ROUTE, branches - 1), min_size=LEVELS, max_size=LEVELS))
        if form == Form.THRESHOLD:
            node["threshold"] = draw(st.sampled_from(FLOATS))
            node["whole"] = draw(st.integers(0, LEVELS - 1) if feature.kind == "ordinal" else st.sampled_from(INTEGERS))
        nodes += [{"parent": at, "depth": node["depth"] + 1} for _ in range(branches)]
    for node in nodes:
        node["weight"] = float(draw(st.integers(0, 3)))
    return build(features, nodes, routes)


def build(features: tuple[Feature, ...], nodes: Sequence[dict[str, Any]], routes: Sequence[int] = ()) -> Tree:
    """The tree of these nodes, which weigh 1 where they do not say."""
    blank = np.zeros(len(nodes))

    def integers(name: str, default: int = 0) -> NDArray[np.int64]:
        return np.array([node.get(name, default) for node in nodes], np.int64)

    return Tree(
        features=features,
        classes=("x",),
        **{name: integers(name) for name in ("parent", "depth", "form", "first_child", "branches", "whole")},
        feature=integers("feature", -1),
        missing_to=integers("missing_to", NO_ROUTE),
        category_start=integers("category_start"),
        threshold=np.array([node.get("threshold", np.nan) for node in nodes]),
        category_branch=np.array([*routes, NO_ROUTE], np.int64),
        weight=np.array([node.get("weight", 1.0) for node in nodes]),
        beside=np.zeros((2, len(nodes))),
        beside_whole=np.zeros((2, len(nodes)), np.int64),
        rows=integers("rows"),
        reason=integers("reason"),
        counts=np.zeros((1, len(nodes))),
        probability=np.ones((len(nodes), 1)),
        **dict.fromkeys(("mean", "impurity", "prediction", "score"), blank),
    )


def to_columns(features: Sequence[Feature], rows: Sequence[Sequence[Value]]) -> list[Column]:
    """The table of some rows, as it stands after `conform`."""
    columns = []
    for feature, cells in zip(features, zip(*rows, strict=True), strict=True):
        missing = np.array([cell is None for cell in cells])
        if feature.kind != "numeric":
            values: Any = np.array([MISSING if cell is None else cell for cell in cells], np.int32)
            columns.append(Column(feature.name, feature.kind, values, feature.categories))
        elif feature.integer:
            values = np.array([0 if cell is None else cell for cell in cells], np.int64)
            columns.append(Column(feature.name, "numeric", values, missing=missing if missing.any() else None))
        else:
            columns.append(Column(feature.name, "numeric", np.array(cells, np.float64)))
    return columns


def check_agreement(tree: Tree, rows: list[list[Value]]) -> list[int]:
    """Assert that the three ways agree for these rows; gives the nodes."""
    expected = [walk(tree, row) for row in rows]
    short = OneRow(tree)
    assert descend(tree, to_columns(tree.features, rows), len(rows)).node.tolist() == expected
    assert [short.descend(row) for row in rows] == expected
    return expected


@given(st.data())
def test_the_ways_agree(data: st.DataObject) -> None:
    """All forms and kinds, missing and unseen cells, infinities, whole numbers past 2^53 and at the ends of int64."""
    names = data.draw(st.sets(st.sampled_from(list(CELLS)), min_size=1))
    tree = data.draw(trees(tuple(names)))
    row = st.tuples(*(CELLS[feature.name] for feature in tree.features)).map(list)
    check_agreement(tree, data.draw(st.lists(row, min_size=1, max_size=30)))


@given(trees(("float",)), st.lists(CELLS["float"], min_size=1, max_size=30))
def test_nan_is_missing(tree: Tree, cells: list[Value]) -> None:
    """A single row may say NaN for a missing number, as a column does."""
    short = OneRow(tree)
    as_nan = [[float("nan") if cell is None else cell] for cell in cells]
    assert [short.descend(row) for row in as_nan] == [walk(tree, [cell]) for cell in cells]


@given(trees(("whole",)), st.lists(st.sampled_from(FLOATS), min_size=1, max_size=20))
def test_floats_where_training_had_whole_numbers(tree: Tree, cells: list[float]) -> None:
    """A column of floats is compared with the float64 beside the whole threshold, in a batch and alone."""
    column = Column("whole", "numeric", np.array(cells))
    assert descend(tree, [column], len(cells)).node.tolist() == [OneRow(tree).descend([cell]) for cell in cells]


@pytest.mark.parametrize("name", list(CELLS))
def test_blocks(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that end where a block ends, begin a next one, or fill several shares are answered in their order."""
    monkeypatch.setattr(guide, "BLOCK", 8)
    feature = next(feature for feature in FEATURES if feature.name == name)
    form = FORMS[name][0]
    root = {"parent": -1, "depth": 0, "feature": 0, "form": form, "first_child": 1, "branches": 3, "threshold": 0.0,
            "missing_to": 2}  # fmt: skip
    children = [{"parent": 0, "depth": 1} for _ in range(3)]
    tree = build((feature,), [root, *children], [0, 1, 1])
    values: list[Value] = [0 if name != "float" else 0.0, 1 if name != "float" else 0.1, None]
    for count in (1, 7, 8, 9, 16, 65, 400):
        rows = [[values[row * row % 7 % 3]] for row in range(count)]
        assert set(check_agreement(tree, rows)) <= {1, 2, 3}


@given(
    st.lists(st.sampled_from(FLOATS), min_size=15, max_size=15),
    st.lists(st.tuples(*[st.sampled_from(FLOATS)] * 2), min_size=1, max_size=20),
    st.booleans(),
    st.integers(2, 3),
)
def test_no_leaf_near_the_root(limits: list[float], rows: list[tuple[float, ...]], gap: bool, branches: int) -> None:
    """A tree of four full levels of floats, whose first ones are asked by column, with a missing cell and without."""
    nodes: list[dict[str, Any]] = [{"parent": -1, "depth": 0}]
    for at, node in enumerate(nodes):  # it grows meanwhile
        if node["depth"] < 4:
            node |= {"feature": at % 2, "form": Form.THRESHOLD, "first_child": len(nodes), "branches": branches}
            node |= {"threshold": limits[at % 15], "missing_to": branches - 1}
            nodes += [{"parent": at, "depth": node["depth"] + 1} for _ in range(branches)]
    tree = build((Feature("x", "numeric"), Feature("y", "numeric")), nodes)
    given_rows: list[list[Value]] = [list(row) for row in rows]
    if gap:
        given_rows[-1][0] = None
    assert {int(tree.depth[node]) for node in check_agreement(tree, given_rows)} == {4}


@pytest.mark.parametrize("depth", [1, 2, 3, 5, 12, 13, None])
@pytest.mark.parametrize("gap", [False, True])
def test_past_the_ladder(depth: int | None, gap: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    """A grown tree of any depth, uneven below its full levels, is descended by many rows as by each alone."""
    monkeypatch.setattr(guide, "BLOCK", 300)
    generator = np.random.default_rng(5)
    cells = generator.normal(size=(2000, 3))
    columns = [Column(f"x{i}", "numeric", cells[:, i].copy()) for i in range(3)]
    target = Target("y", ("a", "b"), (generator.random(2000) < 0.3 + 0.4 * (cells[:, 0] > 0.8)).astype(np.int32))
    tree = learn(columns, target, resolve("cart", {"max_depth": depth}, "classification")).tree
    assert depth is not None or tree.depth.max() > 13
    if gap:
        columns[1].values[700] = np.nan
    one = OneRow(tree)
    expected = [one.descend([float(column.values[row]) for column in columns]) for row in range(2000)]
    assert descend(tree, columns, 2000).node.tolist() == expected


def test_three_thousand_levels() -> None:
    """A chain of 3,000 splits is descended by every row, without recursion."""
    count = 3001
    y = np.arange(count) % 2
    target = Target("y", ("a", "b"), y.astype(np.int32))
    column = Column("x", "numeric", np.arange(count, dtype=np.float64))
    nodes: list[dict[str, Any]] = [{"parent": -1, "depth": 0}]
    for level in range(3000):
        at = len(nodes) - 1
        nodes[at] |= {"feature": 0, "form": Form.THRESHOLD, "first_child": len(nodes), "branches": 2}
        nodes[at]["threshold"] = float(level)
        nodes += [{"parent": at, "depth": level + 1} for _ in range(2)]
    chain = build((Feature("x", "numeric"),), nodes)
    ends = descend(chain, [column], count).node.tolist()
    assert ends == [1 + 2 * row for row in range(3000)] + [6000]
    some = [0, 1, 1500, 2999, 3000]
    assert check_agreement(chain, [[float(row)] for row in some]) == [ends[row] for row in some]
    learnt = learn([column], target, resolve("cart", {}, "classification")).tree
    assert learnt.prediction[descend(learnt, [column], count).node].tolist() == y.tolist()


def test_a_single_leaf() -> None:
    """A tree that is one leaf has every row there, also without features."""
    leaf = build((), [{"parent": -1, "depth": 0}])
    assert descend(leaf, [], 3).node.tolist() == [0, 0, 0]
    assert OneRow(leaf).descend([]) == 0
