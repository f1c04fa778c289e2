"""The learner's front door: coded features and a target in, a tree out."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np

from service.core.answers import answer_training
from service.core.assemble import build_tree
from service.core.criteria import CRITERIA, RATE_CRITERION, Floats
from service.core.encoding import CodedFeature, encode
from service.core.errors import Fault, InvalidData, InvalidParameters, UnsuitableTask, pointer
from service.core.grow import Progress, grow
from service.core.impurities import make_vector_family
from service.core.learner import Learner, Sizes
from service.core.monotonic import bind_answers
from service.core.objective import Objective, alter_classes
from service.core.parameters import Parameters
from service.core.prune import HeldOut, Pruning, grow_and_prune, grow_and_reduce
from service.core.prune_cost import Costs, Floor
from service.core.quantities import sum_weights
from service.core.schema import Column, Label, Target
from service.core.statistics import Ints
from service.core.tree import Tree

DIRECTIONS = {"up": 1, "down": -1}
NOT_COUNTS = 'values below 0, or nothing above it: "poisson" needs targets of 0 or more, choose "variance"'


@dataclass(frozen=True, slots=True)
class Learnt:
    """A tree with what grew it.

    ``leaf: (row,)`` is where each training row, or most of a parted one, ended, ``prediction: (row,)`` its answer,
    ``pruning`` what was cut off. Rows that were ``held`` out to prune by are no training rows: ``target`` and the
    learner's features have the others.
    """

    tree: Tree
    learner: Learner
    leaf: Ints
    prediction: Floats
    pruning: Pruning
    target: Target
    held: HeldOut | None = None


def learn(
    columns: Sequence[Column],
    target: Target,
    parameters: Parameters,
    positive: Label | None = None,
    progress: Progress | None = None,
    sizes: Sizes = Sizes(),  # noqa: B008 - frozen
) -> Learnt:
    """Grow the tree of ``columns`` and ``target``, which have equally many rows (at least one), and prune it.

    Raises InvalidData for columns that the parameters refuse, InvalidParameters and UnsuitableTask where class
    weights, losses, monotonic features or the positive class do not fit the data.
    """
    features = encode(columns, parameters.numeric == "ordinal")
    _check_features(features, parameters)
    return learn_coded(features, target, parameters, positive, progress, sizes)


def learn_coded(
    features: tuple[CodedFeature, ...],
    target: Target,
    parameters: Parameters,
    positive: Label | None = None,
    progress: Progress | None = None,
    sizes: Sizes = Sizes(),  # noqa: B008 - frozen
) -> Learnt:
    """As `learn`, of columns that were encoded before and are those that the parameters allow."""
    target = prepare_target(target, parameters)
    learner, shown = build_learner(features, target, parameters, positive)
    learner = replace(learner, sizes=sizes)
    costs = Costs(shown, parameters.loss)

    floor = None
    # of a limited number of leaves it would spare some for others, and shrunk rates risk more than is known in growth
    if parameters.cp is not None and parameters.max_leaf_nodes is None and parameters.rate_prior is None:
        floor = Floor(parameters.cp, costs, parameters.risk)

    def grow_tree(some: tuple[CodedFeature, ...], of_some: Target, alpha: float | None) -> tuple[Tree, Ints]:
        its_learner = replace(learner, features=some, floor=floor and replace(floor, alpha=alpha))
        growth = grow(its_learner, of_some, progress if alpha is None else _tell_done(progress))
        tree, leaf = build_tree(its_learner, of_some, growth, shown, parameters.loss)
        if its_learner.directions is not None:
            tree = bind_answers(its_learner, tree, shown, parameters.loss)
        return tree, leaf

    if parameters.pruning == "reduced_error":
        reduced = grow_and_reduce(features, target, parameters, costs, grow_tree)
        its_learner = replace(learner, features=reduced.features)
        learnt = _finish(its_learner, reduced.tree, reduced.leaf, reduced.pruning, reduced.target)
        return replace(learnt, held=reduced.held)
    tree, leaf, pruning = grow_and_prune(features, target, parameters, learner.objective, costs, grow_tree)
    return _finish(learner, tree, leaf, pruning, target)


def _tell_done(progress: Progress | None) -> Progress | None:
    """What the growth of a fold calls: all is done, and yet there is somebody who may end it."""
    return None if progress is None else lambda depth, _: progress(depth, 0)


def _finish(learner: Learner, tree: Tree, leaf: Ints, pruning: Pruning, target: Target) -> Learnt:
    answers = answer_training(learner, tree, leaf)
    return Learnt(tree, learner, answers.leaf, answers.prediction[answers.index], pruning, target)


def prepare_target(target: Target, parameters: Parameters) -> Target:
    """The target with what the criterion sums of it. Raises UnsuitableTask where it cannot be summed so."""
    criterion = CRITERIA[parameters.criterion]
    if target.values is not None and target.values.ndim > 1:
        if criterion.statistic != "moments":
            raise UnsuitableTask(Fault("/target", f'"{criterion.name}" is for one target: several have "variance"'))
        return replace(target, statistic="vectors")
    if target.values is None or criterion.statistic == target.statistic:
        return target
    if criterion.statistic == "deviance" and not (target.values.min() >= 0 and target.values.any()):
        raise UnsuitableTask(Fault("/target", f'"{target.name}" has {NOT_COUNTS}'))
    return replace(target, statistic=criterion.statistic)


def build_learner(
    features: tuple[CodedFeature, ...], target: Target, parameters: Parameters, positive: Label | None
) -> tuple[Learner, Floats | None]:
    """The learner, and (class,) the factors that probabilities see (None: all 1)."""
    objective, shown = build_objective(target, parameters, positive)
    return Learner(features, objective, parameters, _find_directions(features, target, parameters)), shown


def _check_features(features: Sequence[CodedFeature], parameters: Parameters) -> None:
    faults = []
    for coded in features:
        name = coded.feature.name
        if parameters.numeric == "refuse" and coded.feature.kind == "numeric":
            faults.append(
                Fault(
                    pointer("data", "columns", name),
                    f'"{name}" is numeric, which this algorithm refuses: declare it nominal in "schema", set '
                    '"numeric" to "ordinal" (a branch for each value) or to "threshold", or use c45',
                )
            )
        if parameters.missing == "refuse" and coded.has_missing:
            row = int(coded.is_missing().argmax())
            faults.append(
                Fault(
                    pointer("data", "columns", name, row),
                    f'"{name}" has no value in row {row}, and "missing" is "refuse": give one, drop the row, '
                    'or choose "direction", "surrogate", "fractional" or "branch"',
                )
            )
    if faults:
        raise InvalidData(faults)


def build_objective(target: Target, parameters: Parameters, positive: Label | None) -> tuple[Objective, Floats | None]:
    """What is maximized, and (class,) the factors that probabilities see (None: all 1)."""
    criterion = CRITERIA[parameters.criterion]
    if target.values is not None and target.values.ndim > 1:
        family = make_vector_family(target.values.shape[1])
        criterion = replace(criterion, family=family, statistic="vectors")
    if target.codes is None:
        if parameters.rate_prior is not None:
            criterion = RATE_CRITERION
        return Objective(criterion, unknown_branch=parameters.missing == "fractional"), None
    index = _find_positive(target, positive, criterion.needs_positive, criterion.name)
    weight = sum_weights(target.weight, target.codes.astype(np.int64), len(target.classes))
    scored, shown = alter_classes(
        weight,
        _read_class_weight(parameters.class_weight, target, weight),
        _read_by_class("priors", parameters.priors, target),
        _read_loss(parameters.loss, target),
    )
    return Objective(criterion, index, scored, parameters.missing == "fractional"), shown


def restore_objective(tree: Tree, parameters: Parameters, positive: Label | None) -> tuple[Objective, Floats | None]:
    """What `build_objective` gave for the tree: of the data it needs the weights of their classes, no more."""
    if not tree.classes:
        return build_objective(Target("", values=tree.mean[:1]), parameters, None)
    # one row of each class, which weighs as much as all of them
    codes = np.arange(len(tree.classes), dtype=np.int32)
    weight = np.asarray(tree.counts[:, 0])
    return build_objective(Target("", tree.classes, codes, weight=weight), parameters, positive)


def _find_positive(target: Target, positive: Label | None, needed: bool, criterion: str) -> int | None:
    if positive is None:
        if needed:
            raise UnsuitableTask(Fault("/positive_class", f'the criterion "{criterion}" needs a positive class'))
        return None
    matches = [i for i, label in enumerate(target.classes) if label == positive and type(label) is type(positive)]
    if len(target.classes) != 2 or not matches:
        shown = ", ".join(map(write_label, target.classes))
        raise UnsuitableTask(Fault("/positive_class", f"must be one of two classes; the classes are {shown}"))
    return matches[0]


def _read_class_weight(posted: str | Mapping[str, float] | None, target: Target, weight: Floats) -> Floats | None:
    if posted == "balanced":
        # a class that these rows do not have, as in a fold, has no share
        balanced: Floats = np.ones(len(weight))
        np.divide(weight.sum() / np.count_nonzero(weight), weight, out=balanced, where=weight > 0)
        return balanced
    return _read_by_class("class_weight", posted, target) if isinstance(posted, Mapping) else None


def _read_by_class(name: str, posted: Mapping[str, float] | None, target: Target) -> Floats | None:
    """(class,) the numbers posted by class; JSON's keys are strings, so a label stands for its JSON text."""
    if posted is None:
        return None
    keys = [write_label(label) for label in target.classes]
    if sorted(posted) != sorted(keys):
        raise InvalidParameters(
            Fault(pointer("parameters", name), f"must have a number for each class, and no other: {', '.join(keys)}")
        )
    return np.array([float(posted[key]) for key in keys])


