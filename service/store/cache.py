"""Values by key, the least recently used ones dropped first. Model ids never change their meaning: nothing expires."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class RecentlyUsed(Generic[Key, Value]):
    """Values of at most ``size`` in all, shared by the threads of a process; each counts 1 unless ``weigh`` says more.

    A value that is larger than ``size`` by itself is not kept.
    """

    def __init__(self, size: int, weigh: Callable[[Value], int] = lambda _: 1) -> None:
        self._size = size
        self._weigh = weigh
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._weight = 0
        self._lock = threading.Lock()

    def get(self, key: Key, load: Callable[[], Value]) -> Value:
        """The value of ``key``, from ``load`` if it is not here; two threads may load the same at once."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = load()  # without the lock: others need not wait for a large file
        if self._weigh(value) > self._size:
            return value
        with self._lock:
            self._keep(key, value)
            while self._weight > self._size:
                self._remove(next(iter(self._values)))
        return value

    def offer(self, key: Key, value: Value) -> None:
        """Keep a value, instead of the one that ``key`` may have, if there is room for it beside all others."""
        with self._lock:
            before = self._weigh(self._values[key]) if key in self._values else 0
            if self._weight - before + self._weigh(value) <= self._size:
                self._keep(key, value)

    def peek(self, key: Key) -> Value | None:
        """The value of ``key`` if it is here."""
        with self._lock:
            return self._values.get(key)

    def drop(self, key: Key) -> None:
        """Forget the value of ``key`` if it is here; who still uses it keeps it."""
        with self._lock:
            self._remove(key)

    def drop_all(self, fits: Callable[[Key], bool]) -> None:
        """Forget every value whose key ``fits``."""
        with self._lock:
            for key in [key for key in self._values if fits(key)]:
                self._remove(key)

    def _keep(self, key: Key, value: Value) -> None:
        self._remove(key)
        self._values[key] = value
        self._weight += self._weigh(value)

    def _remove(self, key: Key) -> None:
        if key in self._values:
            self._weight -= self._weigh(self._values.pop(key))


class UntilChanged(Generic[Key, Value]):
    """Values that hold while ``moment()`` stays equal; at most ``size`` of them."""

    def __init__(self, size: int, moment: Callable[[], object]) -> None:
        self._size = size
        self._moment = moment
        self._kept: tuple[object, RecentlyUsed[Key, Value]] = (object(), RecentlyUsed(size))

    def get(self, key: Key, load: Callable[[], Value]) -> Value:
        """The value of ``key``, from ``load`` if none of this moment is here."""
        # Before the load: if something changes in between, what was loaded is taken for older than it is, never newer.
        now = self._moment()
        moment, values = self._kept
        if moment != now:
            values = RecentlyUsed(self._size)
            self._kept = (now, values)
        return values.get(key, load)
