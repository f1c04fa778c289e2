"""JSON text to Python values, exactly: what does not parse is refused, and so is an object that repeats a key.

orjson keeps the last of two equal keys and says nothing. Every key of an object is followed by one colon outside of
strings, so a text repeats no key exactly when it has as many such colons as its value has keys. Three counts of
rising cost decide it; only a text that fails all three is read a second time, to name the key.
"""

from __future__ import annotations

import json
from itertools import chain
from typing import Any

import numpy as np
import orjson

from service.core.errors import Fault, InvalidData, pointer
from service.errors import MalformedBody
from service.readers.numbers import cut_numbers, put_numbers

_QUOTE, _COLON = ord('"'), ord(":")
_LARGE = 1 << 14  # bytes: below it there is nothing to gain
_CHUNK = 1 << 24  # bytes looked at together: bounds the memory that counting takes


def parse(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The value of a JSON text; in a large one, long arrays of numbers are `service.readers.numbers.Numbers`.

    Raises `MalformedBody` when the text is empty or not JSON (NaN, Infinity and numbers beyond float64 are not), and
    `InvalidData` when an object in it repeats a key.
    """
    if not text.strip():
        raise MalformedBody("The body is empty; send a JSON object.")
    if len(text) >= _LARGE and (parsed := _parse_large(text)) is not None:
        return parsed
    try:
        value = orjson.loads(text)
    except orjson.JSONDecodeError as error:
        raise MalformedBody(f"The body is not JSON: {error}.") from None
    if repeats_keys(text, value):
        raise InvalidData(_find_repeated(text))
    return value


def _parse_large(text: bytes) -> Any:  # noqa: ANN401 - any JSON value
    """The value, with `Numbers` for long arrays of them; None where its table has none, or anything is wrong."""
    rest, found = cut_numbers(text)
    if not found:
        return None
    try:
        value = orjson.loads(rest)
    except orjson.JSONDecodeError:
        return None
    return value if not repeats_keys(rest, value) and put_numbers(value, found) else None


def repeats_keys(text: bytes, value: object) -> bool:
    """Whether an object in ``text``, of which ``value`` was read, repeats a key."""
    colons = text.count(b":")
    if colons == _count_near_keys(value):
        return False
    keys = _count_keys(value)
    return colons != keys and _count_structural_colons(text) != keys


def _count_near_keys(value: object) -> int:
    """At most the number of keys in the value: objects in objects, and those in a list that starts with one."""
    total, level = 0, [value]
    while level:
        one = level.pop()
        if type(one) is dict:
            total += len(one)
            level.extend(one.values())
        elif type(one) is list and one and type(one[0]) is dict:
            total += sum(len(inner) for inner in one if type(inner) is dict)
    return total


def _count_keys(value: object) -> int:
    """The number of keys of all objects in the value, level by level: no recursion, no loop over single cells."""
    total, level = 0, [value]
    while level:
        kinds = set(map(type, level))
        objects = [one for one in level if type(one) is dict] if dict in kinds else []
        lists = [one for one in level if type(one) is list] if list in kinds else []
        total += sum(map(len, objects))
        level = list(chain(chain.from_iterable(each.values() for each in objects), chain.from_iterable(lists)))
    return total


def _count_structural_colons(text: bytes) -> int:
    """The number of colons outside of strings: those with an even number of quotes before them."""
    if b"\\" in text:  # valid JSON has backslashes in strings only; pairs first, so that an escaped quote is one
        text = text.replace(b"\\\\", b"__").replace(b'\\"', b"__")
    total, quotes_before = 0, 0
    data = np.frombuffer(text, np.uint8)
    for start in range(0, len(data), _CHUNK):
        chunk = data[start : start + _CHUNK]
        quotes = np.flatnonzero(chunk == _QUOTE)
        colons = np.flatnonzero(chunk == _COLON)
        inside = (np.searchsorted(quotes, colons) + quotes_before) % 2
        total += int(np.count_nonzero(inside == 0))
        quotes_before += len(quotes)
    return total


class _Repeating(dict[str, Any]):
    """An object of which the text repeats ``key``."""

    key: str


def _find_repeated(text: bytes) -> Fault:
    """The fault that names the first repeated key, with the place of its object. Slow, and only for a bad request."""
    try:
        value = json.loads(text, object_pairs_hook=_keep_repeated)
    except RecursionError:
        return Fault("", "An object repeats a key; name each key once.")
    stack: list[tuple[tuple[object, ...], object]] = [((), value)]
    while stack:
        path, one = stack.pop()
        if isinstance(one, _Repeating):
            return Fault(pointer(*path, one.key), f"The key {one.key!r} is repeated; name each key once.")
        inner = one.items() if isinstance(one, dict) else enumerate(one) if isinstance(one, list) else ()
        stack += reversed([((*path, key), item) for key, item in inner if isinstance(item, dict | list)])
    raise AssertionError("the counts said that a key is repeated")


def _keep_repeated(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found = dict(pairs)
    if len(found) == len(pairs):
        return found
    repeating, seen = _Repeating(found), set[str]()
    repeating.key = next(key for key, _ in pairs if key in seen or seen.add(key))  # type: ignore[func-returns-value]
    return repeating
