"""What each parameter accepts."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any, TypeGuard

from service.core.criteria import CRITERIA

LARGEST_CONFIDENCE = 0.5
"""A limit of less confidence would lie below what was seen."""

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
