"""Bins are monotone whatever the values are, and as fine as few values allow."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.bins import BINS, Binned, bin_features
from service.core.encoding import CodedFeature, encode
from service.core.schema import Column
from tests.core.making import numbers

ROWS = 39_999
"""As many rows as are all looked at when edges are chosen."""


def bin_column(column: Column) -> tuple[CodedFeature, Binned]:
    """The feature and its bins."""
    features = encode([column])
    return features[0], bin_features(features, np.array([0]))


def assert_monotone(column: Column) -> Binned:
    """Greater values have no lower bins, equal ones the same; missing ones have their own; `single` is true."""
    feature, binned = bin_column(column)
    missing, code, bins = feature.is_missing(), binned.code[0], binned.bins[0]
    assert 1 <= bins <= BINS
    assert (code[missing] == bins).all()
    order = np.argsort(feature.numbers[~missing], kind="stable")
    known, ordered = code[~missing][order], feature.numbers[~missing][order]
    assert (known < bins).all()
    assert (known[1:] >= known[:-1]).all()
    assert (known[1:] == known[:-1])[ordered[1:] == ordered[:-1]].all()
    if binned.single[0]:
        assert ((ordered[1:] == ordered[:-1]) == (known[1:] == known[:-1])).all()
    else:
        edges = binned.edges[0]
        assert len(edges) == bins + 1
        assert len(known) == 0 or (edges[:-1] <= edges[1:]).all()
    return binned


def make_lumps(low: float, middle: float, high: float) -> np.ndarray[Any, np.dtype[np.float64]]:
    """Half the rows at either end, and so few others, all distinct, that no quantile falls among them."""
    cells = np.full(ROWS, low)
    cells[:150] = low - np.linspace(0.1, 1, 150) * max(1.0, abs(low) * 0.01)
    cells[19_768:19_918] = middle + np.arange(150)
    cells[19_918:] = high
    return cells


def make_columns() -> dict[str, Column]:
    """Columns of every kind that bins could trip over."""
    draw = np.random.default_rng(0)
    normal = draw.normal(size=ROWS)
    gaps = np.where(draw.random(ROWS) < 0.3, np.nan, normal)
    rare = np.where(draw.random(ROWS) < 0.999, np.nan, normal)
    holes = draw.random(ROWS) < 0.4
    crowd = np.where(draw.random(ROWS) < 0.5, 1 + normal * 1e-9, normal * 1e9)
    cells: dict[str, Any] = {
        "normal": normal,
        "sorted": np.sort(normal),
        "heavy tails": np.exp(normal * 30),
        "both tails": np.sinh(normal * 100),
        "all in one cell": crowd,
        "few values": np.round(normal),
        "127 values": draw.integers(0, 127, ROWS) * 0.1,
        "128 values": draw.integers(0, 128, ROWS) * 0.1,
        "255 values": draw.integers(0, 255, ROWS) * 0.1,
        "256 values": draw.integers(0, 256, ROWS) * 0.1,
        "a value that the sample misses": np.where(np.arange(ROWS) == 7, 0.5, np.round(normal)),
        "constant": np.full(ROWS, 7.0),
        "nearly constant": np.where(np.arange(ROWS) < 130, normal, 0.0),
        "infinities": np.where(normal > 2, np.inf, np.where(normal < -2, -np.inf, normal)),
        "infinite lumps": make_lumps(0.0, 1.0, np.inf),
        "lumps too far apart": make_lumps(-1.7e308, 0.0, 1.7e308),
        "mostly infinite": np.where(draw.random(ROWS) < 0.9, np.inf, normal),
        "mostly minus infinite": np.where(draw.random(ROWS) < 0.9, -np.inf, normal),
        "the whole range": draw.uniform(-1, 1, ROWS) * 1.7e308,
        "subnormal": draw.integers(-500, 500, ROWS) * 5e-324,
        "zeros of both signs": np.where(draw.random(ROWS) < 0.5, -0.0, 0.0),
        "zeros amid others": np.where(draw.random(ROWS) < 0.3, -0.0, np.where(draw.random(ROWS) < 0.5, 0.0, normal)),
        "gaps": gaps,
        "mostly gaps": rare,
        "nothing": np.full(ROWS, np.nan),
        "whole": draw.integers(-1000, 1000, ROWS),
        "whole past 2^53": 2**60 + draw.integers(0, 600, ROWS),
        "few whole past 2^53": 2**60 + draw.integers(0, 60, ROWS),
        "all whole numbers": draw.integers(-(2**63), 2**63 - 1, ROWS),
    }
    columns = {name: Column(name, "numeric", np.asarray(values)) for name, values in cells.items()}
    whole = np.where(holes, 0, draw.integers(5, 5000, ROWS))
    columns["whole with gaps"] = Column("g", "numeric", whole, missing=holes)
    columns["few whole with gaps"] = Column("f", "numeric", whole % 7, missing=holes)
    return columns


COLUMNS = make_columns()


@pytest.mark.parametrize("name", COLUMNS)
def test_bins_are_monotone(name: str) -> None:
    """Large columns of every kind have monotone bins."""
    assert_monotone(COLUMNS[name])


FLOATS = (
    st.none() | st.floats(allow_nan=False) | st.sampled_from([-0.0, 0.0, float("inf"), float("-inf"), 1e308, 5e-324])
)
WHOLE = st.none() | st.integers(-(2**63), 2**63 - 1) | st.sampled_from([2**53, 2**53 + 1, 2**53 + 2, 0])


@settings(deadline=None)
@given(st.lists(FLOATS, min_size=1, max_size=60) | st.lists(WHOLE, min_size=1, max_size=60), st.integers(1, 6))
def test_any_values_have_monotone_bins(cells: list[Any], times: int) -> None:
    """Any few values have monotone bins: a bin each, where all of them are in the sample."""
    binned = assert_monotone(numbers("x", cells * times))
    assert bool(binned.single[0]) == any(cell is not None for cell in cells)


@settings(deadline=None, max_examples=40)
@given(st.floats(0.01, 700), st.integers(0, 2**32 - 1), st.integers(130, 3000), st.booleans())
def test_any_spread_has_monotone_bins(spread: float, seed: int, rows: int, whole: bool) -> None:
    """Values too many for a bin each have monotone bins, evenly spread or over hundreds of powers of ten."""
    cells = np.sinh(np.random.default_rng(seed).uniform(-spread, spread, rows))
    assert_monotone(Column("x", "numeric", np.clip(cells, -9e18, 9e18).astype(np.int64) if whole else cells))


@pytest.mark.parametrize(
    ("name", "single"),
    [
        ("few values", True),
        ("127 values", True),
        ("constant", True),
        ("zeros of both signs", True),
        ("few whole past 2^53", True),
        ("few whole with gaps", True),
        ("a value that the sample misses", None),
        ("normal", False),
        ("infinite lumps", False),
        ("nothing", False),
    ],
)
def test_bins_of_one_value(name: str, single: bool | None) -> None:
    """`single` holds where few values have a bin each, and not where one bin holds several."""
    assert single is None or bool(bin_column(COLUMNS[name])[1].single[0]) == single


def test_a_value_outside_the_sample_spoils_single() -> None:
    """A value that no sampled row has shares a bin, so the bins are not single."""
    cells = np.random.default_rng(2).integers(0, 2, 200_000) * 1.0
    cells[7] = 0.5
    assert not assert_monotone(Column("x", "numeric", cells)).single[0]
    cells[7] = 1.0
    assert assert_monotone(Column("x", "numeric", cells)).single[0]


@pytest.mark.parametrize(
    "name", ["normal", "gaps", "heavy tails", "all in one cell", "all whole numbers", "both tails"]
)
def test_bins_are_roughly_equal(name: str) -> None:
    """Where values are distinct no bin holds more than a few times its share, however the values are spread."""
    feature, binned = bin_column(COLUMNS[name])
    known = binned.code[0][~feature.is_missing()]
    assert binned.bins[0] == BINS
    assert np.bincount(known).max() <= 5 * len(known) / BINS


def test_the_grid_agrees_with_the_search() -> None:
    """The grid gives the bins of a binary search, but to values in a grid cell with an edge, or beyond all edges."""
    feature, binned = bin_column(COLUMNS["normal"])
    edges = binned.edges[0][1:-1]
    exact = np.searchsorted(edges, feature.numbers, side="left")
    differs = np.flatnonzero(binned.code[0] != exact)
    assert len(differs) < 0.02 * ROWS
    assert (binned.code[0] <= exact).all()
    near = np.abs(feature.numbers[differs, None] - edges).min(1) <= (edges[-1] - edges[0]) / 2**15
    assert (near | (feature.numbers[differs] > edges[-1])).all()


def test_taking_and_reordering() -> None:
    """Some entries keep their bins, and entries in another order bring theirs along."""
    features = encode([COLUMNS["normal"], COLUMNS["few values"]])
    binned = bin_features(features, np.array([0, 1]))
    some = np.random.default_rng(1).permutation(ROWS)[:100]
    for order in (some, np.arange(ROWS)[::-1], np.arange(ROWS), np.arange(ROWS - 1)):
        assert (binned.reorder(order).code == binned.code[:, order]).all()
    assert (binned.take(slice(5, 9), slice(0, 1)).code == binned.code[:, 5:9]).all()
    assert binned.take(some, slice(0, 1)).feature.tolist() == [0, 1]
