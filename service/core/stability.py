"""How steady the splits of a tree are: its nodes are searched again over bootstrap resamples of the training rows.

The tree stays as it is; only what each node would be split on is asked anew (Efron and Tibshirani 1993, "An
introduction to the bootstrap", chapter 6). A node deep down is so judged for itself, not for what happened above it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.assemble import place_thresholds
from service.core.audit import Audited, find_used
from service.core.batch import Batch, make_batch
from service.core.candidates import Form
from service.core.criteria import Floats
from service.core.descend import follow
from service.core.descend_parts import descend_parts
from service.core.encoding import encode
from service.core.entries import Entries
from service.core.folds import take_rows
from service.core.guide import are_floats
from service.core.guide import lay_out as lay_out_guide
from service.core.judge import is_fewer
from service.core.learn import build_learner, prepare_target
from service.core.learner import Learner
from service.core.schema import Column, Label, Target
from service.core.search import Splits, search
from service.core.statistics import Ints
from service.core.tree import Tree
from service.core.upkeep import lay_out

Flags: TypeAlias = NDArray[np.bool_]
NO_ROWS = -2
"""In the place of a feature: no row of the resample came to the node."""
NO_SPLIT = -1
"""In the place of a feature: nothing was admissible."""


@dataclass(frozen=True, slots=True)
class Stability:
    """What resamples chose in each node: (resample, node).

    ``feature`` is `NO_ROWS` or `NO_SPLIT` where there is none. ``threshold`` is NaN where the split is no cut of a
    number; ``same`` says that it is of the tree's own feature and form, and parts the categories alike.
    """

    feature: Ints
    threshold: Floats
    same: Flags


def resample(
    audited: Audited,
    positive: Label | None,
    resamples: int,
    seed: int,
    report: Callable[[float], None] = lambda _: None,
) -> Stability:
    """Search every inner node of the tree again over ``resamples`` draws of all training rows, with replacement.

    Each draw has a random stream of its own, of the ``seed`` and its number: the same whatever the cores. ``report`` is
    told how much is done, and may raise to end it.
    """
    tree, rows = audited.tree, audited.target.rows
    shape = (resamples, tree.nodes)
    found = Stability(np.full(shape, NO_ROWS), np.full(shape, np.nan), np.zeros(shape, bool))
    columns = [coded.as_column() for coded in audited.learner.features]
    for number in range(resamples):
        random = np.random.default_rng([seed, number])
        draw = np.sort(random.integers(0, rows, rows))
        _search_draw(audited, positive, columns, draw, number, found)
        report((number + 1) / resamples)
    return found


def _search_draw(
    audited: Audited, positive: Label | None, columns: Sequence[Column], draw: Ints, number: int, found: Stability
) -> None:
    """Fill in what one draw of rows chooses."""
    tree, parameters = audited.tree, audited.learner.parameters
    drawn, target = take_rows(columns, audited.target, draw)
    target = prepare_target(target, parameters)
    learner, _ = build_learner(encode(drawn, parameters.numeric == "ordinal"), target, parameters, positive)
    for nodes, entries in _walk_levels(tree, learner, target, drawn):
        used = None if parameters.reuse_features is True else find_used(learner, tree, nodes)
        bounds = None if audited.bounds is None else audited.bounds[:, nodes]
        batch = make_batch(target, entries, learner.objective, used, bounds)
        few = int(batch.rows.max()) < learner.sizes.scan
        splits = search(learner, lay_out(learner, batch, few=few))
        found.feature[number, nodes] = np.where(_are_few(learner, batch), NO_SPLIT, splits.feature)
        found.threshold[number, nodes] = _read_thresholds(learner, splits)
        found.same[number, nodes] = _compare(tree, nodes, splits)


def _walk_levels(
    tree: Tree, learner: Learner, target: Target, columns: Sequence[Column]
) -> Iterator[tuple[Ints, Entries]]:
    """The inner nodes of each depth to which rows come, and those rows, grouped by node."""
    guide = lay_out_guide(tree, are_floats(columns))
    weight = target.weight
    if learner.parts_rows:
        parts = descend_parts(guide, columns, target.rows, weight, inner=True)
        row, node, weight = parts.row, parts.node, parts.share
        for depth in range(int(tree.depth.max())):
            at = np.flatnonzero((tree.depth[node] == depth) & ~tree.is_leaf[node])
            if len(at):
                yield _group(row[at], node[at], weight[at])
        return
    node = follow(guide, columns, target.rows).node
    for depth in range(int(tree.depth.max()) - 1, -1, -1):
        node = np.where(tree.depth[node] > depth, tree.parent[node], node)
        row = np.flatnonzero((tree.depth[node] == depth) & ~tree.is_leaf[node])
        if len(row):
            yield _group(row, node[row], None if weight is None else weight[row])


def _are_few(learner: Learner, batch: Batch) -> Flags:
    """(node,) True for nodes that growth would not have searched."""
    least = learner.parameters.min_samples_split
    if learner.parts_rows:
        return is_fewer(learner.objective.criterion.family.weigh(batch.stats), least)
    return np.asarray(batch.rows < least)


def _group(row: Ints, node: Ints, weight: Floats | None) -> tuple[Ints, Entries]:
    """The distinct nodes, and the entries by their places among these."""
    order = np.argsort(node, kind="stable")
    nodes, place = np.unique(node[order], return_inverse=True)
    return nodes, Entries(row[order], place, len(nodes), None if weight is None else weight[order])


def _read_thresholds(learner: Learner, splits: Splits) -> Floats:
    """(node,) where numbers are cut; NaN for all other splits."""
    threshold = np.full(len(splits.feature), np.nan)
    for f in np.unique(splits.feature[splits.form == Form.THRESHOLD]).tolist():
        coded = learner.features[f]
        at = np.flatnonzero((splits.feature == f) & (splits.form == Form.THRESHOLD))
        if coded.feature.kind == "numeric":
            lower, upper = splits.lower[at], splits.upper[at]
            threshold[at] = place_thresholds(coded, lower, upper, learner.parameters.threshold_value)[0]
    return threshold


def _compare(tree: Tree, nodes: Ints, splits: Splits) -> Flags:
    """(node,) True where the split is on the tree's feature, in its form, and parts what it saw as the tree does.

    Of two branches either may come first.
    """
    same = (splits.feature == tree.feature[nodes]) & (splits.form == tree.form[nodes])
    at, code, branch = splits.category
    mine = same[at]
    at, code, branch = at[mine], code[mine], branch[mine]
    theirs = tree.category_branch[tree.category_start[nodes[at]] + code]
    apart, turned = np.zeros((2, len(nodes)), bool)
    np.logical_or.at(apart, at, theirs != branch)
    np.logical_or.at(turned, at, (theirs != 1 - branch) | (tree.branches[nodes[at]] != 2))
    same &= ~(apart & turned)
    return np.asarray(same)
