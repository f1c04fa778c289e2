"""Bodies over the limit, against a real server: a clean answer, and the connection stays usable."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest

from service.samples import train_tennis
from tests.running import Serve, read_answer

pytestmark = pytest.mark.system

CHUNK = b" " * 65_536
JSON = {"Content-Type": "application/json"}


def stream(size: int) -> Iterator[bytes]:
    """A body that http.client sends in chunks, since it cannot know the length."""
    return (CHUNK for _ in range(size // len(CHUNK)))


def test_a_body_over_the_limit(serve: Serve) -> None:
    """S9 (flask 2690, gunicorn 2474): 413 as a problem, and the next request on the same connection is answered."""
    server = serve(TREEWRIGHT_MAX_BODY_BYTES="100000")
    with closing(HTTPConnection("127.0.0.1", server.client.port, timeout=30)) as connection:
        for size, told in ((131_072, True), (131_072, False), (16_777_216, True), (16_777_216, False)):
            body: Any = b" " * size if told else stream(size)
            connection.request("POST", "/train", body, JSON, encode_chunked=not told)
            answer = read_answer(connection.getresponse())
            assert (answer.status, answer.headers["Content-Type"]) == (413, "application/problem+json")
            assert "100,000 bytes" in answer.body["detail"]
            kept = connection.sock
            connection.request("POST", "/train", json.dumps(train_tennis()), JSON)
            assert connection.sock is kept is not None, "the connection was left open"
            assert read_answer(connection.getresponse()).status == 201
