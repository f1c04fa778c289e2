"""The blueprint of every resource: flask-smorest's, with types, our parser, and problems documented in one line."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from http import HTTPStatus
from typing import Any, TypeVar

from flask import Response
from flask_smorest import Blueprint

from service.api.arguments import ArgumentsParser
from service.api.errors import MEDIA_TYPE, ProblemSchema

View = TypeVar("View", bound=Callable[..., Response])


class Resource(Blueprint):  # type: ignore[misc]  # its base is untyped
    """Views return responses: schemas check what comes in, and only describe what goes out."""

    ARGUMENTS_PARSER = ArgumentsParser()

    def route(self, rule: str, **options: Any) -> Callable[[View], View]:  # noqa: ANN401 - flask-smorest's options
        """Register a view under a rule; its name is the operation's."""
        register: Callable[[View], View] = super().route(rule, **options)
        return lambda view: register(self.doc(operationId=view.__name__)(view))

    def arguments(self, schema: Any, **options: Any) -> Callable[[View], View]:  # noqa: ANN401
        """Pass what the request says, checked by the schema, as the view's next argument."""
        decorate: Callable[[View], View] = super().arguments(schema, **options)
        return decorate

    def response(self, status_code: int, schema: Any = None, **options: Any) -> Callable[[View], View]:  # noqa: ANN401
        """Describe the answer."""
        decorate: Callable[[View], View] = super().response(status_code, schema, **options)
        return decorate

    def alt_response(self, status_code: int | str, **options: Any) -> Callable[[View], View]:  # noqa: ANN401
        """Describe another answer."""
        decorate: Callable[[View], View] = super().alt_response(status_code, **options)
        return decorate

    def also_answers(self, status: int, media_types: Iterable[str]) -> Callable[[View], View]:
        """Describe other media types that the answer of a status may have."""
        streams = {media_type: {"schema": {"type": "string", "format": "binary"}} for media_type in media_types}
        decorate: Callable[[View], View] = self.doc(responses={status: {"content": streams}})
        return decorate

    def problems(self, *statuses: int) -> Callable[[View], View]:
        """Describe the problems that a view may answer with, by status, and those that any view may."""

        def decorate(view: View) -> View:
            for status in statuses:
                about = HTTPStatus(status).phrase
                view = self.alt_response(status, schema=ProblemSchema, content_type=MEDIA_TYPE, description=about)(view)
            anything: Callable[[View], View] = self.alt_response(
                "default", schema=ProblemSchema, content_type=MEDIA_TYPE, description="Any other problem"
            )
            return anything(view)

        return decorate
