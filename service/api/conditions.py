"""ETag, If-Match and If-None-Match: a caller who has seen an older state changes nothing (RFC 9110, section 13)."""

from __future__ import annotations

from collections.abc import Callable

from flask import Response, request

from service.errors import PreconditionFailed
from service.store.records import AliasRecord, ModelRecord


def tag_of(record: ModelRecord | AliasRecord) -> str:
    """The entity tag of what can change, which differs after every change."""
    if isinstance(record, AliasRecord):
        return f"{record.version}-{record.revision}"
    return f"{record.id}-{record.revision}"


def tagged(response: Response, record: ModelRecord | AliasRecord) -> Response:
    """The response with the tag; 304 without a body for a caller who has this state already."""
    response.set_etag(tag_of(record))
    if request.method == "GET":
        response.make_conditional(request)
    return response


def check_conditions() -> Callable[[ModelRecord | AliasRecord | None], None]:
    """What the store is to ask of the state that it finds; raises `PreconditionFailed` as this request demands."""
    wanted, unwanted = request.if_match, request.if_none_match

    def check(record: ModelRecord | AliasRecord | None) -> None:
        tag = None if record is None else tag_of(record)
        if wanted and (tag is None or not wanted.contains(tag)):
            raise PreconditionFailed("it has changed since you saw it; get it again, and then decide")
        if unwanted and tag is not None and unwanted.contains(tag):
            raise PreconditionFailed("it is there already")

    return check
