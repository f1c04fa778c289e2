"""Arrays are packed where that takes a fifth less room, and unpacked they are what they were, to the last bit."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from numpy.typing import NDArray

from service.store.planes import LEAST_BYTES, Packed, pack_array, unpack_array

ROWS = 100_000
RANDOM = np.random.default_rng(4)
MIDDLE = RANDOM.integers(0, 256, 8 * ROWS).astype(np.uint8)
MIDDLE[4 * ROWS - 2**15 : 4 * ROWS + 2**15] = 0
ARRAYS: dict[str, tuple[NDArray[Any], float]] = {
    "float32 as float64": (RANDOM.standard_normal(ROWS, dtype=np.float32).astype(float), 0.5),
    "all digits": (RANDOM.standard_normal(ROWS), 1.0),
    "two decimals": (np.exp(RANDOM.normal(8, 1.2, ROWS)).round(2), 0.75),
    "times": (np.cumsum(RANDOM.integers(0, 5_000, ROWS)), 0.4),
    "codes": (RANDOM.integers(0, 10, ROWS).astype(np.uint8), 0.5),
    "many codes": (RANDOM.integers(0, 1_000, ROWS).astype(np.uint16), 0.7),
    "noise": (RANDOM.integers(0, 256, ROWS).astype(np.uint8), 1.0),
    "classes": (RANDOM.integers(0, 2, ROWS).astype(np.int32), 0.06),
    "gaps": (RANDOM.random(ROWS) < 0.1, 0.15),
    "several": (RANDOM.standard_normal((ROWS, 2), dtype=np.float32).astype(float), 0.5),
    "by column": (np.asfortranarray(RANDOM.integers(0, 9, (ROWS, 3))), 0.1),
    "halves": (RANDOM.integers(0, 2_000, ROWS) / 2, 0.3),
    "odd numbers": (np.where(np.arange(ROWS) % 3, np.nan, -0.0), 0.2),
    "too large for float32": (np.where(np.arange(ROWS) % 70_000, 1.0, 1e300), 0.1),
    "one of all digits": (np.where(np.arange(ROWS) == 80_000, 0.1, RANDOM.random(ROWS, np.float32).astype(float)), 0.7),
    "smooth, then noise": (np.concatenate([np.zeros(ROWS), RANDOM.standard_normal(ROWS)]), 0.6),
    "noise but for the middle": (MIDDLE, 1.0),
}


def count_bytes(packed: Packed) -> int:
    """How much room it takes."""
    if isinstance(packed, np.ndarray):
        return packed.nbytes
    return count_bytes(packed["narrow"]) if "narrow" in packed else sum(plane.nbytes for plane in packed["planes"])


@pytest.mark.parametrize("bits", [0x7FF0000000000001, 0x7FF8000000000000, 0x7FF8000000000001, 0xFFF8000020000000])
def test_what_is_no_number_keeps_its_bits(bits: int) -> None:
    """Numbers that are not are told apart by their bits, whether these fit the shorter form or not."""
    array = np.full(LEAST_BYTES, bits, np.uint64).view(np.float64)
    assert unpack_array(pack_array(array)).tobytes() == array.tobytes()


@pytest.mark.parametrize("name", ARRAYS)
def test_round_trip(name: str) -> None:
    """The array is back, with its type and shape, and took at most so large a share of its room."""
    array, share = ARRAYS[name]
    packed = pack_array(array)
    assert count_bytes(packed) <= share * array.nbytes
    assert (packed is array) == (share == 1)
    again = unpack_array(packed)
    assert (again.dtype, again.shape) == (array.dtype, array.shape)
    assert np.ascontiguousarray(again).tobytes() == np.ascontiguousarray(array).tobytes()


@settings(max_examples=30, deadline=None)
@given(
    seed=st.integers(0, 2**16),
    rows=st.integers(0, 40_000),
    dtype=st.sampled_from(["u1", "u2", "i4", "i8", "f8", "?"]),
    span=st.sampled_from([1, 2, 100, 2**15]),
)
def test_any_array(seed: int, rows: int, dtype: str, span: int) -> None:
    """Whatever the length and the type: what is unpacked is what was packed, and small arrays are left alone."""
    array = np.random.default_rng(seed).integers(0, span, rows).astype(dtype)
    packed = pack_array(array)
    assert (packed is array) or array.nbytes >= LEAST_BYTES
    assert unpack_array(packed).tobytes() == array.tobytes()
