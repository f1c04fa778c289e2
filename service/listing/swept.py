"""What a query wants of a large node, of which nothing is kept: all of its candidates, in order."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import BinaryIO

import numpy as np

from service.core.audit import Audited
from service.core.sweep import sweep_node
from service.listing.filters import find_wanted
from service.listing.query import SplitQuery
from service.rendering.columns import Part, read_parts


class SweptView:
    """What a query, which asks for no ``top``, wants of one node; its candidates come by position."""

    def __init__(self, audited: Audited, node: int, query: SplitQuery, scratch: Callable[[], BinaryIO]) -> None:
        self.node = node
        self._audited, self._query, self._scratch = audited, query, scratch

    def stream(self, begin: int, most: int) -> Iterator[tuple[Part, ...]]:
        """The candidates from ``begin`` on, up to ``most`` at a time, in columns."""
        names = [feature.name for feature in self._audited.tree.features]
        last = len(names) if self._query.feature is None else names.index(self._query.feature)
        for listing in sweep_node(self._audited, self.node, self._query.measure, self._scratch):
            if listing.feature[0] > last:
                return
            wanted = np.flatnonzero(find_wanted(self._audited, listing, np.arange(len(listing.rank)), self._query))
            rows = wanted[begin:]
            begin = max(begin - len(wanted), 0)
            for first in range(0, len(rows), most):
                part = rows[first : first + most]
                yield read_parts(self._audited, listing, part, listing.rank[part])
