"""Ids, names, references and the texts that callers attach to models.

An id is 32 lower-case hexadecimal digits. A reference is an id, a name (its newest version), a name and a version such
as ``name@3``, or a name and an alias such as ``name@champion``. Whatever is none of these refers to no model, and no
reference ever becomes part of a path.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Mapping
from dataclasses import dataclass

from service.core.errors import Fault, pointer
from service.errors import InvalidRequest

NAME = re.compile(r"[a-z0-9][a-z0-9._-]{0,127}")
ID = re.compile(r"[0-9a-f]{32}")
ALIAS = re.compile(r"[a-z][a-z0-9_-]{0,63}")
VERSION = re.compile(r"[1-9][0-9]{0,8}")  # what a 32-bit column holds

MAX_TAGS = 64
MAX_TAG_KEY = 128
MAX_TEXT = 10_000


@dataclass(frozen=True)
class Reference:
    """What a reference says: an id alone, or a name with perhaps a version or an alias."""

    id: str | None = None
    name: str | None = None
    version: int | None = None
    alias: str | None = None


def new_id() -> str:
    """An id that no model had before."""
    return uuid.uuid4().hex


def is_name(text: str) -> bool:
    """Whether a model can have this name."""
    return NAME.fullmatch(text) is not None and ID.fullmatch(text) is None


def parse_reference(text: str) -> Reference | None:
    """Read a reference as it stands in a path; None when no model can be meant."""
    if ID.fullmatch(text):
        return Reference(id=text)
    name, separator, version = text.partition("@")
    if not is_name(name):
        return None
    if not separator:
        return Reference(name=name)
    if ALIAS.fullmatch(version):
        return Reference(name=name, alias=version)
    return Reference(name=name, version=int(version)) if VERSION.fullmatch(version) else None


def check_name(name: str | None) -> None:
    """Raise `InvalidRequest` for what cannot be a model's name; None, no name at all, is fine."""
    if name is not None and not is_name(name):
        message = (
            "a name has 1 to 128 lower-case letters, digits, '.', '_' and '-', and begins with a letter or digit; "
            "32 hexadecimal digits are an id, not a name"
        )
        raise InvalidRequest("the model's name cannot be used", Fault("/name", message))


def check_alias(alias: str) -> None:
    """Raise `InvalidRequest` for what cannot be an alias."""
    if not ALIAS.fullmatch(alias):
        message = "an alias has 1 to 64 lower-case letters, digits, '_' and '-', and begins with a letter"
        raise InvalidRequest("the alias cannot be used", Fault("/alias", message))


def check_description(description: str) -> None:
    """Raise `InvalidRequest` for a description that is too long or that a database cannot hold."""
    fault = _text_fault(description, MAX_TEXT)
    if fault:
        raise InvalidRequest("the description cannot be used", Fault("/description", fault))


def check_tags(tags: Mapping[str, str]) -> None:
    """Raise `InvalidRequest` for tags that are too many, too long or that a database cannot hold."""
    faults = []
    if len(tags) > MAX_TAGS:
        faults.append(Fault("/tags", f"there are {len(tags)} tags, and at most {MAX_TAGS} are kept"))
    for key, value in tags.items():
        fault = "a tag needs a name" if not key else _text_fault(key, MAX_TAG_KEY) or _text_fault(value, MAX_TEXT)
        if fault:
            faults.append(Fault(pointer("tags", key[:MAX_TAG_KEY]), fault))
    if faults:
        raise InvalidRequest("the tags cannot be used", faults)


def _text_fault(text: str, longest: int) -> str | None:
    if len(text) > longest:
        return f"at most {longest} characters are kept, and this has {len(text)}"
    # PostgreSQL refuses NUL in text; half a surrogate pair has no UTF-8.
    if any(character == "\0" or "\ud800" <= character <= "\udfff" for character in text):
        return "NUL and unpaired surrogates cannot be stored"
    return None
