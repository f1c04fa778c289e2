"""What a request freed serves the next one."""

from __future__ import annotations

import platform
import subprocess
import sys

import pytest

SCRIPT = """
import resource
from service.memory import keep_freed_memory

def count_faults():
    before = resource.getrusage(resource.RUSAGE_SELF).ru_minflt
    pieces = [b"x" * (3 << 20) for _ in range(10)]
    del pieces
    return resource.getrusage(resource.RUSAGE_SELF).ru_minflt - before

{setting}
count_faults()
print(count_faults())
"""


def run(setting: str) -> int:
    """The faults of a process that takes 30 MiB for the second time."""
    command = [sys.executable, "-c", SCRIPT.format(setting=setting)]
    return int(subprocess.run(command, capture_output=True, text=True, check=True).stdout)


@pytest.mark.skipif(platform.libc_ver()[0] != "glibc", reason="only glibc has these settings")
def test_freed_memory_is_taken_again() -> None:
    """Thirty mebibytes that were freed are taken again without a fault for each page, of which there would be 7,680."""
    assert run("") > 1000
    assert run("keep_freed_memory()") < 100
