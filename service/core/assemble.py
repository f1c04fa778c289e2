"""A finished growth -> a tree: nodes in breadth-first order, splits in the words of the data."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.candidates import NO_ROUTE, Form
from service.core.criteria import Floats
from service.core.encoding import CodedFeature
from service.core.growth import Growth
from service.core.impurities import find_variances
from service.core.learner import Learner
from service.core.schema import Target
from service.core.search import join_splits, levels_of
from service.core.stand_ins import count_cells, join_stands
from service.core.statistics import Ints
from service.core.thresholds import find_midpoints, largest_values_up_to
from service.core.tree import Surrogates, Tree, choose_answers


def build_tree(
    learner: Learner, target: Target, growth: Growth, shown: Floats | None, loss: Sequence[Sequence[float]] | None
) -> tuple[Tree, Ints]:
    """The tree, and (row,) the leaf of each training row.

    ``shown: (class,)`` multiplies class weights before they are shares (priors, class weights); ``loss`` chooses the
    answer of least expected loss instead of the likeliest class.
    """
    joined = {name: _join(growth, name) for name in growth.nodes[0]}
    rank = _rank_breadth_first(joined["parent"], joined["branch"], joined["depth"])
    order = rank.argsort()
    table = {name: values[..., order] for name, values in joined.items()}
    parent = np.where(table["parent"] < 0, -1, rank[np.maximum(table["parent"], 0)])
    stats = table["stats"]
    counts = stats if target.is_classification else np.zeros((0, len(parent)))
    summed = not target.is_classification and target.pairs is None
    mean = _find_means(stats, table["centre"]) if summed else table["centre"]
    variances = np.zeros((len(parent), 0))
    answer = np.where(np.isnan(table["answer"]), mean, table["answer"])
    if learner.parameters.rate_prior is not None:
        answer = shrink_rates(stats[0], mean, learner.parameters.rate_prior)
    if target.statistic == "vectors":
        mean, variances = mean.T, find_variances(stats, len(mean)).T
        answer = mean
    probability, prediction = predict(counts, answer, parent, table["rows"], shown, loss)
    answers: tuple[Any, ...] = ()
    if target.pairs is not None:
        medoid, code = np.unique(prediction, return_inverse=True)
        answers, prediction = target.pairs.take_answers(medoid.astype(np.int64)), code.astype(np.float64)
    tree = Tree(
        features=tuple(coded.feature for coded in learner.features),
        classes=target.classes,
        parent=parent,
        depth=table["depth"],
        rows=table["rows"],
        weight=stats.sum(0) if target.is_classification else stats[0],
        counts=counts,
        mean=mean if not target.is_classification else np.zeros(len(parent)),
        impurity=table["impurity"],
        probability=probability,
        prediction=prediction,
        reason=table["reason"],
        statistic=target.statistic,
        variances=variances,
        answers=answers,
        loss=None if loss is None else np.asarray(loss, float),
        share=_find_shares(learner, table["share"], stats, parent),
        surrogates=_write_surrogates(learner, growth, rank, len(parent)),
        **_write_splits(learner, growth, rank, len(parent)),
    )
    return tree, rank[growth.leaf]


def _find_shares(learner: Learner, share: Floats, stats: Floats, parent: Ints) -> Floats | None:
    """(node,) how much of the rows without a value comes to each node; None unless rows are parted in predictions."""
    if learner.parameters.missing != "fractional":
        return None
    if learner.parts_rows:
        return share
    # nothing was parted, so nodes weigh what they know
    weight = learner.objective.criterion.family.weigh(stats)
    return np.where(parent < 0, 1.0, weight / weight[parent])


def _write_surrogates(learner: Learner, growth: Growth, rank: Ints, nodes: int) -> Surrogates | None:
    if learner.parameters.missing != "surrogate":
        return None
    stands = join_stands(growth.stands)
    node = rank[stands.node]
    order = np.argsort(node, kind="stable")
    place = np.empty(len(order), np.int64)
    place[order] = np.arange(len(order))
    feature = stands.feature[order]
    rows = np.stack([stands.lower, stands.upper])[:, order]
    size = count_cells(learner, feature)
    start = np.cumsum(size) - size
    branch = np.full(max(int(size.sum()), 1), NO_ROUTE)
    surrogate, code, way = stands.category
    branch[start[place[surrogate]] + code] = way
    ordered = np.array([*(learner.is_ordered(f) for f in range(len(learner.features))), False], bool)
    form = np.where(ordered[feature], int(Form.THRESHOLD), int(Form.SUBSET))
    return Surrogates(
        start=np.searchsorted(node[order], np.arange(nodes + 1)).astype(np.int64),
        feature=feature,
        flipped=stands.flipped[order],
        category_start=start,
        category_branch=branch,
        agree=stands.agree[order],
        adjusted=stands.adjusted[order],
        rows=stands.rows[order],
        asked=np.full(len(order), learner.parameters.use_surrogates > 0),
        **_write_thresholds(learner, feature, form, rows),
    )


def _join(growth: Growth, name: str) -> NDArray[Any]:
    return np.concatenate([chunk[name] for chunk in growth.nodes], axis=-1)


def _rank_breadth_first(parent: Ints, branch: Ints, depth: Ints) -> Ints:
    """(node,) each node's place in breadth-first order; a child is created after its parent."""
    rank = np.zeros(len(parent), np.int64)
    if (depth[1:] >= depth[:-1]).all() and (parent[1:] >= parent[:-1]).all():
        return np.arange(len(parent))
    done = 1
    by_depth = np.argsort(depth, kind="stable")
    edges = np.searchsorted(depth[by_depth], np.arange(1, int(depth.max()) + 2))
    for begin, end in pairwise(edges.tolist()):
        level = by_depth[begin:end]
        rank[level[np.lexsort((branch[level], rank[parent[level]]))]] = np.arange(done, done + len(level))
        done += len(level)
    return rank


