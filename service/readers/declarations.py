"""What a request's `schema`, or a model's, says of columns before their cells are read."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any, cast

from service.core.errors import Fault, InvalidData, pointer
from service.core.schema import KINDS, Kind, Label, keep_apart
from service.readers.cells import Declared

_ORDER = {"ordinal": "the categories from lowest to highest", "nominal": "all categories that may occur, in any order"}

CATEGORIES: dict[str, Any] = {
    "oneOf": [
        {"type": "string", "enum": ["numeric", "boolean", "nominal"]},
        {
            "type": "object",
            "required": ["kind"],
            "additionalProperties": False,
            "properties": {
                "kind": {"type": "string", "enum": list(KINDS)},
                "categories": {
                    "type": "array",
                    "minItems": 1,
                    "description": "Of an ordinal column, from lowest to highest; of a nominal one, in the order that "
                    "breaks ties and that listings keep. Rows need not have all of them",
                    "items": {"type": ["string", "number", "boolean"]},
                },
            },
        },
    ]
}
"""One declaration as a JSON schema."""


def read_declarations(schema: Mapping[str, Any], place: str = "/schema") -> dict[str, Declared]:
    """What a request's ``schema`` declares: a kind, or an object with a kind and perhaps categories, by column.

    Raises `InvalidData` with a fault for each column whose declaration cannot be used.
    """
    declared, faults = dict[str, Declared](), list[Fault]()
    for name, said in schema.items():
        complaint = find_complaint(said)
        if complaint:
            faults.append(Fault(place + pointer(name), complaint))
        else:
            kind, categories = (said, ()) if isinstance(said, str) else (said["kind"], said.get("categories") or ())
            declared[name] = Declared(cast("Kind", kind), tuple(categories))
    if faults:
        raise InvalidData(faults)
    return declared


def declare_features(features: Iterable[Mapping[str, Any]]) -> dict[str, Declared]:
    """What a model's record says of its inputs; an ordinal one takes further levels, which training did not see."""
    return {
        feature["name"]: Declared(
            feature["kind"], tuple(feature.get("categories", ())) if feature["kind"] == "ordinal" else (), extend=True
        )
        for feature in features
    }


def find_complaint(said: object) -> str | None:
    """What is wrong with a declaration, with the remedy; None when nothing is."""
    if isinstance(said, str):
        said = {"kind": said}
    if not isinstance(said, dict) or not said.keys() <= {"kind", "categories"}:
        return "A declaration is a kind, or an object with `kind` and, for ordinal and nominal columns, `categories`."
    kind, categories = said.get("kind"), said.get("categories")
    if kind not in KINDS:
        return f"The kind is one of {', '.join(KINDS)}."
    if kind == "ordinal" or (kind == "nominal" and categories is not None):
        return _find_complaint_of(kind, categories)
    return None if categories is None else f"A {kind} column takes no categories; ordinal and nominal ones do."


def _find_complaint_of(kind: str, categories: object) -> str | None:
    form = f'give {{"kind": "{kind}", "categories": [...]}} with {_ORDER[kind]}.'
    if not isinstance(categories, list) or not categories:
        return f"The categories of the {kind} column are missing: {form}"
    if not all(isinstance(label, Label) for label in categories):
        return f"A category is a string, a number, true or false: {form}"
    if len(set(map(keep_apart, categories))) < len(categories):
        return f"A category stands twice: {form}"
    return None
