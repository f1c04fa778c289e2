"""J48's pruned trees, as Weka 3.6.14 prints them: error-based with raising and collapsing, binary, reduced-error."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

from service.core.folds import take_rows
from service.core.learn import learn
from service.core.parameters import resolve
from service.core.prune_cost import Costs
from service.core.prune_cut import cut_back
from service.core.prune_ends import find_ends
from service.core.prune_reduced import find_idle
from service.core.schema import Column, Target
from service.core.tree import LeafReason
from service.rendering.nodes import show_tree_node
from tests.oracle.contract import Service
from tests.reference.weka import (
    print_tree,
    read_confusion,
    read_printed,
    read_size,
    read_summary,
    read_table,
    train,
)

NAMES = ["weather_nominal", "weather_numeric", "iris", "labor", "vote", "breast_cancer"]
"""The last three lack values."""
VARIANTS: dict[str, dict[str, Any]] = {"default": {}, "-U": {"pruning": None}, "-B": {"nominal": "one_vs_rest"}}


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variant", ["default", "-U", "-B"])
def test_j48(service: Service, name: str, variant: str) -> None:
    """J48 with its default options, without pruning (collapsed all the same), and with binary splits."""
    nodes = train(service, name, {"algorithm": "j48", "parameters": VARIANTS[variant]})
    assert print_tree(nodes, binary=variant == "-B") == read_printed(name, variant)
    assert (sum(node["leaf"] for node in nodes), len(nodes)) == read_size(name, variant)


@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("variant", ["default", "-U", "-B"])
def test_j48_answers(service: Service, name: str, variant: str) -> None:
    """All training rows are answered as by J48, those with gaps by the same shares: its confusion matrix and errors."""
    columns, schema = read_table(name)
    target = list(columns)[-1]
    asked = {"algorithm": "j48", "schema": schema, "parameters": VARIANTS[variant]}
    answer = service.predict(service.train(columns, target, asked), {k: v for k, v in columns.items() if k != target})
    classes = schema[target]["categories"]
    true, given = (
        np.array([classes.index(mark) for mark in marks]) for marks in (columns[target], answer["predictions"])
    )
    confusion = np.zeros((len(classes), len(classes)), int)
    np.add.at(confusion, (true, given), 1)
    assert confusion.tolist() == read_confusion(name, variant)
    error = np.array(answer["probabilities"]) - (true[:, None] == np.arange(len(classes)))
    assert np.abs(error).mean() == pytest.approx(read_summary(name, variant, "Mean absolute error"), abs=5.1e-5)
    assert np.sqrt((error**2).mean()) == pytest.approx(
        read_summary(name, variant, "Root mean squared error"), abs=5.1e-5
    )


@pytest.mark.parametrize("name", ["iris", "labor", "vote", "breast_cancer"])
@pytest.mark.parametrize("variant", ["default", "-U", "-B"])
def test_j48_audit(service: Service, name: str, variant: str) -> None:
    """Each split is among its node's candidates with the score that the tree says, the best of them unless raised."""
    columns, schema = read_table(name)
    asked = {"algorithm": "j48", "schema": schema, "parameters": VARIANTS[variant]}
    model = service.train(columns, list(columns)[-1], asked)
    nodes = service.tree(model)
    chosen = service.splits(model, {"chosen": "true"})
    assert [split["node"] for split in chosen] == [node["node"] for node in nodes if not node["leaf"]]
    for split in chosen:
        node = nodes[split["node"]]
        assert (split["feature"], split["split"]) == (node["feature"], node["split"])
        assert split["rank"] == 1 or node["reason"] == "raised"
        # what a cut would pay among the rows that came later is worked out by the listing alone
        assert node["score"] is None or split["score"] == pytest.approx(node["score"], rel=1e-9)


def stratify(classes: Sequence[int], folds: int) -> list[int]:
    """The rows in the order that Weka's Instances.stratify gives them: sorted by class by swaps, then dealt out."""
    order = list(range(len(classes)))
    index = 1
    while index < len(order):
        for other in range(index, len(order)):
            if classes[order[other]] == classes[order[index - 1]]:
                order[index], order[other] = order[other], order[index]
                index += 1
        index += 1
    return [order[place] for start in range(folds) for place in range(start, len(order), folds)]


def read_problem(name: str) -> tuple[list[Column], Target]:
    """The columns and the target of a data set, whose last column it is, in Weka's order of categories."""
    cells, schema = read_table(name)
    columns = []
    for column, values in cells.items():
        if column in schema:
            known = schema[column]["categories"]
            codes = np.array([-1 if value is None else known.index(value) for value in values], np.int32)
            columns.append(Column(column, "nominal", codes, tuple(known)))
        else:
            columns.append(Column(column, "numeric", np.array(values, float)))
    target = columns.pop()
    return columns, Target(target.name, target.categories, np.asarray(target.values, np.int32))


@pytest.mark.parametrize("name", NAMES)
def test_j48_reduced_error(name: str) -> None:
    """J48 -R -N 3 prunes by the last of three folds, which are stratified without a seed, what the others grew."""
    columns, target = read_problem(name)
    assert target.codes is not None
    order = stratify(target.codes.tolist(), 3)
    sizes = [len(part) for part in np.array_split(order, 3)]
    held = np.isin(np.arange(len(order)), order[len(order) - sizes[2] :])
    # Weka grows from the rows in their stratified order, which decides nothing here
    parameters = resolve("j48", {"pruning": None, "collapse": False}, "classification")
    grown = learn(*take_rows(columns, target, ~held), parameters)
    seen, of_seen = take_rows(columns, target, held)
    idle = find_idle(grown.tree, of_seen, find_ends(grown.tree, seen, of_seen), Costs())
    tree, _ = cut_back(grown.tree, idle, LeafReason.REDUCED_ERROR)
    nodes = [show_tree_node(tree, node) for node in range(tree.nodes)]
    assert print_tree(nodes).strip() == read_printed(name, "-R").strip()
    assert (sum(node["leaf"] for node in nodes), len(nodes)) == read_size(name, "-R")
