"""Fields of the envelope: JSON types taken as they come, each with its description for the OpenAPI document."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime
from typing import Any

from marshmallow import RAISE, Schema, ValidationError, fields, validate

from service.api.state import settings
from service.core.distances import METRICS

SCALAR = {"type": ["string", "number", "boolean"]}
CELL = {"type": ["string", "number", "boolean", "null"]}
COUNTS = {"type": "array", "items": {"type": "number"}}
NUMBERS: dict[str, Any] = {"type": ["number", "array"], "items": {"type": "number"}}
PREDICTION: dict[str, Any] = {"type": ["string", "number", "boolean", "array"], "items": SCALAR}

_COLUMNS = {
    "title": "columns",
    "type": "object",
    "required": ["columns"],
    "additionalProperties": False,
    "properties": {"columns": {"type": "object", "additionalProperties": {"type": "array", "items": CELL}}},
}
_RECORDS = {
    "title": "records",
    "type": "object",
    "required": ["records"],
    "additionalProperties": False,
    "properties": {"records": {"type": "array", "items": {"type": "object", "additionalProperties": CELL}}},
}
_ROWS = {"type": "array", "items": {"type": "array", "items": CELL}}
_HEADER_AND_ROWS = {
    "title": "header and rows",
    "type": "object",
    "required": ["header", "rows"],
    "additionalProperties": False,
    "properties": {"header": {"type": "array", "items": {"type": "string"}}, "rows": _ROWS},
}
_ROWS_ALONE = {
    "title": "rows in the order of training",
    "type": "object",
    "required": ["rows"],
    "additionalProperties": False,
    "properties": {"rows": _ROWS},
}
_ABOUT_DATA = "A table, in one of these forms; null is a missing cell."


class Envelope(Schema):
    """What comes in: a name that it does not have is a fault."""

    class Meta:
        """Said aloud so that the OpenAPI document says it too."""

        unknown = RAISE


class Anything(fields.Raw):
    """A JSON value that passes as it is, described by a JSON schema."""

    def __init__(self, schema: Mapping[str, Any], **options: Any) -> None:  # noqa: ANN401 - marshmallow's options
        super().__init__(metadata=dict(schema), **options)


class JsonObject(Anything):
    """An object whose inside is checked elsewhere."""

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401 - marshmallow's signature
        if not isinstance(value, dict):
            raise ValidationError("Give a JSON object.")
        return value


class TrainingData(JsonObject):
    """The table of `/train`."""

    def __init__(self, *, required: bool = True) -> None:
        forms = [_COLUMNS, _RECORDS, _HEADER_AND_ROWS]
        super().__init__({"description": _ABOUT_DATA, "oneOf": forms}, required=required, allow_none=not required)


class PredictionData(JsonObject):
    """The table of `/predict`, which may also be rows alone."""

    def __init__(self, *, required: bool = True) -> None:
        forms = [_COLUMNS, _RECORDS, _HEADER_AND_ROWS, _ROWS_ALONE]
        super().__init__({"description": _ABOUT_DATA, "oneOf": forms}, required=required, allow_none=not required)


class ClassLabel(Anything):
    """A class: a string, a number or a boolean, told apart as JSON does."""

    def __init__(self, description: str, **options: Any) -> None:  # noqa: ANN401
        super().__init__({**SCALAR, "description": description}, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401
        if not isinstance(value, str | int | float | bool):
            raise ValidationError("A class is a string, a number, true or false.")
        return value


class TargetNames(Anything):
    """The column to predict, or several numbers at once."""

    def __init__(
        self,
        about: str = "The column to predict, or a list of several numeric ones",
        **options: Any,  # noqa: ANN401
    ) -> None:
        names = {"type": "array", "items": {"type": "string"}, "minItems": 1, "uniqueItems": True}
        super().__init__({"oneOf": [{"type": "string"}, names], "description": about}, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401
        if isinstance(value, str) or (isinstance(value, list) and all(isinstance(name, str) for name in value)):
            return value
        raise ValidationError("Give the name of a column, or a list of names.")


class Dissimilarity(JsonObject):
    """How much targets differ, pair by pair."""

    def __init__(self, **options: Any) -> None:  # noqa: ANN401
        metric = {"type": "string", "enum": list(METRICS)}
        matrix = {"type": "array", "items": COUNTS, "description": "Symmetric, 0 on the diagonal, in the order of rows"}
        forms = [
            {"type": "object", "required": [name], "additionalProperties": False, "properties": {name: form}}
            for name, form in (("metric", metric), ("matrix", matrix))
        ]
        super().__init__({"oneOf": forms, "description": "How much targets differ: a metric, or all pairs"}, **options)

    def _deserialize(self, value: Any, *_: Any, **__: Any) -> Any:  # noqa: ANN401
        known = super()._deserialize(value)
        if set(known) == {"metric"} and known["metric"] in METRICS:
            return known
        matrix = known["matrix"] if set(known) == {"matrix"} else None
        if isinstance(matrix, list) and all(isinstance(row, list) for row in matrix):
            return known
        raise ValidationError(f'Give {{"metric": one of {", ".join(METRICS)}}}, or {{"matrix": a list of lists}}.')


class Whole(fields.Integer):
    """A whole number that 64 bits hold, for no database holds more; nor does JSON as most read it."""

    def _validated(self, value: Any) -> int:  # noqa: ANN401
        number = super()._validated(value)
        if not -(2**63) <= number < 2**63:
            raise self.make_error("too_large")
        return number


class Moment(fields.AwareDateTime):
    """A time, in UTC; without a zone it is taken to be that. What is before or after all years there is none."""

    def __init__(self, description: str) -> None:
        super().__init__(default_timezone=UTC, metadata={"description": description})

    def _deserialize(self, value: Any, *rest: Any, **options: Any) -> datetime:  # noqa: ANN401
        try:
            return super()._deserialize(value, *rest, **options).astimezone(UTC)
        except OverflowError as error:
            raise self.make_error("invalid", input=value, obj_type=self.OBJ_TYPE) from error


class PageLimit(Whole):
    """The `limit` of a listing, at most the setting ``max_page``."""

    def __init__(self) -> None:
        about = "How many to list at most; the setting TREEWRIGHT_MAX_PAGE bounds it"
        super().__init__(
            load_default=lambda: min(100, settings().max_page),
            metadata={"description": about, "default": 100, "minimum": 1},
            validate=_check_limit,
        )


def _check_limit(limit: int) -> None:
    validate.Range(1, settings().max_page, error="Give a whole number from {min} to {max}.")(limit)


def text(description: str, **options: Any) -> fields.String:  # noqa: ANN401
    """A string."""
    return fields.String(metadata={"description": description}, **options)


def choice(description: str, *choices: str, **options: Any) -> fields.String:  # noqa: ANN401
    """One of some strings."""
    check = validate.OneOf(choices, error="Give one of {choices}.")
    return fields.String(validate=check, metadata={"description": description}, **options)
