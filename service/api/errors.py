"""Errors over HTTP: one table gives each its status and title, one function writes the problem (RFC 9457).

Answers never show a stack trace, a path of ours or another model's data; an unexpected error is logged with the id of
its request and answered by a sentence that gives away nothing.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from http import HTTPStatus

from flask import Flask, Response
from marshmallow import Schema, fields
from werkzeug.exceptions import HTTPException

from service.api.json import encode
from service.core.errors import CoreError, Fault, InvalidData, InvalidParameters, UnsuitableTask
from service.errors import (
    BodyTooLarge,
    Conflict,
    DamagedModel,
    InvalidRequest,
    MalformedBody,
    NotAcceptable,
    NotFound,
    NotRetained,
    PreconditionFailed,
    QueueFull,
    ServiceError,
    StorageFull,
    UnsupportedMedia,
    WorkerLost,
)

MEDIA_TYPE = "application/problem+json"

PROBLEMS: dict[type[Exception], tuple[int, str]] = {
    MalformedBody: (400, "The body cannot be parsed"),
    NotFound: (404, "Not found"),
    NotAcceptable: (406, "This format cannot be written here"),
    PreconditionFailed: (412, "It has changed"),
    Conflict: (409, "Conflict"),
    NotRetained: (409, "The model did not keep what this needs"),
    BodyTooLarge: (413, "The body is too large"),
    UnsupportedMedia: (415, "The media type is not supported"),
    InvalidRequest: (422, "The request is not valid"),
    InvalidData: (422, "The data are not valid"),
    InvalidParameters: (422, "The parameters are not valid"),
    UnsuitableTask: (422, "The target does not suit the task"),
    QueueFull: (429, "Too many jobs"),
    WorkerLost: (500, "The worker was lost"),
    DamagedModel: (503, "The model's file is damaged"),
    StorageFull: (507, "The storage is full"),
}
"""Every error that a request can meet, nearest class first looked up, then its bases."""

_DETAILS = {
    404: "There is no resource at this path.",
    405: "This resource does not answer that method; the Allow header lists those it does.",
    500: "The service failed to answer. Its log has the cause, under the id in the X-Request-Id header.",
}
_RETRY_AFTER = "30"  # seconds, with every 429 and 503


class FaultSchema(Schema):
    """One thing that is wrong."""

    place = fields.String(
        required=True,
        metadata={
            "description": "A JSON pointer into the body, or `?name` for a query argument",
            "example": "/data/columns/age/17",
        },
    )
    message = fields.String(required=True, metadata={"description": "What is wrong there, and what would be right"})


class ProblemSchema(Schema):
    """What went wrong (RFC 9457)."""

    type = fields.String(
        required=True,
        metadata={
            "description": "A URN per kind of problem, or `about:blank` when the status says all",
            "example": "urn:treewright:invalid-data",
        },
    )
    title = fields.String(required=True, metadata={"description": "The same for every problem of this type"})
    status = fields.Integer(required=True)
    detail = fields.String(required=True, metadata={"description": "What happened this time"})
    errors = fields.List(fields.Nested(FaultSchema), metadata={"description": "Each fault with its place"})


def describe_problem(
    kind: str, title: str, status: int, detail: str, faults: Sequence[Fault] = ()
) -> dict[str, object]:
    """A problem as JSON says it, see `ProblemSchema`."""
    body: dict[str, object] = {"type": kind, "title": title, "status": status, "detail": detail}
    if faults:
        body["errors"] = [{"place": fault.place, "message": fault.message} for fault in faults]
    return body


def recall_problem(kind: str, message: str, faults: Sequence[Fault]) -> dict[str, object]:
    """The problem of an error of which its class's name was kept, as if it had just been raised."""
    known = {error.__name__: error for error in PROBLEMS}
    if kind not in known:
        return describe_problem("about:blank", HTTPStatus(500).phrase, 500, _DETAILS[500].partition(",")[0] + ".")
    status, title = PROBLEMS[known[kind]]
    error = CoreError(faults) if issubclass(known[kind], CoreError) else ServiceError(message, faults)
    return describe_problem(_urn(known[kind]), title, status, _summarize(error), faults)


def problem(kind: str, title: str, status: int, detail: str, faults: Sequence[Fault] = ()) -> Response:
    """The response that describes a problem."""
    body = describe_problem(kind, title, status, detail, faults)
    response = Response(encode(body), status, content_type=MEDIA_TYPE)
    if status in {HTTPStatus.SERVICE_UNAVAILABLE, HTTPStatus.TOO_MANY_REQUESTS}:
        response.headers["Retry-After"] = _RETRY_AFTER
    return response


def answer_error(error: CoreError | ServiceError) -> Response:
    """The problem of one of our own errors; raises it again when the table does not have it."""
    kind = next((kind for kind in type(error).__mro__ if kind in PROBLEMS), None)
    if kind is None:
        raise error
    status, title = PROBLEMS[kind]
    return problem(_urn(kind), title, status, _summarize(error), error.faults)


def answer_http_error(error: HTTPException) -> Response:
    """The problem of an error that Flask or Werkzeug raised; unexpected exceptions arrive as their status 500."""
    phrase = HTTPStatus(error.code or 500)
    detail = _DETAILS.get(phrase.value) or error.description or phrase.description
    response = problem("about:blank", phrase.phrase, phrase.value, detail)
    response.headers.extend((name, value) for name, value in error.get_headers() if name in {"Allow", "Retry-After"})
    return response


def _summarize(error: CoreError | ServiceError) -> str:
    """The message of the only fault, or of the first with the number of all; else the error's own."""
    if isinstance(error, ServiceError):
        return str(error)
    first = error.faults[0].message
    return first if len(error.faults) == 1 else f"{first} ({len(error.faults)} faults; each is listed in errors.)"


def _urn(kind: type[Exception]) -> str:
    return "urn:treewright:" + re.sub(r"(?<!^)(?=[A-Z])", "-", kind.__name__).lower()


def register(app: Flask) -> None:
    """Answer every error of the app by a problem."""
    app.register_error_handler(CoreError, answer_error)
    app.register_error_handler(ServiceError, answer_error)
    app.register_error_handler(HTTPException, answer_http_error)