def write_label(label: Label) -> str:
    """A label as an object key."""
    return str(label).lower() if isinstance(label, bool) else str(label)


def _read_loss(loss: Sequence[Sequence[float]] | None, target: Target) -> Sequence[Sequence[float]] | None:
    if loss is not None and len(loss) != len(target.classes):
        raise InvalidParameters(
            Fault("/parameters/loss", f"must have a row and a column for each of {len(target.classes)} classes")
        )
    return loss


def _find_directions(features: Sequence[CodedFeature], target: Target, parameters: Parameters) -> Ints | None:
    if not parameters.monotonic:
        return None
    place = pointer("parameters", "monotonic")
    if target.names:
        raise UnsuitableTask(Fault(place, "monotonic features need a single target"))
    if target.is_classification and len(target.classes) != 2:
        raise UnsuitableTask(Fault(place, "monotonic features need two classes, or regression"))
    if parameters.empty_branches:
        raise InvalidParameters(Fault(place, 'monotonic features and "empty_branches" exclude each other'))
    names = {coded.feature.name: coded for coded in features}
    faults = [
        Fault(pointer("parameters", "monotonic", name), "must name a numeric or ordinal feature")
        for name in parameters.monotonic
        if name not in names or names[name].is_nominal
    ]
    if faults:
        raise InvalidParameters(faults)
    return np.array([DIRECTIONS.get(parameters.monotonic.get(c.feature.name, ""), 0) for c in features])
