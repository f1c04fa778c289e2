"""A posted table becomes the columns of a model, by name."""

from __future__ import annotations

import math

import numpy as np
import pytest

from service.core.conform import conform
from service.core.errors import InvalidData
from service.core.schema import UNSEEN, Column, Feature
from tests.core.making import labels, numbers, table

AGE = Feature("age", "numeric")
YEARS = Feature("age", "numeric", integer=True)
JOB = Feature("job", "nominal", ("clerk", "driver"))


def test_columns_are_matched_by_name() -> None:
    """Order does not matter; what the model does not know is named in a warning and nothing else."""
    posted = table(labels("job", ["driver", "clerk"]), numbers("extra", [1, 2]), numbers("age", [1.5, 2.5]))
    columns, warnings = conform(posted, [AGE, JOB])
    assert [column.name for column in columns] == ["age", "job"]
    assert columns[0].values.tolist() == [1.5, 2.5]
    assert columns[1].values.tolist() == [1, 0]
    assert [("extra" in warning, "age" in warning) for warning in warnings] == [(True, False)]


def test_every_missing_column_is_a_fault() -> None:
    """A table that lacks two columns has two faults, each naming its own."""
    with pytest.raises(InvalidData) as caught:
        conform(table(numbers("x", [1])), [AGE, JOB])
    assert [fault.place for fault in caught.value.faults] == ["/data/columns/age", "/data/columns/job"]


def test_labels_are_told_apart_as_json_does() -> None:
    """1 is 1.0; true and "1" are neither; each that training did not see is counted once, and shown."""
    feature = Feature("code", "nominal", (1, "2", True))
    posted = Column("code", "nominal", np.arange(6, dtype=np.int32), (1.0, "2", True, "1", 2, False))
    (column,), (warning,) = conform(table(posted), [feature])
    assert column.values.tolist() == [0, 1, 2, UNSEEN, UNSEEN, UNSEEN]
    assert "3 rows" in warning
    assert all(shown in warning for shown in ("'1'", "2", "False"))


def test_missing_is_not_unseen() -> None:
    """A missing category is no stranger: no warning."""
    columns, warnings = conform(table(labels("job", [None, "clerk"], ["clerk"])), [JOB])
    assert (columns[0].values.tolist(), warnings) == ([-1, 0], [])


def test_whole_numbers_where_training_had_fractions() -> None:
    """They are compared as floats, their gaps being gaps still; a model of whole numbers gets them as they are."""
    posted = numbers("age", [3, None, 2**53 + 1])
    (column,), _ = conform(table(posted), [AGE])
    assert column.values.tolist()[0] == 3
    assert math.isnan(column.values[1])
    assert column.values.dtype == np.float64
    (column,), _ = conform(table(posted), [YEARS])
    assert (column.values.tolist()[2], column.is_missing().tolist()) == (2**53 + 1, [False, True, False])


def test_refused_gaps() -> None:
    """A model that refuses missing values names the first row without one, in every column."""
    posted = table(numbers("age", [1.0, None, None]), labels("job", ["clerk", "clerk", None]))
    with pytest.raises(InvalidData) as caught:
        conform(posted, [AGE, JOB], missing="refuse")
    assert [fault.place for fault in caught.value.faults] == ["/data/columns/age/1", "/data/columns/job/2"]


@pytest.mark.parametrize(
    ("missing", "route"),
    [
        ("direction", "gets the answer of the node it is at"),
        ("branch", "gets the answer of the node it is at"),
        ("surrogate", "the node's surrogates"),
        ("fractional", "to all branches"),
    ],
)
def test_route_of_unseen_categories(missing: str, route: str) -> None:
    """The warning about a category that training did not see says what becomes of its rows under each choice."""
    _, (warning,) = conform(table(numbers("age", [1]), labels("job", ["pilot"])), [AGE, JOB], missing)
    assert "'pilot'" in warning
    assert route in warning
