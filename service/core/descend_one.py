"""One row down a tree: a loop over plain numbers, for what numpy spends on a call is more than the whole way.

The tree's arrays are read as memory views: a model of any size is ready at once, and workers share its pages.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from service.core.candidates import NO_ROUTE, Form
from service.core.tree import Tree, find_heaviest_branches

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

    def descend(self, values: Sequence[Value]) -> int:
        """The node in which `descend` ends for the same row; ``values`` are those of the tree's features, in order.

        A float is compared with the float64 threshold of a node, an int with its int64 one, as columns are.
        """
        form, feature, first = self._form, self._feature, self._first
        threshold, numeric = self._threshold, self._numeric
        node = 0
        while (test := form[node]) != _LEAF:
            asked = feature[node]
            value = values[asked]
            if value is None or value != value:  # noqa: PLR0124 - NaN is missing too
                branch = self._find_missing_branch(node)
            elif test == _MISSING:
                branch = 1
            elif numeric[asked]:
                limit = threshold[node] if type(value) is float else self._whole[node]
                branch = 0 if value <= limit else 1
            else:
                branch = self._find_category_branch(node, int(value))
                if branch == NO_ROUTE:
                    return node
            node = first[node] + branch
        return node

    def _find_missing_branch(self, node: int) -> int:
        if self._form[node] == _MISSING:
            return 0
        learnt: int = self._missing_to[node]
        return self._heaviest[node] if learnt == NO_ROUTE else learnt

    def _find_category_branch(self, node: int, code: int) -> int:
        if code < 0:
            return NO_ROUTE
        if self._ordinal[self._feature[node]] and self._form[node] != _MULTIWAY:
            return 0 if code <= self._whole[node] else 1
        branch: int = self._branch[self._start[node] + code]
        return branch
