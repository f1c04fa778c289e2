"""Where a model comes from: which data, which release of what, and who asked."""

from __future__ import annotations

import hashlib
import json
import platform
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from service import __version__
from service.core.criteria import TIE_RULE
from service.core.schema import Column, Target
from service.telemetry import ACTOR


def describe_origin() -> dict[str, Any]:
    """What a new record says of its making, beside its data and parameters."""
    return {"versions": list_versions(), "tie_rule": TIE_RULE, "asked_by": ACTOR.get()}


def list_versions() -> dict[str, str]:
    """What decides the digits of a tree: this service, numpy and Python."""
    return {"treewright": __version__, "numpy": np.__version__, "python": platform.python_version()}


def show_tie_rule(origin: Mapping[str, Any]) -> dict[str, Any]:
    """The version of the rule of ties then and now."""
    return {"trained": origin.get("tie_rule"), "now": TIE_RULE}


def hash_training(
    columns: Sequence[Column], targets: Sequence[Column], weight: Column | None, target: Target, matrix: bool
) -> str:
    """`hash_data` of what was learnt from: features, targets, then the weight and a posted matrix, if there are any."""
    others = [] if weight is None else [weight]
    if matrix and target.pairs is not None:
        others.append(Column("dissimilarity", "numeric", target.pairs.distance.ravel()))
    return hash_data([*columns, *map(_leave_known, targets), *others])


def _leave_known(target: Column) -> Column:
    """A target without the categories that no row has, which tell nothing."""
    if target.kind == "numeric":
        return target
    known, codes = np.unique(target.values, return_inverse=True)
    labels = tuple(target.categories[code] for code in known.tolist())
    return Column(target.name, target.kind, codes.astype(np.int32), labels)


def hash_data(columns: Sequence[Column]) -> str:
    """SHA-256 of the columns as they were learnt from: names, kinds, categories, values in order."""
    digest = hashlib.sha256()
    for column in columns:
        head = [column.name, column.kind, list(column.categories), column.values.dtype.str]
        digest.update(json.dumps(head).encode())
        digest.update(np.ascontiguousarray(column.values).data)
        if column.missing is not None:
            digest.update(np.ascontiguousarray(column.missing).data)
    return digest.hexdigest()
