"""Cost-complexity pruning of stored models: the path of their subtrees, and any of these as a new version."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from service.core.answers import answer_training
from service.core.counterfactual import SPANS
from service.core.criteria import Floats
from service.core.evaluate import measure_fit
from service.core.learn import restore_objective
from service.core.parameters import Parameters
from service.core.prune import Pruning, find_subtrees
from service.core.prune_cost import Costs, Path, find_cut
from service.core.prune_cut import cut_back
from service.core.prune_validate import Validated
from service.core.statistics import Ints
from service.core.tree import LeafReason, Tree
from service.provenance import describe_origin
from service.rendering.nodes import show_number
from service.retention import cut_summary, pack_leaf, unpack_data, unpack_leaf
from service.store.models import ModelStore
from service.store.records import ModelDraft, ModelRecord

KEY = "pruning"
"""Where a model's file has the path that was found in training, if one was."""


@dataclass(frozen=True)
class PruningRequest:
    """How far to prune: exactly one of ``alpha``, ``cp`` and ``leaves``; ``risk`` and ``sequence``: None as trained."""

    alpha: float | None = None
    cp: float | None = None
    leaves: int | None = None
    risk: str | None = None
    sequence: str | None = None
    description: str = ""
    tags: Mapping[str, str] | None = None


def pack_path(parameters: Parameters, pruning: Pruning) -> dict[str, Any]:
    """What a model's file keeps of the path that training found; nothing where it found none."""
    if pruning.path is None:
        return {}
    path, found = pruning.path, pruning.validated
    packed: dict[str, Any] = {"risk": parameters.risk, "sequence": parameters.sequence}
    packed |= {"alpha": path.alpha, "share": path.risk, "leaves": path.leaves, "splits": path.splits}
    if found is not None:
        packed |= {"error": found.error, "deviation": found.deviation}
        packed |= {"folds": found.folds, "seed": parameters.seed or 0}
    return {KEY: packed}


def describe_pruning(parameters: Parameters, pruning: Pruning) -> dict[str, Any] | None:
    """What a new model's record says of its pruning; None where nothing was to be pruned."""
    method = parameters.pruning or ("cp" if parameters.cp is not None else "collapse" if parameters.collapse else None)
    if method is None:
        return None
    shown: dict[str, Any] = {"method": method}
    if pruning.path is not None and pruning.step is not None:
        shown |= {"chosen_by": _name_choice(parameters), **_show_level(pruning.path, pruning.step)}
    if method == "error_based":
        shown["raised"] = pruning.raised
    if method == "reduced_error":
        shown["held_out"] = pruning.held_out
    return shown | {"grown": {"nodes": pruning.nodes, "leaves": pruning.leaves}, "parent": None}


def _name_choice(parameters: Parameters) -> str:
    if parameters.pruning is None:
        return "cp"
    if parameters.alpha is not None:
        return "alpha"
    return "cp" if parameters.pruning_folds is None else parameters.pruning_choice


def _show_level(path: Path, step: int) -> dict[str, Any]:
    alpha, root = float(path.alpha[step]), float(path.risk[-1])
    return {"alpha": alpha, "cp": alpha / root if root > 0 else None}


def list_path(record: ModelRecord, store: ModelStore, risk: str | None, sequence: str | None) -> dict[str, Any]:
    """The subtrees of a model, from the root alone to the tree as it grew, and which are the best of them.

    What was cross-validated in training is listed with its errors, also where the model was then cut back further.
    """
    plain = store.load_tree(record)
    tree = Tree.from_arrays(plain)
    parameters = _read_parameters(record, risk, sequence)
    kept = _find_kept(plain, parameters)
    path, found = (_find_path(record, tree, parameters), None) if kept is None else _unpack_path(kept)
    return {
        "risk": parameters.risk,
        "sequence": parameters.sequence,
        "root_risk": float(path.risk[-1]),
        "folds": None if found is None or kept is None else int(kept["folds"]),
        "seed": None if found is None or kept is None else int(kept["seed"]),
        "path": _show_steps(path, found, int(tree.is_leaf.sum())),
    }


def _show_steps(path: Path, found: Validated | None, leaves: int) -> list[dict[str, Any]]:
    steps = []
    for step in reversed(range(len(path.alpha))):
        shown: dict[str, Any] = _show_level(path, step)
        risk, root = float(path.risk[step]), float(path.risk[-1])
        shown |= {"splits": int(path.splits[step]), "leaves": int(path.leaves[step]), "risk": risk}
        shown |= {"relative_error": risk / root if root > 0 else None, "current": int(path.leaves[step]) == leaves}
        if found is not None:
            shown["xerror"] = show_number(float(found.error[step]))
            shown["xstd"] = show_number(float(found.deviation[step]))
            shown |= {rule: found.choose(rule) == step for rule in ("min", "one_se")}
        steps.append(shown)
    return steps


def _read_parameters(record: ModelRecord, risk: str | None, sequence: str | None) -> Parameters:
    parameters = Parameters(**record.body["parameters"])
    return replace(parameters, risk=risk or parameters.risk, sequence=sequence or parameters.sequence)


def _find_kept(plain: Mapping[str, Any], parameters: Parameters) -> Mapping[str, Any] | None:
    kept: Mapping[str, Any] | None = plain.get(KEY)
    same = kept is not None and (kept["risk"], kept["sequence"]) == (parameters.risk, parameters.sequence)
    return kept if same else None


