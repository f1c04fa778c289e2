"""Ranks of more candidates than memory should hold: keys lie in a file, and a part of them is sorted at a time.

    keys      |5 1 9 4 ...|7 2 8 ...|         as they come, then group by group within each chunk
    groups    |1 0 2 1 ...|1 0 2 ...|         which part of the order each belongs to, as they came
    ranks     |1 2 ...|5 6 4 ...|8 9 ...|     of each group, as its candidates came

Nothing else is kept of a candidate, and no list of all.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, BinaryIO

import numpy as np
from numpy.typing import NDArray

from service.core.criteria import Floats
from service.core.sorting import argsort_numbers
from service.core.statistics import Ints

PARTS = 32
"""About so many parts are sorted one after the other."""
SAMPLED = 64
"""One key in so many tells where parts begin and end."""
CHUNK = 2**18
"""So many keys are read at a time."""
MOST = np.finfo(np.float64).max
KEY, GROUP, RANK = np.dtype(np.float64), np.dtype(np.uint8), np.dtype(np.int32)


class Ranks:
    """Candidates that come in order, by their keys, the least first; equal ones rank as they come, NaN has no rank.

    Keys are added to ``file``, which is empty; when all are there they are ranked, and the ranks are then read in the
    same order. ``least`` is the least key.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count, self.least = 0, np.inf
        self._ahead, self._told = np.empty(0, np.int64), 0
        self._rank, self._place = list[int](), list[int]()

    def add(self, keys: Floats) -> None:
        """The keys of the candidates that come next."""
        self._file.write(np.clip(keys, -MOST, MOST).tobytes())
        self.count += len(keys)
        self.least = min(self.least, float(np.fmin.reduce(keys, initial=np.inf)))

    def find_up_to(self, level: float) -> Ints:
        """The places of all keys that are not above a level."""
        none = np.empty(0, np.int64)
        return np.concatenate([none, *(begin + np.flatnonzero(keys <= level) for begin, keys in self._read(none))])

    def settle(self, ahead: Ints) -> None:
        """Rank them; the candidates at the places ``ahead`` come before all others, in their order."""
        self._ahead = ahead
        counts = self._group(np.sort(ahead))
        begin = counts.cumsum(1) - counts + np.arange(len(counts))[:, None] * CHUNK
        rank, place = len(ahead) + 1, self.count * (KEY.itemsize + GROUP.itemsize)
        for group, sizes in enumerate(counts.T[:-1]):
            self._rank.append(rank)
            self._place.append(place)
            rank += int(sizes.sum())
            if group % 2:
                continue  # they are equal, and rank as they come
            parts = zip(begin[:, group].tolist(), sizes.tolist(), strict=True)
            keys = np.concatenate([np.empty(0), *(self._get(at * KEY.itemsize, size, KEY) for at, size in parts)])
            ranks = np.empty(len(keys), RANK)
            ranks[argsort_numbers(keys)] = np.arange(len(keys))
            self._put(place, ranks)
            place += ranks.nbytes

    def read(self, count: int) -> Ints:
        """The ranks of the candidates that come next; 0 is none."""
        group = self._get(self.count * KEY.itemsize + self._told, count, GROUP)
        order, begin = np.argsort(group, kind="stable"), 0
        ranks = np.zeros(count, np.int64)
        for one, size in enumerate(np.bincount(group, minlength=len(self._rank))[: len(self._rank)].tolist()):
            if one % 2:
                ranks[order[begin : begin + size]] = np.arange(self._rank[one], self._rank[one] + size)
                self._rank[one] += size
            elif size:
                ranks[order[begin : begin + size]] = self._rank[one] + self._get(self._place[one], size, RANK)
                self._place[one] += size * RANK.itemsize
            begin += size
        mine = np.flatnonzero((self._ahead >= self._told) & (self._ahead < self._told + count))
        ranks[self._ahead[mine] - self._told] = mine + 1
        self._told += count
        return ranks

    def _group(self, ahead: Ints) -> Ints:
        """(chunk, group) How many keys there are: below the first edge, equal to it, between it and the next, ...

        Those that equal an edge, as very many may, need not be sorted. The last group has what is not ranked by keys.
        """
        edges = self._find_edges(ahead)
        groups, counts = 2 * len(edges) + 1, []
        for begin, keys in self._read(ahead):
            group = (np.searchsorted(edges, keys) + np.searchsorted(edges, keys, "right")).astype(GROUP)
            group[np.isnan(keys)] = groups
            counts.append(np.bincount(group, minlength=groups + 1))
            self._put(begin * KEY.itemsize, keys[np.argsort(group, kind="stable")])
            self._put(self.count * KEY.itemsize + begin, group)
        return np.array(counts, np.int64).reshape(-1, groups + 1)

    def _read(self, ahead: Ints) -> Iterator[tuple[int, Floats]]:
        """Where keys begin, and these; those at the ascending places ``ahead`` are NaN."""
        for begin in range(0, self.count, CHUNK):
            keys = self._get(begin * KEY.itemsize, min(CHUNK, self.count - begin), KEY)
            first, last = np.searchsorted(ahead, [begin, begin + len(keys)])
            keys[ahead[first:last] - begin] = np.nan
            yield begin, keys

    def _get(self, place: int, count: int, kind: np.dtype[Any]) -> NDArray[Any]:
        """So many numbers from a place in the file on."""
        self._file.seek(place)
        return np.frombuffer(bytearray(self._file.read(count * kind.itemsize)), kind)

    def _put(self, place: int, numbers: NDArray[Any]) -> None:
        self._file.seek(place)
        self._file.write(numbers.tobytes())

    def _find_edges(self, ahead: Ints) -> Floats:
        """Distinct keys between which there are about equally many."""
        sample = np.sort(np.concatenate([[], *(keys[::SAMPLED].copy() for _, keys in self._read(ahead))]))
        sample = sample[~np.isnan(sample)]
        return np.unique(sample[:: max(1, len(sample) // PARTS)])
