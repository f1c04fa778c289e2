"""Ranks of more candidates than memory should hold: keys lie in a file, and a part of them is sorted at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import pairwise
from typing import BinaryIO

import numpy as np

from service.core.criteria import Floats
from service.core.encoding import argsort_numbers
from service.core.statistics import Ints

PARTS = 32
"""About so many parts are sorted one after the other."""
SAMPLED = 64
"""One key in so many tells where parts begin and end."""
CHUNK = 2**18
"""So many keys are read at a time."""
MOST = np.finfo(np.float64).max
RANK = np.dtype(np.int32)
_NONE = np.empty(0, RANK)


class Ranks:
    """Candidates that come in order, by their keys, the least first; equal ones rank as they come, NaN has no rank.

    Keys are added to ``file``, which is empty; when all are there they are replaced by ranks, which are then read in
    the same order. ``least`` is the least key.
    """

    def __init__(self, file: BinaryIO) -> None:
        self._file = file
        self.count, self.least = 0, np.inf

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
        """Replace keys by ranks; the candidates at the places ``ahead`` come before all others, in their order."""
        rank = np.zeros(self.count, RANK)
        rank[ahead] = np.arange(1, len(ahead) + 1)
        ahead = np.sort(ahead)
        bounds = [-np.inf, *self._find_edges(ahead).tolist(), np.inf]
        done = len(ahead)
        for low, high in pairwise(bounds):
            # those that equal an edge, as very many may, need not be sorted
            inside, found, equal = [_NONE], [np.empty(0)], [_NONE]
            for begin, keys in self._read(ahead):
                between = np.flatnonzero((keys > low) & (keys < high))
                inside.append((begin + between).astype(RANK))
                found.append(keys[between])
                equal.append((begin + np.flatnonzero(keys == high)).astype(RANK))
            order = argsort_numbers(np.concatenate(found))
            for places in (np.concatenate(inside)[order], np.concatenate(equal)):
                rank[places] = np.arange(done + 1, done + 1 + len(places), dtype=RANK)
                done += len(places)
        self._file.seek(0)
        self._file.write(rank.data)
        self._file.seek(0)

    def read(self, count: int) -> Ints:
        """The ranks of the candidates that come next; 0 is none."""
        return np.frombuffer(self._file.read(count * RANK.itemsize), RANK).astype(np.int64)

    def _read(self, ahead: Ints) -> Iterator[tuple[int, Floats]]:
        """Where keys begin, and these; those at the ascending places ``ahead`` are NaN."""
        self._file.seek(0)
        room = np.empty(CHUNK)
        for begin in range(0, self.count, CHUNK):
            keys = room[: self.count - begin]
            self._file.readinto(keys.view(np.uint8))  # type: ignore[attr-defined] # of a binary file
            first, last = np.searchsorted(ahead, [begin, begin + len(keys)])
            keys[ahead[first:last] - begin] = np.nan
            yield begin, keys

    def _find_edges(self, ahead: Ints) -> Floats:
        """Distinct keys between which there are about equally many."""
        sample = np.sort(np.concatenate([[], *(keys[::SAMPLED].copy() for _, keys in self._read(ahead))]))
        sample = sample[~np.isnan(sample)]
        return np.unique(sample[:: max(1, len(sample) // PARTS)])
