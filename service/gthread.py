"""Gunicorn's threaded worker, without system calls that nobody needs: in each of them threads change turns."""

from __future__ import annotations

from typing import Any

from gunicorn.http.body import Body, LengthReader
from gunicorn.workers.gthread import ThreadWorker


class Worker(ThreadWorker):  # type: ignore[misc] # gunicorn has no types
    """Does not look for the rest of a body that has been read to its end, for which gunicorn sets two timeouts."""

    def _keepalive_after(self, conn: Any, keepalive: bool) -> bool:  # noqa: ANN401 - gunicorn's connection
        """Whether the connection can be used again; gunicorn's parser drains a request only while it has it."""
        if keepalive and is_read(conn.parser.mesg):
            conn.parser.mesg = None
            return True
        return bool(super()._keepalive_after(conn, keepalive))


def is_read(req: Any) -> bool:  # noqa: ANN401 - gunicorn's request
    """Whether nothing is left of a request's body, which is surely so only where its length was known."""
    body = getattr(req, "body", None)
    return (
        isinstance(body, Body)
        and type(body.reader) is LengthReader
        and body.reader.length == 0
        and not body.buf.tell()
        and not getattr(body, "failed", True)
    )
