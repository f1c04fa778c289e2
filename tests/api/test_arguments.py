"""What a request says: media types, JSON as JSON, envelopes and query arguments without anything unknown."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest
from marshmallow import fields

from service.api.fields import Envelope, Moment, Whole

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect

FAR = 10**23
SCORE = '{"branches": [{"T": 2, "F": 1}, {"T": 1}]}'


@pytest.mark.parametrize(
    "content_type",
    ["application/json", "application/json; charset=utf-8", "application/json;charset=UTF-8", "APPLICATION/JSON",
     "application/vnd.example+json"],
)  # fmt: skip
def test_json_types(client: FlaskClient, content_type: str) -> None:
    """JSON is read under its name and those that end in +json, whatever parameters come along (S6)."""
    assert client.post("/splits/score", data=SCORE, content_type=content_type).status_code == 200


@pytest.mark.parametrize(
    "content_type",
    [None, "", "text/plain", "text/csv", "application/x-www-form-urlencoded", "multipart/form-data; boundary=x",
     "nonsense", "application/json; charset=latin-1", "application/jsonp"],
)  # fmt: skip
def test_other_types(client: FlaskClient, problem_of: Expect, content_type: str | None) -> None:
    """Any other media type, and none, is a 415 that says what to send (S6)."""
    response = client.post("/splits/score", data=SCORE, content_type=content_type)
    assert "JSON" in problem_of(response, 415)["detail"].upper()


@pytest.mark.parametrize(
    "address",
    ["/models/golf/stability?seed={far}", "/audit-log/verify?number={far}&sha256=" + "0" * 64,
     "/audit-log?since=0001-01-01T00:00:00%2B14:00", "/models?until=9999-12-31T23:59:59-14:00"],
)  # fmt: skip
@pytest.mark.usefixtures("model")
def test_out_of_range(client: FlaskClient, places_of: Expect, address: str) -> None:
    """Numbers of more than 64 bits, and times outside all years in UTC, are a 422 that names the argument."""
    name = address.partition("?")[2].partition("=")[0]
    assert list(places_of(client.get(address.format(far=FAR)), 422)) == [f"?{name}"]


def test_every_argument_has_a_range() -> None:
    """No body and no query takes whole numbers or times as they come."""
    kinds = Envelope.__subclasses__()
    found = [field for kind in kinds for field in kind._declared_fields.values()]
    assert len(found) > 50
    for field in found:
        assert isinstance(field, Whole) or not isinstance(field, fields.Integer), field
        assert isinstance(field, Moment) or not isinstance(field, fields.DateTime), field


def test_content_encoding(client: FlaskClient, problem_of: Expect) -> None:
    """A compressed body is a 415 until it can be read; `identity` is no compression."""
    for encoding, status in (("gzip", 415), ("foo", 415), ("identity", 200)):
        headers = {"Content-Encoding": encoding}
        response = client.post("/splits/score", data=SCORE, content_type="application/json", headers=headers)
        assert response.status_code == status
        if status == 415:
            assert encoding in problem_of(response, 415)["detail"]


@pytest.mark.parametrize(
    "body",
    ["", " ", "{", "{'branches': 1}", '{"branches": [{"T": NaN}]}', '{"branches": Infinity}', "\udcff", SCORE + "x"],
)
def test_malformed(client: FlaskClient, problem_of: Expect, body: str) -> None:
    """What is not JSON is a 400."""
    data = body.encode(errors="surrogateescape")
    problem_of(client.post("/splits/score", data=data, content_type="application/json"), 400)


@pytest.mark.parametrize("body", ["[]", "1", "null", '"text"', "true"])
def test_not_an_object(client: FlaskClient, problem_of: Expect, body: str) -> None:
    """JSON that is no object is a 422."""
    problem_of(client.post("/splits/score", data=body, content_type="application/json"), 422)


def test_repeated_key(client: FlaskClient, places_of: Expect) -> None:
    """A key that an object repeats is a 422 that names it, wherever it is (S12)."""
    for body, place in (
        ('{"branches": [{"T": 1, "T": 2}]}', "/branches/0/T"),
        ('{"branches": [{"T": 1}], "branches": [{"F": 1}]}', "/branches"),
    ):
        response = client.post("/splits/score", data=body, content_type="application/json")
        assert place.rpartition("/")[2] in places_of(response, 422)[place]


def test_unknown_fields(client: FlaskClient, places_of: Expect) -> None:
    """Every unknown field of an envelope is named, even one called as marshmallow calls its own."""
    body = {"branches": [{"T": 1}], "branch": 1, "value": 2, "a/b": 3}
    assert set(places_of(client.post("/splits/score", json=body), 422)) == {"/branch", "/value", "/a~1b"}


def test_faults_in_dicts(client: FlaskClient, places_of: Expect) -> None:
    """A fault in an entry of an object points at the entry."""
    body = {"tags": {"a": 1, "value": 2, "b": "fine"}, "description": 3}
    faults = places_of(client.patch("/models/none", json=body), 422)
    assert set(faults) == {"/tags/a", "/tags/value", "/description"}


@pytest.mark.parametrize(
    "path",
    ["/train", "/models", "/models/none", "/models/none/splits", "/models/none/tree", "/models/none/predict",
     "/splits/score", "/health/live", "/health/ready"],
)  # fmt: skip
def test_unknown_query_arguments(client: FlaskClient, places_of: Expect, path: str) -> None:
    """A query argument that a resource does not know is a 422 that names it."""
    method = "POST" if path in {"/train", "/models/none/predict", "/splits/score"} else "GET"
    assert set(places_of(client.open(path + "?fliter=1", method=method), 422)) == {"?fliter"}


def test_repeated_query_argument(client: FlaskClient, places_of: Expect) -> None:
    """An argument that is given twice is a 422, since either could be meant."""
    assert set(places_of(client.get("/models?limit=1&limit=2"), 422)) == {"?limit"}


@pytest.mark.parametrize("limit", ["0", "-1", "1001", "x", "1.5", "", "nan", "99999999999999999999"])
def test_limits(client: FlaskClient, places_of: Expect, limit: str) -> None:
    """A page has from 1 entry to as many as the settings allow."""
    for path in ("/models", "/models/none/splits"):
        assert set(places_of(client.get(path, query_string={"limit": limit}), 422)) == {"?limit"}


@pytest.mark.parametrize(
    ("argument", "value"),
    [("node", "-1"), ("node", "root"), ("type", "diagonal"), ("chosen", "maybe"), ("admissible", ""), ("top", "0"),
     ("sort", "name")],
)  # fmt: skip
def test_splits_arguments(client: FlaskClient, places_of: Expect, argument: str, value: Any) -> None:  # noqa: ANN401
    """Every query argument of the listing is checked, and named when it is wrong."""
    response = client.get("/models/none/splits", query_string={argument: value})
    assert set(places_of(response, 422)) == {f"?{argument}"}
