"""A tree that grows: what has been decided so far, and which nodes are open."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from service.core.batch import Batch
from service.core.search import Splits
from service.core.stand_ins import StandIns
from service.core.statistics import Ints
from service.core.tree import LeafReason

_OF_EMPTY = {"reason": LeafReason.EMPTY, "answer": np.nan}


@dataclass(frozen=True, slots=True)
class Open:
    """Nodes that may be split: a batch with their ids and depths (node,)."""

    batch: Batch
    ids: Ints
    depth: Ints


@dataclass(slots=True)
class Growth:
    """What has been decided so far, in chunks of nodes in order of creation; `assemble.build_tree` reads it.

    ``nodes`` holds per chunk: parent, branch, depth, rows, stats, centre, reason, share; ``splits`` the splits taken,
    with the ids of their nodes and first children; ``stands`` their surrogates, with the ids of the nodes. ``leaf:
    (row,)`` is the node where each row ended (rows that were parted end in several, of which this is any).
    Nodes that have become too small for bins are ``waiting``. A node that risks no more than ``least`` is not split.
    """

    leaf: Ints
    nodes: list[dict[str, Any]] = field(default_factory=list)
    splits: list[tuple[Ints, Ints, Splits]] = field(default_factory=list)
    size: int = 0
    stands: list[tuple[Ints, StandIns]] = field(default_factory=list)
    waiting: list[Open] = field(default_factory=list)
    least: float = 0.0

    def record(self, batch: Batch, reason: Ints, nodes: dict[str, Any], child: Ints) -> Ints:
        """Append ``nodes``, of which ``child: (node,)`` are those of the batch, and the others empty.

        ``reason: (node,)`` says of those of the batch why they are leaves, if they are. Returns their ids.
        """
        answer = np.full(len(reason), np.nan) if batch.answer is None else batch.answer
        chunk = {"stats": batch.stats, "rows": batch.rows, "centre": batch.tally.centre, "impurity": batch.impurity,
                 "reason": reason, "answer": answer}  # fmt: skip
        count = len(nodes["parent"])
        at = np.full(count, -1)
        at[child] = np.arange(len(child))
        for name, values in chunk.items():
            nodes[name] = values.take(at, axis=-1)
            if len(child) < count:
                nodes[name][..., at < 0] = _OF_EMPTY.get(name, 0)
        self.nodes.append(nodes)
        self.size += count
        return self.size - count + child

    def finish(self, front: Open, ended: NDArray[np.bool_], reason: LeafReason) -> None:
        """Those of the nodes that have ``ended: (node,)`` become leaves after all; they were created not long ago."""
        self.settle(front, ended)
        ids, offset = front.ids[ended], self.size
        for chunk in reversed(self.nodes):
            if not len(ids):
                return
            offset -= len(chunk["parent"])
            chunk["reason"][ids[ids >= offset] - offset] = reason
            ids = ids[ids < offset]

    def settle(self, front: Open, ended: NDArray[np.bool_]) -> None:
        """The rows of the nodes that have ``ended: (node,)`` go no further."""
        rows = front.batch.rows
        if ended.any():
            self.leaf[front.batch.entries.row[ended.repeat(rows)]] = front.ids[ended].repeat(rows[ended])