def _unpack_path(kept: Mapping[str, Any]) -> tuple[Path, Validated | None]:
    alpha, share, leaves, splits = (np.asarray(kept[name]) for name in ("alpha", "share", "leaves", "splits"))
    path = Path(alpha, share, leaves, splits, np.zeros(0, np.int64))
    if "error" not in kept:
        return path, None
    return path, Validated(np.asarray(kept["error"]), np.asarray(kept["deviation"]))


def _find_path(record: ModelRecord, tree: Tree, parameters: Parameters) -> Path:
    """The path of a stored tree, from what it holds itself: no training data are needed."""
    shown = record.body["schema"]["target"]
    objective, factors = restore_objective(tree, parameters, shown.get("positive_class"))
    return find_subtrees(tree, objective, Costs(factors, parameters.loss), parameters, 0.0)


def prune_model(record: ModelRecord, request: PruningRequest, store: ModelStore) -> ModelRecord:
    """Store a subtree of a model as the next version of its name; the model itself stays as it is.

    Raises the store's errors.
    """
    plain = store.load_tree(record)
    tree = Tree.from_arrays(plain)
    parameters = _read_parameters(record, request.risk, request.sequence)
    path = _find_path(record, tree, parameters)
    step = _find_step(path, request)
    shorter, place = cut_back(tree, find_cut(tree, path, step), LeafReason.COST_COMPLEXITY)
    data, metrics = _cut_data(record, tree, shorter, place, store)
    body = dict(record.body)
    body |= {
        "tree": {"nodes": shorter.nodes, "leaves": int(shorter.is_leaf.sum()), "depth": int(shorter.depth.max())},
        "metrics": metrics,
        "pruning": {
            "method": "cost_complexity",
            "chosen_by": next(name for name in ("alpha", "cp", "leaves") if getattr(request, name) is not None),
            **_show_level(path, step),
            "risk": parameters.risk,
            "sequence": parameters.sequence,
            "grown": {"nodes": tree.nodes, "leaves": int(tree.is_leaf.sum())},
            "parent": {"id": record.id, "name": record.name, "version": record.version},
        },
        "provenance": describe_origin(),
        "warnings": [] if shorter.nodes < tree.nodes else ["nothing was cut: the tree is that of its parent"],
    }
    draft = ModelDraft(
        name=record.name,
        description=request.description,
        tags=dict(record.tags if request.tags is None else request.tags),
        retention=record.retention,
        body=body,
        tree={
            **shorter.as_arrays(),
            **_cut_kept(_find_kept(plain, parameters), shorter),
            **({SPANS: plain[SPANS]} if SPANS in plain else {}),
        },
        data=data,
        action="prune",
    )
    return store.add(draft)


def repeat_pruning(record: ModelRecord, tree: Tree) -> Tree:
    """The subtree of ``tree``, grown as that of the parent was, that a pruned model is."""
    told = record.body["pruning"]
    parameters = _read_parameters(record, told.get("risk"), told.get("sequence"))
    path = _find_path(record, tree, parameters)
    step = _find_step(path, PruningRequest(leaves=record.body["tree"]["leaves"]))
    return cut_back(tree, find_cut(tree, path, step), LeafReason.COST_COMPLEXITY)[0]


def _find_step(path: Path, request: PruningRequest) -> int:
    if request.leaves is not None:
        return int(np.flatnonzero(path.leaves <= max(request.leaves, 1))[0])
    if request.cp is not None:
        return path.find_step(request.cp * float(path.risk[-1]))
    return path.find_step(request.alpha or 0.0)


def _cut_kept(kept: Mapping[str, Any] | None, tree: Tree) -> dict[str, Any]:
    """The path that training found, from the subtree that is now the whole tree on."""
    if kept is None:
        return {}
    left = np.asarray(kept["leaves"]) <= int(tree.is_leaf.sum())
    cut = {name: np.asarray(values)[left] for name, values in kept.items() if isinstance(values, np.ndarray)}
    return {KEY: {**kept, **cut}}


def _cut_data(
    record: ModelRecord, tree: Tree, shorter: Tree, place: Ints, store: ModelStore
) -> tuple[dict[str, Any] | None, dict[str, Any]]:
    """What the new version keeps for the audit, and how well it fits."""
    if record.retention == "none":
        return None, _measure_tree(shorter)
    data = store.load_data(record)
    if record.retention == "summary":
        return cut_summary(record, data, tree, shorter, place), _measure_tree(shorter)
    audited = unpack_data(record, tree, data)
    answers = answer_training(audited.learner, shorter, place[unpack_leaf(data)])
    fit = measure_fit(answers.prediction[answers.index], audited.target)
    return {**data, "leaf": pack_leaf(answers.leaf, shorter)}, fit


def _measure_tree(tree: Tree) -> dict[str, Any]:
    """What a tree alone tells of its fit to its training rows."""
    leaf = np.flatnonzero(tree.is_leaf)
    if tree.classes:
        hits: Floats = tree.counts[tree.prediction[leaf].astype(np.int64), leaf]
        return {"accuracy": float(hits.sum() / tree.weight[0])}
    if tree.statistic != "moments":
        return {}
    left = float((tree.weight[leaf] * tree.impurity[leaf]).sum() / tree.weight[0])
    spread = float(tree.impurity[0])
    return {"r2": 1.0 - left / spread if spread > 0 else None, "rmse": left**0.5}
