"""Bodies that are read from the socket in one go are what gunicorn's own reading gives."""

from __future__ import annotations

import select
import socket
import threading
from collections.abc import Iterator
from contextlib import suppress
from types import SimpleNamespace

import pytest
from gunicorn.http.body import Body, LengthReader
from gunicorn.http.unreader import SocketUnreader

from service.large_body import LARGE, LargeBody, make_room, read_in_one_go

SIZE = 3 * LARGE + 17
CONTENT = bytes(index * index % 251 for index in range(SIZE))
NEXT = b"POST /next"


class Connection:
    """A connection on which a body waits, of which ``ahead`` bytes came with the headers."""

    def __init__(self, sent: bytes, ahead: int) -> None:
        self.ours, self.theirs = socket.socketpair()
        self.unreader = SocketUnreader(self.ours)
        self.unreader.unread(sent[:ahead])
        self._sender = threading.Thread(target=self._send, args=(sent[ahead:],))
        self._sender.start()

    def _send(self, rest: bytes) -> None:
        with suppress(OSError):  # not all tests read to the end
            for begin in range(0, len(rest), 50_000):
                self.theirs.sendall(rest[begin : begin + 50_000])
            self.theirs.shutdown(socket.SHUT_WR)

    def open(self, length: int) -> Body:
        """The body of a request that says it has so many bytes, as the server makes it."""
        request = SimpleNamespace(body=Body(LengthReader(self.unreader, length)))
        read_in_one_go(request)
        return request.body

    def close(self) -> None:
        """Close both ends."""
        self.ours.close()
        self._sender.join()
        self.theirs.close()


@pytest.fixture(params=[0, 1, 8000, SIZE, SIZE + 4])
def connection(request: pytest.FixtureRequest) -> Iterator[Connection]:
    """A body that is followed by another request; more or less of it came with the headers."""
    one = Connection(CONTENT + NEXT, request.param)
    yield one
    one.close()


@pytest.mark.parametrize(
    "sizes", [(SIZE,), (None,), (-1,), (SIZE + 5,), (10, SIZE), (LARGE, LARGE, 5, SIZE), (0, SIZE)]
)
def test_content(connection: Connection, sizes: tuple[int | None, ...]) -> None:
    """However it is asked for, all of it comes, and what follows stays for the next request."""
    body = connection.open(SIZE)
    assert type(body) is LargeBody
    assert b"".join(body.read(size) for size in sizes) == CONTENT
    assert body.read() == b""
    assert connection.unreader.read(len(NEXT)) == NEXT


def test_lines(connection: Connection) -> None:
    """By lines, which gunicorn reads itself, and then the rest."""
    body = connection.open(SIZE)
    line = body.readline(100)
    assert line + body.read() == CONTENT


def test_a_body_that_breaks_off() -> None:
    """A caller who goes away before the end leaves what came, so that whoever asked for more knows."""
    connection = Connection(CONTENT[:-10], 5)
    assert connection.open(SIZE).read(SIZE) == CONTENT[:-10]
    connection.close()


def test_a_connection_that_fails() -> None:
    """A failure of the connection is told, and gunicorn learns that no request can follow."""
    connection = Connection(b"", 0)
    connection.close()
    body = connection.open(SIZE)
    with pytest.raises(OSError, match="descriptor"):
        body.read(SIZE)
    assert body.failed


@pytest.mark.parametrize("length", [0, LARGE - 1])
def test_small_bodies(length: int) -> None:
    """Small ones are left to gunicorn, and so is whatever has no known length."""
    connection = Connection(b"", 0)
    assert type(connection.open(length)) is Body
    other = SimpleNamespace(body=SimpleNamespace())
    read_in_one_go(other)
    assert type(other.body) is SimpleNamespace
    connection.close()


def test_room_for_a_large_body() -> None:
    """A connection begins with room for a mebibyte, not for 128 KiB, and a single byte still wakes its reader."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        make_room(listener)
        with socket.create_connection(listener.getsockname()) as theirs, listener.accept()[0] as ours:
            assert ours.getsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF) >= 1 << 20
            theirs.sendall(b"x")
            assert select.select([ours], [], [], 10)[0] == [ours]
