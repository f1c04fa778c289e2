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
points has no error. All its terms are positive, so no digits are lost, and nothing is divided, so weights may be 0.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np

from service.core.candidates import NO_ROUTE
from service.core.criteria import Floats
from service.core.explain import How, decide, read_cells
from service.core.guide import Guide
from service.core.schema import Column
from service.core.statistics import Ints
from service.core.tree import Tree

_CELLS = 1 << 20
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
class Products:
    """The products of which answers are sums, a line for each node that some row can end in.

    ``end: (line,)`` nodes. ``slot`` is a (line, feature) pair: ``line``, ``feature``: (slot,); its factors are those of
    ``edge[start[slot]] ..``. ``place: (slot,)`` is where it stands among the line's. ``weight: (slot,)``.
    """

    end: Ints
    line: Ints
    feature: Ints
    place: Ints
    edge: Ints
    start: Ints
    weight: Floats

    @property
    def most(self) -> int:
        """The most features of a line."""
        return int(self.place.max(initial=-1)) + 1


def find_shapley(tree: Tree, guide: Guide, columns: Sequence[Column], rows: int) -> Shapley:
    """The Shapley values of all rows; ``columns`` are those of ``tree.features``, for which the guide was made.

    What is explained are the probabilities of the classes, or the numbers; a tree of other answers has none. Where a
    surrogate told the way, its feature is who did; rows that end in an inner node do so by its feature.
    """
    outputs = _list_outputs(tree)
    cover = find_cover(tree)
    values = np.zeros((rows, len(tree.features), outputs.shape[1]))
    size = max(1, min(guide.block, _CELLS // (2 * tree.nodes)))
    for begin in range(0, rows, size):
        block = slice(begin, min(begin + size, rows))
        routes = _find_routes(tree, guide, columns, block)
        for mine, stops in _group_rows(tree, routes):
            products = _lay_out(tree, cover, routes.player[mine[0]], stops)
            values[begin + mine] = _credit(products, routes.goes[mine], outputs, len(tree.features))
    share = _spread_down(tree, cover)
    leaf = tree.is_leaf
    return Shapley(values, share[leaf] @ outputs[leaf])


def measure_shapley(tree: Tree) -> int:
    """How many factors are multiplied for each row, at most."""
    leaf = tree.is_leaf
    most = min(int(tree.depth.max()), len(np.unique(tree.feature[~leaf])))
    return int(tree.depth[leaf].sum()) + int(leaf.sum()) * most * ((most + 1) // 2)


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
    _, group = np.unique(routes.player, axis=0, return_inverse=True)
    order = np.argsort(group, kind="stable")
    for mine in np.split(order, np.flatnonzero(np.diff(group[order])) + 1):
        yield mine, np.flatnonzero(routes.goes[mine][:, tree.nodes :].any(0))


def _lay_out(tree: Tree, cover: Floats, player: Ints, stops: Ints) -> Products:
    """The lines of all leaves and ``stops``, ``player: (node,)`` being the feature that decides at each node."""
    end = np.concatenate([np.flatnonzero(tree.is_leaf), stops])
    last = np.arange(len(end) - len(stops), len(end))
    line, edge, decider = [last], [tree.nodes + stops], [player[stops]]
    here, at = np.arange(len(end)), end
    while (above := tree.parent[at] >= 0).any():
        here, at = here[above], at[above]
        parent = tree.parent[at]
        line.append(here)
        edge.append(at)
        decider.append(player[parent])
        at = parent
    lines, edges, players = (np.concatenate(each) for each in (line, edge, decider))
    order = np.lexsort((players, lines))
    lines, edges, players = lines[order], edges[order], players[order]
    start = np.flatnonzero((np.diff(lines, prepend=-1) != 0) | (np.diff(players, prepend=-1) != 0))
    of, feature = lines[start], players[start]
    first = np.searchsorted(of, np.arange(len(end)))
    shares = np.concatenate([cover, np.zeros(tree.nodes)])[edges]
    weight = np.multiply.reduceat(shares, start) if len(start) else np.empty(0)
    return Products(end, of, feature, np.arange(len(start)) - first[of], edges, start, weight)


def _credit(products: Products, goes: Floats, outputs: Floats, features: int) -> Floats:
    """(row, feature, output) the Shapley values of rows that share the products."""
    rows, most = len(goes), products.most
    credit = np.zeros((rows, features, outputs.shape[1]))
    if not most:
        return credit
    order = np.argsort(products.feature, kind="stable")
    begins = np.searchsorted(products.feature[order], np.arange(features + 1))
    size = max(1, _CELLS // (len(products.end) * most))
    for begin in range(0, rows, size):
        block = slice(begin, begin + size)
        along = np.multiply.reduceat(goes[block][:, products.edge], products.start, axis=1)
        added = (along - products.weight) * _integrate(products, along)
        for f in range(features):
            mine = order[begins[f] : begins[f + 1]]
            credit[block, f] = added[:, mine] @ outputs[products.end[products.line[mine]]]
    return credit


def _integrate(products: Products, along: Floats) -> Floats:
    """(row, slot) the integral of the product of the other factors of the slot's line; ``along: (row, slot)``."""
    rows, most = len(along), products.most
    points, masses = np.polynomial.legendre.leggauss((most + 1) // 2)
    # features that a line lacks are factors of 1
    known, unknown = np.ones((most, rows, len(products.end))), np.ones((most, 1, len(products.end)))
    known[products.place, :, products.line] = along.T
    unknown[products.place, 0, products.line] = products.weight
    total = np.zeros_like(known)
    for point, mass in zip(((points + 1) / 2).tolist(), (masses / 2).tolist(), strict=True):
        factor = (1 - point) * unknown + point * known
        total += mass * _multiply_others(factor)
    return np.asarray(total[products.place, :, products.line].T)


def _multiply_others(factor: Floats) -> Floats:
    """(place, ...) the product of all factors but one's own, without a division."""
    others = np.ones_like(factor)
    np.cumprod(factor[:-1], axis=0, out=others[1:])
    after = np.ones_like(factor[0])
    for place in range(len(factor) - 2, -1, -1):
        after = after * factor[place + 1]
        others[place] *= after
    return others
