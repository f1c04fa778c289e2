"""What a tree owes to each feature: what its splits gained, and what is lost where its values are mixed up."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray

from service.core.answers import Answers, answer_rows
from service.core.criteria import GAINS, Floats
from service.core.folds import take_cells
from service.core.guide import Guide
from service.core.objective import Objective
from service.core.parallel import PARALLEL_CELLS, run_parallel
from service.core.schema import Column
from service.core.statistics import Ints
from service.core.tree import Surrogates, Tree

OTHER_SCALES = frozenset({"goodness", "twoing"})
"""They count by the share of what is known, as gains do, but are no differences of impurities."""


def find_gains(tree: Tree, objective: Objective) -> Floats:
    """(node,) by how much each split lowers the weight times the impurity; 0 for leaves. rpart's ``improve``.

    It is the weight times the score where this is a gain. Other criteria, such as ratios, count by the impurity of
    their family, gini or entropy, of the node and of its children.
    """
    family = objective.criterion.family
    weight = family.weigh(objective.alter(tree.counts)) if tree.classes else tree.weight
    if objective.criterion.measure in GAINS - OTHER_SCALES:
        return np.where(tree.is_leaf, 0.0, weight * tree.score)
    total = weight * tree.impurity
    below = np.bincount(tree.parent[1:], weights=total[1:], minlength=tree.nodes)
    return np.where(tree.is_leaf, 0.0, np.maximum(total - below, 0.0))


def credit_features(tree: Tree, gain: Floats) -> Floats:
    """(feature,) the sum of the gains of its splits (Breiman et al. 1984, section 5.3.4, without surrogates)."""
    inner = np.flatnonzero(~tree.is_leaf)
    return np.bincount(tree.feature[inner], weights=gain[inner], minlength=len(tree.features)).astype(np.float64)


def credit_surrogates(surrogates: Surrogates, gain: Floats, features: int) -> Floats:
    """The same for what stands in for the splits: each gets the split's gain times its adjusted agreement, as in rpart.

    ``gain: (node,)``. A feature that another one always hides has no split, and is as good as the other.
    """
    node = np.repeat(np.arange(len(gain)), np.diff(surrogates.start))
    credit = np.bincount(surrogates.feature, weights=surrogates.adjusted * gain[node], minlength=features)
    return credit.astype(np.float64)


def list_used(tree: Tree) -> Ints:
    """The features that some node asks for, also instead of another one, ascending."""
    asked = tree.feature[~tree.is_leaf]
    instead = asked[:0] if tree.surrogates is None else tree.surrogates.feature
    return np.unique(np.concatenate([asked, instead])).astype(np.int64)


def permute_features(
    tree: Tree, guide: Guide, columns: Sequence[Column], measure: Callable[[Answers], float | None],
    repeats: int, seed: int,
) -> NDArray[np.float64]:  # fmt: skip
    """(feature, repeat) the measure when the cells of one feature are dealt to the rows at random (Breiman 2001).

    NaN where it is undefined. ``columns`` are those of the tree's features, for which the guide was made. Each
    permutation depends on the seed, the feature and the repeat alone. What no node asks for is left out: nothing
    would change, so its lines are those of the rows as they are.
    """
    rows = len(columns[0].values) if columns else 0
    used = list_used(tree)
    # for a guide that shares the work with other cores: threads do not nest
    tasks = [(int(feature), repeat) for feature in used for repeat in range(repeats)]

    def run(task: tuple[int, int]) -> float:
        feature, repeat = task
        order = np.random.default_rng([seed, feature, repeat]).permutation(rows)
        mixed = [take_cells(column, order) if f == feature else column for f, column in enumerate(columns)]
        value = measure(answer_rows(tree, guide, mixed, rows))
        return np.nan if value is None else value

    plain = measure(answer_rows(tree, guide, columns, rows)) if columns else None
    values = np.full((len(tree.features), repeats), np.nan if plain is None else plain)
    values[used] = np.array(run_parallel(run, tasks, worth=rows * len(used) > PARALLEL_CELLS)).reshape(-1, repeats)
    return values
