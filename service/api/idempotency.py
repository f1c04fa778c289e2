"""`Idempotency-Key`: a request that is sent again under its key is answered again, and done once.

The header is that of the IETF's draft (draft-ietf-httpapi-idempotency-key-header): a string of the caller's, such as a
UUID, with or without quotes. An error gives the key back, for then nothing was made.
"""

from __future__ import annotations

import hashlib
import re
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from flask import Response, g, request

from service.api.body import KEY_HEADER
from service.api.jobs import answer_job
from service.api.json import MEDIA_TYPE, answer
from service.api.models import link_model, show_model
from service.api.state import store
from service.core.errors import Fault
from service.errors import InvalidRequest
from service.store.idempotency import LEASE, KeyStore
from service.store.records import KeptAnswer, KeyClaim

REPLAYED = "Idempotent-Replayed"
KEPT_HEADERS = ("Location", "Preference-Applied", "ETag")
PARAMETER = {
    "name": KEY_HEADER,
    "in": "header",
    "required": False,
    "description": "A string of yours: sent again within a day, the request is answered again and done once",
    "schema": {"type": "string", "maxLength": 255},
}
_KEY = re.compile(r"[\x21-\x7e](?:[\x20-\x7e]{0,253}[\x21-\x7e])?")


def answer_once(work: Callable[[KeyClaim | None], Response]) -> Response:
    """The answer of ``work``, which is told the key that it does it under, or the one that it gave before.

    Raises `Conflict` while another request has the key, `InvalidRequest` for a key that cannot be one or that came with
    another body.
    """
    key = _read_key()
    if key is None:
        return work(None)
    keys = store().keys
    fingerprint = hashlib.sha256(f"{request.method} {request.path} {g.body_sha256}".encode()).hexdigest()
    found = keys.claim(key, fingerprint)
    if isinstance(found, KeptAnswer):
        return _repeat(found)
    try:
        with _alive(keys, found):
            response = work(found)
    except BaseException:
        keys.release(found)
        raise
    headers = {name: response.headers[name] for name in KEPT_HEADERS if name in response.headers}
    keys.keep(found, KeptAnswer(response.status_code, headers, response.get_data()))
    return response


def _read_key() -> str | None:
    posted = request.headers.get(KEY_HEADER)
    if posted is None:
        return None
    key = posted.strip().removeprefix('"').removesuffix('"')
    if not _KEY.fullmatch(key):
        raise InvalidRequest("the idempotency key cannot be used", Fault(KEY_HEADER, "give 1 to 255 ASCII characters"))
    return key


def _repeat(kept: KeptAnswer) -> Response:
    """The answer again; where its process died before it was kept, it is told from what was made."""
    if kept.body is not None:
        response = Response(kept.body, kept.status, kept.headers, mimetype=MEDIA_TYPE)
    elif kept.job_id is not None:
        response = answer_job(store().jobs.find(kept.job_id))
    else:
        record = store().find(str(kept.model_id))
        response = answer(show_model(record), 201, {"Location": link_model(record)["self"]})
    response.headers[REPLAYED] = "true"
    return response


@contextmanager
def _alive(keys: KeyStore, claim: KeyClaim) -> Iterator[None]:
    """Show that the holder of a key is at work for as long as it takes."""
    done = threading.Event()

    def beat() -> None:
        while not done.wait(LEASE.total_seconds() / 3):
            keys.show_life(claim)

    thread = threading.Thread(target=beat, daemon=True)
    thread.start()
    try:
        yield
    finally:
        done.set()
        thread.join()
