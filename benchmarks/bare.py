"""The least that Flask can do: a view that returns a constant, under the service's own gunicorn settings."""

from __future__ import annotations

import os
from typing import Any

from flask import Flask, Response

from service.server import Server
from service.settings import Settings

ANSWER = b'{"predictions":["class 000"]}'


class BareServer(Server):
    """The service's gunicorn around another application."""

    def load(self) -> Flask:
        """One view, for GET (is it ready?) and POST."""
        app = Flask(__name__, static_folder=None)

        @app.route("/", methods=["GET", "POST"])
        def answer() -> Response:
            return Response(ANSWER, mimetype="application/json")

        return app

    def greet(self, worker: Any) -> None:  # noqa: ANN401 - gunicorn has no types
        """Nobody is welcomed here."""


if __name__ == "__main__":
    BareServer(Settings.from_environment(os.environ), "127.0.0.1", int(os.environ["PORT"])).run()
