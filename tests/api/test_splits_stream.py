"""Whole listings by Accept: NDJSON, CSV and Arrow have what pages have, and a stream that breaks off shows it."""

from __future__ import annotations

import csv
import io
import json
import tracemalloc
from typing import TYPE_CHECKING, Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from service.api.state import followers, recent, store
from service.formats.writers import ARROW, CSV, NDJSON
from service.listing.query import SplitQuery
from service.streaming import stream_splits

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

ONE_BY_ONE = settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
FILTERS = st.fixed_dictionaries(
    {},
    optional={
        "node": st.integers(0, 2),
        "feature": st.sampled_from(["outlook", "temperature", "windy"]),
        "type": st.sampled_from(["threshold", "subset", "missing"]),
        "chosen": st.sampled_from(["true", "false"]),
        "admissible": st.sampled_from(["true", "false"]),
        "top": st.integers(1, 4),
        "measure": st.sampled_from(["gini_gain", "gain_ratio", "goodness"]),
    },
)


def read(client: FlaskClient, media_type: str, name: str = "golf", **query: Any) -> bytes:  # noqa: ANN401 - arguments
    """The body of a stream."""
    # closed, as a server does: that gives the seat back
    with client.get(f"/models/{name}/splits", query_string=query, headers={"Accept": media_type}) as response:
        assert (response.status_code, response.mimetype) == (200, media_type), response.data
        return response.data


def read_pages(client: FlaskClient, name: str = "golf", **query: Any) -> list[dict[str, Any]]:  # noqa: ANN401 - arguments
    """The splits of all pages, by position."""
    arguments = {"sort": "position", "limit": 7, **query}
    body = client.get(f"/models/{name}/splits", query_string=arguments).json
    splits: list[dict[str, Any]] = body["splits"]
    while body["next"]:
        body = client.get(body["next"]).json
        splits += body["splits"]
    return splits


@ONE_BY_ONE
@given(query=FILTERS)
@pytest.mark.usefixtures("model")
def test_lines_are_the_splits_of_all_pages(client: FlaskClient, query: dict[str, Any]) -> None:
    """Under any filters the lines of NDJSON are the splits of all pages by position, in their order."""
    lines = [json.loads(line) for line in read(client, NDJSON, **query).splitlines()]
    assert lines == read_pages(client, **query)


@pytest.mark.usefixtures("model")
def test_cursors_work_in_streams(client: FlaskClient) -> None:
    """A cursor of the pages by position is where a stream goes on."""
    everything = read_pages(client)
    page = client.get("/models/golf/splits?sort=position&limit=5").json
    cursor = page["next"].split("cursor=")[1].split("&")[0]
    assert [json.loads(line) for line in read(client, NDJSON, cursor=cursor).splitlines()] == everything[5:]


@pytest.fixture
def odd(client: FlaskClient) -> str:
    """A model with all kinds of splits: gaps, whole numbers beyond floats, infinite neighbours, grades."""
    data = {
        "big": [2**53 + 1, 2**53 + 3, 2**53 + 5, None, 2**53 + 9, 2**53 + 11, 2**53 + 13, 2**53 + 15],
        "flag": [True, False, True, None, False, True, True, False],
        "name": ["p", "q,r", 'say "r"', None, "p", "q,r", "s", "p"],
        "y": list("aababbab"),
    }
    body = {"data": {"columns": data}, "target": "y", "name": "odd", "parameters": {"max_depth": 2}}
    assert client.post("/train", json=body).status_code == 201
    return "odd"


def test_csv_has_the_same_cells(client: FlaskClient, odd: str) -> None:
    """Each cell of a CSV line is what the page has at its place, lists as JSON, nothing where that is null."""
    lines = list(csv.DictReader(io.StringIO(read(client, CSV, odd).decode(), newline="")))
    splits = read_pages(client, odd)
    assert len(lines) == len(splits) > 10
    for line, split in zip(lines, splits, strict=True):
        assert (int(line["node"]), line["feature"]) == (split["node"], split["feature"])
        assert (line["rank"] or None) == (None if split["rank"] is None else str(split["rank"]))
        assert (line["chosen"], line["admissible"]) == tuple(
            json.dumps(split[name]) for name in ("chosen", "admissible")
        )
        assert json.loads(line["branches"]) == split["branches"]
        assert (json.loads(line["categories"]) if line["categories"] else None) == split["split"].get("categories")
        for name, score in split["scores"].items():
            assert (float(line[name]) if line[name] else None) == score
        for name in ("threshold", "below", "above"):
            assert line[name] == str(split["split"].get(name, ""))


def test_arrow_has_the_same_columns(client: FlaskClient, odd: str) -> None:
    """An Arrow stream has a row for each split; whole numbers that floats cannot hold stand beside them, exact."""
    with pa.ipc.open_stream(read(client, ARROW, odd)) as reader:
        assert reader.schema.metadata[b"retention"] == b"data"
        rows = reader.read_all().to_pylist()
    splits = read_pages(client, odd)
    assert len(rows) == len(splits)
    exact = 0
    for row, split in zip(rows, splits, strict=True):
        for name in ("node", "rank", "chosen", "feature", "score", "admissible", "reason"):
            assert row[name] == split[name], name
        assert {name: row[name] for name in split["scores"]} == split["scores"]
        assert row["type"] == split["split"]["type"]
        if split["feature"] == "big" and row["type"] == "threshold":
            exact += 1
            assert row["whole"] == {name: split["split"][name] for name in ("threshold", "below", "above")}
        assert row["branches"] == split["branches"]
    assert exact


