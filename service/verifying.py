"""Verification: a model is trained again, and its tree compared with the stored one to the last bit."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from service.core.difference import Comparison, Difference, find_differences
from service.core.errors import Fault, InvalidData, pointer
from service.core.grow import Progress
from service.core.learn import Learnt, learn, learn_coded
from service.core.parameters import Parameters
from service.core.schema import Table
from service.core.tree import Tree
from service.errors import InvalidRequest, NotFound, NotRetained
from service.provenance import list_versions, show_tie_rule
from service.pruning import repeat_pruning
from service.readers.cells import Declared
from service.rendering.nodes import show_tree_node
from service.retention import unpack_training
from service.settings import Settings
from service.store.audit_log import hash_json
from service.store.models import ModelStore
from service.store.records import LogDraft, ModelRecord
from service.targets import TrainingRequest
from service.training import cap_depth, prepare

MOST_LISTED = 100
"""So many differing nodes are shown; the count is of all."""


def verify(
    record: ModelRecord,
    posted: TrainingRequest | None,
    store: ModelStore,
    settings: Settings,
    progress: Progress | None = None,
) -> dict[str, Any]:
    """Train again on the data that were kept, or on ``posted`` ones (`repeat_request`), and compare node by node.

    Raises `NotRetained` where there are no data, the core's errors for posted ones that cannot be learnt from.
    """
    stored = Tree.from_arrays(store.load_tree(record))
    known = record.body["training"].get("data_sha256")
    if posted is None:
        learnt = _learn_retained(record, stored, store, settings, progress)
        # the file was compared with its hash when it was read
        data = {"source": "retained", "sha256": known, "matches": True}
    else:
        ready = prepare(posted, settings)
        learnt = learn(ready.columns, ready.target, ready.capped, posted.positive_class, progress)
        sha256 = ready.hash(posted)
        data = {"source": "posted", "sha256": sha256, "matches": sha256 == known}
    again = learnt.tree
    for version in _trace(record, store):
        again = repeat_pruning(version, again)
    return _describe(record, data, stored, again, _check_record(record, store))


def log_verification(record: ModelRecord, found: Mapping[str, Any], job_id: str | None = None) -> LogDraft:
    """What the audit log is told of a verification."""
    details: dict[str, Any] = {name: found[name] for name in ("verified", "identical")}
    details |= {"source": found["data"]["source"], "data_sha256": found["data"]["sha256"]}
    if job_id is not None:
        details["job"] = job_id
    return LogDraft("verify", record.id, record.name, record.version, details=details)


def check_retained(record: ModelRecord) -> None:
    """Raise `NotRetained` unless the model kept its data."""
    if record.retention != "data":
        raise NotRetained(f'model {record.id} has retention {record.retention!r}: post the training data as "data"')


def declare_columns(record: ModelRecord) -> dict[str, Declared]:
    """What the record says of the columns of training, to read a posted table as it was read then."""
    schema, levels = record.body["schema"], record.body["parameters"].get("numeric") == "ordinal"
    declared = {}
    for feature in schema["features"]:
        labels, kind = tuple(feature.get("categories", ())), feature["kind"]
        if levels and kind == "ordinal" and not {type(label) for label in labels} - {int, float}:
            kind = "numeric"  # whose distinct values were made levels
        declared[feature["name"]] = Declared(kind, labels if kind in ("nominal", "ordinal") else (), extend=True)
    target = schema["target"]
    if "dissimilarity" not in target:
        labels = tuple(target.get("classes", ())) if target["kind"] in ("nominal", "ordinal") else ()
        declared |= {name: Declared(target["kind"], labels, extend=True) for name in _name_targets(record)}
    return declared


def repeat_request(
    record: ModelRecord,
    table: Table,
    weight: str | None = None,
    dissimilarity: Mapping[str, Any] | None = None,
) -> TrainingRequest:
    """The request that a model was made by, with a table in place of its data.

    ``weight``: the column of weights, None: the one that the record names. Raises `InvalidData` for a table that lacks
    columns, `InvalidRequest` where the dissimilarities were a matrix and none is given.
    """
    body = record.body
    targets, features = _name_targets(record), [feature["name"] for feature in body["schema"]["features"]]
    weight = weight or body["training"].get("weight")
    wanted = [*features, *targets, *([] if weight is None else [weight])]
    absent = [name for name in wanted if name not in table.names()]
    if absent:
        message = "the model was trained on this column, and the data do not have it"
        raise InvalidData([Fault(pointer("data", "columns", name), message) for name in absent])
    metric = body["schema"]["target"].get("dissimilarity")
    if metric == "matrix" and dissimilarity is None:
        message = "the model was trained on a matrix: post it here again"
        raise InvalidRequest("the dissimilarities are missing", Fault("/dissimilarity", message))
    return TrainingRequest(
        table=table,
        target=targets if len(targets) > 1 else targets[0],
        features=tuple(features),
        weight=weight,
        task=body["task"],
        algorithm=body["algorithm"],
        parameters=body["parameters"],
        positive_class=body["schema"]["target"].get("positive_class"),
        dissimilarity=dissimilarity or (None if metric is None else {"metric": metric}),
        missing_target=body["training"].get("missing_target", "refuse"),
    )


def _name_targets(record: ModelRecord) -> tuple[str, ...]:
    target = record.body["schema"]["target"]
    return tuple(target.get("names") or [target["name"]])


def _learn_retained(
    record: ModelRecord, tree: Tree, store: ModelStore, settings: Settings, progress: Progress | None
) -> Learnt:
    check_retained(record)
    features, target = unpack_training(record, tree, store.load_data(record))
    parameters = cap_depth(Parameters(**record.body["parameters"]), settings)
    positive = record.body["schema"]["target"].get("positive_class")
    return learn_coded(features, target, parameters, positive, progress)


def _trace(record: ModelRecord, store: ModelStore) -> list[ModelRecord]:
    """The prunings between the trained tree and this model, as far as their records are there, the first one first."""
    found: list[ModelRecord] = []
    current: ModelRecord | None = record
    while current is not None and (parent := (current.body.get("pruning") or {}).get("parent")):
        found.insert(0, current)
        try:
            current = store.find(parent["id"])
        except NotFound:  # cut from the trained tree at once, the subtree is the same unless another risk was asked for
            current = None
    return found


def _check_record(record: ModelRecord, store: ModelStore) -> dict[str, Any]:
    """Whether record, tree and what was kept are those of which the audit log has the hashes; None if it is younger."""
    made = store.log.find_made(record.id)
    if made is not None:
        hashes = {"record_sha256": hash_json(record.body), "tree_sha256": record.tree_sha256}
        if record.data_sha256 is not None:  # else it was not kept, or deleted since
            hashes["retained_sha256"] = record.data_sha256
        return {"logged": made.number, "matches": hashes.items() <= made.details.items()}
    begin = store.log.find_begin()
    return {"logged": None, "matches": None if begin is None or record.created < begin else False}


def _describe(
    record: ModelRecord, data: Mapping[str, Any], stored: Tree, again: Tree, vouched: Mapping[str, Any]
) -> dict[str, Any]:
    compared = find_differences(stored, again)
    origin = record.body.get("provenance") or {}
    return {
        "verified": bool(compared.identical and data["matches"] and vouched["matches"] is not False),
        "identical": compared.identical,
        "data": data,
        "record": vouched,
        "versions": {"trained": origin.get("versions"), "now": list_versions()},
        "tie_rule": show_tie_rule(origin),
        "schema": compared.schema,
        "nodes": _count(compared, stored, again),
        "differences": [_show(each, stored, again) for each in compared.differences[:MOST_LISTED]],
    }


def _count(compared: Comparison, stored: Tree, again: Tree) -> dict[str, int]:
    return {
        "stored": stored.nodes,
        "retrained": again.nodes,
        "compared": compared.places,
        "different": len(compared.differences),
    }


def _show(each: Difference, stored: Tree, again: Tree) -> dict[str, Any]:
    return {
        "node": each.first,
        "differs": list(each.names),
        "stored": show_tree_node(stored, each.first),
        "retrained": show_tree_node(again, each.second),
    }
