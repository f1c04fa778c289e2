"""The worker knows of a request whether its body has been read to the end."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import pytest
from gunicorn.http.body import Body, ChunkedReader, LengthReader
from gunicorn.http.unreader import IterUnreader

from service.gthread import is_read


def make_request(content: bytes, length: int) -> Any:  # noqa: ANN401 - stands for gunicorn's request
    """A request that tells the length of its body."""
    return SimpleNamespace(body=Body(LengthReader(IterUnreader([content]), length)))


def test_a_body_of_known_length() -> None:
    """Read to its end it is read, and so is an empty one; a byte before it is not, nor what a line left over."""
    assert is_read(make_request(b"", 0))
    one = make_request(b"ab\ncd", 5)
    assert not is_read(one)
    one.body.read(4)
    assert not is_read(one)
    one.body.read(1)
    assert is_read(one)
    lines = make_request(b"ab\ncd", 5)
    assert lines.body.readline() == b"ab\n"
    assert not is_read(lines)


@pytest.mark.parametrize("failed", [True, False])
def test_a_body_that_failed(failed: bool) -> None:
    """Where reading failed nobody knows where the next request begins."""
    one = make_request(b"ab", 2)
    one.body.read()
    one.body.failed = failed
    assert is_read(one) is not failed


def test_other_bodies() -> None:
    """Of chunks, and of requests of another kind, gunicorn sees to the rest."""
    chunks = SimpleNamespace(body=Body(ChunkedReader(SimpleNamespace(), IterUnreader([b"0\r\n\r\n"]))))
    chunks.body.read()
    assert not is_read(chunks)
    assert not is_read(SimpleNamespace(body=None))
    assert not is_read(None)
