"""What a request says, checked by marshmallow: JSON bodies and query arguments, faults with their places.

marshmallow sees the envelope only; tables pass through it untouched (`service.readers` checks them).
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, NoReturn

import flask
import marshmallow as ma
from flask import Request, current_app, request
from webargs.flaskparser import FlaskParser, is_json_request

from service.api.body import read_body
from service.core.errors import Fault, pointer
from service.errors import InvalidRequest, UnsupportedMedia
from service.readers.json_text import parse


class ArgumentsParser(FlaskParser):
    """Reads JSON by orjson, knows no unknown argument, and raises the service's errors."""

    DEFAULT_UNKNOWN_BY_LOCATION = {**FlaskParser.DEFAULT_UNKNOWN_BY_LOCATION, "query": ma.RAISE}

    def load_json(self, req: Request, schema: ma.Schema) -> Any:  # noqa: ANN401, ARG002 - any JSON value
        """The body; raises `UnsupportedMedia`, `BodyTooLarge`, `MalformedBody` or `InvalidData` (a repeated key)."""
        check_media(req)
        return parse(read_body(req))

    def load_querystring(self, req: Request, schema: ma.Schema) -> Any:  # noqa: ANN401 - a multi-dict proxy
        """The query; raises ValidationError for an argument given twice."""
        twice = [name for name, values in req.args.lists() if len(values) > 1]
        if twice:
            raise ma.ValidationError({name: ["Give this argument once."] for name in twice})
        return super().load_querystring(req, schema)

    def handle_error(
        self,
        error: ma.ValidationError,
        req: Request,  # noqa: ARG002 - webargs' signature
        schema: ma.Schema,  # noqa: ARG002
        *,
        error_status_code: int | None,  # noqa: ARG002
        error_headers: Mapping[str, str] | None,  # noqa: ARG002
    ) -> NoReturn:
        """Turn marshmallow's nested messages into faults with places."""
        messages: Any = error.messages
        faults = [
            Fault(f"?{path[0]}" if location == "query" and path else pointer(*path), message)
            for location, inside in messages.items()
            for path, message in _flatten(inside)
        ]
        raise InvalidRequest(
            f"{faults[0].place}: {faults[0].message}" if faults[0].place else faults[0].message, faults
        )


def check_media(req: Request) -> None:
    """Raise `UnsupportedMedia` unless the body is JSON in UTF-8, not compressed."""
    if not req.mimetype:
        raise UnsupportedMedia("The request has no content type; send application/json.")
    if not is_json_request(req):
        raise UnsupportedMedia(f"Bodies of type {req.mimetype} are not read here; send application/json.")
    if req.mimetype_params.get("charset", "utf-8").lower() not in {"utf-8", "utf8", "us-ascii"}:
        raise UnsupportedMedia("JSON is read in UTF-8 only.")
    encoding = req.headers.get("Content-Encoding", "identity")
    if encoding.lower() != "identity":
        raise UnsupportedMedia(f"The content encoding {encoding} is not read here; send the body as it is.")


def refuse_unknown_query() -> None:
    """Before each request: a view that declares no query has no arguments. Raises `InvalidRequest`."""
    view = current_app.view_functions.get(request.endpoint or "")
    documented = getattr(view, "_apidoc", None)  # where flask-smorest notes what a view declares
    if not request.args or documented is None:
        return
    declared = documented.get("arguments", {}).get("parameters", [])
    if not any(argument["in"] == "query" for argument in declared):
        raise InvalidRequest(
            "This resource has no query arguments.", [Fault(f"?{name}", "Unknown argument.") for name in request.args]
        )


def register(app: flask.Flask) -> None:
    """Check the query of views that declare none."""
    app.before_request(refuse_unknown_query)


def _flatten(messages: Any, path: tuple[Any, ...] = ()) -> Iterator[tuple[tuple[Any, ...], str]]:  # noqa: ANN401
    """Each message, as marshmallow nests them, with the path to its field.

    Errors of a whole object stand under ``_schema``, those of an entry of a dict under ``key`` and ``value`` inside it.
    """
    if not isinstance(messages, dict):
        yield from ((path, str(message)) for message in messages)
        return
    for key, inner in messages.items():
        added = key == "_schema" or (key in {"key", "value"} and len(path) > 1 and not isinstance(inner, dict))
        yield from _flatten(inner, path if added else (*path, key))
