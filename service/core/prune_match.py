"""Which candidate of a node a split is that was not chosen among its rows: one that came up with a raised branch."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import NO_ROUTE, Candidates, Form
from service.core.encoding import CodedFeature
from service.core.statistics import Ints
from service.core.subsets import find_left
from service.core.tree import Tree


def match_split(tree: Tree, node: int, coded: CodedFeature, table: Candidates, place: Ints) -> NDArray[np.bool_]:
    """(candidate,) True for those at ``place`` in ``table``, all of ``node`` and its feature, that part its rows alike.

    The threshold of a raised split stays where it was put, which need not be midway between two values of the rows
    that are here now: the candidate around it parts them in the same way.
    """
    if table.form != tree.form[node]:
        return np.zeros(len(place), bool)
    missing_to = int(tree.missing_to[node])
    same = (table.missing_to[place] == missing_to) | (table.missing_to[place] == NO_ROUTE) | (missing_to == NO_ROUTE)
    if table.form == Form.THRESHOLD:
        lower, upper = table.lower[place], table.upper[place]
        if coded.feature.kind == "numeric":
            limit = tree.whole[node] if coded.feature.integer else tree.threshold[node]
            return np.asarray(same & (coded.pick(lower) <= limit) & (coded.pick(upper) > limit))
        whole = tree.whole[node]
        return np.asarray(same & (coded.codes[lower] <= whole) & (coded.codes[upper] > whole))
    if table.form == Form.SUBSET:
        return np.asarray(same & [_parts_alike(tree, node, table, at) for at in place.tolist()])
    return np.asarray(same)


def _parts_alike(tree: Tree, node: int, table: Candidates, place: int) -> bool:
    """Whether a candidate's two groups of categories are those of the node."""
    slots, subsets = table.slots, table.subsets
    if slots is None or subsets is None:
        return False
    begin, end = np.searchsorted(slots.segment, [table.segment[place], table.segment[place] + 1])
    own = replace(subsets, rank=subsets.rank[begin:end], order=subsets.order[begin:end])
    left = find_left(own, slots.take(np.arange(begin, end)), table.segment, np.array([place]))[0]
    branch = tree.category_branch[tree.category_start[node] + slots.code[begin:end]]
    return bool(((branch == 0) == left).all() or ((branch == 1) == left).all())
