"""Columns and features: what a table holds, and what a model was trained on."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Literal

import numpy as np
from numpy.typing import NDArray

from service.core.pairs import Pairs

Kind = Literal["numeric", "boolean", "nominal", "ordinal"]
Label = str | int | float | bool
Statistic = Literal["moments", "deviance", "deviations", "vectors", "pairs"]
"""What is known of numbers: weight, sum, squares, of one or of vectors; Poisson deviances; deviations from medians."""
KINDS: tuple[Kind, ...] = ("numeric", "boolean", "nominal", "ordinal")

MISSING = -1
"""The code of a missing cell in a column of categories."""
UNSEEN = -2
"""The code of a category that training did not see."""


def keep_apart(label: Label | None) -> object:
    """A key under which true and 1 differ, as in JSON and not as in Python, while 1 and 1.0 are one number."""
    return (bool, label) if type(label) is bool else label


@dataclass(frozen=True, slots=True)
class Column:
    """One column of a table, checked and converted.

    ``values: (row,)`` of a numeric column are float64 (NaN is missing) or int64 when every number was a whole one
    that int64 holds, so that values past 2^53 stay apart; of any other kind they are int32 codes into
    ``categories``, `MISSING` where the cell is missing. ``missing: (row,)`` is True where an int64 cell has no
    value (it then holds 0); None where nothing is missing or the values themselves tell.
    """

    name: str
    kind: Kind
    values: NDArray[np.float64] | NDArray[np.int64] | NDArray[np.int32]
    categories: tuple[Label, ...] = ()
    missing: NDArray[np.bool_] | None = None

    def is_missing(self) -> NDArray[np.bool_]:
        """(row,) True where the cell has no value."""
        if self.kind != "numeric":
            return np.asarray(self.values == MISSING)
        if self.values.dtype.kind == "f":
            return np.isnan(self.values)
        return np.zeros(len(self.values), bool) if self.missing is None else self.missing


@dataclass(frozen=True, slots=True)
class Table:
    """Columns of equal length, in the order in which they were posted; names are unique."""

    columns: tuple[Column, ...]
    rows: int

    @property
    def cells(self) -> int:
        """How many cells there are."""
        return self.rows * len(self.columns)

    def names(self) -> tuple[str, ...]:
        """The column names in order."""
        return tuple(column.name for column in self.columns)


@dataclass(frozen=True, slots=True)
class Feature:
    """What a model knows of one input: its kind, and its categories in order (none for a numeric one).

    ``integer`` says that a numeric feature was trained on whole numbers, compared as int64.
    """

    name: str
    kind: Kind
    categories: tuple[Label, ...] = ()
    integer: bool = False


@dataclass(frozen=True, slots=True)
class Target:
    """What is learnt: ``codes: (row,)`` int32 into ``classes``, or for regression ``values: (row,)`` float64.

    Of several numbers at once ``values`` are (row, output), whose ``names`` are given; of anything that has pairwise
    dissimilarities there are ``pairs`` instead.

    ``weight: (row,)`` float64, all positive; None where every row weighs 1. ``statistic`` is what is summed of values.
    """

    name: str
    classes: tuple[Label, ...] = ()
    codes: NDArray[np.int32] | None = None
    values: NDArray[np.float64] | None = None
    weight: NDArray[np.float64] | None = None
    statistic: Statistic = "moments"
    names: tuple[str, ...] = ()
    pairs: Pairs | None = None

    @property
    def is_classification(self) -> bool:
        """True where the target is a class."""
        return self.codes is not None

    @property
    def rows(self) -> int:
        """How many rows there are."""
        known = self.codes if self.codes is not None else self.values if self.values is not None else self.pairs
        return 0 if known is None else len(known)
