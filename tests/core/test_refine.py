"""What a closer look at bins puts in order is in order."""

from __future__ import annotations

import numpy as np
import pytest

from service.core.refine import Crowd


@pytest.mark.parametrize("count", [1, 50, 4_000])
@pytest.mark.parametrize("digits", [0, 1, 9])
def test_a_crowd_is_sorted_by_cell_and_value(count: int, digits: int) -> None:
    """Cells ascend and values within them, though rounding gives one spot to several values; ties stay as they were."""
    source = np.random.default_rng(count + digits)
    cell = source.integers(0, 7, count)
    share = np.where(source.random(count) < 0.2, 0.5, source.random(count))
    entry = np.arange(count)
    crowd = Crowd(entry, entry + 5, cell, share * 3 - 1, cell + share.round(digits) / 2)
    found = crowd.sort()
    expected = sorted(range(count), key=lambda at: (cell[at], crowd.value[at]))
    assert found.entry.tolist() == expected
    assert found.row.tolist() == [at + 5 for at in expected]
    for name in ("cell", "value", "spot"):
        assert getattr(found, name).tolist() == getattr(crowd, name)[expected].tolist()
