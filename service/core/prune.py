"""Pruning after growth: what a tree grows to and is cut back to, as the parameters say."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace

import numpy as np

from service.core.encoding import CodedFeature
from service.core.errors import Fault, InvalidParameters
from service.core.folds import take_target
from service.core.objective import Objective
from service.core.parameters import Parameters, default_folds
from service.core.prune_cost import Costs, Path, find_cut, find_path, find_risks
from service.core.prune_cut import cut_back
from service.core.prune_draft import Draft
from service.core.prune_ends import find_ends
from service.core.prune_error import ErrorPruner, find_collapsed
from service.core.prune_rebuild import rebuild
from service.core.prune_reduced import choose_held, find_idle
from service.core.prune_rpart import find_order, follow_rpart
from service.core.prune_validate import Validated, validate
from service.core.schema import Target
from service.core.statistics import Ints
from service.core.tree import LeafReason, Tree

Growth = Callable[[tuple[CodedFeature, ...], Target, float | None], tuple[Tree, Ints]]
"""Grows a tree on some rows, by ``cp`` with an alpha that was found already, if any; also gives the leaf of each."""


@dataclass(frozen=True, slots=True)
class Pruning:
    """How a tree was cut back: it had ``nodes`` and ``leaves`` as it was grown.

    ``path`` holds the subtrees of the grown tree, ``validated`` their cross-validated errors, where they were needed;
    ``step`` is the one that was kept, None where none was chosen. ``raised`` branches took the place of a split;
    ``held_out`` rows took no part in growth.
    """

    nodes: int
    leaves: int
    path: Path | None = None
    validated: Validated | None = None
    step: int | None = None
    raised: int = 0
    held_out: int = 0


def grow_and_prune(
    features: tuple[CodedFeature, ...], target: Target, parameters: Parameters, objective: Objective, costs: Costs,
    grow: Growth,
) -> tuple[Tree, Ints, Pruning]:  # fmt: skip
    """The tree that is kept, (row,) the leaf of each training row in it, and how it came about.

    Raises InvalidParameters where there are fewer rows than folds.
    """
    tree, leaf = grow(features, target, None)
    pruning = Pruning(tree.nodes, int(tree.is_leaf.sum()))
    if parameters.pruning == "cost_complexity" or parameters.cp is not None or parameters.pruning_folds is not None:
        tree, leaf, pruning = _prune_by_cost(features, target, parameters, objective, costs, grow, (tree, leaf))
    if parameters.pruning == "error_based" or parameters.collapse:
        tree, leaf, raised = prune_by_error(features, target, parameters, objective, costs, (tree, leaf))
        pruning = replace(pruning, raised=raised)
    return tree, leaf, pruning


def prune_by_error(
    features: tuple[CodedFeature, ...], target: Target, parameters: Parameters, objective: Objective, costs: Costs,
    grown: tuple[Tree, Ints],
) -> tuple[Tree, Ints, int]:  # fmt: skip
    """The tree collapsed and pruned by its errors, the leaf of each row, and how many branches were raised."""
    tree, leaf = grown
    draft = Draft(tree, features, target, leaf, one_vs_rest=parameters.nominal == "one_vs_rest")
    if parameters.collapse:
        draft.cut(find_collapsed(draft, costs.weight), LeafReason.COLLAPSED)
    if parameters.pruning == "error_based":
        ErrorPruner(draft, parameters, costs.weight).run()
    pruned, place = rebuild(draft, objective, costs, priced=parameters.cut_penalty is not None)
    leaf = np.empty(target.rows, np.int64)
    # of a row that was parted, any leaf
    leaf[draft.flow.row] = place[draft.flow.at]
    return pruned, leaf, int((draft.content != np.arange(tree.nodes))[place >= 0].sum())


@dataclass(frozen=True, slots=True)
class HeldOut:
    """Rows that took no part in growth: ``row: (held,)`` are their places among all, ascending."""

    row: Ints
    features: tuple[CodedFeature, ...]
    target: Target


@dataclass(frozen=True, slots=True)
class Reduced:
    """A tree that was pruned by rows ``held`` out, with the features and the target of the rows that grew it."""

    tree: Tree
    leaf: Ints
    pruning: Pruning
    features: tuple[CodedFeature, ...]
    target: Target
    held: HeldOut | None = None


def grow_and_reduce(
    features: tuple[CodedFeature, ...], target: Target, parameters: Parameters, costs: Costs, grow: Growth
) -> Reduced:
    """Grow a tree on some of the rows, and cut it back by its errors on the others.

    Raises InvalidParameters where there are fewer rows than folds.
    """
    folds = _count_folds(parameters, target.rows)
    if target.rows < 2:
        tree, leaf = grow(features, target, None)
        return Reduced(tree, leaf, Pruning(tree.nodes, int(tree.is_leaf.sum())), features, target)
    held = choose_held(target, replace(parameters, pruning_folds=folds))
    kept = tuple(coded.take(~held) for coded in features)
    of_kept = take_target(target, ~held)
    out = HeldOut(np.flatnonzero(held), tuple(coded.take(held) for coded in features), take_target(target, held))
    tree, leaf = grow(kept, of_kept, None)
    ends = find_ends(tree, [coded.as_column() for coded in out.features], out.target)
    pruning = Pruning(tree.nodes, int(tree.is_leaf.sum()), held_out=out.target.rows)
    tree, place = cut_back(tree, find_idle(tree, out.target, ends, costs), LeafReason.REDUCED_ERROR)
    return Reduced(tree, place[leaf], pruning, kept, of_kept, out)


def _prune_by_cost(
    features: tuple[CodedFeature, ...], target: Target, parameters: Parameters, objective: Objective, costs: Costs,
    grow: Growth, grown: tuple[Tree, Ints],
) -> tuple[Tree, Ints, Pruning]:  # fmt: skip
    tree, leaf = grown
    root = find_risks(tree, objective, costs, parameters.risk)
    floor = (parameters.cp or 0.0) * float(root.cost[0]) / root.total

    def find(of_tree: Tree) -> Path:
        return find_subtrees(of_tree, objective, costs, parameters, floor)

    def grow_path(some: tuple[CodedFeature, ...], of_some: Target) -> tuple[Tree, Path]:
        other = grow(some, of_some, floor)[0]
        return other, find(other)

    path = find(tree)
    validated = None
    folds = _count_folds(parameters, target.rows)
    if folds > 1:
        validated = validate(features, target, (tree, path), grow_path, costs, folds, parameters.seed or 0)
    step = _choose_step(parameters, path, validated)
    pruning = Pruning(tree.nodes, int(tree.is_leaf.sum()), path, validated, step)
    if step is None:
        return tree, leaf, pruning
    forbidden = (path.link == 0) & (parameters.cp is not None)
    reason = np.where(forbidden, LeafReason.CP, LeafReason.COST_COMPLEXITY)
    tree, place = cut_back(tree, find_cut(tree, path, step), reason)
    return tree, place[leaf], pruning


def find_subtrees(tree: Tree, objective: Objective, costs: Costs, parameters: Parameters, floor: float) -> Path:
    """The path of a tree from the alpha ``floor`` on, by the risk and in the sequence that the parameters say."""
    risks = find_risks(tree, objective, costs, parameters.risk)
    if parameters.sequence == "rpart":
        return follow_rpart(tree, risks, floor, find_order(tree, objective))
    return find_path(tree, risks, floor)


def _count_folds(parameters: Parameters, rows: int) -> int:
    """How many folds there are, 0 or 1: none. The default number is less where there are fewer rows."""
    folds = parameters.pruning_folds or 0
    if folds > rows and folds != default_folds(parameters.pruning):
        raise InvalidParameters(Fault("/parameters/pruning_folds", f"is more than the {rows} rows"))
    return min(folds, rows)


def _choose_step(parameters: Parameters, path: Path, validated: Validated | None) -> int | None:
    """The step of ``path`` to keep; None: the tree as it was grown."""
    if parameters.pruning != "cost_complexity":
        return None if parameters.cp is None else 0
    if parameters.alpha is not None:
        return path.find_step(parameters.alpha)
    return 0 if validated is None else validated.choose(parameters.pruning_choice)
