"""A connection that is kept serves one request after the other, whatever was read of their bodies."""

from __future__ import annotations

import json
import re
import socket
from contextlib import closing
from http.client import HTTPConnection
from typing import Any

import pytest

from service.samples import train_tennis
from tests.running import Serve, read_answer

pytestmark = pytest.mark.system

JSON = {"Content-Type": "application/json"}
DAY = ["Sunny", "Hot", "High", "Weak"]


def test_requests_of_every_kind(serve: Serve) -> None:
    """Bodies that are read, large, unread, in chunks, absent: each request is answered, on the same connection."""
    server = serve()
    path = "/models/play-tennis/predict"
    one, many = (json.dumps({"data": {"rows": [DAY] * count}}).encode() for count in (1, 50_000))
    requests: list[tuple[str, str, Any, int]] = [
        ("POST", "/train", json.dumps(train_tennis()).encode(), 201),
        ("POST", path, one, 200), ("POST", path, many, 200), ("POST", "/nowhere", one, 404), ("POST", path, one, 200),
        ("GET", "/models", None, 200), ("POST", path, iter([one[:10], one[10:]]), 200), ("POST", path, b"", 400),
        ("POST", path, many, 200), ("POST", path, one[:-1], 400), ("DELETE", "/models/play-tennis", None, 204),
    ]  # fmt: skip
    with closing(HTTPConnection("127.0.0.1", server.client.port, timeout=30)) as connection:
        connection.connect()
        kept = connection.sock
        for method, to, body, status in requests:
            connection.request(method, to, body, JSON, encode_chunked=hasattr(body, "__next__"))
            assert read_answer(connection.getresponse()).status == status
            assert connection.sock is kept


def test_requests_in_one_packet(serve: Serve) -> None:
    """Requests that are sent without waiting for answers are all answered, in their order."""
    server = serve()
    assert server.client.post("/train", train_tennis()).status == 201
    days = [DAY, ["Overcast", "Hot", "High", "Weak"], ["Rain", "Mild", "High", "Strong"]]
    sent = b""
    for day in days:
        body = json.dumps({"data": {"rows": [day]}}).encode()
        head = f"POST /models/play-tennis/predict HTTP/1.1\r\nHost: x\r\nContent-Length: {len(body)}\r\n"
        sent += f"{head}Content-Type: application/json\r\n\r\n".encode() + body
    with closing(socket.create_connection(("127.0.0.1", server.client.port), timeout=30)) as connection:
        connection.sendall(sent)
        received = b""
        while received.count(b'"warnings":[]}') < len(days) and (came := connection.recv(65_536)):
            received += came
    assert re.findall(rb'"predictions":\["(\w+)"\]', received) == [b"No", b"Yes", b"No"]
