"""JSON answers: numpy arrays go out as they are, and what JSON cannot say (NaN, infinity) goes out as null."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import orjson
from flask import Response
from flask.json.provider import JSONProvider

from service.prediction import Picked

MEDIA_TYPE = "application/json"
_OPTIONS = orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_UTC_Z | orjson.OPT_PASSTHROUGH_DATACLASS


def encode(value: object) -> bytes:
    """The JSON text of a value, numpy arrays and datetimes included; raises TypeError for anything else."""
    return orjson.dumps(value, default=_encode_other, option=_OPTIONS)


def answer(body: object, status: int = 200, headers: Mapping[str, str] | None = None) -> Response:
    """A JSON response."""
    return Response(encode(body), status, headers, mimetype=MEDIA_TYPE)


def _encode_other(value: object) -> object:
    """Arrays that orjson leaves to us: memory-mapped, not contiguous, of objects or of strings."""
    if isinstance(value, np.ndarray) and value.dtype.kind in "iufb":
        plain = np.array(value, order="C", subok=False)
        return plain if plain.ndim else plain.item()
    if isinstance(value, np.ndarray | np.generic):
        return value.tolist()
    if isinstance(value, Picked):
        return _encode_picked(value)
    raise TypeError(f"{type(value).__name__} has no JSON form")


def _encode_picked(picked: Picked) -> object:
    """The picked items; where most come again, the text of each is made once and put together as often as it comes."""
    items, which = picked.items, picked.which
    seen = np.zeros(len(items), bool)
    seen[which] = True
    reached = np.flatnonzero(seen)
    if items.ndim > 2 or 2 * len(reached) > len(which) or not reached.size or not items.size:
        return items[which]
    opening, between, closing = (b"[", b",", b"]") if items.ndim == 1 else (b"[[", b"],[", b"]]")
    texts = np.empty(len(items), object)
    texts[reached] = encode(items[reached])[len(opening) : -len(closing)].split(between)
    return orjson.Fragment(opening + between.join(texts[which].tolist()) + closing)


class OrjsonProvider(JSONProvider):
    """Makes Flask's own JSON functions, and with them flask-smorest's, use orjson."""

    def dumps(self, obj: Any, **_: Any) -> str:  # noqa: ANN401 - Flask's signature
        """JSON text as str."""
        return encode(obj).decode()

    def loads(self, s: str | bytes, **_: Any) -> Any:  # noqa: ANN401 - Flask's signature
        """The value of a JSON text."""
        return orjson.loads(s)
