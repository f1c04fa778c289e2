"""Candidate splits in the words of the API, column by column: what pages and streams show of them."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.assemble import place_thresholds
from service.core.audit import Audited
from service.core.candidates import Candidates, Form, Lack
from service.core.criteria import Floats
from service.core.judge import Reason
from service.core.learner import Learner
from service.core.listing import Listing, find_distinct
from service.core.schema import Feature, Label, keep_apart
from service.core.statistics import Ints
from service.core.subsets import find_left
from service.rendering.branches import Branches, Flags, list_branches, read_branches
from service.rendering.nodes import EXACT_HALVES, find_levels, show_halves, show_lack, show_number, show_side

Column: TypeAlias = NDArray[Any] | list[Any]
"""Numbers, NaN where they are undefined; of dtype object, or in a list, what JSON shows."""
REASONS = {int(reason): None if reason == Reason.ADMISSIBLE else reason.name.lower() for reason in Reason}
_NUMERIC, _WHOLE, _OTHER = range(3)


@dataclass(frozen=True, slots=True)
class Part:
    """Candidates of one form whose columns hold the same: all are (candidate,), arrays or lists.

    ``place`` is where each stands among those that were asked for, ``feature`` an index into ``names``; a ``rank`` of 0
    is none. ``split``: what a split says beside its type; ``lack``: what it says of missing values, None: nothing.
    """

    place: Ints
    type: str
    names: Sequence[str]
    node: Ints
    rank: Ints
    chosen: Flags
    feature: Ints
    reason: NDArray[Any]
    score: Floats
    scores: Mapping[str, Floats]
    split: Mapping[str, Column]
    lack: Sequence[Mapping[str, Any]] | None
    branches: Branches | list[Any]

    def __len__(self) -> int:
        """How many candidates there are."""
        return len(self.place)


def read_parts(audited: Audited, listing: Listing, rows: Ints, ranks: Ints) -> tuple[Part, ...]:
    """Some candidates of a listing with their ``ranks: (candidate,)``, those together whose columns hold the same."""
    own = listing.objective.criterion.measure
    score = listing.score[rows]
    scores = {
        # one array where the two are one, so that it is written once
        name: score if name == own and not listing.priced else listing.score_rows(name, rows)
        for name in audited.learner.objective.list_measures()
    }
    names = [coded.feature.name for coded in audited.learner.features]
    parts = []
    for index in find_distinct(listing.table[rows]):
        mine = np.flatnonzero(listing.table[rows] == index)
        for group in _group_alike(audited.learner, listing, index, rows[mine]):
            place = mine[group]
            split, lack = _read_splits(audited, listing, index, rows[place])
            part = Part(
                place, _name_type(audited.learner, listing, index, rows[place]), names,
                listing.nodes[listing.node[rows[place]]], ranks[place], listing.chosen[rows[place]],
                listing.feature[rows[place]], listing.reason[rows[place]],
                picked := score[place], {n: picked if s is score else s[place] for n, s in scores.items()},
                split, lack, read_branches(audited, listing, index, rows[place]),
            )  # fmt: skip
            opens = audited.learner.parameters.empty_branches and part.type == "multiway"
            parts.append(_open_branches(part, audited) if opens else part)
    return tuple(parts)


def _group_alike(learner: Learner, listing: Listing, index: int, rows: Ints) -> Iterator[Ints]:
    """Those of the ``rows`` of one table, as indices, whose splits are shown alike and that fill the same branches."""
    table = listing.tables[index]
    kinds = np.array([_find_kind(coded.feature) for coded in learner.features])
    occupied = table.rows[:, listing.place[rows]] > 0
    if table.form != Form.THRESHOLD:
        kinds[:] = _OTHER
    keys = np.concatenate([kinds[listing.feature[rows]][None], occupied])
    if (keys == keys[:, :1]).all():
        yield np.arange(len(rows))
        return
    group = np.unique(keys, axis=1, return_inverse=True)[1].ravel()
    yield from (np.flatnonzero(group == g) for g in range(int(group.max()) + 1))


def _find_kind(feature: Feature) -> int:
    return _OTHER if feature.kind != "numeric" else _WHOLE if feature.integer else _NUMERIC


def _name_type(learner: Learner, listing: Listing, index: int, rows: Ints) -> str:
    """The API's name of the form; cuts of an ordinal feature are subsets."""
    form = listing.tables[index].form
    cut = form == Form.THRESHOLD and learner.features[int(listing.feature[rows[0]])].feature.kind != "numeric"
    return "subset" if cut else form.name.lower()


