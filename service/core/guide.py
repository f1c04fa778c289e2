"""A tree laid out for descending in blocks: what `descend` and `descend_floats` follow."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import NO_ROUTE, Form
from service.core.criteria import Floats
from service.core.schema import Column, Feature
from service.core.statistics import Ints
from service.core.tree import STAYS, Surrogates, Tree, find_heaviest_branches

BLOCK = 16384
"""Rows that go down together: 128 KiB of cells for each feature that the tree asks for."""
_FEWEST = 256
_MOST_CELLS = 1 << 19  # 4 MiB: where hundreds of features are asked for, fewer rows go together
_TALLEST = 12
_MOST_SLOTS = 16
"""A level of a ladder has at most so many slots for each node."""
_LARGEST = np.iinfo(np.int64).max


class Reading(IntEnum):
    """How a node reads a cell."""

    FLOAT = 0
    WHOLE = 1
    ORDER = 2
    ROUTES = 3
    PRESENT = 4


@dataclass(frozen=True, slots=True)
class Ladder:
    """The top of a tree as full levels: slot i is followed by the slots 2i and 2i + 1 of the next level.

    ``levels``: of each level, as (slot,), where the cells of the column asked for begin, and the limit. A leaf goes on
    as a slot that sends every row left. ``foot: (slot,)`` are the nodes below the last level.
    """

    levels: tuple[tuple[Ints, Floats], ...]
    foot: Ints


@dataclass(frozen=True, slots=True)
class Guide:
    """A tree laid out for columns of some kinds; arrays are (node,), but for ``routes`` and ``used``.

    ``used: (column,)`` are the features that some node asks for, and ``column`` is where the cells of the node's own
    begin in a block of them; ``missing_branch`` is where missing cells go, be it learnt or the heaviest; ``readings``
    are those that occur, so that a single one needs no sorting of rows; leaves are at depths from ``shallowest`` to
    ``deepest``; ``block`` is the number of rows that go down together, ``ladder`` the way of floats. ``branches``
    counts the children, ``share`` is how much of the rows without a value comes to a node (1 if not ``parted``);
    ``stays`` says that some such row may end in an inner node.

    Surrogates are read as nodes are and stand behind them in ``reading``, ``column``, ``limit``, ``whole`` and
    ``start``: those of a node are ``stands[node] .. stands[node + 1]``; ``flipped`` ones turn the branch round.
    """

    reading: NDArray[np.int8]
    column: Ints
    limit: Floats
    whole: Ints
    first: Ints
    missing_branch: Ints
    start: Ints
    routes: Ints
    used: Ints
    readings: tuple[Reading, ...]
    floats: tuple[bool, ...]
    is_leaf: NDArray[np.bool_]
    shallowest: int
    deepest: int
    block: int
    ladder: Ladder
    branches: Ints
    share: Floats
    parted: bool
    stays: bool
    stands: Ints | None = None
    flipped: NDArray[np.bool_] | None = None


def are_floats(columns: Sequence[Column]) -> tuple[bool, ...]:
    """Which columns hold float64, which a guide has to be made for."""
    return tuple(column.values.dtype.kind == "f" for column in columns)


def lay_out(tree: Tree, floats: Sequence[bool]) -> Guide:
    """The guide through a tree for columns that `are_floats` where ``floats`` is True."""
    leaf = tree.is_leaf
    stands = tree.surrogates
    asked = tree.feature[~leaf]
    used = np.unique(asked if stands is None else np.concatenate([asked, stands.feature]))
    kinds = np.array([_kind_of(feature, is_float) for feature, is_float in zip(tree.features, floats, strict=True)])
    reading = kinds[tree.feature] if len(kinds) else np.zeros(tree.nodes, np.int8)
    reading = np.where((reading == Reading.ORDER) & (tree.form == Form.MULTIWAY), Reading.ROUTES, reading)
    reading = np.where(tree.form == Form.MISSING, Reading.PRESENT, reading)
    # A leaf reads as other nodes do. Whatever the cell, it is within its limit: branch 0, which is itself.
    comparing = [kind for kind in (Reading.FLOAT, Reading.WHOLE) if (reading[~leaf] == kind).any()]
    reading[leaf] = comparing[0] if comparing else Reading.WHOLE
    block = min(BLOCK, max(_FEWEST, _MOST_CELLS // max(len(used), 1)))
    learnt = np.where(tree.form == Form.MISSING, 0, tree.missing_to)
    # the multiway split of a model that gives missing values a branch has none where nothing was missing
    fallback = np.where(learnt == NO_ROUTE, find_heaviest_branches(tree), learnt)
    # rows end where they are to be parted, and `descend_parts` goes on
    fallback = np.where((learnt == STAYS) | (tree.share is not None), NO_ROUTE, fallback)
    column = np.where(leaf, 0, np.searchsorted(used, tree.feature)) * block
    limit = np.where(leaf, np.inf, tree.threshold)
    guide = Guide(
        reading=reading.astype(np.int8),
        column=column,
        block=block,
        limit=limit,
        ladder=_lay_ladder(tree, column, limit),
        whole=np.where(leaf, _LARGEST, tree.whole),
        first=np.where(leaf, np.arange(tree.nodes), tree.first_child),
        missing_branch=np.where(leaf, 0, fallback),
        start=tree.category_start,
        routes=tree.category_branch,
        is_leaf=leaf,
        shallowest=int(tree.depth[leaf].min()),
        deepest=int(tree.depth.max()),
        used=used,
        floats=tuple(floats),
        readings=tuple(Reading(kind) for kind in np.unique(reading)),
        branches=tree.branches,
        share=np.ones(tree.nodes) if tree.share is None else tree.share,
        parted=tree.share is not None,
        stays=bool((fallback[~leaf] == NO_ROUTE).any()),
    )
    return guide if stands is None or not stands.asked.all() else _append_surrogates(guide, stands, kinds)


def _append_surrogates(guide: Guide, stands: Surrogates, kinds: NDArray[np.int8]) -> Guide:
    reading = np.concatenate([guide.reading, kinds[stands.feature]]).astype(np.int8)
    return replace(
        guide,
        reading=reading,
        column=np.concatenate([guide.column, np.searchsorted(guide.used, stands.feature) * guide.block]),
        limit=np.concatenate([guide.limit, stands.threshold]),
        whole=np.concatenate([guide.whole, stands.whole]),
        start=np.concatenate([guide.start, stands.category_start + len(guide.routes)]),
        routes=np.concatenate([guide.routes, stands.category_branch]),
        readings=tuple(Reading(kind) for kind in np.unique(reading)),
        stands=stands.start + len(guide.reading),
        flipped=stands.flipped,
    )


def _lay_ladder(tree: Tree, column: Ints, limit: Floats) -> Ladder:
    """As many full levels as hold more than a few nodes for their slots; two branches are all that values take."""
    leaf, nodes = tree.is_leaf, np.bincount(tree.depth)
    slots = 1 << np.arange(min(len(nodes), _TALLEST + 1))
    full = slots <= _MOST_SLOTS * nodes[: len(slots)]
    foot, levels = np.zeros(1, np.int64), list[tuple[Ints, Floats]]()
    for _ in range(int(full.argmin() if not full.all() else len(full)) - 1):
        levels.append((column[foot], limit[foot]))
        following = np.where(leaf[foot], foot, tree.first_child[foot])
        foot = np.stack([following, following + ~leaf[foot]], axis=1).ravel()
    return Ladder(tuple(levels), foot)


def _kind_of(feature: Feature, is_float: bool) -> Reading:
    if feature.kind == "numeric":
        return Reading.FLOAT if is_float else Reading.WHOLE
    return Reading.ORDER if feature.kind == "ordinal" else Reading.ROUTES
