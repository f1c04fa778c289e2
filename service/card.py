"""The model card: what a model is, what it was made of and by, how good it is and where it ends, in one answer.

After Mitchell et al., "Model Cards for Model Reporting" (2019), as far as a service can know it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np

from service.core.candidates import Form
from service.core.counterfactual import SPANS
from service.core.criteria import Floats
from service.core.errors import CoreError
from service.core.importance import find_gains
from service.core.learn import restore_objective
from service.core.parameters import DEFAULTS, PRESETS, Parameters, resolve
from service.core.tree import Tree
from service.importance import weigh_gains
from service.rendering.nodes import show_answer, show_counts, show_number, show_tree_split
from service.rules import Condition, list_branches, write_test
from service.store.models import ModelStore
from service.store.records import ModelRecord

MOST_SPLITS = 10
FEW_ROWS = 5
"""Answers of leaves with fewer rows stand on little."""


def make_card(record: ModelRecord, store: ModelStore) -> dict[str, Any]:
    """The card as JSON. Raises the store's errors."""
    plain = store.load_tree(record)
    tree, body = Tree.from_arrays(plain), record.body
    made = store.log.find_made(record.id)
    return {
        "name": record.name,
        "version": record.version,
        "created": record.created,
        "description": record.description,
        "tags": dict(record.tags),
        "task": body["task"],
        "algorithm": body["algorithm"],
        "changed_parameters": _find_changed(body),
        "target": _show_target(body["schema"]["target"], tree),
        "training": {
            name: body["training"].get(name) for name in ("rows", "columns", "weight", "missing_target", "seconds")
        },
        "features": _list_features(record, store, tree, plain.get(SPANS)),
        "tree": body["tree"],
        "pruning": body.get("pruning"),
        "splits": _list_splits(record, tree),
        "metrics": _show_metrics(body["metrics"]),
        "provenance": {
            **(body.get("provenance") or {}),
            "data_sha256": body["training"].get("data_sha256"),
            "tree_sha256": record.tree_sha256,
            "retention": record.retention,
            "log": None if made is None else {"number": made.number, "time": made.time, "sha256": made.sha256},
        },
        "limits": list_limits(record, tree),
        "warnings": list(body["warnings"]),
    }


def _find_changed(body: Mapping[str, Any]) -> dict[str, Any]:
    """The parameters that are not those of the preset."""
    try:
        usual = resolve(body["algorithm"], {}, body["task"]).as_dict()
    except CoreError:  # the preset alone does not do for the task
        usual = Parameters(**{"criterion": DEFAULTS[body["task"]]} | PRESETS[body["algorithm"]]).as_dict()
    return {name: value for name, value in body["parameters"].items() if usual.get(name) != value}


def _show_target(target: Mapping[str, Any], tree: Tree) -> dict[str, Any]:
    """The target, with how much of the training each class was, or the mean of the numbers."""
    shown: dict[str, Any] = {name: target[name] for name in ("name", "names", "kind") if name in target}
    if not tree.classes:
        return shown | ({} if tree.answers else {"mean": np.asarray(tree.mean[0]).tolist()})
    weights = tree.counts[:, 0]
    return shown | {
        "positive_class": target.get("positive_class"),
        "classes": [
            {"class": label, "weight": show_counts([weight])[0], "share": weight / float(weights.sum())}
            for label, weight in zip(tree.classes, weights.tolist(), strict=True)
        ],
    }


def _list_features(record: ModelRecord, store: ModelStore, tree: Tree, spans: Floats | None) -> list[dict[str, Any]]:
    """The inputs, the most important first, with the values that training saw."""
    shares = {each["feature"]: each["share"] for each in weigh_gains(record, store)["features"]}
    place = {feature.name: index for index, feature in enumerate(tree.features)}
    shown = []
    for name, share in shares.items():
        feature = tree.features[place[name]]
        one: dict[str, Any] = {"feature": name, "kind": feature.kind, "importance": share}
        if feature.kind != "numeric":
            one["categories"] = list(feature.categories)
        elif spans is not None:
            one["range"] = [show_number(float(edge)) for edge in spans[:2, place[name]]]
        shown.append(one)
    return shown


