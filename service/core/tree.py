"""A tree as arrays; `descend` and `descend_one` find the way through it.

Nodes stand in breadth-first order, node 0 is the root, the children of a node stand side by side:

    children of node i     first_child[i], first_child[i] + 1, .., first_child[i] + branches[i] - 1
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, fields
from enum import IntEnum
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import Form
from service.core.criteria import TOLERANCE, Floats
from service.core.schema import Feature, Label, Statistic
from service.core.statistics import Ints

TREE_LAYOUT = 2
"""Raised when the arrays change their meaning; see docs/architecture.md. Layout 1 had neither shares nor surrogates."""
STAYS = -2
"""In `Tree.missing_to`: a row without a value ends at the node."""


class LeafReason(IntEnum):
    """Why a node is a leaf; the names are the API's."""

    SPLIT = 0
    PURE = 1
    MAX_DEPTH = 2
    MIN_SAMPLES_SPLIT = 3
    NO_ADMISSIBLE_SPLIT = 4
    MAX_LEAF_NODES = 5
    EMPTY = 6
    CP = 7
    COST_COMPLEXITY = 8
    COLLAPSED = 9
    ERROR_BASED = 10
    RAISED = 11
    REDUCED_ERROR = 12


@dataclass(frozen=True, slots=True)
class Surrogates:
    """Tests that stand in for those of nodes where a value is missing, best first; (surrogate,) unless said otherwise.

    Those of node i are ``start[i] .. start[i + 1]``. They are laid out as the nodes of `Tree` are; ``flipped`` ones
    send what is above their threshold to the left. ``agree``: the share of rows that they send the way the node does;
    ``adjusted``: how far that is from the majority's share to all; ``rows``: the training rows that they sent;
    ``asked``: False where they are only listed.
    """

    start: Ints
    feature: Ints
    threshold: Floats
    whole: Ints
    beside: Floats
    beside_whole: Ints
    flipped: NDArray[np.bool_]
    category_start: Ints
    category_branch: Ints
    agree: Floats
    adjusted: Floats
    rows: Ints
    asked: NDArray[np.bool_]

    def list_at(self, node: int) -> range:
        """Those of one node."""
        return range(int(self.start[node]), int(self.start[node + 1]))

    def arrange(self, node: Ints, inner: NDArray[np.bool_]) -> Surrogates:
        """For a tree of the splits of ``node: (new node,)``, old numbers, where it is ``inner``: (new node,).

        The categories stay where they are.
        """
        count = np.where(inner, np.diff(self.start)[node], 0)
        start = np.concatenate([[0], np.cumsum(count)]).astype(np.int64)
        at = np.repeat(self.start[node] - start[:-1], count) + np.arange(int(start[-1]))
        by_one = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in ("start", "category_branch")}
        return Surrogates(
            start=start,
            category_branch=self.category_branch,
            **{name: values[..., at] for name, values in by_one.items()},
        )


