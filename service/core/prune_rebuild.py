"""A draft -> a tree: nodes in breadth-first order again, with the statistics of the rows that they have now."""

from __future__ import annotations

from dataclasses import fields, replace
from typing import Any

import numpy as np

from service.core.assemble import predict
from service.core.candidates import Form
from service.core.criteria import Floats
from service.core.descend_parts import share_anew
from service.core.objective import Objective
from service.core.prune_cost import Costs
from service.core.prune_cut import BY_NODE_FIRST, LEAF, OTHERS, take_categories
from service.core.prune_draft import Draft
from service.core.statistics import Ints
from service.core.tree import LeafReason, Tree

_OF_SPLIT = frozenset(LEAF) - {"first_child"}
"""Arrays that go with the split; all others with the node."""


def rebuild(draft: Draft, objective: Objective, costs: Costs, *, priced: bool = False) -> tuple[Tree, Ints]:
    """The tree, and (node,) the new number of each node of the grown tree that is part of it, -1 for others.

    ``priced``: what scores were paid for cuts is not known for rows that came later, and neither are these scores.
    """
    node, parent, depth = _list_nodes(draft)
    split, inner = draft.content[node], draft.inner[node]
    place = np.full(len(draft.alive), -1)
    place[node] = np.arange(len(node))
    grown = draft.tree
    arrays: dict[str, Any] = {}
    for name, values in ((f.name, getattr(grown, f.name)) for f in fields(grown) if f.name not in OTHERS):
        if isinstance(values, np.ndarray):
            at = split if name in _OF_SPLIT else node
            arrays[name] = values[at] if name in BY_NODE_FIRST else values[..., at]
    for name, blank in LEAF.items():
        arrays[name][..., ~inner] = blank
    pruned = draft.reason[node] >= 0
    arrays["reason"] = np.where(
        pruned,
        draft.reason[node],
        np.where(draft.touched[node], LeafReason.RAISED, np.where(inner, grown.reason[split], grown.reason[node])),
    )
    arrays["parent"], arrays["depth"] = parent, depth
    arrays["first_child"] = np.where(inner, place[grown.first_child[split]], 0)
    arrays |= take_categories(grown, split, ~inner)
    tree = replace(grown, **arrays, surrogates=grown.surrogates and grown.surrogates.arrange(split, inner))
    if draft.touched[node].any():
        tree = _renew(draft, tree, node, place, objective, costs)
        if priced:
            tree.score[draft.touched[node] & (tree.form == Form.THRESHOLD)] = np.nan
    return tree, place


def _list_nodes(draft: Draft) -> tuple[Ints, Ints, Ints]:
    """The nodes of the tree by their old numbers, breadth first, with their new parents and depths."""
    level, nodes, parents, depths = (
        np.zeros(1, np.int64),
        [np.zeros(1, np.int64)],
        [np.full(1, -1)],
        [np.zeros(1, np.int64)],
    )
    done = 0
    while True:
        split = np.flatnonzero(draft.inner[level])
        if not len(split):
            break
        children, start = draft.list_children(level[split])
        parents.append(done + np.repeat(split, np.diff(start, append=len(children))))
        done += len(level)
        level = children
        nodes.append(level)
        depths.append(np.full(len(level), len(depths)))
    return np.concatenate(nodes), np.concatenate(parents), np.concatenate(depths)


def _renew(draft: Draft, tree: Tree, node: Ints, place: Ints, objective: Objective, costs: Costs) -> Tree:
    """The tree with the statistics, the answers and the routes of nodes whose rows are others than in growth."""
    touched = draft.touched[node]
    counts, rows = draft.counts[:, node], draft.rows[node]
    probability, prediction = predict(counts, tree.mean, tree.parent, rows, costs.weight, costs.loss)
    # an empty node answers as its parent
    anew = touched | (touched[np.maximum(tree.parent, 0)] & (rows == 0))
    impurity = objective.impurity(counts)
    tree = replace(
        tree,
        counts=np.where(touched, counts, tree.counts),
        rows=np.where(touched, rows, tree.rows),
        weight=np.where(touched, counts.sum(0), tree.weight),
        impurity=np.where(touched, impurity, tree.impurity),
        probability=np.where(anew[:, None], probability, tree.probability),
        prediction=np.where(anew, prediction, tree.prediction),
        score=tree.score.copy(), missing_to=tree.missing_to.copy(), category_branch=tree.category_branch.copy(),
    )  # fmt: skip
    parts_rows = draft.router.parts_rows
    known = _count_known(draft, tree, node, place) if parts_rows else tree.counts
    for at in np.flatnonzero(touched & ~tree.is_leaf).tolist():
        first = int(tree.first_child[at])
        parts = known[:, first : first + int(tree.branches[at])]
        gone = tree.counts[:, [at]] - parts.sum(1, keepdims=True) if parts_rows else None
        branches = objective.alter(parts)[:, :, None]
        tree.score[at] = objective.score(branches, branches.sum(1), objective.alter_gone(gone))[0]
    _note_routes(draft, tree, node, place)
    return share_anew(tree, draft.router.features, draft.target.weight, touched) if draft.router.parts else tree


def _count_known(draft: Draft, tree: Tree, node: Ints, place: Ints) -> Floats:
    """(class, node) what came to each child of a split with other rows than in growth without being parted there."""
    touched, content = draft.touched[node], draft.content[node]
    flow, known = draft.flow.move(place[draft.flow.at]), []
    while len(flow.row):
        flow = flow.take(tree.parent[flow.at] >= 0)
        above = tree.parent[flow.at]
        here = np.flatnonzero(touched[above])
        here = here[draft.router.read(flow.row[here], content[above[here]]) >= 0]
        known.append(flow.take(here))
        flow = flow.move(above)
    return draft.sum_classes(known[0].join(*known[1:]), tree.nodes)


def _note_routes(draft: Draft, tree: Tree, node: Ints, place: Ints) -> None:
    """What came to a split that had not seen the like is known to it now, and goes where it was sent."""
    touched, content = draft.touched[node], draft.content[node]
    row, at = draft.flow.row, place[draft.flow.at]
    while len(row):
        at = tree.parent[at]
        row, at = row[at >= 0], at[at >= 0]
        here = np.flatnonzero(touched[at])
        here = here[draft.router.read(row[here], content[at[here]], rest=False) < 0]
        branch = draft.router.read(row[here], content[at[here]])
        if not draft.router.parts:
            branch = np.where(branch < 0, draft.router.heaviest[content[at[here]]], branch)
        lost, branch = here[branch >= 0], branch[branch >= 0]
        for f in np.unique(tree.feature[at[lost]]).tolist():
            coded = draft.router.features[f]
            mine = tree.feature[at[lost]] == f
            its, rows, to = at[lost][mine], row[lost][mine], branch[mine]
            gone = coded.is_missing(rows)
            tree.missing_to[its[gone]] = to[gone]
            if coded.feature.kind != "numeric":
                code = coded.codes[rows[~gone]].astype(np.int64)
                tree.category_branch[tree.category_start[its[~gone]] + code] = to[~gone]
