"""The way of rows down a tree, against descent and against what is said at each node."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from service.core.candidates import Form
from service.core.descend import descend
from service.core.descend_parts import descend_parts
from service.core.explain import How, trace_rows
from service.rendering.nodes import show_tree_split
from tests.core.explaining import Case, cases, make_stand_ins, with_stand_ins

SLOWLY = settings(max_examples=80, deadline=None, suppress_health_check=[HealthCheck.too_slow])


@with_stand_ins
@SLOWLY
@given(cases())
def test_ends_where_descent_does(case: Case) -> None:
    """A row's last steps are the nodes that it is answered from, with the same shares to the last bit."""
    tree, guide = case.tree, case.guide
    steps = trace_rows(tree, guide, case.columns, case.rows)
    how = steps.decisions.how
    last = (how == How.ENDED) | (how == How.STOPPED)
    if guide.parted:
        parts = descend_parts(guide, case.columns, case.rows)
        assert steps.row[last].tolist() == parts.row.tolist()
        assert steps.node[last].tolist() == parts.node.tolist()
        assert steps.share[last].tolist() == parts.share.tolist()
    else:
        assert steps.row[last].tolist() == list(range(case.rows))
        assert steps.node[last].tolist() == descend(tree, case.columns, case.rows).node.tolist()
        assert (steps.share == 1).all()


@with_stand_ins
@SLOWLY
@given(cases())
def test_every_step_follows_from_another(case: Case) -> None:
    """All steps but the root's come from a step at the parent, by its branch, or by the share where it parted."""
    tree = case.tree
    steps = trace_rows(tree, case.guide, case.columns, case.rows)
    told = {(row, node): i for i, (row, node) in enumerate(zip(steps.row.tolist(), steps.node.tolist(), strict=True))}
    assert len(told) == len(steps.row)
    for (row, node), i in told.items():
        if node == 0:
            assert steps.share[i] == 1
            continue
        above = told[row, int(tree.parent[node])]
        branch, how = steps.decisions.branch[above], steps.decisions.how[above]
        if how == How.PARTS:
            assert tree.share is not None
            assert steps.share[i] == steps.share[above] * tree.share[node]
        else:
            assert int(tree.first_child[tree.parent[node]]) + branch == node
            assert steps.share[i] == steps.share[above]
    assert sum(node == 0 for _, node in told) == case.rows


@with_stand_ins
@SLOWLY
@given(cases())
def test_what_decided(case: Case) -> None:
    """A cell decides where there is one that the node knows; a surrogate is one of the node's, and has a value."""
    tree, guide = case.tree, case.guide
    steps = trace_rows(tree, guide, case.columns, case.rows)
    gone = np.stack([column.is_missing() for column in case.columns])
    for i, node in enumerate(steps.node.tolist()):
        how, which = How(int(steps.decisions.how[i])), int(steps.decisions.surrogate[i])
        assert (which >= 0) == (how == How.SURROGATE)
        assert (how == How.ENDED) == bool(tree.is_leaf[node])
        if how == How.ENDED:
            continue
        missing = bool(gone[tree.feature[node], steps.row[i]])
        if how == How.VALUE:
            assert not missing or tree.form[node] == Form.MISSING
        if how in (How.DIRECTION, How.OWN_BRANCH):
            assert missing
            split = show_tree_split(tree, node) or {}
            own = split.get("missing") == "branch" or any(None in group for group in split.get("categories", []))
            assert own == (how == How.OWN_BRANCH)
            assert steps.decisions.branch[i] == tree.missing_to[node]
        if how == How.SURROGATE:
            assert tree.surrogates is not None
            assert which in tree.surrogates.list_at(node)
            assert not gone[tree.surrogates.feature[which], steps.row[i]]
        assert (how == How.PARTS) <= (tree.share is not None)


def test_every_way_comes_up() -> None:
    """Among random trees everything that may decide does, so the properties above say something of each."""
    seen: set[int] = set()

    @settings(max_examples=100, database=None, derandomize=True, deadline=None)
    @given(cases())
    def look(case: Case) -> None:
        seen.update(trace_rows(case.tree, case.guide, case.columns, case.rows).decisions.how.tolist())

    look()
    for seed in range(4):
        case = make_stand_ins(seed)
        seen.update(trace_rows(case.tree, case.guide, case.columns, case.rows).decisions.how.tolist())
    assert seen == {int(how) for how in How}


@pytest.mark.parametrize("rows", [0, 1])
def test_few_rows(rows: int) -> None:
    """A tree of one leaf has one step for each row, also for none."""
    from tests.core.making import grow, numbers, values  # noqa: PLC0415 - only here

    tree = grow([numbers("x", [1, 1])], values([1.0, 2.0])).tree
    case = Case(tree, [numbers("x", [1] * rows)])
    assert trace_rows(tree, case.guide, case.columns, rows).node.tolist() == [0] * rows
