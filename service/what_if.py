"""What if: a split that the caller describes, scored at a node of a stored model beside the one that the tree took."""

from __future__ import annotations

import math
from collections.abc import Mapping
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.audit import Audited
from service.core.candidates import Form
from service.core.encoding import CodedFeature
from service.core.errors import Fault, InvalidData, pointer
from service.core.schema import keep_apart
from service.core.statistics import Ints
from service.core.tree import Tree
from service.core.what_if import pick_described, weigh_described
from service.errors import InvalidRequest, NotFound, NotRetained
from service.listing.query import SplitQuery
from service.listing.source import DataSource, Recent, open_source
from service.rendering.candidates import show_candidates
from service.store.models import ModelStore
from service.store.records import ModelRecord

SIDES = {"left": 0, "right": 1}
INFINITIES = {"Infinity": math.inf, "-Infinity": -math.inf}
LEAST, MOST = -(2**63), 2**63 - 1


def score_described(
    record: ModelRecord, node: int, feature: str, split: Mapping[str, Any], store: ModelStore, recent: Recent
) -> dict[str, Any]:
    """The described split as a listing would show it, where it would rank, and the node's best beside it.

    Raises `NotFound` for a node that is not there, `InvalidRequest` and `InvalidData` for a split that cannot be
    there, `NotRetained` where the data were not kept.
    """
    tree = Tree.from_arrays(store.load_tree(record))
    if not 0 <= node < tree.nodes or tree.rows[node] == 0:
        raise NotFound(f"there is no node {node} with training rows: the tree has {tree.nodes} nodes")
    source = open_source(record, tree, store, recent)
    if not isinstance(source, DataSource):
        raise NotRetained("to score a split of your own the training data are needed; train with retain='data'")
    return score_at(source, node, feature, split)


def score_at(source: DataSource, node: int, feature: str, split: Mapping[str, Any]) -> dict[str, Any]:
    """As `score_described`, at a node that is there."""
    audited = source.audited
    index = _find_feature(audited, feature)
    begin = int(audited.begin[node])
    here = audited.row[begin : begin + int(audited.tree.rows[node])]
    outcome, form = _read_split(audited.learner.features[index], split, here)
    side = _read_side(audited, split)
    alone, listing = weigh_described(audited, node, index, outcome, multiway=form == Form.MULTIWAY)
    place = pick_described(listing, form, side)
    if place is None:
        place = pick_described(listing, Form.CONSTANT, None)
    if place is None:
        raise InvalidRequest(
            "the split cannot be scored here",
            Fault("/split", "no training row of the node has a value, or all lack it"),
        )
    rows = np.array([place])
    shown = show_candidates(alone, listing, rows, listing.rank[rows])[0]
    own = {name: value for name, value in shown["split"].items() if name in ("missing", "shares")}
    shown |= {"node": node, "feature": feature, "split": dict(split) | own}
    return {"split": shown, **_compare(source, node, shown)}


def _compare(source: DataSource, node: int, shown: dict[str, Any]) -> dict[str, Any]:
    """Where the split would rank among all that were weighed, and how far it is from the best of them."""
    score = shown["score"] if isinstance(shown["score"], float) else None
    (view,) = source.view_nodes(np.array([node]), SplitQuery(top=1), end=1)
    shown["rank"] = None
    if shown["admissible"] and score is not None:
        better = view.count_better(score)
        # of a large node there is no more to be seen than the best
        shown["rank"] = 1 + (source.count_surpassing(node, score) if better is None else better)
    best = next((split for split in view.render(0, 1) if split["rank"] == 1), None)
    gap = None
    if best is not None and isinstance(best["score"], float) and score is not None:
        gap = best["score"] - score
    return {"best": best, "gap": gap}


def _find_feature(audited: Audited, name: str) -> int:
    names = [feature.name for feature in audited.tree.features]
    if name not in names:
        raise InvalidRequest(
            f'the model has no feature "{name}"', Fault("/feature", f"must be one of {', '.join(names)}")
        )
    return names.index(name)


def _read_side(audited: Audited, split: Mapping[str, Any]) -> int | None:
    """The branch of missing values that is asked for."""
    side = split.get("missing")
    if side is None:
        return None
    if audited.learner.parameters.missing != "direction":
        way = audited.learner.parameters.missing
        raise InvalidRequest(
            "a side for missing values cannot be chosen here",
            Fault("/split/missing", f'the model has "missing": "{way}", which says itself where they go'),
        )
    if not isinstance(side, str) or side not in SIDES:
        raise InvalidRequest("no such side", Fault("/split/missing", 'must be "left" or "right"'))
    return SIDES[side]