def _find_means(stats: Floats, centre: Floats) -> Floats:
    """The mean of each node, or of each output (output, node); 0 where nothing weighs."""
    sums = stats[1] if centre.ndim == 1 else stats[1 : 1 + len(centre)]
    mean: Floats = np.divide(sums, stats[0], out=np.zeros_like(centre), where=stats[0] > 0)
    return mean + centre


def shrink_rates(weight: Floats, rate: Floats, prior: float) -> Floats:
    """(node,) rates drawn towards that of the root, node 0, which stays as it is.

    They are the means of gamma distributions: a prior about the root's rate, whose coefficient of variation is
    ``prior``, met with events in proportion to ``weight`` (Therneau and Atkinson, "An Introduction to Recursive
    Partitioning Using the RPART Routines", section 8.2).
    """
    events = prior**-2
    return np.asarray((weight * rate + events) / (weight + events / rate[0]))


def predict(
    counts: Floats, mean: Floats, parent: Ints, rows: Ints, shown: Floats | None, loss: Sequence[Sequence[float]] | None
) -> tuple[Floats, Floats]:
    """(node, class) probabilities and (node,) answers; a node without rows answers as its parent does."""
    source = np.where(rows > 0, np.arange(len(rows)), parent)
    if not len(counts):
        return np.zeros((len(rows), 0)), mean[source]
    weight = counts if shown is None else counts * shown[:, None]
    probability = np.ascontiguousarray((weight[:, source] / weight[:, source].sum(0)).T)
    return probability, choose_answers(probability, loss)


