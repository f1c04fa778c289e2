"""Which parameters do not go together, and which do not suit the task."""

from __future__ import annotations

from typing import TYPE_CHECKING

from service.core.criteria import CRITERIA, Task
from service.core.errors import Fault, pointer
from service.core.impurities import ENTROPY

if TYPE_CHECKING:
    from service.core.parameters import Parameters


def find_conflicts(parameters: Parameters, task: Task) -> list[Fault]:
    """Every fault of parameters that are right one by one, at the parameter to change."""
    return [
        *_find_criterion_conflicts(parameters),
        *_find_missing_conflicts(parameters, task),
        *_find_pruning_conflicts(parameters),
        *_find_unsuitable(parameters, task),
    ]


def _fault(name: str, message: str) -> Fault:
    return Fault(pointer("parameters", name), message)


def _find_criterion_conflicts(parameters: Parameters) -> list[Fault]:
    """What needs another criterion."""
    criterion, faults = CRITERIA[parameters.criterion], list[Fault]()
    if parameters.selection == "c45" and criterion.within is None:
        message = (
            '"c45" chooses cuts by gain and features by gain ratio: it needs the criterion '
            '"gain_ratio" or "gini_gain_ratio"'
        )
        faults.append(_fault("selection", message))
    if parameters.cut_penalty and criterion.family is not ENTROPY:
        faults.append(_fault("cut_penalty", 'is in bits: it needs the criterion "entropy" or "gain_ratio"'))
    if parameters.monotonic and not criterion.predicts_mean:
        message = f'"{criterion.name}" predicts no mean or share, which alone rise and fall: leave it out'
        faults.append(_fault("monotonic", message))
    if parameters.rate_prior is not None and (criterion.name != "poisson" or parameters.monotonic):
        faults.append(_fault("rate_prior", 'is for rates: it needs the criterion "poisson", and excludes "monotonic"'))
    if criterion.binary and parameters.nominal == "multiway":
        faults.append(_fault("nominal", f'"{criterion.name}" is defined for two branches: choose "subset"'))
    return faults


def _find_missing_conflicts(parameters: Parameters, task: Task) -> list[Fault]:
    """What another way with missing values is needed for."""
    missing, faults = parameters.missing, list[Fault]()
    if missing == "surrogate" and parameters.nominal == "multiway":
        message = '"surrogate" stands in for splits with two branches: set "nominal" to "subset"'
        faults.append(_fault("missing", message))
    if missing in ("surrogate", "fractional") and parameters.monotonic:
        message = (
            f'what lacks a value may go against the order under "missing": "{missing}": choose "direction" or "branch"'
        )
        faults.append(_fault("monotonic", message))
    if missing == "fractional" and task == "dissimilarity":
        faults.append(_fault("missing", '"fractional" rows have no dissimilarities of their own'))
    return faults


def _find_pruning_conflicts(parameters: Parameters) -> list[Fault]:
    """What is for another pruning, or says twice how far to prune."""
    pruning, faults = parameters.pruning, list[Fault]()
    if parameters.alpha is not None and pruning != "cost_complexity":
        faults.append(_fault("alpha", 'is for "pruning": "cost_complexity"; without pruning there is "cp"'))
    if parameters.pruning_holdout is not None and pruning != "reduced_error":
        faults.append(_fault("pruning_holdout", 'is for "pruning": "reduced_error"'))
    if parameters.pruning_holdout is not None and parameters.pruning_folds is not None:
        faults.append(_fault("pruning_holdout", 'says what "pruning_folds" says: give one of them'))
    if pruning == "reduced_error":
        both = {"collapse": parameters.collapse, "cp": parameters.cp is not None}
        message = 'goes by the training rows, and "pruning": "reduced_error" by the others: choose one'
        faults += [_fault(name, message) for name, asked in both.items() if asked]
    if pruning == "error_based" and parameters.subtree_raising:
        barred = {"monotonic": bool(parameters.monotonic), "missing": parameters.missing == "surrogate"}
        message = 'takes rows to where "{}" has not looked at them: set it to false'
        faults += [_fault("subtree_raising", message.format(name)) for name, asked in barred.items() if asked]
    return faults


def _find_unsuitable(parameters: Parameters, task: Task) -> list[Fault]:
    """What is for classes only, or counts errors."""
    faults = []
    if task != "classification":
        of_classes = ("class_weight", "priors", "loss", "cut_limit")
        faults += [
            _fault(name, "is for classification only") for name in of_classes if getattr(parameters, name) is not None
        ]
    counting = {"pruning": parameters.pruning == "error_based", "collapse": parameters.collapse}
    for name in (name for name, counts in counting.items() if counts):
        if task != "classification":
            faults.append(_fault(name, "counts errors: it is for classification only"))
        if parameters.loss is not None:
            faults.append(_fault(name, 'counts errors, which a "loss" does not'))
    return faults
