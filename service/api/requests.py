"""Every request has an id, which its answer carries and its log line names."""

from __future__ import annotations

import logging
from time import perf_counter

from flask import Flask, Response, g, request

from service.telemetry import begin_request

log = logging.getLogger(__name__)
HEADER = "X-Request-Id"


def _begin() -> None:
    g.request_id = begin_request(request.headers.get(HEADER))
    g.began = perf_counter()


def _end(response: Response) -> Response:
    response.headers[HEADER] = g.request_id
    # A stream is not asked: that would wait for its end.
    if not response.is_streamed and response.calculate_content_length() == 0:
        response.headers.pop("Content-Type", None)  # Flask would call nothing at all an HTML page
    log_answer(request.method, request.path, response.status_code, g.began)
    return response


def log_answer(method: str, path: str, status: int, began: float) -> None:
    """Write the line of a request that began at that `perf_counter`."""
    facts = {"method": method, "path": path, "status": status, "seconds": round(perf_counter() - began, 4)}
    log.info("request answered", extra=facts)


def register(app: Flask) -> None:
    """Give every request of the app its id; register this first, so that refusals have one too."""
    app.before_request(_begin)
    app.after_request(_end)
