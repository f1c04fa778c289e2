"""Keys, turns and numbers come in the order of a stable sort."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core.encoding import smallest_unsigned
from service.core.sorting import SORTED_BY_CELL, argsort_keys, argsort_numbers, argsort_turns, list_turns, sort_numbers


@given(st.lists(st.integers(0, 2**40), max_size=60), st.integers(0, 3))
def test_keys_are_sorted_stably(keys: list[int], repeats: int) -> None:
    """Sorting 16 bits at a time gives the order of a stable sort, ties included."""
    array = np.array(keys * (repeats + 1), np.int64) >> (12 * repeats)
    order = argsort_keys(array, int(array.max(initial=0)) + 1)
    assert order.tolist() == sorted(range(len(array)), key=lambda place: array[place])


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(["normal", "few", "clusters", "heavy", "huge", "infinite", "constant", "whole", "wide whole"]),
    st.sampled_from([0, 1, 3, SORTED_BY_CELL, 5000, 40_000]),
    st.integers(0, 2**32 - 1),
)
def test_numbers_are_sorted_as_numpy_does_it(kind: str, count: int, seed: int) -> None:
    """Sorting by cells first gives the stable order, whatever the numbers' spread, and where one number ends."""
    source = np.random.default_rng(seed)
    array: np.ndarray[Any, Any] = source.normal(size=count)
    if kind in ("few", "infinite"):
        array = np.round(array, 1)
        array[source.random(count) < 0.1] = np.inf if kind == "infinite" else -0.0
    elif kind == "clusters":
        array = source.integers(0, 100, count) + source.random(count) / 10_000
    elif kind == "heavy":
        array = np.exp(30 * array)
    elif kind == "huge":
        array = array.clip(-4, 4) / 4 * np.finfo(np.float64).max
    elif kind == "constant":
        array[:] = 3.0
    elif kind == "whole":
        array = source.integers(-1000, 1000, count)
    elif kind == "wide whole":
        array = source.integers(2**62, 2**62 + 10**6, count) * source.choice([-1, 1], count)
    expected = np.argsort(array, kind="stable").tolist()
    assert argsort_numbers(array).tolist() == expected
    order, turns = sort_numbers(array)
    assert order.tolist() == expected
    ascending = array[expected]
    assert turns.tolist() == [*(ascending[1:] != ascending[:-1]).tolist(), False][:count]


@pytest.mark.parametrize("turns", [1, 2, 30, 300, 70_000])
@settings(deadline=None, max_examples=20)
@given(st.integers(0, 400), st.integers(0, 2**32 - 1))
def test_entries_come_by_turns(turns: int, entries: int, seed: int) -> None:
    """Few turns or many: entries stand by turn, each turn's as they stood, and those without one are left out."""
    turn = np.random.default_rng(seed).integers(0, turns + 1, entries).astype(smallest_unsigned(turns))
    kept = [place for place in range(entries) if turn[place] < turns]
    assert argsort_turns(turn, turns).tolist() == sorted(kept, key=lambda place: turn[place])


def test_a_turn_ends_where_parents_do_not_ascend() -> None:
    """Nodes of ascending parents come in one turn; a parent again, or one further up, begins the next."""
    assert list_turns(np.array([0, 2, 3, 2, 4, 4, 1])).tolist() == [0, 0, 0, 1, 1, 2, 3]
