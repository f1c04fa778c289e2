"""Records over HTTP: listed in pages, found by reference, changed, deleted."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

SMALL = {"columns": {"x": [1, 2], "y": ["a", "b"]}}


def train(client: FlaskClient, **more: object) -> dict[str, Any]:
    """The record of a small model."""
    response = client.post("/train", json={"data": SMALL, "target": "y", **more})
    assert response.status_code == 201, response.json
    record: dict[str, Any] = response.json
    return record


def test_references(client: FlaskClient) -> None:
    """An id, a name (its newest version) and a name with a version find a model."""
    first, second = train(client, name="a"), train(client, name="a")
    assert client.get(f"/models/{first['id']}").json == first
    assert client.get("/models/a").json == second
    assert client.get("/models/a@1").json == first
    assert client.get("/models/a%401").json == first
    assert client.get("/models/a/").json == second


def test_nameless(client: FlaskClient) -> None:
    """A model without a name has no version, and its id."""
    record = train(client)
    assert (record["name"], record["version"]) == (None, None)
    assert client.get(record["links"]["self"]).json == record


@pytest.mark.parametrize(
    "reference",
    ["b", "a@0", "a@2", "a@", "a@x", "a@01", "@1", "A", "a%20", "%20a", "a%00", "..", "%2e%2e",
     "..%2f..%2fetc%2fpasswd", "%252e", "a%2f..%2fa", "x" * 300, "0" * 32, "%ff", "a;b", "a,b", "*", "%25", "a%0a"],
)  # fmt: skip
def test_nothing_else_is_reached(client: FlaskClient, problem_of: Expect, reference: str) -> None:
    """Escapes, dots, slashes, spaces, NUL and what is too long reach nothing, by any method (S8)."""
    train(client, name="a")
    for path in ("", "/tree", "/splits"):
        problem_of(client.get(f"/models/{reference}{path}"), 404)
    problem_of(client.delete(f"/models/{reference}"), 404)
    problem_of(client.patch(f"/models/{reference}", json={"tags": {}}), 404)
    problem_of(client.post(f"/models/{reference}/predict", json={"data": {"rows": [[1]]}}), 404)
    assert len(client.get("/models").json["models"]) == 1


def test_list_in_pages(client: FlaskClient) -> None:
    """Pages follow each other by `next`, newest first, and a model that is added meanwhile shifts none."""
    ids = [train(client, name="a", tags={"n": str(index)})["id"] for index in range(5)]
    url, seen = "/models?limit=2&name=a", []
    while url:
        page = client.get(url).json
        assert len(page["models"]) <= 2
        seen += [record["id"] for record in page["models"]]
        url = page["next"]
        assert url is None or ("limit=2" in url and "name=a" in url)
        train(client, name="a")
    assert seen == ids[::-1]


def test_list_by_name_and_tag(client: FlaskClient) -> None:
    """Name and tag select; a tag is a key alone or with its value, which may have colons."""
    train(client, name="a", tags={"stage": "live", "at": "12:30"})
    train(client, name="b", tags={"stage": "test"})
    train(client, name="b")

    def names(**query: str) -> list[str]:
        return [record["name"] for record in client.get("/models", query_string=query).json["models"]]

    assert names() == ["b", "b", "a"]
    assert names(name="b") == ["b", "b"]
    assert names(name="../etc") == names(name="c") == []
    assert names(tag="stage") == ["b", "a"]
    assert names(tag="stage:live") == names(tag="at:12:30") == ["a"]
    assert names(tag="stage:", name="a") == names(tag="none") == []


@pytest.mark.parametrize("cursor", ["x", "", "AAAA", "../../etc", "\0"])
def test_bad_cursor(client: FlaskClient, places_of: Expect, cursor: str) -> None:
    """A cursor that no page gave is a 422."""
    train(client)
    faults = places_of(client.get("/models", query_string={"cursor": cursor}), 422)
    assert len(faults) == 1
    assert "cursor" in next(iter(faults))


def test_largest_page_is_a_setting(make_app: MakeApp, places_of: Expect) -> None:
    """A page is never larger than the setting, also when no limit is asked for."""
    client = make_app(max_page=2).test_client()
    for _ in range(3):
        train(client)
    assert len(client.get("/models").json["models"]) == 2
    assert set(places_of(client.get("/models?limit=3"), 422)) == {"?limit"}


def test_change(client: FlaskClient) -> None:
    """PATCH replaces tags or description, each alone, and leaves the rest of the record."""
    record = train(client, name="a", tags={"old": "1"}, description="before")
    changed = client.patch("/models/a", json={"tags": {"new": "2"}}).json
    assert changed == {**record, "tags": {"new": "2"}}
    changed = client.patch("/models/a", json={"description": "after"}).json
    assert changed == {**record, "tags": {"new": "2"}, "description": "after"}
    assert client.patch("/models/a", json={}).json == changed == client.get("/models/a").json


@pytest.mark.parametrize(
    ("body", "place"),
    [
        ({"name": "b"}, "/name"),
        ({"id": "1"}, "/id"),
        ({"tags": None}, "/tags"),
        ({"tags": {"a": None}}, "/tags/a"),
        ({"tags": {"": "a"}}, "/tags/"),
        ({"tags": {"a" * 1000: "a"}}, "/tags/" + "a" * 128),
        ({"tags": {str(index): "" for index in range(65)}}, "/tags"),
        ({"description": None}, "/description"),
        ({"description": "x" * 10_001}, "/description"),
        ({"description": "\0"}, "/description"),
    ],
)
def test_bad_changes(client: FlaskClient, places_of: Expect, body: dict[str, Any], place: str) -> None:
    """What cannot be changed, or not to that, is a 422 at its place, and nothing changes."""
    record = train(client, name="a")
    assert set(places_of(client.patch("/models/a", json=body), 422)) == {place}
    assert client.get("/models/a").json == record


def test_delete(client: FlaskClient, problem_of: Expect) -> None:
    """A deleted model is gone: an empty 204, then 404 everywhere, while other versions stay."""
    train(client, name="a")
    train(client, name="a")
    problem_of(client.delete("/models/a"), 409)
    response = client.delete("/models/a@2")
    assert (response.status_code, response.get_data(), "Content-Type" in response.headers) == (204, b"", False)
    problem_of(client.get("/models/a@2"), 404)
    problem_of(client.delete("/models/a@2"), 404)
    assert client.get("/models/a").json["version"] == 1
    assert client.delete("/models/a").status_code == 204
    assert client.get("/models").json == {"models": [], "next": None}


def test_other_workers_see_it(make_app: MakeApp, problem_of: Expect) -> None:
    """An application beside this one sees new, changed and deleted models at its next request."""
    here, there = make_app().test_client(), make_app().test_client()
    train(here, name="a")
    assert there.get("/models/a").status_code == 200
    there.patch("/models/a", json={"description": "seen"})
    assert here.get("/models/a").json["description"] == "seen"
    answer = there.post("/models/a/predict", json={"data": {"rows": [[1]]}})
    assert answer.json["predictions"] == ["a"]
    here.delete("/models/a")
    problem_of(there.get("/models/a"), 404)
    problem_of(there.post("/models/a/predict", json={"data": {"rows": [[1]]}}), 404)


def test_head(client: FlaskClient) -> None:
    """HEAD is GET without the body."""
    train(client, name="a")
    response = client.head("/models/a")
    assert (response.status_code, response.get_data()) == (200, b"")
    assert int(response.headers["Content-Length"]) == len(client.get("/models/a").get_data())
