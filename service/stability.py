"""How steady a stored model's splits are, over bootstrap resamples of the data that it kept."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from service.core.audit import Audited
from service.core.criteria import Floats
from service.core.stability import NO_ROWS, NO_SPLIT, Stability, resample
from service.core.tree import Tree
from service.errors import NotRetained
from service.rendering.nodes import show_number, show_tree_split
from service.retention import unpack_data
from service.store.models import ModelStore
from service.store.records import ModelRecord

MOST_RESAMPLES = 10_000
EDGES = {"min": 0.0, "low": 0.05, "median": 0.5, "high": 0.95, "max": 1.0}
"""Which quantiles of the thresholds are told: between low and high lie nine of ten."""


@dataclass(frozen=True)
class StabilityRequest:
    """How many resamples, and the seed of chance."""

    resamples: int = 100
    seed: int = 0


def count_cells(record: ModelRecord, request: StabilityRequest) -> int:
    """About how much work it is: rows x features, as often as they are drawn."""
    rows, columns = (int(record.body["training"][name]) for name in ("rows", "columns"))
    return rows * max(columns, 1) * request.resamples


def measure_stability(
    record: ModelRecord,
    request: StabilityRequest,
    store: ModelStore,
    report: Callable[[float], None] = lambda _: None,
) -> dict[str, Any]:
    """For each inner node how often resamples choose its feature, its cut or its categories, or what else they choose.

    Raises `NotRetained` where the training data were not kept.
    """
    check_retained(record)
    tree = Tree.from_arrays(store.load_tree(record))
    audited = unpack_data(record, tree, store.load_data(record))
    positive = record.body["schema"]["target"].get("positive_class")
    found = resample(audited, positive, request.resamples, request.seed, report)
    return {
        "resamples": request.resamples,
        "seed": request.seed,
        "nodes": [_show_node(audited, found, node) for node in np.flatnonzero(~tree.is_leaf).tolist()],
    }


def check_retained(record: ModelRecord) -> None:
    """Raise `NotRetained` unless the model kept its training data."""
    if record.retention != "data":
        raise NotRetained(
            f"model {record.id} has retention {record.retention!r}; stability needs its training data: retain='data'"
        )


def _show_node(audited: Audited, found: Stability, node: int) -> dict[str, Any]:
    tree = audited.tree
    feature, own = found.feature[:, node], int(tree.feature[node])
    there = feature != NO_ROWS
    draws = int(there.sum())
    names = [feature.name for feature in tree.features]
    values, counts = np.unique(feature[there & (feature != NO_SPLIT)], return_counts=True)
    order = np.argsort(-counts, kind="stable")
    shown: dict[str, Any] = {
        "node": node,
        "feature": names[own],
        "split": show_tree_split(tree, node),
        "draws": draws,
        "same_feature": _share(int((feature == own).sum()), draws),
        "same_split": _share(int(found.same[:, node].sum()), draws),
        "no_split": _share(int((feature == NO_SPLIT).sum()), draws),
        "features": [
            {"feature": names[int(values[i])], "share": _share(int(counts[i]), draws)} for i in order.tolist()
        ],
        "threshold": None,
    }
    thresholds = found.threshold[(feature == own) & ~np.isnan(found.threshold[:, node]), node]
    if len(thresholds) and tree.features[own].kind == "numeric":
        shown["threshold"] = _show_spread(thresholds)
        # a cut of numbers is rarely to the digit the same: its interval says how far it moves
        shown["same_split"] = None
    return shown


def _share(count: int, draws: int) -> float | None:
    return count / draws if draws else None


def _show_spread(thresholds: Floats) -> dict[str, Any]:
    """Quantiles of the thresholds, each one of them (no value is made up between two)."""
    quantiles = cast("Floats", np.quantile(thresholds, list(EDGES.values()), method="inverted_cdf"))
    return {name: show_number(value) for name, value in zip(EDGES, quantiles.tolist(), strict=True)}
