"""Logs are lines of JSON, each with the id of its request."""

from __future__ import annotations

import io
import json
import logging
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import pytest

from service.telemetry import REQUEST_ID, begin_request, configure_logging


@pytest.fixture
def logged() -> Iterator[io.StringIO]:
    """What is logged from INFO up; logging and request id are afterwards as before."""
    root = logging.getLogger()
    handlers, level, token = root.handlers[:], root.level, REQUEST_ID.set(None)
    stream = io.StringIO()
    configure_logging("INFO", stream)
    yield stream
    REQUEST_ID.reset(token)
    root.handlers[:] = handlers
    root.setLevel(level)
    logging.getLogger("alembic").setLevel(logging.NOTSET)


def entries(stream: io.StringIO) -> list[dict[str, Any]]:
    """The logged lines, read as JSON."""
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_entry(logged: io.StringIO) -> None:
    """A record has time, level, logger, message, request and what else it was given; a newline does not split it."""
    begin_request("abc-1")
    logging.getLogger("service.x").info("two\nlines of %s", "text", extra={"rows": 3, "time": "mine", "path": {1}})
    (entry,) = entries(logged)
    assert entry.pop("time").endswith("+00:00")
    assert entry == {
        "level": "INFO",
        "logger": "service.x",
        "message": "two\nlines of text",
        "request_id": "abc-1",
        "rows": 3,
        "path": "{1}",
    }


@pytest.mark.parametrize("odd", ["\ud800", 2**70, float("nan")])
def test_values_that_are_hard_to_write(logged: io.StringIO, odd: object) -> None:
    """Half a surrogate pair, a whole number past 64 bits and NaN do not lose the line."""
    logging.getLogger("service.x").info("odd", extra={"odd": odd})
    (entry,) = entries(logged)
    assert entry["odd"] == (None if odd != odd else odd)  # noqa: PLR0124 - NaN


def test_an_exception(logged: io.StringIO) -> None:
    """A logged exception brings its traceback along."""
    try:
        raise ValueError("broken")
    except ValueError:
        logging.getLogger("service.x").exception("failed")
    assert entries(logged)[0]["exception"].endswith("ValueError: broken")


def test_outside_a_request(logged: io.StringIO) -> None:
    """What is logged outside a request has no request id, and what is below the level is not logged."""
    logging.getLogger("service.x").debug("no")
    logging.getLogger("service.x").warning("yes")
    assert [(entry["message"], entry["request_id"]) for entry in entries(logged)] == [("yes", None)]


@pytest.mark.parametrize(("level", "messages"), [("INFO", ["warned"]), ("DEBUG", ["told", "warned"])])
def test_migrations_are_told_at_debug_level(logged: io.StringIO, level: str, messages: list[str]) -> None:
    """Alembic's account of every start is left out, its warnings are not, and DEBUG shows all of it."""
    stream = io.StringIO()
    configure_logging(level, stream)
    logging.getLogger("alembic.runtime.migration").info("told")
    logging.getLogger("alembic.runtime.migration").warning("warned")
    assert [entry["message"] for entry in entries(stream)] == messages


def test_configured_twice(logged: io.StringIO) -> None:
    """A second configuration replaces the first: nothing is logged twice."""
    again = io.StringIO()
    configure_logging("INFO", again)
    logging.getLogger("service.x").info("once")
    assert (len(entries(logged)), len(entries(again))) == (0, 1)


@pytest.mark.parametrize("offered", ["abc-1", "A.b_c:/+=", "x" * 128])
def test_an_offered_id_is_kept(logged: io.StringIO, offered: str) -> None:
    """A caller's harmless id is used as it is."""
    assert begin_request(offered) == REQUEST_ID.get() == offered


@pytest.mark.parametrize("offered", [None, "", "a b", "a\nb", "é", "x" * 129, "<script>"])
def test_any_other_id_is_replaced(logged: io.StringIO, offered: str | None) -> None:
    """Without an id, or with one that could do harm in a header or a log, a new one is made each time."""
    first, second = begin_request(offered), begin_request(offered)
    assert first != second
    assert offered not in (first, second)


def test_threads_have_their_own(logged: io.StringIO) -> None:
    """Requests in different threads do not see each other's ids."""
    begin_request("mine")
    with ThreadPoolExecutor(1) as pool:
        assert pool.submit(begin_request, "theirs").result() == "theirs"
    assert REQUEST_ID.get() == "mine"
