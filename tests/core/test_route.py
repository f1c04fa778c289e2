"""Entries come to the children that the splits send them to, these in turns."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from service.core import route
from service.core.route import send_entries
from service.core.sorting import list_turns
from tests.core.growing import SORTED, make_root
from tests.core.making import classes, numbers

ROUTES = st.lists(st.tuples(st.integers(0, 5), st.integers(0, 4)), min_size=2, max_size=60)


@pytest.mark.parametrize("missing", ["direction", "surrogate"])
@settings(deadline=None)
@given(
    ROUTES,
    st.sets(st.integers(0, 5)),
    st.sampled_from([(2, np.int8), (4, np.int8), (4, np.int64)]),
    st.sampled_from([3, 1000]),
)
def test_smaller_siblings_come_first(
    missing: str, rows: list[tuple[int, int]], unsplit: set[int], kind: tuple[int, type[Any]], portion: int
) -> None:
    """Of each parent's children the smallest comes in the first turn, and so on; in a turn they stand as parents do.

    Entries keep their order, what is not split or stays has no child, and children without rows are no nodes.
    """
    found, node = np.unique([row[0] for row in rows], return_inverse=True)
    split = np.array([int(one) not in unsplit for one in found])
    if not split.any():
        return
    column = numbers("x", [None, *range(1, len(rows))])
    target = classes(["ab"[i % 2] for i in range(len(rows))])
    learner, batch = make_root([column], target, {"missing": missing}, SORTED, node.tolist())
    most, dtype = kind
    way = np.array([row[1] % (most + (missing == "surrogate")) for row in rows], dtype)[batch.entries.row]
    way[~split[batch.entries.node]] = 0
    if missing == "surrogate":
        way[(way == most) & split[batch.entries.node]] = -1
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(route, "PORTION", portion)
        sent = send_entries(learner, batch, way, np.where(split, most, 0))
    assert sent.entries.source is not None
    assert batch.entries.row[sent.entries.source].tolist() == sent.entries.row.tolist()
    of_child: dict[tuple[int, int], list[int]] = {}
    for row, above, branch in zip(batch.entries.row.tolist(), batch.entries.node.tolist(), way.tolist(), strict=True):
        if split[above] and branch >= 0:
            of_child.setdefault((above, branch), []).append(row)
    order = {}
    for above in range(len(found)):
        own = sorted((key for key in of_child if key[0] == above), key=lambda key: (len(of_child[key]), key[1]))
        empty = most - len(own) if split[above] else 0
        order |= {key: (empty + place, above) for place, key in enumerate(own)}
    expected = sorted(of_child, key=lambda key: order[key])
    assert list(zip(sent.parent[sent.child].tolist(), sent.branch[sent.child].tolist(), strict=True)) == expected
    assert sent.entries.row.tolist() == [row for key in expected for row in of_child[key]]
    assert sent.entries.node.tolist() == [i for i, key in enumerate(expected) for _ in of_child[key]]
    assert (np.diff(list_turns(sent.parent[sent.child])) <= 1).all()