@pytest.mark.parametrize("target", [["height"], ["height", "weight"]])
def test_numbers_and_vectors(client: FlaskClient, target: list[str]) -> None:
    """Of numbers an Arrow stream has the means and variances, as lists where several are predicted."""
    columns = {"age": [23, 41, 35, 52], "height": [1.7, 1.8, 1.6, 1.9], "weight": [60.0, 82, 58, 90]}
    body = {"data": {"columns": columns}, "target": target, "features": ["age"], "name": "body"}
    assert client.post("/train", json=body).status_code == 201
    rows = pa.ipc.open_stream(read(client, ARROW, "body")).read_all().to_pylist()
    for row, split in zip(rows, read_pages(client, "body"), strict=True):
        assert [b["known"]["mean"] for b in row["branches"]] == [b["known"]["mean"] for b in split["branches"]]


@pytest.mark.usefixtures("model")
def test_json_unless_a_stream_is_asked_for(client: FlaskClient) -> None:
    """Whoever accepts anything, or nothing that is known here, gets a page; the answer depends on Accept."""
    for accept in ("*/*", "text/html", "application/json, text/csv;q=0.5"):
        response = client.get("/models/golf/splits", headers={"Accept": accept})
        assert response.mimetype == "application/json"
        assert "Accept" in response.headers["Vary"]


@pytest.mark.usefixtures("model")
@pytest.mark.parametrize(
    ("query", "place"),
    [("sort=rank", "?sort"), ("limit=3", "?limit"), ("cursor=x", "?cursor"), ("feature=z", "?feature")],
)
def test_what_a_stream_cannot_do(client: FlaskClient, places_of: Expect, query: str, place: str) -> None:
    """An order by rank, pages, and what is not there are refused before anything is streamed, and no seat is lost."""
    for _ in range(5):
        response = client.get(f"/models/golf/splits?{query}", headers={"Accept": NDJSON})
        assert set(places_of(response, 422)) == {place}
    assert read(client, NDJSON)


@pytest.mark.usefixtures("model")
def test_seats(client: FlaskClient, problem_of: Expect) -> None:
    """No more streams at a time than there are seats, which they give back at their end or when they are left."""
    with client.application.app_context():
        seats = followers()
    held = []
    while seats.acquire(blocking=False):
        held.append(1)
    response = client.get("/models/golf/splits", headers={"Accept": CSV})
    assert problem_of(response, 429)["detail"]
    assert response.headers["Retry-After"]
    seats.release()
    for _ in range(3):
        left = client.get("/models/golf/splits", headers={"Accept": CSV})
        next(left.response)
        left.close()
        assert read(client, CSV)
    for _ in held[1:]:
        seats.release()


def test_summary_streams_what_was_kept(client: FlaskClient, tennis: dict[str, list[Any]]) -> None:
    """A summary streams its splits and says in a header that it is one."""
    body = {"data": {"columns": tennis}, "target": "play", "name": "brief", "retain": "summary"}
    assert client.post("/train", json=body).status_code == 201
    with client.get("/models/brief/splits", headers={"Accept": NDJSON}) as response:
        assert response.headers["Treewright-Retention"] == "summary"
        lines = response.data.splitlines()
    assert [json.loads(line) for line in lines] == read_pages(client, "brief")


def test_nothing_kept(client: FlaskClient, problem_of: Expect, tennis: dict[str, list[Any]]) -> None:
    """Where nothing was kept a stream is the same 409 as a page."""
    body = {"data": {"columns": tennis}, "target": "play", "name": "bare", "retain": "none"}
    client.post("/train", json=body)
    assert "retain" in problem_of(client.get("/models/bare/splits", headers={"Accept": CSV}), 409)["detail"]


def test_memory_does_not_grow_with_the_listing(make_app: MakeApp) -> None:
    """Ten times as many nodes, and so ten times the listing, take no more memory to stream."""
    app = make_app()
    generator = np.random.default_rng(2)
    columns: dict[str, Any] = {f"x{i}": generator.normal(size=3000).tolist() for i in range(4)}
    columns["y"] = generator.choice(["a", "b"], 3000).tolist()
    peaks, lines = [], []
    for depth in (1, 9):
        body = {"data": {"columns": columns}, "target": "y", "name": f"d{depth}", "parameters": {"max_depth": depth}}
        assert app.test_client().post("/train", json=body).status_code == 201
        with app.app_context():
            record = store().find(f"d{depth}")
            for _ in range(2):  # the first fills caches
                tracemalloc.start()
                lines.append(
                    sum(p.count(b"\n") for p in stream_splits(record, SplitQuery(), store(), recent(), NDJSON))
                )
                peaks.append(tracemalloc.get_traced_memory()[1])
                tracemalloc.stop()
    assert lines[3] > 4 * lines[1]
    assert peaks[3] < 1.3 * peaks[1]


@pytest.mark.usefixtures("model")
def test_a_whole_stream_counts(client: FlaskClient) -> None:
    """Once the whole listing was streamed its number of splits is kept; parts, or streams left early, count nothing."""
    with client.application.app_context():
        models = store()
    tag = client.get("/models/golf").headers["ETag"]
    read(client, NDJSON, node=0)
    read(client, NDJSON, top=1)
    with client.get("/models/golf/splits", headers={"Accept": NDJSON}) as left:
        assert left.status_code == 200
    assert models.find("golf").splits_total is None
    lines = read(client, CSV).count(b"\r\n") - 1
    assert models.find("golf").splits_total == lines == client.get("/models/golf/splits?limit=1").json["total"]
    assert client.get("/models/golf/splits?limit=1&top=1").json["total"] < lines
    assert client.get("/models/golf").headers["ETag"] == tag
