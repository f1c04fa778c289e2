"""Large bodies, read from the socket by one call into one piece of memory.

Gunicorn reads a body by the mebibyte into buffers of buffers and copies all of it several times over, which takes as
long as reading the numbers in it.
"""

from __future__ import annotations

import socket
from typing import Any

from gunicorn.http.body import Body, LengthReader
from gunicorn.http.unreader import SocketUnreader

LARGE = 1 << 16
"""Bytes from which on a body is read so."""


_ROOM = 1 << 20


def make_room(listener: socket.socket) -> None:
    """Let connections that come to a socket begin with room for a large body, where the kernel begins with 64 KiB.

    What finds no room waits with the sender, and is fetched by this process a piece at a time, which takes twice as
    long. Linux makes room for the least that a reader wants to be woken for (`tcp_set_rcvlowat`) and keeps it when that
    is taken back; unlike `SO_RCVBUF` this needs no right, and the kernel goes on to fit the room to the connection.
    """
    for least in (_ROOM, 1):
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_RCVLOWAT, least)


class LargeBody(Body):  # type: ignore[misc] # gunicorn has no types
    """Gunicorn's body of a known length, from an unencrypted socket, of which most is usually asked for at once."""

    def read(self, size: int | None = None) -> bytes:
        """The next bytes, so many unless the body ends before; all that are left without a size."""
        wanted = min(self.getsize(size), self.reader.length)
        if wanted < LARGE or self.buf.tell():
            rest: bytes = super().read(size)
            return rest
        parts = [self._take_read_ahead(wanted)]
        missing = wanted - len(parts[0])
        try:
            while missing and (part := self.reader.unreader.sock.recv(missing, socket.MSG_WAITALL)):
                parts.append(part)
                missing -= len(part)
        except Exception:
            self.failed = True
            raise
        self.reader.length -= wanted
        return b"".join(parts)

    def _take_read_ahead(self, wanted: int) -> bytes:
        """What came with the headers, at most so many bytes; there may be nothing, as long as more has to come."""
        unreader = self.reader.unreader
        ahead: bytes = unreader.read() if unreader.buf.tell() else b""
        if len(ahead) > wanted:
            unreader.unread(ahead[wanted:])
        return ahead[:wanted]


def read_in_one_go(req: Any) -> None:  # noqa: ANN401 - gunicorn's request
    """Give a request with a large body a `LargeBody`; whatever is in any way another kind stays as it is."""
    reader: Any = getattr(req.body, "reader", None)
    if type(req.body) is not Body or type(reader) is not LengthReader or reader.length < LARGE:
        return
    unreader = reader.unreader
    if type(unreader) is SocketUnreader and type(unreader.sock) is socket.socket:
        req.body = LargeBody(reader)
