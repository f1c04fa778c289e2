"""Ranks by keys in a file, of which a part is sorted at a time."""

from __future__ import annotations

import io
import math
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.core import ranks
from service.core.ranks import Ranks

KEYS = st.lists(st.sampled_from([-1.5, -0.0, 0.0, 2.0, np.nan, np.inf]) | st.floats(-3, 3), max_size=40)


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(KEYS, st.lists(st.integers(0, 40), max_size=4), st.lists(st.integers(0, 39), max_size=3, unique=True))
@pytest.mark.parametrize(("chunk", "sampled"), [(2**19, 64), (3, 1), (7, 2)])
def test_ranks_are_those_of_a_stable_sort(
    chunk: int, sampled: int, keys: list[float], cuts: list[int], first: list[int]
) -> None:
    """Whatever portions keys come in and ranks are read in, each has the rank that sorting by key, then place, gives.

    Candidates put ahead have the first ranks, in the order asked for; NaN has none.
    """
    edges = sorted({0, len(keys), *(min(cut, len(keys)) for cut in cuts)})
    ahead = [i for i in first if i < len(keys)]
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(ranks, "CHUNK", chunk)
        patch.setattr(ranks, "SAMPLED", sampled)
        ranking = Ranks(io.BytesIO())
        for begin, end in pairwise(edges):
            ranking.add(np.array(keys[begin:end], float))
        ranking.settle(np.array(ahead, np.int64))
    told = [rank for begin, end in pairwise(edges) for rank in ranking.read(end - begin).tolist()]
    rest = sorted(
        (i for i in range(len(keys)) if not math.isnan(keys[i]) and i not in ahead), key=lambda i: (keys[i], i)
    )
    order = [*ahead, *sorted(rest, key=lambda i: (keys[i], i))]
    assert told == [order.index(i) + 1 if i in order else 0 for i in range(len(keys))]


@given(KEYS, st.floats(-3, 3))
def test_keys_up_to_a_level(keys: list[float], level: float) -> None:
    """The least key is known, and the places of all that are not above a level."""
    ranking = Ranks(io.BytesIO())
    ranking.add(np.array(keys, float))
    assert ranking.least == min([key for key in keys if not math.isnan(key)], default=np.inf)
    assert ranking.find_up_to(level).tolist() == [i for i, key in enumerate(keys) if key <= level]
