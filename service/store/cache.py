"""Loaded files by id, the least recently used one dropped first. Ids never change their meaning, so nothing expires."""

from __future__ import annotations

import threading
from collections import OrderedDict
from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

Key = TypeVar("Key", bound=Hashable)
Value = TypeVar("Value")


class RecentlyUsed(Generic[Key, Value]):
    """At most ``size`` values, shared by the threads of a process."""

    def __init__(self, size: int) -> None:
        self._size = size
        self._values: OrderedDict[Key, Value] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, key: Key, load: Callable[[], Value]) -> Value:
        """The value of ``key``, from ``load`` if it is not here; two threads may load the same at once."""
        with self._lock:
            if key in self._values:
                self._values.move_to_end(key)
                return self._values[key]
        value = load()  # without the lock: others need not wait for a large file
        with self._lock:
            self._values[key] = value
            self._values.move_to_end(key)
            while len(self._values) > self._size:
                self._values.popitem(last=False)
        return value

    def drop(self, key: Key) -> None:
        """Forget the value of ``key`` if it is here; who still uses it keeps it."""
        with self._lock:
            self._values.pop(key, None)
