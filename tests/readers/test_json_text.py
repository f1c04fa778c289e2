"""JSON text: what is refused, and that a repeated key is always found."""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from service.core.errors import InvalidData
from service.errors import MalformedBody
from service.readers.json_text import parse, repeats_keys

TEXTS = st.text(st.sampled_from('a:{"\\},[\n é'), max_size=6)  # what a careless count of colons trips over
SCALARS = st.none() | st.booleans() | st.integers(-(2**53), 2**53) | TEXTS
VALUES = st.recursive(SCALARS, lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4))
OBJECTS = st.dictionaries(TEXTS, VALUES, max_size=4)


@given(VALUES, st.booleans())
def test_unique_keys_pass(value: object, ascii_only: bool) -> None:
    """A text whose keys are unique is read as it was written, whatever its strings contain."""
    text = json.dumps(value, ensure_ascii=ascii_only).encode()
    assert parse(text) == value


@given(OBJECTS, VALUES, VALUES, TEXTS, VALUES)
def test_repeated_key_is_found(
    rest: dict[str, object], first: object, second: object, key: str, around: object
) -> None:
    """However deep an object that repeats a key lies, and whatever stands around it, the key is found and named."""
    entries = [(key, first), *((name, value) for name, value in rest.items() if name != key), (key, second)]
    text = "{" + ", ".join(f"{json.dumps(name)}: {json.dumps(value)}" for name, value in entries) + "}"
    text = f'[{json.dumps(around)}, {{"inner": [[{text}]]}}, {json.dumps(around)}]'
    with pytest.raises(InvalidData) as caught:
        parse(text.encode())
    assert repr(key) in caught.value.faults[0].message


@pytest.mark.parametrize(
    ("text", "place", "key"),
    [
        ('{"data": {"columns": {"age": [1], "age": [2]}}}', "/data/columns/age", "age"),
        ('{"data": {"records": [{"a": 1}, {"b": "x:y", "b": 2}]}}', "/data/records/1/b", "b"),
        ('{"target": "a", "data": {}, "target": "b"}', "/target", "target"),
        (r'{"a\"b": 1, "c:d": "\\", "a\"b": 2}', '/a"b', 'a"b'),
        ('{"a/b": 1, "a/b": 2}', "/a~1b", "a/b"),
        ('{"a": {"x": 1, "x": 2}, "a": 3}', "/a", "a"),
        (r'{"\u0061": 1, "a": 2}', "/a", "a"),
    ],
)
def test_repeated_key_is_placed(text: str, place: str, key: str) -> None:
    """The fault points at the repeated key and says its name."""
    with pytest.raises(InvalidData) as caught:
        parse(text.encode())
    (fault,) = caught.value.faults
    assert (fault.place, repr(key) in fault.message) == (place, True)


def test_deep_repetition_is_refused() -> None:
    """A repeated key below a thousand lists, more than some Pythons' own reader can enter, is refused all the same."""
    with pytest.raises(InvalidData, match="name each key once"):
        parse(b"[" * 1000 + b'{"a": 1, "a": 2}' + b"]" * 1000)


NOT_JSON = [b"", b"  \n", b"{", b"{'a': 1}", b'{"a": NaN}', b"[Infinity]", b"[-Infinity]", b"[1e999]", b'{"a": 1,}',
            b"\xff", b'"\xe9"', b'{"a": 1} x', b"[" * 5000]  # fmt: skip


@pytest.mark.parametrize("text", NOT_JSON)
def test_malformed(text: bytes) -> None:
    """What is not JSON is refused: nothing, scraps, NaN and infinities, other encodings, bottomless nesting."""
    with pytest.raises(MalformedBody):
        parse(text)


def test_chunks_carry_quotes(monkeypatch: pytest.MonkeyPatch) -> None:
    """A string that spans the chunks of the count hides its colons in all of them."""
    monkeypatch.setattr("service.readers.json_text._CHUNK", 3)
    text = b'{"a": "::::::::", "b": {"c": ":"}}'
    assert not repeats_keys(text, json.loads(text))
    text = b'{"a": "::::::::", "b": {"c": ":"}, "b": 1}'
    assert repeats_keys(text, json.loads(text))
