"""What is in the branches of candidate splits, in the words of the API, column by column."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from service.core.audit import Audited
from service.core.criteria import Floats
from service.core.impurities import find_variances
from service.core.learner import Learner
from service.core.listing import Listing, gather_branches
from service.core.statistics import Ints
from service.rendering.nodes import EXACT_HALVES, show_statistics

Flags: TypeAlias = NDArray[np.bool_]
Population: TypeAlias = dict[str, NDArray[Any]]
"""What is in branches, by the API's names: (branch, candidate), or (number, branch, candidate) where that is a list."""


@dataclass(frozen=True, slots=True)
class Branches:
    """Both populations of the branches that have rows, the same ones in all candidates.

    ``hidden: (candidate,)``: what is routed is not known; None: it is everywhere. ``told``: what is routed of some
    candidates, which the tree knows.
    """

    known: Population
    routed: Population
    hidden: Flags | None
    told: Mapping[int, Sequence[Mapping[str, Any]]]


def read_branches(audited: Audited, listing: Listing, index: int, rows: Ints) -> Branches:
    """Both populations of each branch that has rows, for candidates of one table.

    Where missing values have a learnt direction or a branch they are an outcome of the test: all routed are known.
    """
    learner, table, place = audited.learner, listing.tables[index], listing.place[rows]
    stats, gone = gather_branches(table, place)
    counts = table.rows[:, place]
    known = _read_population(learner, listing, rows, counts, stats)
    if gone is None or table.gone_rows is None:
        return Branches(known, known, None, {})
    if learner.parameters.missing == "fractional":
        weight = learner.objective.criterion.family.weigh(stats)
        share = weight / np.where(weight.sum(0) > 0, weight.sum(0), 1.0)
        parted = counts + table.gone_rows[place] * (counts > 0)
        return Branches(
            known, _read_population(learner, listing, rows, parted, stats + share * gone[:, None]), None, {}
        )
    nodes = listing.nodes[listing.node[rows]]
    told = {i: _show_children(audited, int(nodes[i])) for i in np.flatnonzero(listing.chosen[rows]).tolist()}
    return Branches(known, known, table.gone_rows[place] > 0, told)


def _show_children(audited: Audited, node: int) -> list[dict[str, Any]]:
    tree = audited.tree
    first = int(tree.first_child[node])
    shown = [show_statistics(tree, child) for child in range(first, first + int(tree.branches[node]))]
    return [{name: value for name, value in each.items() if name != "impurity"} for each in shown]


def _read_population(learner: Learner, listing: Listing, rows: Ints, counts: Ints, stats: Floats) -> Population:
    """What is in each branch that has rows; ``counts: (branch, candidate)``, ``stats`` has as many or more."""
    objective, size = learner.objective, len(rows)
    statistic = objective.criterion.statistic
    impurity, weight = objective.impurity(stats), objective.criterion.family.weigh(stats)
    kept = np.flatnonzero(counts[:, 0] > 0)
    shown: Population = {"n": counts, "weight": weight}
    centre = listing.centre[..., listing.node[rows]]
    stats = stats[..., :size]
    if objective.criterion.task == "classification":
        shown["counts"] = _show_counts(stats)
    elif statistic == "vectors":
        heavy = np.where(stats[0] == 0, 1.0, stats[0])
        shown["mean"] = centre[:, None] + stats[1 : 1 + len(centre)] / heavy
        shown["variance"] = find_variances(stats, len(centre))
    elif statistic != "pairs":
        shown["mean"] = centre + stats[1] / np.where(stats[0] == 0, 1.0, stats[0])
        shown |= {"variance": impurity} if statistic == "moments" else {}
    shown["impurity"] = impurity
    return {name: values[..., kept, :size] for name, values in shown.items()}


def _show_counts(counts: Floats) -> NDArray[Any]:
    """Class weights; whole ones are shown as whole numbers (see `rendering.show_counts`)."""
    whole = (np.floor(counts) == counts) & (counts < EXACT_HALVES)
    if whole.all():
        return counts.astype(np.int64)
    return np.where(whole, np.where(whole, counts, 0).astype(np.int64).astype(object), counts.astype(object))


def list_branches(branches: Branches | list[Any], size: int) -> list[Any]:
    """The branches of each of so many candidates, as JSON has them."""
    if isinstance(branches, list):
        return branches
    known, routed = _list_population(branches.known), _list_population(branches.routed)
    shown = []
    for i in range(size):
        flows: Sequence[Any] = [{n: value for n, value in each.items() if n != "impurity"} for each in routed[i]]
        if i in branches.told:
            flows = branches.told[i]
        elif branches.hidden is not None and branches.hidden[i]:
            flows = [None] * len(flows)
        shown.append([{"known": k, "routed": r} for k, r in zip(known[i], flows, strict=True)])
    return shown


def _list_population(population: Population) -> list[list[dict[str, Any]]]:
    """What is in each branch of each candidate."""
    columns = [np.moveaxis(values, (-1, -2), (0, 1)).tolist() for values in population.values()]
    return [
        [dict(zip(population, branch, strict=True)) for branch in zip(*candidate, strict=True)]
        for candidate in zip(*columns, strict=True)
    ]
