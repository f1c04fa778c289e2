"""Memory of a process that serves: what a request freed stays for the next, and what is there to stay is not looked at.

The C library of Linux returns memory to the system as soon as a little is free, and the next request gets it back page
by page, each by a fault and filled with zeros: thousands of pages for a large body, a fifth of the time of its answer.
"""

from __future__ import annotations

import ctypes
import gc
from contextlib import suppress

_TRIM_THRESHOLD, _MMAP_THRESHOLD, _ARENA_MAX = -1, -3, -8  # of glibc's malloc.h
_LARGEST = 1 << 25
"""Bytes, the most that glibc takes: arrays that are larger go back to the system when they are freed."""


def keep_freed_memory() -> None:
    """Set what glibc arrives at by itself once 32 MiB were freed in one piece; other C libraries stay as they are.

    All threads take from one store, so that what one freed serves another, and at most 64 MiB stay free at its end:
    threads that take turns for the interpreter seldom ask it at once.
    """
    with suppress(AttributeError):
        for option, size in ((_MMAP_THRESHOLD, _LARGEST), (_TRIM_THRESHOLD, 2 * _LARGEST), (_ARENA_MAX, 1)):
            ctypes.CDLL(None).mallopt(option, size)


def leave_out_of_collections() -> None:
    """Let the collector of cycles pass over all that there is: the modules, the application and its parts.

    Bodies of many rows are many lists, so that it looks at everything every ten requests, for a tenth of a second.
    """
    gc.collect()
    gc.freeze()