def _write_splits(learner: Learner, growth: Growth, rank: Ints, nodes: int) -> dict[str, NDArray[Any]]:
    """The arrays of `Tree` that describe splits, by name."""
    out: dict[str, NDArray[Any]] = {
        "feature": np.full(nodes, -1),
        "form": np.zeros(nodes, np.int64),
        "first_child": np.zeros(nodes, np.int64),
        "branches": np.zeros(nodes, np.int64),
        "missing_to": np.full(nodes, NO_ROUTE),
        "score": np.full(nodes, np.nan),
    }
    rows = np.zeros((2, nodes), np.int64)
    category = np.empty((3, 0), np.int64)
    if growth.splits:
        ids, first, parts = zip(*growth.splits, strict=True)
        begins = np.cumsum([0, *map(len, ids)]).tolist()
        splits = join_splits(parts, list(pairwise(begins)))
        taken = np.flatnonzero(splits.feature >= 0)
        of_split = rank[np.concatenate(ids)]
        at = of_split[taken]
        for name in ("feature", "form", "branches", "missing_to", "score"):
            out[name][at] = getattr(splits, name)[taken]
        out["first_child"][at] = rank[np.concatenate(first)[taken]]
        rows[:, at] = splits.lower[taken], splits.upper[taken]
        category = np.stack([of_split[splits.category[0]], *splits.category[1:]])
    out |= _write_thresholds(learner, out["feature"], out["form"], rows)
    return out | _write_categories(learner, out["feature"], out["form"], category)


def _write_thresholds(learner: Learner, feature: Ints, form: Ints, rows: Ints) -> dict[str, NDArray[Any]]:
    nodes = len(feature)
    threshold, whole = np.full(nodes, np.nan), np.zeros(nodes, np.int64)
    beside, beside_whole = np.full((2, nodes), np.nan), np.zeros((2, nodes), np.int64)
    cut = np.flatnonzero(form == Form.THRESHOLD)
    cut = cut[feature[cut].argsort(kind="stable")]
    edge = feature[cut].searchsorted(np.arange(len(learner.features) + 1)).tolist()
    for coded, (begin, end) in zip(learner.features, pairwise(edge), strict=True):
        at = cut[begin:end]
        if coded.feature.kind != "numeric":
            whole[at], beside_whole[:, at] = coded.codes[rows[0, at]], coded.codes[rows[:, at]]
        elif begin < end:
            lower, upper = rows[:, at]
            threshold[at], whole[at] = place_thresholds(coded, lower, upper, learner.parameters.threshold_value)
            beside[:, at] = values = coded.numbers[rows[:, at]]
            if coded.feature.integer:
                beside_whole[:, at] = values
    return {"threshold": threshold, "whole": whole, "beside": beside, "beside_whole": beside_whole}


def place_thresholds(coded: CodedFeature, lower: Ints, upper: Ints, threshold_value: str) -> tuple[Floats, Ints]:
    """(cut,) thresholds between the values of training rows ``lower`` and ``upper``, as float64 and as int64."""
    # adding 0 turns -0.0 into 0.0
    threshold, whole = find_midpoints(coded.pick(lower) + 0, coded.pick(upper) + 0)
    if threshold_value == "data":
        return largest_values_up_to(coded.values, threshold, whole)
    return threshold, whole


def _write_categories(learner: Learner, feature: Ints, form: Ints, category: Ints) -> dict[str, NDArray[Any]]:
    """``category: (3, pair)``: node, code, branch. A node's run has a cell for each category and one for missing."""
    if not category.size:
        return {"category_start": np.zeros(len(form), np.int64), "category_branch": np.full(1, NO_ROUTE)}
    nominal = (form == Form.SUBSET) | (form == Form.MULTIWAY)
    size = np.where(nominal, levels_of(learner, feature) + 1, 0)
    start = np.cumsum(size) - size
    branch = np.full(max(int(size.sum()), 1), NO_ROUTE)
    branch[start[category[0]] + category[1]] = category[2]
    if learner.parameters.empty_branches:
        for node in np.flatnonzero(form == Form.MULTIWAY):
            run = slice(start[node], start[node] + size[node] - 1)
            branch[run] = np.arange(size[node] - 1)
    return {"category_start": start, "category_branch": branch}
