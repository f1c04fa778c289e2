"""How rows come down a tree, step by step: which branch each node sends them to, and by what.

`descend` answers where rows end, as fast as it can; this tells the way, by the same guide and for fewer rows.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from enum import IntEnum

import numpy as np

from service.core.candidates import NO_ROUTE, Form
from service.core.criteria import Floats
from service.core.descend import Cells, fill_cells, read_branches
from service.core.descend_parts import Parts, step_down
from service.core.errors import Fault, InvalidData
from service.core.guide import Guide
from service.core.schema import Column
from service.core.statistics import Ints
from service.core.tree import Tree

NONE = -1
"""No surrogate was needed."""


class How(IntEnum):
    """What decided where a row goes on; the names are the API's."""

    VALUE = 0
    """The cell itself, or that the test is about whether there is one."""
    DIRECTION = 1
    """There is no value, and growth learnt the way of such rows."""
    SURROGATE = 2
    """Another feature stood in."""
    MAJORITY = 3
    """Nothing could tell: the branch of most weight."""
    PARTS = 4
    """Nothing could tell: to all branches, by their shares."""
    STOPPED = 5
    """Nothing could tell, and the row ends here."""
    ENDED = 6
    """The node is a leaf."""
    OWN_BRANCH = 7
    """There is no value, which is a branch or a category of its own here."""


@dataclass(frozen=True, slots=True)
class Decisions:
    """What nodes say of rows: (entry,).

    ``branch`` is `NO_ROUTE` where a row is parted or ends; ``surrogate`` is which one told, an index into those of the
    tree, `NONE` where none did.
    """

    branch: Ints
    how: Ints
    surrogate: Ints


@dataclass(frozen=True, slots=True)
class Steps:
    """The nodes that each row comes through, row by row and from the root on; (step,).

    ``share`` is how much of the row comes there, 1 where rows are not parted.
    """

    row: Ints
    node: Ints
    share: Floats
    decisions: Decisions

    def count_ends(self, rows: int) -> Ints:
        """(row,) in how many nodes each ends."""
        ended = (self.decisions.how == How.ENDED) | (self.decisions.how == How.STOPPED)
        return np.bincount(self.row[ended], minlength=rows)


def decide(tree: Tree, guide: Guide, cells: Cells, node: Ints, row: Ints) -> Decisions:
    """(entry,) what each inner ``node`` says of the ``row``, as descent has it."""
    branch = read_branches(guide, cells, node, row)
    how = np.full(len(node), int(How.VALUE))
    surrogate = np.full(len(node), NONE)
    lost = np.flatnonzero(branch == NO_ROUTE)
    if guide.stands is not None:
        branch[lost], surrogate[lost] = _ask_surrogates(guide, guide.stands, cells, node[lost], row[lost])
        how[lost] = How.SURROGATE
        unknown = lost[branch[lost] == NO_ROUTE]
    elif cells.missing is None:
        unknown = lost[:0]  # a category that was not seen ends the row
    else:
        unknown = lost[cells.missing.take(guide.column.take(node[lost]) + row[lost])]
    branch[unknown] = guide.missing_branch.take(node[unknown])
    how[unknown] = _tell_fallback(tree, guide, node[unknown])
    how[branch == NO_ROUTE] = How.PARTS if guide.parted else How.STOPPED
    return Decisions(branch, how, surrogate)


def _tell_fallback(tree: Tree, guide: Guide, node: Ints) -> Ints:
    """(entry,) why a row without a value goes where it does; rows that stay are told apart later."""
    learnt = (tree.missing_to[node] >= 0) & (guide.stands is None)
    told = np.where(learnt, int(How.DIRECTION), int(How.MAJORITY))
    levels = np.array([len(feature.categories) for feature in tree.features])[tree.feature[node]]
    nominal = (tree.form[node] == Form.SUBSET) | (tree.form[node] == Form.MULTIWAY)
    cell = np.where(nominal, tree.category_start[node] + levels, 0)
    own = np.where(nominal, tree.category_branch[cell] != NO_ROUTE, tree.missing_to[node] > 1)
    told[own & learnt] = How.OWN_BRANCH
    return np.where(tree.form[node] == Form.MISSING, int(How.VALUE), told)


def _ask_surrogates(guide: Guide, stands: Ints, cells: Cells, node: Ints, row: Ints) -> tuple[Ints, Ints]:
    """(entry,) the branch that the first surrogate says that can tell, and which one that is."""
    branch, surrogate = np.full(len(node), NO_ROUTE), np.full(len(node), NONE)
    asked, last = stands[node], stands[node + 1]
    lost = np.arange(len(node))
    while len(lost := lost[(branch[lost] == NO_ROUTE) & (asked[lost] < last[lost])]):
        told = read_branches(guide, cells, asked[lost], row[lost])
        which = asked[lost] - stands[0]
        if guide.flipped is not None:
            told ^= guide.flipped[which] & (told != NO_ROUTE)
        branch[lost], surrogate[lost] = told, np.where(told == NO_ROUTE, NONE, which)
        asked[lost] += 1
    return branch, surrogate


def trace_rows(tree: Tree, guide: Guide, columns: Sequence[Column], rows: int, most: int | None = None) -> Steps:
    """Every step of every row; ``columns`` are those of ``tree.features``, for which the guide was made.

    Raises `InvalidData` where there are more than ``most`` steps.
    """
    found = [_leave(np.empty(0, np.int64), np.empty(0, np.int64), np.empty(0))]
    left = most
    for begin in range(0, rows, guide.block):
        for step in _trace_block(tree, guide, columns, slice(begin, min(begin + guide.block, rows))):
            found.append(step)
            left = None if left is None else left - len(step.row)
            if left is not None and left < 0:
                raise InvalidData(Fault("/data", f"these rows have more than {most} steps to take: send fewer"))
    row, node, share = (np.concatenate([getattr(step, name) for step in found]) for name in ("row", "node", "share"))
    branch, how, surrogate = (
        np.concatenate([getattr(step.decisions, name) for step in found]) for name in ("branch", "how", "surrogate")
    )
    order = np.lexsort((node, row))
    return Steps(row[order], node[order], share[order], Decisions(branch[order], how[order], surrogate[order]))


def read_cells(guide: Guide, columns: Sequence[Column], rows: slice) -> Cells:
    """The cells of at most ``guide.block`` rows."""
    used = [columns[f] for f in guide.used]
    return fill_cells(np.empty((len(used), guide.block), np.int64), used, rows)


def _leave(row: Ints, node: Ints, share: Floats) -> Steps:
    """The last steps of rows, in leaves."""
    none, ended = np.full(len(node), NO_ROUTE), np.full(len(node), int(How.ENDED))
    return Steps(row, node, share, Decisions(none, ended, np.full(len(node), NONE)))


def _trace_block(tree: Tree, guide: Guide, columns: Sequence[Column], rows: slice) -> Iterator[Steps]:
    count = rows.stop - rows.start
    cells = read_cells(guide, columns, rows)
    row, node, share = np.arange(count), np.zeros(count, np.int64), np.ones(count)
    while len(node):
        ended = guide.is_leaf[node]
        yield _leave(row[ended] + rows.start, node[ended], share[ended])
        row, node, share = row[~ended], node[~ended], share[~ended]
        decisions = decide(tree, guide, cells, node, row)
        yield Steps(row + rows.start, node, share, decisions)
        goes = decisions.how != How.STOPPED
        below = step_down(guide, Parts(row[goes], node[goes], share[goes]), decisions.branch[goes])
        row, node, share = below.row, below.node, below.share
