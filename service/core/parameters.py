"""What a caller may ask of the learner: one table of parameters, five presets, everything resolved and checked."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, fields
from typing import Any, Literal, TypeGuard

from service.core.criteria import CRITERIA, ENTROPY
from service.core.errors import Fault, InvalidParameters, UnsuitableTask, pointer

Task = Literal["classification", "regression", "dissimilarity"]
DEFAULTS: dict[Task, str] = {"classification": "gini", "regression": "variance", "dissimilarity": "dissimilarity"}
"""The criterion of each task where none is asked for."""
DEFAULT_FOLDS = 10
"""Cross-validation has so many folds where none are asked for."""
HELD_OUT_FOLDS = 3
"""Reduced-error pruning holds out one fold of so many, as J48 does, where nothing else is asked for."""
LARGEST_CONFIDENCE = 0.5
"""A limit of less confidence would lie below what was seen."""


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


Check = Callable[[object], str | None]
"""Says what is wrong with a value, or None."""


def _choice(*allowed: str | None) -> Check:
    names = ", ".join("null" if name is None else f'"{name}"' for name in allowed)
    return lambda value: None if value in allowed else f"must be one of {names}"


def _one_of(*allowed: int) -> Check:
    numbers = ", ".join(map(str, allowed))
    return lambda value: None if type(value) is int and value in allowed else f"must be one of {numbers}"


def _is_number(value: object) -> TypeGuard[float]:
    return isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < float("inf")


def _whole(least: int, *, most: int | None = None, optional: bool = False) -> Check:
    def check(value: object) -> str | None:
        if optional and value is None:
            return None
        if isinstance(value, int) and not isinstance(value, bool) and least <= value <= (most or value):
            return None
        limits = f"{least} or more" if most is None else f"{least} to {most}"
        return f"must be a whole number, {limits}" + (", or null" if optional else "")

    return check


def _amount(value: object) -> str | None:
    return None if _is_number(value) and value >= 0 else "must be a number, 0 or more"


def _amount_or_null(value: object) -> str | None:
    return None if value is None or _amount(value) is None else "must be a number, 0 or more, or null"


def _share_or_null(value: object) -> str | None:
    return (
        None if value is None or (_is_number(value) and 0 < value < 1) else "must be a number between 0 and 1, or null"
    )


def _confidence(value: object) -> str | None:
    return None if _is_number(value) and 0 < value <= LARGEST_CONFIDENCE else "must be a number above 0, 0.5 at most"


def _flag(value: object) -> str | None:
    return None if isinstance(value, bool) else "must be true or false"


def _reuse(value: object) -> str | None:
    return None if isinstance(value, bool) or value == "never" else 'must be true, false or "never"'


def _class_shares(value: object) -> str | None:
    if value is None or (isinstance(value, Mapping) and value and all(_is_number(v) and v > 0 for v in value.values())):
        return None
    return "must be an object that gives every class a number above 0, or null"


def _class_weight(value: object) -> str | None:
    return None if value == "balanced" else _class_shares(value) and f'must be "balanced", or {_class_shares(value)}'


def _loss(value: object) -> str | None:
    if value is None:
        return None
    rows: list[Any] = value if isinstance(value, list) else [None]
    square = all(isinstance(row, list) and len(row) == len(rows) for row in rows)
    numbers = square and all(_is_number(cell) and cell >= 0 for row in rows for cell in row)
    if numbers and all(row[i] == 0 and any(row) for i, row in enumerate(rows)):
        return None
    return (
        "must be a square matrix of numbers, a row per true class and a column per prediction, "
        "0 on the diagonal and something above 0 in every row, or null"
    )


def _monotonic(value: object) -> str | None:
    if value is None or (isinstance(value, Mapping) and all(v in ("up", "down") for v in value.values())):
        return None
    return 'must be an object from feature names to "up" or "down", or null'


def _rate_prior(value: object) -> str | None:
    return None if value is None or (_is_number(value) and value > 0) else "must be a number above 0, or null"


RULES: dict[str, Check] = {
    "criterion": _choice(*CRITERIA),
    "selection": _choice("criterion", "c45"),
    "nominal": _choice("subset", "one_vs_rest", "multiway"),
    "max_subset_categories": _whole(2, most=12),
    "numeric": _choice("threshold", "ordinal", "refuse"),
    "threshold_value": _choice("midpoint", "data"),
    "missing": _choice("direction", "surrogate", "fractional", "branch", "refuse"),
    "max_surrogates": _whole(0),
    "use_surrogates": _one_of(0, 1, 2),
    "surrogate_style": _one_of(0, 1),
    "surrogate_count": _choice("weight", "rows"),
    "nominal_surrogates": _choice("cart", "rpart"),
    "reuse_features": _reuse,
    "max_depth": _whole(0, optional=True),
    "max_leaf_nodes": _whole(1, optional=True),
    "min_samples_split": _whole(2),
    "min_samples_leaf": _whole(1),
    "min_weight_leaf": _amount,
    "leaf_limit": _choice("all", "two"),
    "cut_limit": _choice(None, "c45"),
    "cut_penalty": _choice(None, "tried", "distinct"),
    "min_gain": _amount,
    "empty_branches": _flag,
    "pruning": _choice(None, "cost_complexity", "error_based", "reduced_error"),
    "risk": _choice("error", "impurity"),
    "sequence": _choice("breiman", "rpart"),
    "cp": _amount_or_null,
    "alpha": _amount_or_null,
    "pruning_folds": _whole(2, optional=True),
    "pruning_choice": _choice("one_se", "min"),
    "pruning_holdout": _share_or_null,
    "collapse": _flag,
    "confidence": _confidence,
    "confidence_limit": _choice("c45", "weka"),
    "subtree_raising": _flag,
    "class_weight": _class_weight,
    "priors": _class_shares,
    "loss": _loss,
    "monotonic": _monotonic,
    "rate_prior": _rate_prior,
    "seed": _whole(0, optional=True),
}

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
    faults = list(_find_conflicts(parameters, task))
    if faults:
        raise InvalidParameters(faults)


def _find_conflicts(parameters: Parameters, task: Task) -> Sequence[Fault]:
    faults = []
    if parameters.selection == "c45" and CRITERIA[parameters.criterion].within is None:
        faults.append(
            Fault(
                "/parameters/selection",
                '"c45" chooses cuts by gain and features by gain ratio: it needs the criterion '
                '"gain_ratio" or "gini_gain_ratio"',
            )
        )
    if parameters.cut_penalty and CRITERIA[parameters.criterion].family is not ENTROPY:
        faults.append(Fault("/parameters/cut_penalty", 'is in bits: it needs the criterion "entropy" or "gain_ratio"'))
    if parameters.monotonic and not CRITERIA[parameters.criterion].predicts_mean:
        message = f'"{parameters.criterion}" predicts no mean or share, which alone rise and fall: leave it out'
        faults.append(Fault("/parameters/monotonic", message))
    if parameters.rate_prior is not None and (parameters.criterion != "poisson" or parameters.monotonic):
        message = 'is for rates: it needs the criterion "poisson", and excludes "monotonic"'
        faults.append(Fault("/parameters/rate_prior", message))
    if CRITERIA[parameters.criterion].binary and parameters.nominal == "multiway":
        faults.append(
            Fault("/parameters/nominal", f'"{parameters.criterion}" is defined for two branches: choose "subset"')
        )
    faults += _find_pruning_conflicts(parameters, task)
    if parameters.missing == "surrogate" and parameters.nominal == "multiway":
        faults.append(
            Fault(
                "/parameters/missing", '"surrogate" stands in for splits with two branches: set "nominal" to "subset"'
            )
        )
    if parameters.missing in ("surrogate", "fractional") and parameters.monotonic:
        faults.append(
            Fault(
                "/parameters/monotonic",
                f'what lacks a value may go against the order under "missing": "{parameters.missing}": '
                'choose "direction" or "branch"',
            )
        )
    if task == "dissimilarity" and parameters.missing == "fractional":
        faults.append(Fault("/parameters/missing", '"fractional" rows have no dissimilarities of their own'))
    if task != "classification":
        faults += [
            Fault(pointer("parameters", name), "is for classification only")
            for name in ("class_weight", "priors", "loss", "cut_limit")
            if getattr(parameters, name) is not None
        ]
    return faults


def _find_pruning_conflicts(parameters: Parameters, task: Task) -> list[Fault]:
    faults = []
    if parameters.alpha is not None and parameters.pruning != "cost_complexity":
        faults.append(Fault("/parameters/alpha", 'is for "pruning": "cost_complexity"; without pruning there is "cp"'))
    if parameters.pruning_holdout is not None and parameters.pruning != "reduced_error":
        faults.append(Fault("/parameters/pruning_holdout", 'is for "pruning": "reduced_error"'))
    if parameters.pruning_holdout is not None and parameters.pruning_folds is not None:
        faults.append(Fault("/parameters/pruning_holdout", 'says what "pruning_folds" says: give one of them'))
    if parameters.pruning == "reduced_error":
        both = {"collapse": parameters.collapse, "cp": parameters.cp is not None}
        message = 'goes by the training rows, and "pruning": "reduced_error" by the others: choose one'
        faults += [Fault(pointer("parameters", name), message) for name, asked in both.items() if asked]
    if parameters.pruning == "error_based" and parameters.subtree_raising:
        barred = [name for name in ("monotonic",) if getattr(parameters, name)]
        barred += ["missing"] if parameters.missing == "surrogate" else []
        message = 'takes rows to where "{}" has not looked at them: set it to false'
        faults += [Fault("/parameters/subtree_raising", message.format(name)) for name in barred]
    counting = {"pruning": parameters.pruning == "error_based", "collapse": parameters.collapse}
    for name, counts in counting.items():
        if counts and task != "classification":
            faults.append(Fault(pointer("parameters", name), "counts errors: it is for classification only"))
        if counts and parameters.loss is not None:
            faults.append(Fault(pointer("parameters", name), 'counts errors, which a "loss" does not'))
    return faults
