"""JSON answers: numpy as it is, and nothing that JSON cannot say."""

from __future__ import annotations

import json
from datetime import UTC, datetime
from typing import NoReturn

import numpy as np
import pytest

from service.api.json import answer, encode
from service.prediction import Picked


class Mapped(np.ndarray):  # type: ignore[type-arg] # any array
    """Stands for `np.memmap`, which needs a file."""


def refuse(text: str) -> NoReturn:
    """Fail on NaN and the infinities, which `json.loads` would take."""
    raise AssertionError(text)


@pytest.mark.parametrize(
    ("value", "expected"),
    [
        (np.array([1.5, np.nan, np.inf, -np.inf]), [1.5, None, None, None]),
        (np.array([[1, 2], [3, 4]]).T, [[1, 3], [2, 4]]),
        (np.arange(6)[::2], [0, 2, 4]),
        (np.arange(3).view(Mapped), [0, 1, 2]),
        (np.array([0.5, np.nan]).view(Mapped), [0.5, None]),
        (np.array(3), 3),
        (np.array([2**63 - 1, -(2**63)]), [2**63 - 1, -(2**63)]),
        (np.array(["a", 1, None, True], dtype=object), ["a", 1, None, True]),
        (np.array(["a", "b"]), ["a", "b"]),
        (np.array([True, False]), [True, False]),
        ([np.float64("nan"), np.int64(3), np.bool_(True), np.str_("a")], [None, 3, True, "a"]),
        ({"deep": [float("nan"), float("inf")]}, {"deep": [None, None]}),
        (2**53 + 1, 2**53 + 1),
        (datetime(2026, 1, 2, 3, 4, 5, tzinfo=UTC), "2026-01-02T03:04:05Z"),
    ],
)
def test_encoding(value: object, expected: object) -> None:
    """Arrays of any layout and type come out as lists, exact, with null for what is not a number."""
    assert json.loads(encode(value), parse_constant=refuse) == expected


@pytest.mark.parametrize("shape", [(5,), (5, 1), (5, 3), (5, 2, 2), (5, 0)])
@pytest.mark.parametrize("rows", [0, 1, 4, 40])
def test_picked_items(shape: tuple[int, ...], rows: int) -> None:
    """Items that are picked by their places are written, to the byte, as if they had been copied, NaN included."""
    generator = np.random.default_rng(rows)
    items = generator.normal(size=shape)
    items.flat[1:3] = np.nan, 1e300
    which = generator.integers(0, 4, rows)
    assert encode({"a": Picked(items, which)}) == encode({"a": items[which]})


def test_strangers_are_refused() -> None:
    """An object that has no JSON form is an error here, not a surprise for the caller."""
    with pytest.raises(TypeError, match="not JSON serializable"):
        encode({"a": object()})


def test_answer() -> None:
    """An answer is JSON with the status and headers that were asked for."""
    response = answer({"a": 1}, 201, {"Location": "/there"})
    assert (response.status_code, response.mimetype, response.headers["Location"]) == (
        201,
        "application/json",
        "/there",
    )
    assert response.get_data() == b'{"a":1}'
