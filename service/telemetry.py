"""Request ids and structured logs: each record is one line of JSON on standard error, with the id of its request.

``service/app.py`` calls `configure_logging` once and `begin_request` before each request; every log record made while
that request is handled then carries its id, whichever library logs it.
"""

from __future__ import annotations

import json
import logging
import random
import re
import sys
from contextvars import ContextVar
from datetime import UTC, datetime
from typing import TextIO

import orjson

REQUEST_ID: ContextVar[str | None] = ContextVar("request_id", default=None)
ACTOR: ContextVar[str | None] = ContextVar("actor", default=None)
"""The id of the key under which the request came; None while there are no keys."""

# What a caller may choose as an id: it comes back in a header and goes into logs.
ACCEPTABLE = re.compile(r"[A-Za-z0-9._:/+=-]{1,128}")

# What every record has, and the rest of it: what a caller passed as ``extra``.
_STANDARD = frozenset(vars(logging.makeLogRecord({}))) | {"message", "asctime", "taskName", "request_id"}

# Libraries whose INFO is of no use to who runs the service; DEBUG shows it.
_TALKATIVE = ("alembic",)

_ENCODER = json.JSONEncoder(default=str)
_AS_TEXT = orjson.OPT_PASSTHROUGH_DATACLASS | orjson.OPT_PASSTHROUGH_DATETIME | orjson.OPT_PASSTHROUGH_SUBCLASS


def begin_request(offered: str | None) -> str:
    """Set the id of the request that this thread now handles, and return it.

    The caller's ``X-Request-Id`` is kept when it is short and harmless; otherwise, and when there is none, it is new.
    """
    # ids have to differ, not to be secret: this makes no system call, in which threads would change turns
    new = f"{random.getrandbits(128):032x}"
    chosen = offered if offered and ACCEPTABLE.fullmatch(offered) else new
    REQUEST_ID.set(chosen)
    return chosen


class RequestIdFilter(logging.Filter):
    """Gives each record the ``request_id`` under which it was made (None outside a request)."""

    def filter(self, record: logging.LogRecord) -> bool:
        """Mark the record; always let it pass."""
        record.request_id = REQUEST_ID.get()
        return True


class JsonFormatter(logging.Formatter):
    """A record as one line of JSON: time, level, logger, message, request_id, what ``extra`` gave, exception."""

    def format(self, record: logging.LogRecord) -> str:
        """The line, without its end; values that JSON does not know are written as text."""
        entry: dict[str, object] = {
            "time": datetime.fromtimestamp(record.created, UTC).isoformat(timespec="milliseconds"),
            "level": record.levelname,
            "logger": record.name,
            "message": record.getMessage(),
            "request_id": getattr(record, "request_id", None),
        }
        entry |= {key: value for key, value in vars(record).items() if key not in _STANDARD and key not in entry}
        if record.exc_info:
            entry["exception"] = self.formatException(record.exc_info)
        try:
            return orjson.dumps(entry, default=str, option=_AS_TEXT).decode()
        except TypeError:  # half a surrogate pair, or a whole number of more than 64 bits
            return _ENCODER.encode(entry)


def configure_logging(level: str, stream: TextIO | None = None) -> None:
    """Send everything from ``level`` up to ``stream`` (standard error) as JSON; a second call replaces the first.

    Records no longer look up who logged them, nor in which thread: the lines do not say it, and it is most of what one
    costs (the logging HOWTO has this under "Optimization").
    """
    logging._srcfile = None
    logging.logThreads = logging.logMultiprocessing = False
    handler = logging.StreamHandler(sys.stderr if stream is None else stream)
    handler.addFilter(RequestIdFilter())
    handler.setFormatter(JsonFormatter())
    root = logging.getLogger()
    ours = [old for old in root.handlers if isinstance(old.formatter, JsonFormatter)]
    for old in ours:
        root.removeHandler(old)
    root.addHandler(handler)
    root.setLevel(level)
    for name in _TALKATIVE:
        logging.getLogger(name).setLevel(logging.NOTSET if level == "DEBUG" else logging.WARNING)
