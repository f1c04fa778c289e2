"""Rows are dealt into folds that are as alike as they can be."""

from __future__ import annotations

import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from service.core.folds import assign_folds, take_rows
from service.core.schema import Column, Target
from tests.core.making import values

SEEDS = st.integers(0, 2**32)
FOLDS = st.integers(1, 7)


def classes_of(codes: list[int]) -> Target:
    """A target of these classes, of which there are five."""
    return Target("y", tuple("abcde"), codes=np.array(codes, np.int32))


@given(st.lists(st.integers(0, 4), min_size=1, max_size=60), FOLDS, SEEDS)
def test_classes_are_stratified(codes: list[int], folds: int, seed: int) -> None:
    """Every row is in one fold; the folds' sizes differ by at most one, and so do those of each class."""
    fold = assign_folds(classes_of(codes), folds, seed)
    assert fold.dtype == np.int64
    assert fold.shape == (len(codes),)
    for members in (fold, *(fold[np.array(codes) == c] for c in range(5))):
        sizes = np.bincount(members, minlength=folds)
        assert len(sizes) == folds
        assert sizes.max() - sizes.min() <= 1


@given(st.lists(st.integers(-9, 9), min_size=1, max_size=60), FOLDS, SEEDS)
def test_numbers_are_spread(cells: list[int], folds: int, seed: int) -> None:
    """Sorted by target, every so many neighbours are in different folds: each fold has its share of each range."""
    fold = assign_folds(values(cells), folds, seed)
    for bound in range(-9, 10):
        sizes = np.bincount(fold[np.array(cells) <= bound], minlength=folds)
        assert sizes.max() - sizes.min() <= 1


def test_no_fold_has_the_smallest_numbers() -> None:
    """The means of the folds of 0, 1, .. 999 have no order: dealt in turn they would rise with the fold."""
    cells = np.arange(1000.0)
    folds = [assign_folds(values(cells.tolist()), 10, seed) for seed in range(30)]
    rising = sum(cells[fold == 0].mean() < cells[fold == 9].mean() for fold in folds)
    assert 5 <= rising <= 25


@given(st.lists(st.integers(0, 4), min_size=8, max_size=60), SEEDS)
def test_seeds(codes: list[int], seed: int) -> None:
    """The same seed gives the same folds; among other seeds there are other folds."""
    target = classes_of(codes)
    first = assign_folds(target, 3, seed)
    assert (first == assign_folds(target, 3, seed)).all()
    assert any((first != assign_folds(target, 3, seed + more)).any() for more in range(1, 9))


@given(st.data(), st.integers(2, 5), SEEDS)
def test_order_of_rows(data: st.DataObject, folds: int, seed: int) -> None:
    """Rows in another order give folds of the same sizes, class by class: the seed alone decides who is where."""
    codes = data.draw(st.lists(st.integers(0, 4), min_size=1, max_size=40))
    again = data.draw(st.permutations(codes))
    tables = []
    for rows in (codes, again):
        fold = assign_folds(classes_of(rows), folds, seed)
        tables.append([np.bincount(fold[np.array(rows) == c], minlength=folds).tolist() for c in range(5)])
    assert tables[0] == tables[1]


def test_rows_are_taken() -> None:
    """Values, gaps, codes and weights of the rows, by number or by mask; kinds and classes stay."""
    age = Column("age", "numeric", np.array([1, 0, 3]), missing=np.array([False, True, False]))
    job = Column("job", "nominal", np.array([0, -1, 1], np.int32), ("clerk", "driver"))
    target = Target("y", ("n", "y"), codes=np.array([0, 1, 0], np.int32), weight=np.array([1.0, 2.0, 3.0]))
    for rows in (np.array([1, 2]), np.array([False, True, True])):
        (age_part, job_part), part = take_rows([age, job], target, rows)
        assert age_part.is_missing().tolist() == [True, False]
        assert age_part.values.tolist()[1] == 3
        assert job_part.values.tolist() == [-1, 1]
        assert job_part.categories == ("clerk", "driver")
        assert (part.classes, part.rows) == (("n", "y"), 2)
        assert part.codes is not None
        assert part.weight is not None
        assert (part.codes.tolist(), part.weight.tolist()) == ([1, 0], [2.0, 3.0])
    _, numbers = take_rows([], values([1, 2, 3]), np.array([2, 0]))
    assert numbers.values is not None
    assert numbers.values.tolist() == [3, 1]