def _read_splits(
    audited: Audited, listing: Listing, index: int, rows: Ints
) -> tuple[dict[str, Column], list[dict[str, Any]] | None]:
    """How candidates of one table split, and what they say of missing values."""
    learner, table = audited.learner, listing.tables[index]
    if table.form in (Form.MISSING, Form.CONSTANT):
        return {}, None
    split: dict[str, Column]
    if _name_type(learner, listing, index, rows) == "threshold":
        split = _read_thresholds(learner, listing, table, rows)
    else:
        split = {"categories": _read_categories(audited, listing, table, rows)}
    to = table.missing_to[listing.place[rows]]
    sides = {side: show_side(side, table.form) for side in find_distinct(to)}
    lack = [sides[side] for side in to.tolist()] if any(sides.values()) else None
    chosen = np.flatnonzero(listing.chosen[rows])
    if learner.lack is Lack.APART and len(chosen):
        lack = [{} for _ in rows] if lack is None else lack
        for i in chosen.tolist():
            lack[i] = show_lack(audited.tree, int(listing.nodes[listing.node[rows[i]]]))
    return split, lack


def _read_thresholds(learner: Learner, listing: Listing, table: Candidates, rows: Ints) -> dict[str, Column]:
    """Cuts of numeric features, which are all whole or all not, between the values of two training rows."""
    feature, place = listing.feature[rows], listing.place[rows]
    parts = []
    for f in find_distinct(feature):
        coded, mine = learner.features[f], np.flatnonzero(feature == f)
        lower, upper = table.lower[place[mine]], table.upper[place[mine]]
        threshold, whole = place_thresholds(coded, lower, upper, learner.parameters.threshold_value)
        if coded.feature.integer and (np.abs(whole) >= EXACT_HALVES).any():
            # whole numbers that float64 does not hold stand among halves
            exact = np.abs(whole) >= EXACT_HALVES
            threshold = np.where(exact, whole.astype(object), threshold.astype(object))
        parts.append((mine, threshold, coded.pick(lower) + 0, coded.pick(upper) + 0))
    order = np.argsort(np.concatenate([part[0] for part in parts]))
    joined = [np.concatenate([part[i] for part in parts])[order] for i in (1, 2, 3)]
    return dict(zip(("threshold", "below", "above"), joined, strict=True))


def _read_categories(audited: Audited, listing: Listing, table: Candidates, rows: Ints) -> list[Any]:
    """The categories of each branch of each candidate."""
    learner = audited.learner
    node, features, places = listing.nodes[listing.node[rows]], listing.feature[rows], listing.place[rows]
    pairs = list(zip(node.tolist(), features.tolist(), places.tolist(), strict=True))
    if table.form != Form.THRESHOLD:
        return [_group_categories(table, place, learner.features[f].feature) for _, f, place in pairs]
    levels = {(at, f): find_levels(audited.tree, at, f) for at, f in {pair[:2] for pair in pairs}}
    shown = []
    for at, f, place in pairs:
        cut = int(learner.features[f].codes[table.lower[place]]) + 1
        shown.append(show_halves(learner.features[f].feature, cut, levels[at, f])["categories"])
    return shown


def _group_categories(table: Candidates, place: int, feature: Feature) -> list[list[Label | None]]:
    """The categories of each branch; null is what is missing, where that is a category."""
    labels: list[Label | None] = [*feature.categories, None]
    slots, subsets = table.slots, table.subsets
    if slots is None:
        return []
    begin, end = np.searchsorted(slots.segment, [table.segment[place], table.segment[place] + 1])
    codes = slots.code[begin:end]
    if subsets is None:
        return [[labels[code]] for code in codes]
    subsets = replace(subsets, rank=subsets.rank[begin:end], order=subsets.order[:, begin:end])
    left = find_left(subsets, slots.take(np.arange(begin, end)), table.segment, np.array([place]))[0]
    return [[labels[code] for code in codes[left]], [labels[code] for code in codes[~left]]]


def _open_branches(part: Part, audited: Audited) -> Part:
    """With the empty branches of multiway splits: one for each category that no row of the node has."""
    classes = len(audited.tree.classes)
    empty: dict[str, Any] = {"n": 0, "weight": 0.0} | ({"counts": [0] * classes} if classes else {})
    nothing = {"known": empty | {"impurity": 0.0}, "routed": empty}
    categories, lacks, opened = [], [], []
    branches = list_branches(part.branches, len(part))
    lack = part.lack or [{}] * len(part)
    for groups, side, held, f in zip(part.split["categories"], lack, branches, part.feature.tolist(), strict=True):
        occupied = [keep_apart(group[0]) for group in groups]
        order = [*audited.learner.features[f].feature.categories, *([None] if None in occupied else [])]
        keys = list(map(keep_apart, order))
        to = side.get("missing")
        lacks.append({**side, "missing": keys.index(occupied[to])} if isinstance(to, int) else side)
        categories.append([[label] for label in order])
        told = dict(zip(occupied, held, strict=True))
        opened.append([told.get(key, nothing) for key in keys])
    return replace(part, split={"categories": categories}, lack=lacks, branches=opened)


def list_shown(column: Column) -> list[Any]:
    """Numbers as JSON has them; see `rendering.show_number`."""
    if isinstance(column, list) or column.dtype.kind != "f" or np.isfinite(column).all():
        return list(column) if isinstance(column, list) else column.tolist()
    return [show_number(value) for value in column.tolist()]
