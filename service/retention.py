"""What a model keeps for the audit, as plain dicts of arrays."""

from __future__ import annotations

import zlib
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import orjson
from numpy.typing import NDArray

from service.core.audit import Audited, prepare_audit
from service.core.encoding import CodedFeature, smallest_unsigned
from service.core.folds import take_target
from service.core.learn import Learnt, build_learner
from service.core.pairs import Pairs
from service.core.parallel import run_parallel
from service.core.parameters import Parameters
from service.core.schema import Feature, Target
from service.core.sorting import Numbers
from service.core.statistics import Ints
from service.core.tree import LeafReason, Tree
from service.errors import DamagedModel, NotRetained
from service.store.planes import Packed, pack_array, unpack_array
from service.store.records import ModelRecord

DATA_FORMAT = 3
"""Nothing in files of format 1 is compressed, and no number in files of format 2 is narrow."""
SAMPLED = 10_000
"""So many cells of a column tell whether its values recur."""
FEW_LEVELS = 2**16
"""Fewer distinct values than this are kept as codes of one or two bytes."""


def pack_data(learnt: Learnt, target: Target) -> dict[str, Any]:
    """The training data in compact form, and the leaf of each row; apart, what was held out to prune by."""
    held = learnt.held
    return {
        "layout": DATA_FORMAT,
        **_pack_rows(learnt.learner.features, target),
        "leaf": pack_leaf(learnt.leaf, learnt.tree),
        "held": None if held is None else {"row": pack_array(held.row), **_pack_rows(held.features, held.target)},
    }


def pack_leaf(leaf: Ints, tree: Tree) -> Packed:
    """The leaf of each row."""
    return pack_array(leaf.astype(smallest_unsigned(tree.nodes)))


def unpack_leaf(data: Mapping[str, Any]) -> Ints:
    """What `pack_leaf` packed."""
    return unpack_array(data["leaf"])


def _pack_rows(features: Sequence[CodedFeature], target: Target) -> dict[str, Any]:
    plain: dict[str, Any] = {"features": run_parallel(_pack_feature, features), "weight": _pack(target.weight)}
    if target.pairs is not None:
        pairs = target.pairs
        return plain | {"target": _pack(pairs.distance), "answers": list(pairs.answers), "order": _pack(pairs.order)}
    return plain | {"target": _pack(target.values if target.codes is None else target.codes)}


def _pack(array: NDArray[Any] | None) -> Packed | None:
    return None if array is None else pack_array(array)


def _unpack(packed: Packed | None) -> Any:  # noqa: ANN401 - an array or None, as it was packed
    return None if packed is None else unpack_array(packed)


