"""What a request freed serves the next one."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

FAULTS = """
import resource
from concurrent.futures import ThreadPoolExecutor
from service.memory import keep_freed_memory

def count_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    pieces = [b"x" * (3 << 20) for _ in range(10)]
    del pieces
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

def count_in_thread():
    with ThreadPoolExecutor(1) as pool:
        return pool.submit(count_faults).result()

{setting}
count_faults()
print(count_faults() + count_in_thread())
"""


VISITS = """
import gc, time
from service.memory import leave_out_of_collections

kept = [[] for _ in range(1_000_000)]
{setting}
began = time.thread_time_ns()
gc.collect()
print((time.thread_time_ns() - began) // 1000)
"""


def run(script: str, setting: str) -> int:
    """What a process of its own prints."""
    command = [sys.executable, "-c", script.format(setting=setting)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_freed_memory_is_taken_again() -> None:
    """Thirty mebibytes that were freed are taken again, by another thread too, without a fault for each page: 7,680."""
    assert run(FAULTS, "") > 1000
    assert run(FAULTS, "keep_freed_memory()") < 100


def test_what_stays_is_left_out_of_collections() -> None:
    """A million lists that were there before cost a collection at most a fifth of what they would."""
    assert run(VISITS, "leave_out_of_collections()") * 5 < run(VISITS, "")
