"""Arrays in less room: their bytes in planes, each compressed where that pays.

Of numbers that differ the first bytes (sign, exponent) differ little, and the last ones are often 0, for few numbers
use all their digits; what lies between is noise. So the first bytes of all values are put together, then the second
ones, and so on (as Blosc's shuffle does), and zlib is told to look for runs and frequent bytes alone: there is nothing
else in a plane, and so it takes a quarter of the time.
"""

from __future__ import annotations

import zlib
from collections.abc import Mapping
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

LEAST_BYTES = 2**16
"""A smaller array is left as it is."""
LARGEST_SHARE = 0.8
"""What would take more of its room than this is left as it is."""
SAMPLED = 2**16
"""So many values in the middle tell which planes to try."""

Plane: TypeAlias = NDArray[np.uint8]
Packed: TypeAlias = NDArray[Any] | Mapping[str, Any]
"""An array; its ``planes`` with its ``dtype`` and ``shape``; or float64 that float32 holds, ``narrow`` and packed.

A plane as long as the array is as it was, and one of a single byte has this byte everywhere; all others are compressed.
"""


def pack_array(array: NDArray[Any]) -> Packed:
    """The array in planes where that takes a fifth less, else itself."""
    if array.nbytes < LEAST_BYTES:
        return array
    narrow = _narrow(array)
    if narrow is not None:
        return {"narrow": pack_array(narrow)}
    cells = np.ascontiguousarray(array).reshape(-1, 1).view(np.uint8)
    begin = max(0, (len(cells) - SAMPLED) // 2)
    sample = cells[begin : begin + SAMPLED]
    share = [len(_squeeze(plane)) / len(plane) for plane in sample.T]
    if sum(min(each, 1.0) for each in share) > LARGEST_SHARE * len(share):
        return array
    planes = [np.ascontiguousarray(plane) for plane in cells.T]
    planes = [_squeeze(plane) if each < LARGEST_SHARE else plane for plane, each in zip(planes, share, strict=True)]
    if sum(map(len, planes)) > LARGEST_SHARE * array.nbytes:
        return array
    return {"planes": planes, "dtype": array.dtype.str, "shape": array.shape}


def unpack_array(packed: Packed, *, widen: bool = True) -> NDArray[Any]:
    """The array that was packed; unless ``widen`` is True what is narrow stays so."""
    if not isinstance(packed, Mapping):
        return np.asarray(packed)
    if "narrow" in packed:
        narrow = unpack_array(packed["narrow"])
        return narrow.astype(np.float64) if widen else narrow
    shape, dtype = tuple(packed["shape"]), np.dtype(packed["dtype"])
    cells = np.empty((int(np.prod(shape)), dtype.itemsize), np.uint8)
    for number, plane in enumerate(packed["planes"]):
        is_plain = len(plane) in (1, len(cells))
        cells[:, number] = plane if is_plain else np.frombuffer(zlib.decompress(plane), np.uint8)
    return cells.view(dtype).reshape(shape)


def _narrow(array: NDArray[Any]) -> NDArray[np.float32] | None:
    """The array as float32 where that loses no bit."""
    is_long = len(array) > SAMPLED
    if array.dtype != np.float64 or (is_long and _narrow(array[:SAMPLED]) is None):
        return None
    with np.errstate(over="ignore", invalid="ignore"):
        narrow = array.astype(np.float32)
    same = np.array_equal(narrow.astype(np.float64).view(np.int64), array.view(np.int64))
    return narrow if same else None


def _squeeze(plane: Plane) -> Plane:
    """The plane compressed, or as it is where that is no shorter; of equal bytes one."""
    if (plane == plane[0]).all():
        return plane[:1]
    packer = zlib.compressobj(1, strategy=zlib.Z_RLE)
    data = packer.compress(np.ascontiguousarray(plane).data) + packer.flush()
    return np.frombuffer(data, np.uint8) if len(data) < len(plane) else plane
