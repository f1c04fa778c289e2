"""The short way for `POST /models/<reference>/predict`, the request that comes most often by far.

A layer of WSGI in front of Flask answers it: routing, contexts and schemas cost more than the answer to a single row,
for which there is an even shorter way where there is nothing to remark. Whatever is in any way unusual, be it a header,
a form of the body or a fault, goes on untouched to the full stack, which alone knows the words. Answers, headers and
log lines are the same either way.
"""

from __future__ import annotations

import re
from collections.abc import Iterable
from io import BytesIO
from time import perf_counter
from typing import TYPE_CHECKING, Any

from service import prediction
from service.api.json import MEDIA_TYPE, encode
from service.api.models import summarize_model
from service.api.predict import predict_posted
from service.api.requests import HEADER, log_answer
from service.core.read_row import Unusual
from service.readers.json_row import take_row
from service.readers.json_text import parse
from service.telemetry import begin_request

if TYPE_CHECKING:
    from _typeshed.wsgi import StartResponse, WSGIApplication, WSGIEnvironment

    from service.api.state import State

_PATH = re.compile(r"/models/([a-z0-9][a-z0-9._@-]*)/predict")
_LONGEST = 1 << 24  # bytes: what is longer has nothing to gain, and should it be wrong is read twice


class Shortcut:
    """Answers the usual prediction, and hands everything else to the ``full`` application."""

    def __init__(self, full: WSGIApplication, state: State) -> None:
        self._full = full
        self._state = state
        self._longest = min(_LONGEST, state.settings.max_body_bytes)

    def __call__(self, environ: WSGIEnvironment, start_response: StartResponse) -> Iterable[bytes]:
        """The WSGI application."""
        began = perf_counter()
        path = _PATH.fullmatch(environ["PATH_INFO"])
        length = self._find_length(environ) if path else 0
        if path is None or not length:
            return self._full(environ, start_response)
        request_id = environ["HTTP_X_REQUEST_ID"] = begin_request(environ.get("HTTP_X_REQUEST_ID"))
        body = environ["wsgi.input"].read(length)
        content = self._answer(path[1], body)
        if content is None:
            environ["wsgi.input"] = BytesIO(body)
            return self._full(environ, start_response)
        headers = [("Content-Type", MEDIA_TYPE), ("Content-Length", str(len(content))), (HEADER, request_id)]
        start_response("200 OK", headers)
        log_answer("POST", environ["PATH_INFO"], 200, began)
        return [content]

    def _find_length(self, environ: WSGIEnvironment) -> int:
        """The length of the body of a request that says nothing out of the ordinary about itself; else 0."""
        length: str = environ.get("CONTENT_LENGTH") or ""
        usual = (
            environ["REQUEST_METHOD"] == "POST"
            and environ.get("CONTENT_TYPE") == MEDIA_TYPE
            and not environ.get("QUERY_STRING")
            and "HTTP_CONTENT_ENCODING" not in environ
            and "HTTP_TRANSFER_ENCODING" not in environ
            and length.isascii()
            and length.isdecimal()
        )
        return int(length) if usual and len(length) < 9 and int(length) <= self._longest else 0

    def _answer(self, reference: str, body: bytes) -> bytes | None:
        """The body of the answer; None where the full stack has to give it."""
        try:
            return encode(self._predict(reference, body))
        except Unusual:
            return None
        except Exception:  # noqa: BLE001 - the full stack will meet it too, and name, answer and log it
            return None

    def _predict(self, reference: str, body: bytes) -> dict[str, Any]:
        posted = parse(body)
        if type(posted) is not dict or posted.keys() != {"data"} or type(posted["data"]) is not dict:
            raise Unusual
        settings, store = self._state.settings, self._state.store
        record = store.find(reference)
        predictor = prediction.prepare(record, store)
        try:
            if len(predictor.names) <= settings.max_columns:
                cells = take_row(posted["data"], predictor.names)
                return {"model": summarize_model(record), **prediction.predict_one(predictor, cells)}
        except Unusual:
            pass
        return predict_posted(record, posted["data"], settings, store)
