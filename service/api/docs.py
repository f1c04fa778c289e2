"""`/openapi.json` and `/docs`: the description of this API, and a page that shows it without the network.

The page's script is RapiDoc, kept beside it in `static/` with its licence.
"""

from __future__ import annotations

from typing import Any

from flask import Blueprint, Flask, Response, current_app, render_template
from flask_smorest import Api
from werkzeug.exceptions import HTTPException

from service.api.errors import ProblemSchema, answer_http_error
from service.api.json import answer

OPTIONS: dict[str, Any] = {
    "API_TITLE": "Treewright",
    "OPENAPI_VERSION": "3.1.0",
    "API_SPEC_OPTIONS": {
        "info": {"description": "Trains decision trees, lists every split that they weighed, and serves predictions."},
        "servers": [{"url": "/"}],
    },
}
_POLICY = (
    "default-src 'none'; script-src 'self'; style-src 'self' 'unsafe-inline'; img-src 'self' data:; connect-src 'self'"
)
"""The browser itself refuses to fetch anything from elsewhere."""

blueprint = Blueprint(
    "docs", __name__, static_folder="static", static_url_path="/docs/static", template_folder="templates"
)


class Description(Api):  # type: ignore[misc]  # its base is untyped
    """flask-smorest's OpenAPI document; errors are answered by our problems."""

    ERROR_SCHEMA = ProblemSchema
    DEFAULT_ERROR_RESPONSE_NAME = None  # each view says it: `Resource.problems`

    def handle_http_exception(self, error: HTTPException) -> Response:
        """Answer what Flask and Werkzeug raise."""
        return answer_http_error(error)


def describe(app: Flask, version: str) -> Description:
    """The (still empty) description of the app, whose document `/openapi.json` serves."""
    app.config.update(OPTIONS, API_VERSION=version)
    description = Description(app)
    description.spec.components.schemas.pop("PaginationMetadata", None)  # of a header that nobody here sends
    app.extensions["treewright-description"] = description
    return description


@blueprint.get("/openapi.json")
def get_document() -> Response:
    """The OpenAPI document."""
    return answer(current_app.extensions["treewright-description"].spec.to_dict())


@blueprint.get("/docs")
def get_page() -> Response:
    """The page."""
    return Response(render_template("docs.html"), headers={"Content-Security-Policy": _POLICY}, mimetype="text/html")
