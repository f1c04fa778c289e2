"""Examples in the documentation, compared with what the service really answers."""

from __future__ import annotations

import math
import re
import shlex
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

if TYPE_CHECKING:
    from flask.testing import FlaskClient

MORE = "…"
"""In an example: something that differs from run to run or is left out."""


def shows(written: Any, real: Any, *, whole: bool = False) -> bool:  # noqa: ANN401 - JSON
    """Whether all that is written is in the real answer; rounding may differ.

    `MORE` stands for any value, at the end of a list for its rest, within a text for any part of it. With ``whole``
    what an object leaves out has to be marked, too, by `MORE` as a key.
    """
    if isinstance(written, dict):
        return isinstance(real, dict) and _shows_object(written, real, whole)
    if isinstance(written, list):
        return isinstance(real, list) and _shows_list(written, real, whole)
    if isinstance(written, str):
        parts = map(re.escape, written.split(MORE))
        return written == MORE or (isinstance(real, str) and re.fullmatch(".*".join(parts), real) is not None)
    if isinstance(written, float):
        return isinstance(real, int | float) and math.isclose(written, real, rel_tol=1e-12)
    return bool(written == real)


def _shows_object(written: dict[str, Any], real: dict[str, Any], whole: bool) -> bool:
    told = {name: one for name, one in written.items() if name != MORE}
    if whole and MORE not in written and told.keys() != real.keys():
        return False
    return all(name in real and shows(one, real[name], whole=whole) for name, one in told.items())


def _shows_list(written: list[Any], real: list[Any], whole: bool) -> bool:
    if written and written[-1] == MORE and len(written) - 1 <= len(real):
        written, real = written[:-1], real[: len(written) - 1]
    return len(real) == len(written) and all(
        shows(one, other, whole=whole) for one, other in zip(written, real, strict=True)
    )


def run_curl(client: FlaskClient, command: str) -> Any:  # noqa: ANN401 - JSON
    """What a curl command prints, by the test client; fails on an option that it does not know."""
    program, *words = shlex.split(command)
    assert program == "curl"
    headers, body, urls = {}, None, []
    arguments = iter(words)
    for word in arguments:
        if word == "-H":
            name, _, value = next(arguments).partition(": ")
            headers[name] = value
        elif word == "-d":
            body = next(arguments)
            if body.startswith("@"):
                body = Path(body[1:]).read_text(encoding="utf-8")
        elif word != "-s":
            urls.append(urlsplit(word))
    (url,) = urls
    assert url.netloc == "127.0.0.1:8000"
    path = f"{url.path}?{url.query}"
    return client.open(path, method="GET" if body is None else "POST", data=body, headers=headers).get_json()