@dataclass(frozen=True, slots=True)
class Tree:
    """A grown tree; every array is (node,) unless its shape is given.

    ``threshold`` is float64 and ``whole`` int64; for whole numbers both say the same, each for its own kind of value
    (`encoding.round_down`), and for an ordinal feature ``whole`` is the last code on the left. ``beside: (2, node)``,
    ``beside_whole: (2, node)`` are the training values next to the threshold. ``category_branch[category_start[i] +
    code]`` is the branch of a category at node i, -1 where the node saw none of it. ``counts: (class, node)`` are
    class weights, ``probability: (node, class)`` what is answered; ``mean`` stands in for both in regression, of which
    ``statistic`` says what ``impurity`` is made of: squares, or deviances. Of several numbers ``mean``, ``prediction``
    and ``variances`` are (node, output). Where there are ``answers``, ``prediction`` is which of them.

    Where rows without a value are parted among all branches, ``share`` is how much of them comes to a node. Where
    surrogates stand in, ``missing_to`` is what is done after them, perhaps `STAYS`. ``loss: (class, class)`` is that
    which chooses the answers, if one does.
    """

    features: tuple[Feature, ...]
    classes: tuple[Label, ...]
    parent: Ints
    depth: Ints
    feature: Ints
    form: Ints
    first_child: Ints
    branches: Ints
    threshold: Floats
    whole: Ints
    beside: Floats
    beside_whole: Ints
    missing_to: Ints
    category_start: Ints
    category_branch: Ints
    rows: Ints
    weight: Floats
    counts: Floats
    mean: Floats
    impurity: Floats
    probability: Floats
    prediction: Floats
    score: Floats
    reason: Ints
    statistic: Statistic = "moments"
    variances: Floats = field(default_factory=lambda: np.zeros((0, 0)))
    answers: tuple[Any, ...] = ()
    loss: Floats | None = None
    share: Floats | None = None
    surrogates: Surrogates | None = None

    @property
    def nodes(self) -> int:
        """How many nodes there are."""
        return len(self.parent)

    @property
    def is_leaf(self) -> NDArray[np.bool_]:
        """(node,) True for leaves."""
        return np.asarray(self.form == Form.LEAF)

    def as_arrays(self) -> dict[str, Any]:
        """A plain dict of arrays, lists, strings and numbers, to be stored."""
        plain = {f.name: getattr(self, f.name) for f in fields(self)}
        if self.surrogates is not None:
            plain["surrogates"] = {f.name: getattr(self.surrogates, f.name) for f in fields(Surrogates)}
        plain["features"] = [[f.name, f.kind, list(f.categories), f.integer] for f in self.features]
        return plain | {"classes": list(self.classes), "answers": list(self.answers), "layout": TREE_LAYOUT}

    @classmethod
    def from_arrays(cls, plain: Mapping[str, Any]) -> Tree:
        """The tree that `as_arrays` described."""
        # np.asarray looks through memory maps, whose own indexing is slow
        special = ("features", "classes", "statistic", "variances", "answers", "loss", "share", "surrogates")
        known = {f.name: np.asarray(plain[f.name]) for f in fields(cls) if f.name not in special}
        # what older files lack has its default
        loss, share, stands = (plain.get(name) for name in ("loss", "share", "surrogates"))
        return cls(
            **known,
            features=tuple(Feature(n, kind, tuple(c), i) for n, kind, c, i in plain["features"]),
            classes=tuple(plain["classes"]),
            statistic=plain.get("statistic", "moments"),
            variances=np.asarray(plain.get("variances", np.zeros((len(known["parent"]), 0)))),
            answers=tuple(plain.get("answers", ())),
            loss=None if loss is None else np.asarray(loss),
            share=None if share is None else np.asarray(share),
            surrogates=None if stands is None else Surrogates(**{n: np.asarray(v) for n, v in stands.items()}),
        )


def choose_answers(probability: Floats, loss: Sequence[Sequence[float]] | Floats | None) -> Floats:
    """(node,) the code of the likeliest class, or of the one of least expected loss; ``probability: (node, class)``."""
    gain = probability if loss is None else -(probability @ np.asarray(loss, float))
    scale = 1.0 if loss is None else float(np.max(loss))
    # shares that differ by rounding only are tied, and the first class wins
    tied = gain >= gain.max(1, keepdims=True) - TOLERANCE * scale
    return np.asarray(tied.argmax(1), np.float64)


def find_heaviest_branches(tree: Tree) -> Ints:
    """(node,) the branch with the greatest weight, the first of equals; 0 for leaves."""
    heaviest = np.zeros(tree.nodes, np.int64)
    inner = np.flatnonzero(~tree.is_leaf)
    if len(inner):
        # children stand in the order of their parents, so each parent's weights are one run from node 1 on
        top = np.maximum.reduceat(tree.weight, tree.first_child[inner])
        child = np.arange(1, tree.nodes)
        first = child[tree.weight[1:] >= np.repeat(top, tree.branches[inner])]
        parent, at = np.unique(tree.parent[first], return_index=True)
        heaviest[parent] = first[at] - tree.first_child[parent]
    return heaviest
