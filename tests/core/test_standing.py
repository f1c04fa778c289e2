"""The best few of many scores, and how many come before one, are those that sorting all of them says."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.standing import count_before, find_highest

SCORES = st.lists(st.lists(st.sampled_from([-1.5, 0.0, 0.25, 2.0, 7.0]), max_size=9), min_size=1, max_size=4)


@given(parts=SCORES, most=st.one_of(st.none(), st.integers(0, 40)))
def test_the_highest_are_the_first_of_all_in_order(parts: list[list[float]], most: int | None) -> None:
    """Of equal scores the first are taken, and places ascend."""
    score = [one for part in parts for one in part]
    order = sorted(range(len(score)), key=lambda place: (-score[place], place))
    assert find_highest(np.array(score), most).tolist() == sorted(order[:most])


@pytest.mark.parametrize("most", [1, 2, 9, 60])
@pytest.mark.parametrize("digits", [0, 1, 9])
def test_the_highest_of_very_many(most: int, digits: int) -> None:
    """So it is where they are looked for among the peaks of stretches, in a curve as well as in noise."""
    source = np.random.default_rng(most)
    for score in (source.normal(size=5003), np.sin(np.arange(5003) / 700), -np.abs(np.arange(5003) - 4999.0)):
        rounded = score.round(digits)
        expected = np.sort(np.lexsort((np.arange(5003), -rounded))[:most])
        assert find_highest(rounded, most).tolist() == expected.tolist()


@given(parts=SCORES, data=st.data())
def test_what_comes_before_is_counted(parts: list[list[float]], data: st.DataObject) -> None:
    """Higher scores, and equal ones further up, of those that count, whichever are asked about."""
    score = [one for part in parts for one in part]
    counted = [data.draw(st.booleans()) for _ in score]
    begin = np.cumsum([0, *(len(part) for part in parts)])
    asked = data.draw(st.lists(st.sampled_from(range(len(score))), unique=True)) if score else []
    expected = [
        sum(
            counted[i] and (score[i] > score[place] or (score[i] == score[place] and i < place))
            for i in range(len(score))
        )
        for place in asked
    ]
    if asked:
        flags = np.array(counted)
        found = count_before(
            [np.array(part) for part in parts],
            np.array([max(part, default=-np.inf) for part in parts]),
            begin,
            lambda feature: flags[begin[feature] : begin[feature + 1]],
            np.array(score)[asked],
            np.array(asked),
        )
        assert found.tolist() == expected
