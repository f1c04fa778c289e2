"""Shapley values of a tree's answers, exact: what each feature's value adds to what is expected without it.

A feature that is not known leaves a row to all branches of a node, by their weight in training: the game of Lundberg et
al. 2020, "From local explanations to global understanding with explainable AI for trees", that is path dependent.
What a leaf adds to the answer is then its value times a product over the features f that the nodes above it ask for:

    along[f]     where f is known: 1 if the row takes all branches on f, 0 if not, or how much of it does
    weight[f]    where it is not: the share of the training weight that takes them

A Shapley value is the integral over t from 0 to 1 of the derivative by f of the multilinear extension at (t, .., t)
(Owen 1972, "Multilinear extensions of games"), which here is, leaf by leaf, its value times

    (along[f] - weight[f]) x integral of the product over the other features g of (1 - t) weight[g] + t along[g]

This is a polynomial in t, of a degree below the number of features: Gauss and Legendre's quadrature of half as many
points has no error. At each point the products of all leaves are those of their parents times one factor, and what the
leaves below a node have in common is taken out of their sum, as in linear TreeSHAP (Yu et al. 2022).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import numpy as np

from service.core.candidates import NO_ROUTE
from service.core.criteria import Floats
from service.core.explain import How, decide, read_cells
from service.core.guide import Guide
from service.core.impurities import divide
from service.core.parallel import PARALLEL_CELLS, count_cores, run_parallel
from service.core.schema import Column
from service.core.statistics import Ints
from service.core.tree import Tree

_CELLS = 1 << 18
"""Rows are taken together as long as no array has more cells."""


@dataclass(frozen=True, slots=True)
class Shapley:
    """``values: (row, feature, output)``, ``expected: (output,)``; an output is a class, or a number's target.

    For each row the sum of ``expected`` and its ``values`` is what it is answered.
    """

    values: Floats
    expected: Floats


@dataclass(frozen=True, slots=True)
class Routes:
    """What rows do at every node, whether they come to it or not.

    An *edge* is the way to a node, or (from ``tree.nodes`` on) ending at one. ``goes: (row, edge)`` is how much of a
    row that is above takes it; ``player: (row, node)`` the feature that decided.
    """

    goes: Floats
    player: Ints


@dataclass(frozen=True, slots=True)
class Edges:
    """The edges that are taken by rows that share their players, by depth and then by parent; (edge,).

    The first one, to the root, is taken by all. ``edge`` is its number in `Routes`; ``parent`` and ``last`` are edges
    of this list: the one above, and the nearest above that has the same player, -1 where there is none. ``weight`` is
    the share of training weight that takes this edge and all above of its player; ``end`` the node of rows that go no
    further, -1 elsewhere. ``levels``: where each depth begins; ``families``: from the deepest on, the edges of a depth,
    where in these the children of each parent begin, and the parents. ``most`` is the most players on one way.
    """

    edge: Ints
    parent: Ints
    last: Ints
    player: Ints
    weight: Floats
    end: Ints
    levels: list[int]
    families: list[tuple[slice, Ints, Ints]]
    most: int

    @property
    def points(self) -> int:
        """How many points of a quadrature leave no error."""
        return max((self.most + 1) // 2, 1)


def find_shapley(tree: Tree, guide: Guide, columns: Sequence[Column], rows: int) -> Shapley:
    """The Shapley values of all rows; ``columns`` are those of ``tree.features``, for which the guide was made.

    What is explained are the probabilities of the classes, or the numbers; a tree of other answers has none. Where a
    surrogate told the way, its feature is who did; rows that end in an inner node do so by its feature.
    """
    outputs = _list_outputs(tree)
    cover = find_cover(tree)
    values = np.zeros((rows, len(tree.features), outputs.shape[1]))

    def fill(block: slice) -> None:
        routes, of_block = _find_routes(tree, guide, columns, block), values[block]
        for mine, stops in _group_rows(tree, routes):
            edges = _lay_out(tree, cover, routes.player[mine[0]], stops)
            size = max(1, _CELLS // (len(edges.edge) * edges.points))
            for first in range(0, len(mine), size):
                some = mine[first : first + size]
                of_block[some] = _credit(edges, routes.goes[some], outputs, len(tree.features), bool(tree.classes))

    together = max(1, min(guide.block, 4 * _CELLS // tree.nodes, -(-rows // count_cores())))
    blocks = [slice(begin, min(begin + together, rows)) for begin in range(0, rows, together)]
    run_parallel(fill, blocks, worth=rows * tree.nodes > PARALLEL_CELLS)
    share = _spread_down(tree, cover)
    leaf = tree.is_leaf
    return Shapley(values, share[leaf] @ outputs[leaf])


def measure_shapley(tree: Tree) -> int:
    """How many factors are multiplied and added up for each row, at most."""
    most = min(int(tree.depth.max()), len(np.unique(tree.feature[~tree.is_leaf])))
    outputs: int = _list_outputs(tree).shape[1]
    return tree.nodes * max((most + 1) // 2, 1) * (outputs + 4)


def find_cover(tree: Tree) -> Floats:
    """(node,) its share of the training weight of the siblings, altered as probabilities are; 1 for the root."""
    weight = tree.weight
    if tree.classes:
        # the root's shares are those of its altered weights: no bound and no other part holds them back
        plain = tree.counts[:, 0]
        weight = np.divide(tree.probability[0], plain, out=np.zeros(len(plain)), where=plain > 0) @ tree.counts
    # not the parent's own: rows may have stopped there
    above = np.bincount(tree.parent[1:], weight[1:], tree.nodes).astype(float)[np.maximum(tree.parent, 0)]
    return np.where(tree.parent < 0, 1.0, np.divide(weight, above, out=np.zeros_like(above), where=above > 0))


def _list_outputs(tree: Tree) -> Floats:
    if tree.classes:
        return tree.probability
    return tree.prediction.reshape(tree.nodes, -1)


def _spread_down(tree: Tree, cover: Floats) -> Floats:
    """(node,) the product of the covers on the way from the root."""
    share = cover.copy()
    for depth in range(1, int(tree.depth.max()) + 1):
        level = np.flatnonzero(tree.depth == depth)
        share[level] *= share[tree.parent[level]]
    return share


def _find_routes(tree: Tree, guide: Guide, columns: Sequence[Column], rows: slice) -> Routes:
    count, nodes = rows.stop - rows.start, tree.nodes
    inner = np.flatnonzero(~tree.is_leaf)
    goes = np.zeros((count, 2 * nodes))
    player = np.tile(tree.feature, (count, 1))
    if not len(inner):
        return Routes(goes, player)
    node, row = np.tile(inner, count), np.repeat(np.arange(count), len(inner))
    told = decide(tree, guide, read_cells(guide, columns, rows), node, row)
    shape = (count, len(inner))
    branch, how, which = (each.reshape(shape) for each in (told.branch, told.how, told.surrogate))
    at = np.full(nodes, -1)
    at[inner] = np.arange(len(inner))
    child = np.arange(1, nodes)
    parent = tree.parent[child]
    said = branch[:, at[parent]]
    parted = guide.share[child] * guide.parted
    goes[:, child] = np.where(said == NO_ROUTE, parted, said == child - tree.first_child[parent])
    goes[:, nodes + inner] = how == How.STOPPED
    if tree.surrogates is not None:
        stood = np.nonzero(how == How.SURROGATE)
        player[stood[0], inner[stood[1]]] = tree.surrogates.feature[which[stood]]
    return Routes(goes, player)


def _group_rows(tree: Tree, routes: Routes) -> Iterator[tuple[Ints, Ints]]:
    """Rows of which the same features decide everywhere, and (stop,) the inner nodes where any of them ends."""
    alike = tree.surrogates is None or len(routes.player) == 1
    group = np.zeros(len(routes.player), np.int64)
    if not alike:
        _, group = np.unique(routes.player, axis=0, return_inverse=True)
    order = np.argsort(group, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        yield mine, np.flatnonzero(routes.goes[mine][:, tree.nodes :].any(0))


def _lay_out(tree: Tree, cover: Floats, player: Ints, stops: Ints) -> Edges:
    """The edges to all nodes and the ends at ``stops``, ``player: (node,)`` being the feature that decides at each."""
    nodes = tree.nodes
    edge = np.concatenate([np.arange(nodes), nodes + stops])
    above = np.concatenate([tree.parent, stops])
    depth = np.concatenate([tree.depth, tree.depth[stops] + 1])
    order = np.lexsort((edge, above, depth))
    place = np.empty(len(edge), np.int64)
    place[order] = np.arange(len(edge))
    parent = np.where(above < 0, -1, place[above])[order]
    edge, depth = edge[order], depth[order]
    decider = np.where(parent < 0, -1, player[above[order]])
    last = _find_last(parent, decider)
    levels = [*np.flatnonzero(np.diff(depth, prepend=-1)).tolist(), len(edge)]
    families = []
    for begin, end in reversed(list(pairwise(levels[1:]))):
        starts = np.flatnonzero(np.diff(parent[begin:end], prepend=-1))
        families.append((slice(begin, end), starts, parent[begin:end][starts]))
    weight = np.concatenate([cover, np.zeros(nodes)])[edge]
    count = (last < 0).astype(np.int64)
    count[0] = 0
    for begin, end in pairwise(levels[1:]):
        level = slice(begin, end)
        weight[level] *= np.where(last[level] < 0, 1.0, weight[last[level]])
        count[level] += count[parent[level]]
    at = edge % nodes
    end_at = np.where((edge >= nodes) | tree.is_leaf[at], at, -1)
    return Edges(edge, parent, last, decider, weight, end_at, levels, families, int(count.max()))


def _find_last(parent: Ints, player: Ints) -> Ints:
    """(edge,) the nearest edge above that has the same player, -1 where there is none."""
    last = np.full(len(parent), -1)
    looking, at = np.arange(len(parent)), parent
    while len(looking := looking[going := at > 0]):
        at = at[going]
        found = player[at] == player[looking]
        last[looking[found]] = at[found]
        looking, at = looking[~found], parent[at[~found]]
    return last


def _credit(edges: Edges, goes: Floats, outputs: Floats, features: int, is_shared: bool) -> Floats:
    """(row, feature, output) the Shapley values of rows that share the edges; ``goes``: see `Routes`.

    ``is_shared``: outputs are the probabilities of classes.
    """
    credit = np.zeros((len(goes), features, outputs.shape[1]))
    if len(edges.edge) == 1:
        return credit
    product, added = _find_factors(edges, goes)
    order = np.argsort(edges.player[1:], kind="stable") + 1
    player = edges.player[order]
    starts = np.flatnonzero(np.diff(player, prepend=-1))
    for output in range(outputs.shape[1] - is_shared):
        value = np.where(edges.end < 0, 0.0, outputs[edges.end, output])
        below = _sum_below(edges, product * value[:, None, None])
        by_edge = np.einsum("erq,erq->er", added, below)[order]
        credit[:, player[starts], output] = np.add.reduceat(by_edge, starts, axis=0).T
    if is_shared:  # what one class gains the others lose
        credit[:, :, -1] = -credit.sum(-1)
    return credit


def _find_factors(edges: Edges, goes: Floats) -> tuple[Floats, Floats]:
    """(edge, row, point) the product of all factors on the way to each edge, and what is added without its player's.

    ``added`` is that times the mass of the point, by the product, less what the last edge of the player has added.
    """
    points, masses = np.polynomial.legendre.leggauss(edges.points)
    point, mass = (points + 1) / 2, masses / 2  # from -1 .. 1 to 0 .. 1
    along = np.ascontiguousarray(goes[:, edges.edge].T)
    along[0] = 1.0
    for begin, end in pairwise(edges.levels[1:]):
        last = edges.last[begin:end]
        along[begin:end] *= np.where(last[:, None] < 0, 1.0, along[last])
    gap = along - edges.weight[:, None]
    factor = edges.weight[:, None, None] + point * gap[:, :, None]
    again = np.flatnonzero(edges.last >= 0)
    before = edges.last[again]
    product = factor.copy()
    # below a factor of 0 nothing is left to be shared
    product[again] = divide(factor[again], factor[before])
    for begin, end in pairwise(edges.levels[1:]):
        product[begin:end] *= product[edges.parent[begin:end]]
    added = divide(gap[:, :, None] * mass, factor)
    added[again] -= added[before]
    return product, added


def _sum_below(edges: Edges, value: Floats) -> Floats:
    """(edge, ...) the sum over what is below each edge, which is written into ``value: (edge, ...)``."""
    for level, starts, parents in edges.families:
        value[parents] += np.add.reduceat(value[level], starts, axis=0)
    return value
