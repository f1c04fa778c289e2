"""The bytes of a request's body, never more than the limit, and never cut off at it."""

from __future__ import annotations

import hashlib
from contextlib import suppress
from time import monotonic

from flask import Request, g
from werkzeug.exceptions import ClientDisconnected

from service.errors import BodyTooLarge

KEY_HEADER = "Idempotency-Key"
_STEP = 1 << 20
_LINGER_SECONDS = 30.0


def read_body(req: Request) -> bytes:
    """The whole body; raises `BodyTooLarge` when it is over the limit, whether its length is told or not.

    Of a request that may be repeated, ``flask.g.body_sha256`` then has the hash of its body.
    """
    body = _read(req)
    if KEY_HEADER in req.headers:
        g.body_sha256 = hashlib.sha256(body).hexdigest()
    return body


def _read(req: Request) -> bytes:
    """The body as it comes.

    Werkzeug's own reader ends a body of untold length at the limit as if it were whole: that could pass half a table
    for a whole one.
    """
    limit = req.max_content_length
    if req.content_length is not None or limit is None:
        if limit is not None and (req.content_length or 0) > limit:
            raise _refuse(req, limit)
        return req.get_data(cache=False) if req.content_length is None else _read_told(req, req.content_length)
    if not req.environ.get("wsgi.input_terminated"):
        return b""  # nothing says where a body would end, so there is none
    parts, size = list[bytes](), 0
    while part := req.environ["wsgi.input"].read(min(_STEP, limit + 1 - size)):
        parts.append(part)
        size += len(part)
        if size > limit:
            raise _refuse(req, limit)
    return b"".join(parts)


def _read_told(req: Request, length: int) -> bytes:
    """A body of known length by one call: Werkzeug reads by 64 KiB, and gunicorn copies all that waits each time."""
    body: bytes = req.environ["wsgi.input"].read(length)
    if len(body) < length:
        raise ClientDisconnected
    return body


def _refuse(req: Request, limit: int) -> BodyTooLarge:
    """The error, after reading the rest for a while: to close a connection on unread bytes may lose the answer."""
    stream, rest = req.environ["wsgi.input"], req.content_length
    deadline = monotonic() + _LINGER_SECONDS
    with suppress(OSError):  # the caller has gone
        while monotonic() < deadline and rest != 0:
            part = stream.read(_STEP if rest is None else min(_STEP, rest))
            if not part:
                break
            rest = None if rest is None else rest - len(part)
    return BodyTooLarge(f"The body is larger than {limit:,} bytes, the limit here (TREEWRIGHT_MAX_BODY_BYTES).")