def _read_split(coded: CodedFeature, split: Mapping[str, Any], here: Ints) -> tuple[Ints, Form]:
    """(row,) the branch of each training row, -1 where it has no value; and the form that candidates have then.

    ``here``: the rows of the node, all of whose categories must go somewhere.
    """
    kind = split.get("type")
    missing = coded.is_missing()
    if kind == "missing":
        return np.where(missing, -1, 0), Form.MISSING
    if kind == "threshold" and coded.feature.kind == "numeric":
        outcome = _cut(coded, split.get("threshold"))
        return np.where(missing, -1, outcome), Form.THRESHOLD
    if kind in ("subset", "multiway") and coded.feature.kind != "numeric":
        branch = _read_categories(coded, split.get("categories"), here, multiway=kind == "multiway")
        # one more cell, which the code of a missing value picks
        return np.append(branch, -1)[coded.codes], Form.MULTIWAY if kind == "multiway" else Form.THRESHOLD
    right = '"threshold"' if coded.feature.kind == "numeric" else '"subset" or "multiway"'
    raise InvalidRequest(
        "the feature cannot be split like this",
        Fault("/split/type", f'"{coded.feature.name}" is {coded.feature.kind}: give {right}, or "missing"'),
    )


def _cut(coded: CodedFeature, posted: object) -> NDArray[np.bool_]:
    """(row,) True for values above the threshold; whole numbers are compared exactly."""
    threshold = INFINITIES.get(posted, posted) if isinstance(posted, str) else posted
    if isinstance(threshold, bool) or not isinstance(threshold, int | float) or math.isnan(threshold):
        raise InvalidRequest(
            "there is no threshold", Fault("/split/threshold", 'give a number, "Infinity" or "-Infinity"')
        )
    if not coded.feature.integer:
        with np.errstate(invalid="ignore"):
            return np.asarray(coded.numbers > float(threshold))
    if threshold >= MOST:
        return np.zeros(len(coded.kept), bool)
    if threshold < LEAST:
        return np.ones(len(coded.kept), bool)
    return np.asarray(coded.numbers > math.floor(threshold))


def _read_categories(coded: CodedFeature, posted: object, here: Ints, *, multiway: bool) -> Ints:
    """(category,) the branch of each category; with a single group of a subset all others go right."""
    place = pointer("split", "categories")
    groups = posted if isinstance(posted, list) and all(isinstance(group, list) for group in posted) else None
    if not groups or (len(groups) > 2 and not multiway) or not all(groups):
        raise InvalidRequest("there are no groups", Fault(place, "give the categories of each branch, as lists"))
    code = {keep_apart(label): number for number, label in enumerate(coded.feature.categories)}
    branch = np.full(len(code), -1)
    faults = []
    for number, group in enumerate(groups):
        for at, label in enumerate(group):
            spot = pointer("split", "categories", number, at)
            known = code.get(keep_apart(label)) if isinstance(label, str | int | float | bool) else None
            if known is None:
                faults.append(Fault(spot, f'"{coded.feature.name}" has no such category'))
            elif branch[known] >= 0:
                faults.append(Fault(spot, "a category goes one way only"))
            else:
                branch[known] = number
    if faults:
        raise InvalidData(faults)
    if len(groups) == 1 and not multiway:
        branch[branch < 0] = 1
    _check_whole(coded, branch, here, place)
    return branch


def _check_whole(coded: CodedFeature, branch: Ints, here: Ints, place: str) -> None:
    """Every category that rows of the node have goes somewhere; those of an ordinal feature in their order."""
    codes = coded.codes[here]
    seen = np.unique(codes[codes < coded.levels])
    lost = [coded.feature.categories[number] for number in seen.tolist() if branch[number] < 0]
    if lost:
        raise InvalidData(Fault(place, f"these go nowhere: {', '.join(map(str, lost))}"))
    if coded.feature.kind == "ordinal" and (np.diff(branch[branch >= 0]) < 0).any():
        raise InvalidData(
            Fault(place, f'"{coded.feature.name}" is ordinal: the first branch takes the lower categories')
        )
