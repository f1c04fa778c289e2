"""A posted table -> the columns that a model's features expect, with a warning for what training did not know."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from numpy.typing import NDArray

from service.core.errors import Fault, InvalidData, pointer
from service.core.schema import MISSING, UNSEEN, Column, Feature, Label, Table, keep_apart

NAMED = 5
"""A warning names so many of the unseen categories."""


def conform(table: Table, features: Sequence[Feature], missing: str = "direction") -> tuple[list[Column], list[str]]:
    """The column of each feature, matched by name, and the warnings; ``missing`` is what the model does with gaps.

    Raises InvalidData that names each missing column, each column of another kind and, where they are refused, the
    first row without a value.
    """
    posted = {column.name: column for column in table.columns}
    faults = [
        Fault(pointer("data", "columns", feature.name), f'the model needs the column "{feature.name}"')
        for feature in features
        if feature.name not in posted
    ]
    if faults:
        raise InvalidData(faults)
    columns = [_conform_column(posted[feature.name], feature) for feature in features]
    if missing == "refuse":
        _refuse_missing(columns)
    extras = [name for name in posted if name not in {feature.name for feature in features}]
    warnings = [f"the model does not use these columns: {', '.join(extras)}"] if extras else []
    warnings += [
        warning for f, c in zip(features, columns, strict=True) if (warning := _warn_unseen(posted[f.name], c, missing))
    ]
    return columns, warnings


def _conform_column(column: Column, feature: Feature) -> Column:
    if feature.kind != "numeric":
        known = {keep_apart(label): code for code, label in enumerate(feature.categories)}
        # one more cell than categories, so that a missing code (-1) picks the last
        code = np.array([*(known.get(keep_apart(label), UNSEEN) for label in column.categories), MISSING], np.int32)
        return Column(feature.name, feature.kind, code[column.values], feature.categories)
    if column.values.dtype.kind == "i" and not feature.integer:
        values = column.values.astype(np.float64)
        values[column.is_missing()] = np.nan
        return Column(feature.name, "numeric", values)
    return column


def conform_classes(column: Column, classes: Sequence[Label]) -> NDArray[np.int64]:
    """(row,) the class of each row, by the label in its cell; their number for a label that is none of them."""
    known = {keep_apart(label): code for code, label in enumerate(classes)}
    if column.kind == "numeric":
        numbers, place = np.unique(column.values, return_inverse=True)
        return _look_up(known, numbers.tolist(), len(classes))[place]
    return _look_up(known, column.categories, len(classes))[column.values]


def _look_up(known: Mapping[object, int], labels: Sequence[Label], otherwise: int) -> NDArray[np.int64]:
    return np.array([known.get(keep_apart(label), otherwise) for label in labels], np.int64)


def _refuse_missing(columns: Sequence[Column]) -> None:
    faults = []
    for column in columns:
        missing = column.is_missing()
        if missing.any():
            row = int(missing.argmax())
            message = f'"{column.name}" has no value in row {row}, and the model refuses missing values'
            faults.append(Fault(pointer("data", "columns", column.name, row), message))
    if faults:
        raise InvalidData(faults)


UNSEEN_ROUTE = {
    "surrogate": "there goes the way of the node's surrogates, or of its majority, as if it had no value",
    "fractional": "goes to all branches there by their shares, as if it had no value",
}
"""What becomes of a row whose category training did not see, under some choices of ``missing``."""


def _warn_unseen(posted: Column, column: Column, missing: str) -> str | None:
    if column.kind == "numeric":
        return None
    unseen = column.values == UNSEEN
    if not unseen.any():
        return None
    labels = [posted.categories[code] for code in np.unique(posted.values[unseen])[:NAMED]]
    route = UNSEEN_ROUTE.get(missing, "gets the answer of the node it is at")
    return (
        f'"{column.name}" has categories that training did not see in {int(unseen.sum())} rows '
        f"({', '.join(map(repr, labels))}): where the tree asks for it, such a row {route}"
    )
