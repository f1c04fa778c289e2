"""One row down a tree: a loop over plain numbers, for what numpy spends on a call is more than the whole way.

The tree's arrays are read as memory views: a model of any size is ready at once, and workers share its pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from service.core.candidates import NO_ROUTE, Form
from service.core.tree import STAYS, Surrogates, Tree, find_heaviest_branches

Value: TypeAlias = float | int | None
"""What a node compares: a number, or the code of a category (below 0 where training had none); None is missing."""

_LEAF, _MULTIWAY, _MISSING = (int(form) for form in (Form.LEAF, Form.MULTIWAY, Form.MISSING))


class OneRow:
    """The short way through a tree, for one row at a time; threads may share it."""

    def __init__(self, tree: Tree) -> None:
        self._form, self._feature = tree.form.data, tree.feature.data
        self._threshold, self._whole = tree.threshold.data, tree.whole.data
        self._first, self._missing_to = tree.first_child.data, tree.missing_to.data
        self._start, self._branch = tree.category_start.data, tree.category_branch.data
        self._heaviest = find_heaviest_branches(tree).data
        self._numeric = [feature.kind == "numeric" for feature in tree.features]
        self._ordinal = [feature.kind == "ordinal" for feature in tree.features]
        self._branches = tree.branches.data
        self._share = None if tree.share is None else tree.share.data
        stands = tree.surrogates
        asked = stands is not None and bool(stands.asked.all())
        self._stands = StandIns(stands, self._numeric, self._ordinal) if stands is not None and asked else None

    def descend(self, values: Sequence[Value], node: int = 0) -> int:
        """The node in which `descend` ends for the same row; ``values`` are those of the tree's features, in order.

        A float is compared with the float64 threshold of a node, an int with its int64 one, as columns are. The way
        begins at ``node``.
        """
        form, feature, first = self._form, self._feature, self._first
        threshold, numeric = self._threshold, self._numeric
        while (test := form[node]) != _LEAF:
            asked = feature[node]
            value = values[asked]
            if value is None or value != value:  # noqa: PLR0124 - NaN is missing too
                branch = self._find_missing_branch(node, values)
                if branch == NO_ROUTE:
                    return node
            elif test == _MISSING:
                branch = 1
            elif numeric[asked]:
                limit = threshold[node] if type(value) is float else self._whole[node]
                branch = 0 if value <= limit else 1
            else:
                branch = self._find_category_branch(node, int(value))
                if branch == NO_ROUTE and self._stands is not None:
                    branch = self._find_missing_branch(node, values)
                if branch == NO_ROUTE:
                    return node
            node = first[node] + branch
        return node

    def is_leaf(self, node: int) -> bool:
        """True where no row goes on."""
        return self._form[node] == _LEAF

    def part(self, values: Sequence[Value]) -> list[tuple[int, float]]:
        """The leaves that `descend_parts` ends in for the same row, ascending, with the row's share in each."""
        waiting, found = [(0, 1.0)], []
        shares: Sequence[float] = self._share if self._share is not None else []
        while waiting:
            begin, share = waiting.pop()
            node = self.descend(values, begin)
            if self._form[node] == _LEAF:
                found.append((node, share))
                continue
            children = range(self._first[node], self._first[node] + self._branches[node])
            waiting += [(child, part) for child in children if (part := share * shares[child]) > 0]
        return sorted(found)

    def _find_missing_branch(self, node: int, values: Sequence[Value]) -> int:
        if self._form[node] == _MISSING:
            return 0
        if self._share is not None:
            return NO_ROUTE
        if self._stands is not None:
            branch = self._stands.find_branch(node, values)
            if branch != NO_ROUTE:
                return branch
        learnt: int = self._missing_to[node]
        if learnt == STAYS:
            return NO_ROUTE
        return self._heaviest[node] if learnt == NO_ROUTE else learnt

    def _find_category_branch(self, node: int, code: int) -> int:
        if code < 0:
            return NO_ROUTE
        if self._ordinal[self._feature[node]] and self._form[node] != _MULTIWAY:
            return 0 if code <= self._whole[node] else 1
        branch: int = self._branch[self._start[node] + code]
        return branch


class StandIns:
    """The surrogates of a tree, for one row at a time."""

    def __init__(self, stands: Surrogates, numeric: Sequence[bool], ordinal: Sequence[bool]) -> None:
        self._start, self._feature, self._flipped = stands.start.data, stands.feature.data, stands.flipped.data
        self._threshold, self._whole = stands.threshold.data, stands.whole.data
        self._cells, self._branch = stands.category_start.data, stands.category_branch.data
        self._numeric, self._ordinal = numeric, ordinal

    def find_branch(self, node: int, values: Sequence[Value]) -> int:
        """What the first surrogate of the node says that can; `NO_ROUTE` where none does."""
        for which in range(self._start[node], self._start[node + 1]):
            value = values[self._feature[which]]
            if value is None or value != value:  # noqa: PLR0124 - NaN is missing too
                continue
            branch = self._ask(which, self._feature[which], value)
            if branch != NO_ROUTE:
                return branch
        return NO_ROUTE

    def _ask(self, which: int, feature: int, value: float) -> int:
        if self._numeric[feature]:
            limit = self._threshold[which] if type(value) is float else self._whole[which]
        elif value < 0:
            return NO_ROUTE
        elif self._ordinal[feature]:
            limit = self._whole[which]
        else:
            branch: int = self._branch[self._cells[which] + int(value)]
            return branch
        return int((value > limit) != self._flipped[which])
