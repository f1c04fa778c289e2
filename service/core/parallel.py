"""Work on several cores: numpy lets go of the interpreter while it computes."""

from __future__ import annotations

import os
import threading
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import cache
from itertools import pairwise
from typing import TypeVar

import numpy as np
from numpy.typing import NDArray

POOL = "treewright-core"
PARALLEL_CELLS = 100_000
"""Work on fewer cells is done before another thread has woken up."""
Task = TypeVar("Task")
Result = TypeVar("Result")


@cache
def _open_pool() -> ThreadPoolExecutor:
    return ThreadPoolExecutor(count_cores(), thread_name_prefix=POOL)


if hasattr(os, "register_at_fork"):
    # a pool's threads do not survive a fork: the child makes its own
    os.register_at_fork(after_in_child=_open_pool.cache_clear)


def count_cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def run_parallel(work: Callable[[Task], Result], tasks: Sequence[Task], *, worth: bool = True) -> list[Result]:
    """The results of the tasks, in their order; in this thread where there is one task or one core, or in a task.

    ``worth``: the tasks outweigh what it costs to wake another thread.
    """
    if not worth or len(tasks) < 2 or count_cores() == 1 or threading.current_thread().name.startswith(POOL):
        return [work(task) for task in tasks]
    return list(_open_pool().map(work, tasks))


def list_runs(cells: NDArray[np.int64], most: int) -> list[tuple[int, int]]:
    """Runs (first, last) of consecutive nodes of about ``most`` cells; a larger node is a run of its own."""
    if cells.sum() <= most:
        return [(0, len(cells))]
    edge = np.flatnonzero(np.diff((np.cumsum(cells) - cells) // most, prepend=-1)).tolist()
    return list(pairwise([*edge, len(cells)]))
