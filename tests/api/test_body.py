"""Bodies: over the limit they are refused, and what is read is all of it."""

from __future__ import annotations

import io
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

ROUTES = [("POST", "/train"), ("POST", "/splits/score"), ("POST", "/models/none/predict"), ("PATCH", "/models/none")]


class Gone(io.BytesIO):
    """A connection that breaks after its first bytes."""

    def read(self, size: int | None = -1) -> bytes:
        """A part, once."""
        if self.tell():
            raise ConnectionResetError
        return super().read(size)


def untold(stream: io.BytesIO) -> dict[str, Any]:
    """The environment of a request whose body comes in chunks: its length is not told, its end is."""
    return {"wsgi.input": stream, "wsgi.input_terminated": True, "HTTP_TRANSFER_ENCODING": "chunked"}


@pytest.fixture
def small(make_app: MakeApp) -> FlaskClient:
    """A client of an application that reads 100 bytes."""
    return make_app(max_body_bytes=100).test_client()


@pytest.mark.parametrize(("method", "path"), ROUTES)
def test_limit(small: FlaskClient, problem_of: Expect, method: str, path: str) -> None:
    """A body over the limit is a 413, whether or not its length is told (S9); one at the limit is read."""
    for size, status in ((100, 400), (101, 413), (300_000, 413)):
        body = b"[" * size
        told = small.open(path, method=method, data=body, content_type="application/json")
        chunked = untold(io.BytesIO(body))
        not_told = small.open(path, method=method, content_type="application/json", environ_overrides=chunked)
        assert problem_of(told, status)["detail"] == problem_of(not_told, status)["detail"]
        assert status == 400 or "100 bytes" in told.json["detail"]


def test_whole_body_is_read(client: FlaskClient) -> None:
    """A body of many chunks arrives whole."""
    branches = [{f"class {index}": index} for index in range(100_000)]
    body = ('{"branches": [' + ", ".join(str(one).replace("'", '"') for one in branches[:500]) + "]}").encode()
    body += b" " * 3_000_000
    chunked = untold(io.BytesIO(body))
    response = client.post("/splits/score", content_type="application/json", environ_overrides=chunked)
    assert response.status_code == 200
    assert response.json == client.post("/splits/score", json={"branches": branches[:500]}).json


def test_cut_body_is_not_whole(small: FlaskClient, problem_of: Expect) -> None:
    """A body that would be valid if it ended at the limit is refused all the same."""
    body = b'{"branches": [{"T": 1}]}'.ljust(100) + b"and more"
    chunked = untold(io.BytesIO(body))
    problem_of(small.post("/splits/score", content_type="application/json", environ_overrides=chunked), 413)


def test_no_body(client: FlaskClient, problem_of: Expect) -> None:
    """Where the server cannot tell the end of a body there is none, which is a 400."""
    environ = {"wsgi.input": io.BytesIO(b"{}"), "HTTP_TRANSFER_ENCODING": "chunked"}
    problem_of(client.post("/train", content_type="application/json", environ_overrides=environ), 400)


@pytest.mark.parametrize("told", [True, False])
def test_rest_of_a_large_body_is_read(small: FlaskClient, told: bool) -> None:
    """The server reads on past the limit, so that the connection can close without losing the answer (S9)."""
    stream = io.BytesIO(b"[" * 3_000_000)
    environ = {"wsgi.input": stream, "CONTENT_LENGTH": "3000000"} if told else untold(stream)
    response = small.post("/train", content_type="application/json", environ_overrides=environ)
    assert (response.status_code, stream.tell()) == (413, 3_000_000)


def test_caller_gone(small: FlaskClient, problem_of: Expect) -> None:
    """A caller that hangs up while its too large body is thrown away is no error of ours."""
    environ = untold(Gone(b"[" * 200))
    problem_of(small.post("/train", content_type="application/json", environ_overrides=environ), 413)