def _list_splits(record: ModelRecord, tree: Tree) -> list[dict[str, Any]]:
    """The splits that gained most, with the way to them in words."""
    parameters = Parameters(**record.body["parameters"])
    objective, _ = restore_objective(tree, parameters, record.body["schema"]["target"].get("positive_class"))
    gain = find_gains(tree, objective)
    total = float(gain.sum())
    order = np.argsort(-gain, kind="stable")
    return [
        {
            "node": node,
            "where": write_way(tree, node),
            "test": write_test(tree, node),
            "feature": tree.features[int(tree.feature[node])].name,
            "split": show_tree_split(tree, node),
            "n": int(tree.rows[node]),
            "gain": float(gain[node]),
            "share": float(gain[node]) / total if total > 0 else 0.0,
            "prediction": show_answer(tree, node),
        }
        for node in order[~tree.is_leaf[order]][:MOST_SPLITS].tolist()
    ]


def write_way(tree: Tree, node: int) -> str:
    """What the tests between the root and a node say of the rows that come to it, by feature, in words."""
    steps = []
    while node:
        parent = int(tree.parent[node])
        steps.append((parent, node - int(tree.first_child[parent])))
        node = parent
    conditions: dict[int, Condition] = {}
    for parent, branch in reversed(steps):
        index = int(tree.feature[parent])
        _narrow(conditions.setdefault(index, Condition(tree.features[index])), tree, parent, branch)
    return " and ".join(condition.write() for condition in conditions.values()) or "all rows"


def _narrow(condition: Condition, tree: Tree, node: int, branch: int) -> None:
    """What a row's way along a branch says of its cell, if it has a value; of a branch for none, that it has none."""
    form, numeric = Form(int(tree.form[node])), condition.feature.kind == "numeric"
    if form == Form.MISSING:
        condition.has_value = branch > 0
    elif numeric and branch < 2:
        condition.cut((float(tree.threshold[node]), int(tree.whole[node])), branch == 0)
    else:
        known = [] if numeric else list_branches(condition.feature, tree, node, form)
        codes = {code for code, b in enumerate(known[: len(condition.feature.categories)]) if b == branch}
        if codes:
            condition.keep(codes)
        else:
            condition.has_value = False


def _show_metrics(metrics: Mapping[str, Any]) -> dict[str, Any]:
    """How well training rows are answered, and rows that were held out in turn, where that was tried."""
    tried = metrics.get("cross_validation")
    held_out = tried and {
        "folds": tried["folds"],
        "repeats": tried["repeats"],
        "metrics": {
            name: {"mean": found["mean"], "standard_deviation": found["standard_deviation"]}
            for name, found in tried["metrics"].items()
        },
    }
    plain = {name: value for name, value in metrics.items() if name not in ("cross_validation", "by_target")}
    return {"training": plain, "cross_validation": held_out}


def list_limits(record: ModelRecord, tree: Tree) -> list[str]:
    """What the model's answers do not tell, as far as its record and its tree show."""
    limits = []
    if "cross_validation" not in record.body["metrics"]:
        limits.append(
            "The metrics are of the rows that the tree was learnt from: how well it answers others was not measured. "
            "Evaluate it on rows that it has not seen."
        )
    smallest = int(tree.rows[tree.is_leaf & (tree.rows > 0)].min())
    if smallest < FEW_ROWS and tree.nodes > 1:
        few = int((tree.is_leaf & (tree.rows < FEW_ROWS)).sum())
        limits.append(f"{few} of the leaves had fewer than {FEW_ROWS} training rows: their answers stand on little.")
    if any(feature.kind == "numeric" for feature in tree.features):
        limits.append("Beyond the ranges of training a number is answered like the nearest one that training saw.")
    if any(feature.kind in ("nominal", "ordinal") for feature in tree.features):
        limits.append("What was not a category in training says nothing, or counts as missing; answers warn of it.")
    if tree.statistic != "pairs" and not tree.classes:
        limits.append("Answers lie within those of the training rows: a tree does not extrapolate.")
    limits.append(_tell_retention(record.retention))
    limits.append("Splits tell what goes with the target in these rows, not what causes it.")
    return limits


def _tell_retention(retention: str) -> str:
    kept = {
        "data": "The training data are kept: every candidate split can be listed, and the model verified.",
        "summary": "Of the candidate splits only the best of each feature in each node are kept.",
        "none": "Nothing is kept for the audit: which splits were weighed cannot be listed any more.",
    }
    return kept[retention]
