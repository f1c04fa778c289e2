"""What a model keeps for the audit, as plain dicts of arrays."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson

from service.core.audit import Audited, prepare_audit
from service.core.encoding import CodedFeature, smallest_unsigned
from service.core.learn import Learnt, build_learner
from service.core.pairs import Pairs
from service.core.parameters import Parameters
from service.core.schema import Feature, Target
from service.core.statistics import Ints
from service.core.tree import LeafReason, Tree
from service.errors import DamagedModel
from service.store.records import ModelRecord

DATA_FORMAT = 1
SAMPLED = 10_000
"""So many cells of a column tell whether its values recur."""
FEW_LEVELS = 2**16
"""Fewer distinct values than this are kept as codes of one or two bytes."""


def pack_data(learnt: Learnt, target: Target) -> dict[str, Any]:
    """The training data in compact form, and the leaf of each row."""
    leaf = learnt.leaf.astype(smallest_unsigned(learnt.tree.nodes))
    return {
        "layout": DATA_FORMAT,
        "features": [_pack_feature(coded) for coded in learnt.learner.features],
        "target": _pack_target(target),
        "weight": target.weight,
        "leaf": leaf,
    }


def _pack_target(target: Target) -> Any:  # noqa: ANN401 - an array
    """Codes, numbers, or the dissimilarities of all pairs."""
    if target.pairs is not None:
        return target.pairs.distance
    return target.values if target.codes is None else target.codes


def _pack_feature(coded: CodedFeature) -> dict[str, Any]:
    """Codes and their values where these are few; numbers otherwise, which then are the shorter form."""
    if coded.feature.kind != "numeric":
        return {"codes": coded.codes}
    sample = coded.numbers[:: max(1, len(coded.numbers) // SAMPLED)]
    if len(np.unique(sample)) < len(sample) // 2 and coded.levels < FEW_LEVELS:
        return {"codes": coded.codes, "values": coded.values}
    return {"numbers": coded.numbers, "missing": coded.missing}


def _unpack_feature(feature: Feature, plain: Mapping[str, Any]) -> CodedFeature:
    if feature.kind != "numeric":
        return CodedFeature(feature, codes=np.asarray(plain["codes"]))
    if "numbers" in plain:
        missing = None if plain["missing"] is None else np.asarray(plain["missing"])
        return CodedFeature(feature, numbers=np.asarray(plain["numbers"]), missing=missing)
    codes, values = np.asarray(plain["codes"]), np.asarray(plain["values"])
    missing = codes == len(values)
    # one more value, for the code of what is missing
    filler = values.dtype.type(0 if feature.integer else np.nan)
    numbers = np.append(values, filler)[codes]
    return CodedFeature(feature, numbers=numbers, missing=missing if feature.integer and missing.any() else None)


def unpack_data(record: ModelRecord, tree: Tree, data: Mapping[str, Any]) -> Audited:
    """What the audit needs, from the record, the tree and the packed data."""
    _check_format(record, data)
    features = tuple(_unpack_feature(f, plain) for f, plain in zip(tree.features, data["features"], strict=True))
    shown = record.body["schema"]["target"]
    parameters = Parameters(**record.body["parameters"])
    weight = None if data["weight"] is None else np.asarray(data["weight"])
    if parameters.criterion == "dissimilarity":
        pairs = Pairs(np.asarray(data["target"]), weight)
        target = Target(shown["name"], weight=weight, statistic="pairs", pairs=pairs)
    elif tree.classes:
        target = Target(shown["name"], tree.classes, np.asarray(data["target"]), weight=weight)
    else:
        names = tuple(shown.get("names", ()))
        target = Target(shown["name"], values=np.asarray(data["target"]), weight=weight, names=names)
    learner = build_learner(features, target, parameters, shown.get("positive_class"))[0]
    return prepare_audit(learner, target, tree, np.asarray(data["leaf"]))


def pack_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Heads and kept splits by node, as JSON text in one array: ``offset: (node + 1,)`` says where each begins."""
    texts = [orjson.dumps(pair) for pair in zip(summary["heads"], summary["rows"], strict=True)]
    return {
        "layout": DATA_FORMAT,
        **summary["names"],
        "offset": np.cumsum([0, *map(len, texts)]),
        "text": np.frombuffer(b"".join(texts), np.uint8),
    }


def cut_summary(record: ModelRecord, data: Mapping[str, Any], tree: Tree, shorter: Tree, place: Ints) -> dict[str, Any]:
    """The summary of a tree that was cut back: what was weighed in the nodes that are left, under their new numbers.

    ``place: (node,)`` is where each node of ``tree`` went; a node that is now a leaf took none of its candidates.
    """
    kept = np.flatnonzero(tree.depth == shorter.depth[place])
    heads, rows = [], []
    for node, number in zip(kept.tolist(), place[kept].tolist(), strict=True):
        head, candidates = unpack_summary(record, data, node)
        ended = bool(shorter.is_leaf[number])
        reason = LeafReason(int(shorter.reason[number])).name.lower() if ended else head.get("reason")
        heads.append(head | ({"node": number, "leaf": ended, "reason": reason} if head else {}))
        rows.append([row | {"node": number, "chosen": row["chosen"] and not ended} for row in candidates])
    names = {name: data[name] for name in ("measures", "measure", "kept")}
    return pack_summary({"heads": heads, "rows": rows, "names": names})


def unpack_summary(record: ModelRecord, data: Mapping[str, Any], node: int) -> tuple[dict[str, Any], list[Any]]:
    """The head and the kept splits of one node."""
    _check_format(record, data)
    begin, end = data["offset"][node], data["offset"][node + 1]
    head, rows = orjson.loads(data["text"][begin:end].tobytes())
    return head, rows


def _check_format(record: ModelRecord, data: Mapping[str, Any]) -> None:
    if data.get("layout") != DATA_FORMAT:
        raise DamagedModel(
            f"the data of model {record.id} have format {data.get('layout')!r}; this release reads {DATA_FORMAT}"
        )
