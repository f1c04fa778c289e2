"""What a caller may ask of the learner: one table of parameters, five presets, everything resolved and checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any

from service.core.criteria import CRITERIA, Task
from service.core.errors import Fault, InvalidParameters, UnsuitableTask, pointer
from service.core.parameter_conflicts import find_conflicts
from service.core.parameter_values import RULES

DEFAULTS: dict[Task, str] = {"classification": "gini", "regression": "variance", "dissimilarity": "dissimilarity"}
"""The criterion of each task where none is asked for."""
DEFAULT_FOLDS = 10
"""Cross-validation has so many folds where none are asked for."""
HELD_OUT_FOLDS = 3
"""Reduced-error pruning holds out one fold of so many, as J48 does, where nothing else is asked for."""


@dataclass(frozen=True, slots=True)
class Parameters:
    """Every parameter of a run, resolved; `RULES` says what each accepts, docs/parameters.md what each does."""

    criterion: str
    selection: str = "criterion"
    nominal: str = "subset"
    max_subset_categories: int = 6
    numeric: str = "threshold"
    threshold_value: str = "midpoint"
    missing: str = "direction"
    max_surrogates: int = 5
    use_surrogates: int = 2
    surrogate_style: int = 0
    surrogate_count: str = "weight"
    nominal_surrogates: str = "cart"
    reuse_features: bool | str = True
    max_depth: int | None = None
    max_leaf_nodes: int | None = None
    min_samples_split: int = 2
    min_samples_leaf: int = 1
    min_weight_leaf: float = 0.0
    leaf_limit: str = "all"
    cut_limit: str | None = None
    cut_penalty: str | None = None
    min_gain: float = 0.0
    empty_branches: bool = False
    pruning: str | None = None
    risk: str = "error"
    sequence: str = "breiman"
    cp: float | None = None
    alpha: float | None = None
    pruning_folds: int | None = None
    pruning_choice: str = "one_se"
    pruning_holdout: float | None = None
    collapse: bool = False
    confidence: float = 0.25
    confidence_limit: str = "c45"
    subtree_raising: bool = True
    class_weight: str | Mapping[str, float] | None = None
    priors: Mapping[str, float] | None = None
    loss: Sequence[Sequence[float]] | None = None
    monotonic: Mapping[str, str] | None = None
    rate_prior: float | None = None
    seed: int | None = None

    @property
    def has_cut_rules(self) -> bool:
        """True where cuts have a limit of their own, pay, or use a feature up: each has to be weighed then."""
        return self.cut_limit is not None or self.cut_penalty is not None or self.reuse_features == "never"

    def as_dict(self) -> dict[str, Any]:
        """Plain values by name, as the record shows them."""
        return asdict(self)


PRESETS: dict[str, dict[str, Any]] = {
    "cart": {},
    "id3": {"criterion": "entropy", "nominal": "multiway", "numeric": "refuse", "missing": "branch",
            "reuse_features": False},
    "c45": {"criterion": "gain_ratio", "nominal": "multiway", "selection": "c45", "missing": "fractional",
            "reuse_features": False, "min_samples_split": 4, "min_samples_leaf": 2, "leaf_limit": "two",
            "pruning": "error_based", "collapse": True},
    "j48": {"criterion": "gain_ratio", "nominal": "multiway", "selection": "c45", "threshold_value": "data",
            "missing": "fractional", "min_weight_leaf": 2, "leaf_limit": "two", "cut_limit": "c45",
            "cut_penalty": "tried", "empty_branches": True, "pruning": "error_based", "collapse": True,
            "confidence_limit": "weka"},
    "rpart": {"missing": "surrogate", "nominal_surrogates": "rpart", "min_samples_split": 20, "min_samples_leaf": 7,
              "cp": 0.01},
}  # fmt: skip

CLASSIFIERS = frozenset({"id3", "c45", "j48"})
"""The presets that are for classes only."""


def resolve(algorithm: str, posted: Mapping[str, Any], task: Task) -> Parameters:
    """The preset of ``algorithm`` with what was ``posted`` laid over it.

    Raises InvalidParameters for an unknown name or value, UnsuitableTask where criterion and task do not fit.
    """
    if algorithm not in PRESETS:
        raise InvalidParameters(Fault("/algorithm", f"must be one of {', '.join(PRESETS)}"))
    faults = [fault for name, value in posted.items() if (fault := _find_fault(name, value))]
    if faults:
        raise InvalidParameters(faults)
    default = DEFAULTS[task]
    asked = {"criterion": default} | PRESETS[algorithm] | dict(posted)
    parameters = Parameters(**asked | {n: v for n, v in _choose_pruning(asked).items() if posted.get(n) is None})
    _check_fit(parameters, algorithm, task)
    return parameters


def default_folds(pruning: str | None) -> int:
    """How many folds there are where none are asked for."""
    return HELD_OUT_FOLDS if pruning == "reduced_error" else DEFAULT_FOLDS


def _choose_pruning(asked: Mapping[str, Any]) -> dict[str, Any]:
    """What pruning takes where nothing else is posted: how far to prune, or by which rows, is always said."""
    pruning, chosen = asked.get("pruning"), dict[str, Any]()
    if asked.get("cp") is not None:
        chosen["sequence"] = "rpart"
    elif pruning == "cost_complexity" and asked.get("alpha") is None:
        chosen["pruning_folds"] = default_folds(pruning)
    if asked.get("loss") is not None:
        # the presets prune by counts of errors
        chosen |= {"collapse": False} | ({"pruning": None} if pruning == "error_based" else {})
    if pruning == "reduced_error":
        chosen["collapse"] = False
        if asked.get("pruning_holdout") is None:
            chosen["pruning_folds"] = default_folds(pruning)
    return chosen


def _find_fault(name: str, value: object) -> Fault | None:
    place = pointer("parameters", name)
    if name not in RULES:
        return Fault(place, f"is not a parameter; the parameters are {', '.join(f.name for f in fields(Parameters))}")
    complaint = RULES[name](value)
    return Fault(place, complaint) if complaint else None


def _check_fit(parameters: Parameters, algorithm: str, task: Task) -> None:
    criterion = CRITERIA[parameters.criterion]
    if criterion.task != task:
        raise UnsuitableTask(
            Fault(
                "/parameters/criterion",
                f'the criterion "{criterion.name}" of algorithm "{algorithm}" is for {criterion.task}, the task is '
                f"{task}: choose another criterion, or state the task",
            )
        )
    faults = find_conflicts(parameters, task)
    if faults:
        raise InvalidParameters(faults)
