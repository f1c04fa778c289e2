"""The arrays of a joblib file as pages of it, by one map for all of them.

joblib maps each array by itself, and every map keeps a file descriptor: a model of many columns, or many small models,
would use up what a process may open.
"""

from __future__ import annotations

import io
import mmap
import resource
from pathlib import Path
from typing import Any

import joblib
import numpy as np

SMALL_BYTES = 2**17
"""A file of less is read instead, which takes no descriptor at all."""
DESCRIPTORS = 65_536
"""Enough for a moment's maps of some models with thousands of columns."""


def read_pages(path: Path) -> bytes | mmap.mmap:
    """A small file's content, or a map of a large one."""
    with path.open("rb") as file:
        if path.stat().st_size < SMALL_BYTES:
            return file.read()
        return mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)


def load_mapped(path: Path, pages: bytes | mmap.mmap) -> dict[str, Any]:
    """Unpickle a file of these ``pages``; arrays are read-only, and those of a large one are the pages themselves.

    Raises FileNotFoundError where there is no file any more, and anything for what is no pickle.
    """
    if isinstance(pages, bytes):
        content: dict[str, Any] = _replace_arrays(joblib.load(io.BytesIO(pages)), None)
        return content
    mapped: dict[str, Any] = _replace_arrays(joblib.load(path, mmap_mode="r"), pages)
    return mapped


def release_pages(content: Any) -> None:  # noqa: ANN401 - as `load_mapped` has it
    """Give pages back that were read to be unpacked; the system still has them at hand for whoever reads on."""
    if isinstance(content, dict | list):
        for part in content.values() if isinstance(content, dict) else content:
            release_pages(part)
        return
    while isinstance(content, np.ndarray):
        content = content.base
    if isinstance(content, mmap.mmap):
        content.madvise(mmap.MADV_DONTNEED)


def raise_descriptor_limit() -> None:
    """Let this process and its children open more files, where that is theirs to decide: joblib maps each array."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    most = DESCRIPTORS if hard == resource.RLIM_INFINITY else min(hard, DESCRIPTORS)
    if soft != resource.RLIM_INFINITY and soft < most:
        resource.setrlimit(resource.RLIMIT_NOFILE, (most, hard))


def _replace_arrays(content: Any, pages: mmap.mmap | None) -> Any:  # noqa: ANN401 - whatever was stored
    """The same dicts and lists; arrays that joblib mapped are in ``pages`` now, others cannot be written to."""
    if isinstance(content, dict):
        return {key: _replace_arrays(value, pages) for key, value in content.items()}
    if isinstance(content, list):
        return [_replace_arrays(value, pages) for value in content]
    if isinstance(content, np.memmap):
        order = "C" if content.flags.c_contiguous else "F"
        return np.ndarray(content.shape, content.dtype, buffer=pages, offset=content.offset, order=order)  # type: ignore[arg-type]
    if isinstance(content, np.ndarray):
        content.flags.writeable = False
    return content
