"""Two models side by side: what they were taught with, how their trees differ, and where their answers do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import zip_longest
from typing import Any

import numpy as np

from service.core.conform import conform
from service.core.errors import Fault
from service.core.schema import Table
from service.core.tree import Tree
from service.errors import InvalidRequest
from service.prediction import predict, prepare
from service.rendering.nodes import show_answer, show_tree_split
from service.store.models import ModelStore
from service.store.records import ModelRecord

MOST_LISTED = 1_000
"""So many differing splits and rows are named; the counts are of all."""
CELLS_OF_A_NODE = 50
"""To name the splits of two nodes takes about as long as so many cells."""
NAMES = ("a", "b")

_Split = dict[str, Any] | None


def count_cells(first: ModelRecord, second: ModelRecord, tables: Sequence[Table] | None) -> int:
    """How many rows x columns take about as long."""
    nodes = min(int(record.body["tree"]["nodes"]) for record in (first, second))
    return CELLS_OF_A_NODE * nodes + sum(table.cells for table in tables or ())


def check(first: ModelRecord, second: ModelRecord, tables: Sequence[Table] | None, store: ModelStore) -> None:
    """Raise what `compare` raises."""
    _check_tasks(first, second)
    if tables is not None:
        for record, table in zip((first, second), tables, strict=True):
            predictor = prepare(record, store)
            conform(table, predictor.tree.features, predictor.missing)


def compare(
    first: ModelRecord,
    second: ModelRecord,
    tables: Sequence[Table] | None,
    store: ModelStore,
    report: Callable[[float], None] = lambda _: None,
) -> dict[str, Any]:
    """Schemas, parameters, trees and, where there are ``tables`` (the rows as each model reads them), predictions.

    ``report`` is told how much is done, and may raise. Raises `InvalidRequest` where the models predict different
    things, `InvalidData` for rows that a model cannot read.
    """
    _check_tasks(first, second)
    records = (first, second)
    trees = [prepare(record, store).tree for record in records]
    shown = {
        "schema": _compare_schemas(*(record.body["schema"] for record in records)),
        "parameters": _compare_maps(*(record.body["parameters"] for record in records)),
        "algorithm": _differ(*(record.body["algorithm"] for record in records)),
        "training": {
            "same_data": first.body["training"]["data_sha256"] == second.body["training"]["data_sha256"],
            **{
                name: dict(zip(NAMES, (record.body["training"][name] for record in records), strict=True))
                for name in ("rows", "columns")
            },
        },
        "tree": dict(zip(NAMES, (record.body["tree"] for record in records), strict=True)),
        "splits": _compare_splits(*trees),
        "predictions": None,
    }
    report(0.5)
    if tables is not None:
        answers = [predict(record, table, store) for record, table in zip(records, tables, strict=True)]
        shown["predictions"] = _compare_predictions(answers, bool(trees[0].classes) or bool(trees[0].answers))
    return shown


def _check_tasks(first: ModelRecord, second: ModelRecord) -> None:
    kinds = [_name_task(record) for record in (first, second)]
    if kinds[0] != kinds[1]:
        raise InvalidRequest(
            "the models cannot be compared", Fault("/with", f"one is for {kinds[0]}, the other for {kinds[1]}")
        )


def _name_task(record: ModelRecord) -> str:
    """What a model predicts, in words: distances of answers need as many numbers on both sides."""
    task = str(record.body["task"])
    outputs = len(record.body["schema"]["target"].get("names") or [""])
    return f"{task} of {outputs} targets" if task == "regression" and outputs > 1 else task


def _are_same(a: object, b: object) -> bool:
    """Equal as JSON has it: 1 is 1.0, and not true, however deep it stands."""
    if isinstance(a, Mapping) and isinstance(b, Mapping):
        return a.keys() == b.keys() and all(_are_same(a[name], b[name]) for name in a)
    if isinstance(a, list | tuple) and isinstance(b, list | tuple):
        return len(a) == len(b) and all(map(_are_same, a, b))
    return a == b and isinstance(a, bool) == isinstance(b, bool)


def _differ(a: object, b: object) -> dict[str, Any] | None:
    """Both values where they differ; None where they do not."""
    return None if _are_same(a, b) else {"a": a, "b": b}


def _compare_maps(a: Mapping[str, Any], b: Mapping[str, Any]) -> list[dict[str, Any]]:
    """The names of which the values differ, with both; a name that one lacks is null there."""
    names = dict.fromkeys([*a, *b])
    return [{"name": name} | found for name in names if (found := _differ(a.get(name), b.get(name)))]


def _compare_schemas(a: Mapping[str, Any], b: Mapping[str, Any]) -> dict[str, Any]:
    by_name = [{feature["name"]: feature for feature in schema["features"]} for schema in (a, b)]
    both = [name for name in by_name[0] if name in by_name[1]]
    return {
        "only_a": [name for name in by_name[0] if name not in by_name[1]],
        "only_b": [name for name in by_name[1] if name not in by_name[0]],
        "changed": [{"name": name} | found for name in both if (found := _differ(by_name[0][name], by_name[1][name]))],
        "target": _compare_maps(a["target"], b["target"]),
    }


def _compare_splits(a: Tree, b: Tree) -> dict[str, Any]:
    """How many nodes are split alike, walking down both trees from the root, and where they part."""
    same, parted = 0, 0
    found: list[dict[str, Any]] = []
    for path, pair, splits in _walk(a, b):
        if _are_same(*splits):
            same += 1
            continue
        parted += 1
        if len(found) < MOST_LISTED:
            sides = {
                name: {
                    "node": node,
                    "split": split,
                    "n": int(tree.rows[node]),
                    "prediction": show_answer(tree, node),
                }
                for name, tree, node, split in zip(NAMES, (a, b), pair, splits, strict=True)
            }
            found.append({"path": path, **sides})
    return {"same": same, "differ": parted, "list": found}


def _walk(a: Tree, b: Tree) -> Iterator[tuple[list[dict[str, Any]], tuple[int, int], tuple[_Split, _Split]]]:
    """Pairs of nodes at the same place, with the way there and their splits, breadth first.

    Below a pair that differs nothing is at the same place.
    """
    front: list[tuple[list[dict[str, Any]], tuple[int, int]]] = [([], (0, 0))]
    while front:
        below = []
        for path, (i, j) in front:
            split, other = _name_split(a, i), _name_split(b, j)
            yield path, (i, j), (split, other)
            if split is None or not _are_same(split, other):
                continue
            for branch in range(int(a.branches[i])):
                step = {"split": split, "branch": branch}
                below.append(([*path, step], (int(a.first_child[i]) + branch, int(b.first_child[j]) + branch)))
        front = below


def _name_split(tree: Tree, node: int) -> _Split:
    """The test of a node, without the training values beside its threshold; None for a leaf."""
    split = show_tree_split(tree, node)
    if split is None:
        return None
    bare = {name: value for name, value in split.items() if name not in ("below", "above")}
    return {"feature": tree.features[int(tree.feature[node])].name, **bare}


def _compare_predictions(answers: Sequence[Mapping[str, Any]], labels: bool) -> dict[str, Any]:
    """On how many rows the answers differ, on which, and how."""
    given = [[_plain(found["predictions"][row]) for row in range(len(found["leaves"]))] for found in answers]
    pairs = list(zip_longest(*given))
    differing = [row for row, pair in enumerate(pairs) if not _are_same(*pair)]
    shown: dict[str, Any] = {
        "rows": len(pairs),
        "differ": len(differing),
        "list": [{"row": row, "a": pairs[row][0], "b": pairs[row][1]} for row in differing[:MOST_LISTED]],
        "warnings": list(dict.fromkeys(warning for found in answers for warning in found["warnings"])),
    }
    if labels:
        counts = Counter((repr(x), repr(y)) for x, y in pairs)
        first = {(repr(x), repr(y)): (x, y) for x, y in reversed(pairs)}
        moved = [{"a": first[key][0], "b": first[key][1], "rows": count} for key, count in counts.most_common()]
        return shown | {"pairs": moved[:MOST_LISTED]}
    gaps = np.abs(np.array(given[0], float) - np.array(given[1], float))
    return shown | {
        "mean_distance": float(gaps.mean()) if gaps.size else None,
        "largest_distance": float(gaps.max()) if gaps.size else None,
    }


def _plain(value: Any) -> Any:  # noqa: ANN401 - a label, a number, or a list of either
    return value.tolist() if isinstance(value, np.generic | np.ndarray) else value