def _pack_feature(coded: CodedFeature) -> dict[str, Any]:
    """Codes and their values where these are few; numbers otherwise, which then are the shorter form."""
    if coded.feature.kind != "numeric":
        return {"codes": pack_array(coded.codes)}
    sample = coded.numbers[:: max(1, len(coded.numbers) // SAMPLED)]
    if len(np.unique(sample)) < len(sample) // 2 and coded.levels < FEW_LEVELS:
        return {"codes": pack_array(coded.codes), "values": pack_array(coded.values)}
    return {"numbers": pack_array(coded.numbers), "missing": _pack(coded.missing)}


def _unpack_feature(feature: Feature, plain: Mapping[str, Any], *, widen: bool) -> CodedFeature:
    if feature.kind != "numeric":
        return CodedFeature(feature, codes=unpack_array(plain["codes"]))
    if "numbers" in plain:
        numbers = unpack_array(plain["numbers"], widen=widen)
        return CodedFeature(feature, numbers=numbers, missing=_unpack(plain["missing"]))
    codes, values = unpack_array(plain["codes"]), unpack_array(plain["values"])
    missing = codes == len(values)
    # one more value, for the code of what is missing
    filler = values.dtype.type(0 if feature.integer else np.nan)
    numbers = np.append(values, filler)[codes]
    return CodedFeature(feature, numbers=numbers, missing=missing if feature.integer and missing.any() else None)


def unpack_data(record: ModelRecord, tree: Tree, data: Mapping[str, Any]) -> Audited:
    """What the audit needs, from the record, the tree and the packed data."""
    _check_format(record, data)
    features, target = _unpack_rows(record, tree, data)
    whole = target if data.get("held") is None else _join_targets(target, _unpack_target(record, tree, data["held"]))
    parameters = Parameters(**record.body["parameters"])
    # class weights and priors were worked out for all rows
    learner = build_learner(features, whole, parameters, record.body["schema"]["target"].get("positive_class"))[0]
    return prepare_audit(learner, target, tree, unpack_leaf(data))


def unpack_training(
    record: ModelRecord, tree: Tree, data: Mapping[str, Any]
) -> tuple[tuple[CodedFeature, ...], Target]:
    """All that the model was learnt from, the rows in their order, those held out among them.

    Raises `NotRetained` where a release that kept less of it wrote the file.
    """
    _check_format(record, data)
    parameters = Parameters(**record.body["parameters"])
    lacks = {
        "the rows that were held out of its growth": parameters.pruning == "reduced_error" and "held" not in data,
        "the targets that its dissimilarities are of": parameters.criterion == "dissimilarity" and "order" not in data,
    }
    for lack, lacking in lacks.items():
        if lacking:
            message = f'an earlier release did not keep {lack} for model {record.id}: post the training data as "data"'
            raise NotRetained(message)
    # growth asks for all numbers of a feature again and again
    features, target = _unpack_rows(record, tree, data, widen=True)
    held = data.get("held")
    if held is None:
        return features, target
    others, of_others = _unpack_rows(record, tree, held)
    row = unpack_array(held["row"])
    grown = np.setdiff1d(np.arange(target.rows + len(row)), row)
    order = np.argsort(np.concatenate([grown, row]))
    joined = tuple(_join_features(one, other).take(order) for one, other in zip(features, others, strict=True))
    return joined, take_target(_join_targets(target, of_others), order)


def _unpack_rows(
    record: ModelRecord, tree: Tree, plain: Mapping[str, Any], *, widen: bool = False
) -> tuple[tuple[CodedFeature, ...], Target]:
    pairs = list(zip(tree.features, plain["features"], strict=True))
    features = run_parallel(lambda pair: _unpack_feature(*pair, widen=widen), pairs)
    return tuple(features), _unpack_target(record, tree, plain)


def _unpack_target(record: ModelRecord, tree: Tree, plain: Mapping[str, Any]) -> Target:
    shown = record.body["schema"]["target"]
    name, names = shown["name"], tuple(shown.get("names", ()))
    weight, told = _unpack(plain["weight"]), unpack_array(plain["target"])
    if record.body["task"] == "dissimilarity":
        pairs = Pairs(told, weight, plain.get("answers", ()), _unpack(plain.get("order")))
        return Target(name, weight=weight, statistic="pairs", names=names, pairs=pairs)
    if tree.classes:
        return Target(name, tree.classes, told, weight=weight)
    return Target(name, values=told, weight=weight, names=names)


def _join_features(one: CodedFeature, other: CodedFeature) -> CodedFeature:
    """The rows of one and then those of the other."""
    if one.feature.kind != "numeric":
        return CodedFeature(one.feature, codes=np.concatenate([one.codes, other.codes]))
    missing = np.concatenate([one.is_missing(), other.is_missing()])
    numbers: Numbers = np.concatenate([one.numbers, other.numbers])
    return CodedFeature(
        one.feature, numbers=numbers, missing=missing if one.feature.integer and missing.any() else None
    )


def _join_targets(one: Target, other: Target) -> Target:
    """The rows of one and then those of the other."""

    def join(name: str) -> Any:  # noqa: ANN401 - an array or None
        parts = getattr(one, name), getattr(other, name)
        return None if parts[0] is None else np.concatenate(parts)

    return replace(one, codes=join("codes"), values=join("values"), weight=join("weight"))


def pack_summary(summary: Mapping[str, Any]) -> dict[str, Any]:
    """Heads and kept splits by node, compressed JSON in one array: ``offset: (node + 1,)`` says where each begins."""
    texts = [zlib.compress(orjson.dumps(pair), 1) for pair in zip(summary["heads"], summary["rows"], strict=True)]
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
    text = data["text"][begin:end].tobytes()
    head, rows = orjson.loads(text if data["layout"] == 1 else zlib.decompress(text))
    return head, rows


def _check_format(record: ModelRecord, data: Mapping[str, Any]) -> None:
    if data.get("layout") not in range(1, DATA_FORMAT + 1):
        raise DamagedModel(
            f"the data of model {record.id} have format {data.get('layout')!r}; this release reads up to {DATA_FORMAT}"
        )
