"""The audit over HTTP: every candidate, filtered, ranked, in pages."""

from __future__ import annotations

from itertools import pairwise
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from flask.testing import FlaskClient

    from tests.api.conftest import Expect
    from tests.conftest import MakeApp

pytestmark = pytest.mark.usefixtures("model")


def listing(client: FlaskClient, **query: object) -> dict[str, Any]:
    """One page of the splits of the model golf."""
    response = client.get("/models/golf/splits", query_string=query)
    assert response.status_code == 200, response.json
    body: dict[str, Any] = response.json
    return body


def test_page(client: FlaskClient, model: dict[str, Any]) -> None:
    """A page names the model, the criterion, the measure, the classes and what was kept."""
    body = listing(client)
    assert body["model"] == {"id": model["id"], "name": "golf", "version": 1}
    assert (body["criterion"], body["classes"], body["retention"]) == ("gini", ["no", "yes"], "data")
    assert body["next"] is None
    assert body["total"] == len(body["splits"])
    assert [node["node"] for node in body["nodes"]] == sorted({split["node"] for split in body["splits"]})
    assert body["nodes"][0]["counts"] == [5, 9]
    assert set(body["nodes"][0]["margin"]) == {"any", "other_feature", "any_relative", "other_feature_relative"}


def test_splits_agree_with_the_tree(client: FlaskClient) -> None:
    """In each inner node exactly one split is chosen: the first, with the feature and the form that the tree has."""
    nodes = client.get("/models/golf/tree").json["nodes"]
    chosen = listing(client, chosen="true")["splits"]
    assert [split["node"] for split in chosen] == [node["node"] for node in nodes if not node["leaf"]]
    for split in chosen:
        node = nodes[split["node"]]
        assert (split["rank"], split["admissible"], split["reason"]) == (1, True, None)
        assert (split["feature"], split["split"]) == (node["feature"], node["split"])
        assert [branch["routed"]["counts"] for branch in split["branches"]] == [
            nodes[child]["counts"] for child in node["children"]
        ]


def test_order(client: FlaskClient) -> None:
    """Best first within a node, the inadmissible last, with their reason and without a rank."""
    splits = listing(client, node=0)["splits"]
    ranks = [split["rank"] for split in splits]
    ranked = [rank for rank in ranks if rank is not None]
    assert ranked == list(range(1, len(ranked) + 1))
    assert ranks == ranked + [None] * (len(ranks) - len(ranked))
    scores = [split["score"] for split in splits if split["admissible"]]
    assert all(here >= after - 1e-12 for here, after in pairwise(scores))
    assert all((split["rank"] is None) == (split["reason"] is not None) for split in splits)


def test_filters(client: FlaskClient) -> None:
    """Each filter gives exactly those of all splits that fit it."""
    everything = listing(client)["splits"]
    filters: list[tuple[dict[str, Any], Any]] = [
        ({"node": 0}, lambda split: split["node"] == 0),
        ({"feature": "temperature"}, lambda split: split["feature"] == "temperature"),
        ({"type": "subset"}, lambda split: split["split"]["type"] == "subset"),
        ({"type": "threshold"}, lambda split: split["split"]["type"] == "threshold"),
        ({"type": "multiway"}, lambda split: split["split"]["type"] == "multiway"),
        ({"chosen": "true"}, lambda split: split["chosen"]),
        ({"chosen": "false"}, lambda split: not split["chosen"]),
        ({"admissible": "true"}, lambda split: split["admissible"]),
        ({"admissible": "false"}, lambda split: not split["admissible"]),
        ({"node": 0, "feature": "windy", "admissible": "true"},
         lambda split: split["node"] == 0 and split["feature"] == "windy" and split["admissible"]),
    ]  # fmt: skip
    for query, fits in filters:
        body = listing(client, **query)
        assert body["splits"] == [split for split in everything if fits(split)], query
        assert body["total"] == len(body["splits"]), query


def test_top(client: FlaskClient) -> None:
    """The best so many of each node."""
    everything = listing(client)["splits"]
    best = listing(client, top=2)["splits"]
    expected = [split for split in everything if split["rank"] is not None and split["rank"] <= 2]
    assert [(split["node"], split["rank"]) for split in best if split["rank"]] == [
        (split["node"], split["rank"]) for split in expected
    ]


def test_measure(client: FlaskClient) -> None:
    """Another measure ranks anew, and the page says which."""
    body = listing(client, node=0, measure="gain_ratio", admissible="true")
    values = [split["scores"]["gain_ratio"] for split in body["splits"]]
    assert body["measure"] == "gain_ratio"
    assert all(here >= after - 1e-12 for here, after in pairwise(values))


@pytest.mark.parametrize("query", [{}, {"node": 0}, {"sort": "position"}, {"measure": "gain_ratio"}, {"top": 3}])
def test_pages(client: FlaskClient, query: dict[str, Any]) -> None:
    """Pages of any size put together are the whole listing, and keep the filters."""
    whole = listing(client, **query)["splits"]
    for limit in (1, 7):
        url, seen = f"/models/golf/splits?limit={limit}", []
        url += "".join(f"&{name}={value}" for name, value in query.items())
        while url:
            body = client.get(url).json
            assert len(body["splits"]) <= limit
            seen += body["splits"]
            url = body["next"]
        assert seen == whole


def test_position(client: FlaskClient) -> None:
    """By position, cuts ascend within a feature, and the ranks are those of the ranked listing."""
    splits = listing(client, node=0, sort="position")["splits"]
    cuts = [split["split"]["threshold"] for split in splits if split["split"]["type"] == "threshold"]
    assert cuts == sorted(cuts)
    by_rank = {str(split["split"]) + split["feature"]: split["rank"] for split in listing(client, node=0)["splits"]}
    assert {str(split["split"]) + split["feature"]: split["rank"] for split in splits} == by_rank


@pytest.mark.parametrize(
    ("query", "place"),
    [
        ({"feature": "none"}, "?feature"),
        ({"measure": "magic"}, "?measure"),
        ({"cursor": "x"}, "?cursor"),
        ({"cursor": ""}, "?cursor"),
        ({"cursor": "OTk6MA"}, "?cursor"),
    ],
)
def test_faults(client: FlaskClient, places_of: Expect, query: dict[str, Any], place: str) -> None:
    """A feature or measure that the model does not have, or a made-up cursor, is a 422 that names it."""
    assert set(places_of(client.get("/models/golf/splits", query_string=query), 422)) == {place}


def test_no_such_node(client: FlaskClient, problem_of: Expect) -> None:
    """A node or a model that is not there is a 404."""
    problem_of(client.get("/models/golf/splits?node=999"), 404)
    problem_of(client.get("/models/golf/splits?node=9223372036854775807"), 404)
    problem_of(client.get("/models/none/splits"), 404)


def test_largest_page(make_app: MakeApp, places_of: Expect) -> None:
    """No page has more splits than the setting allows."""
    client = make_app(max_page=3).test_client()
    body = listing(client)
    assert len(body["splits"]) == 3
    assert body["next"]
    assert set(places_of(client.get("/models/golf/splits?limit=4"), 422)) == {"?limit"}


def test_nothing_kept(client: FlaskClient, problem_of: Expect, tennis: dict[str, list[Any]]) -> None:
    """A model that kept nothing for the audit answers 409 and says how to have it."""
    body = {"data": {"columns": tennis}, "target": "play", "name": "bare", "retain": "none"}
    client.post("/train", json=body)
    assert "retain" in problem_of(client.get("/models/bare/splits"), 409)["detail"]
    assert client.get("/models/bare/tree").status_code == 200


def test_summary_kept(make_app: MakeApp, tennis: dict[str, list[Any]]) -> None:
    """A model that kept a summary lists its best splits as a model with all data does, and says that it is one."""
    client = make_app(summary_splits=2).test_client()
    body = {"data": {"columns": tennis}, "target": "play", "name": "brief", "retain": "summary"}
    assert client.post("/train", json=body).status_code == 201
    brief = client.get("/models/brief/splits").json
    assert brief["retention"] == "summary"
    assert brief["warnings"]
    everything = {(split["node"], str(split["split"]), split["feature"]): split for split in listing(client)["splits"]}
    for split in brief["splits"]:
        assert split == everything[split["node"], str(split["split"]), split["feature"]]
    per_feature = [(split["node"], split["feature"]) for split in brief["splits"]]
    assert max(map(per_feature.count, per_feature)) == 2


@pytest.mark.parametrize("limits", [{}, {"min_samples_leaf": 3}, {"min_weight_leaf": 100}, {"min_gain": 1}])
def test_a_summary_is_in_order(client: FlaskClient, tennis: dict[str, list[Any]], limits: dict[str, float]) -> None:
    """The best two of each node and feature are those of a model with all data, also where none could be chosen."""
    answers = []
    for retain in ("data", "summary"):
        body = {"data": {"columns": tennis}, "target": "play", "retain": retain, "parameters": limits}
        url = client.post("/train", json=body).json["links"]["splits"]
        pages = [client.get(f"{url}?top=2&limit=1000&feature={name}").json for name in tennis if name != "play"]
        answers.append([page["splits"] for page in pages] + [client.get(f"{url}?top=2&limit=1000").json["splits"]])
    assert answers[0] == answers[1]
    assert any(not split["admissible"] for split in answers[0][-1]) or not limits


@pytest.mark.parametrize("measure", ["goodness", "entropy_cost", "gain_ratio", "gini_gain"])
def test_what_another_measure_would_have_taken(client: FlaskClient, model: dict[str, Any], measure: str) -> None:
    """The head names the best admissible split by the measure, its lead and its distance from the tree's split."""
    path = f"/models/{model['id']}/splits?limit=1000"
    sign = -1 if measure.endswith("cost") else 1
    for head in client.get(f"{path}&measure={measure}").json["nodes"]:
        listed = client.get(f"{path}&sort=position&node={head['node']}").json["splits"]
        rivals = [split for split in listed if split["admissible"] and split["scores"][measure] is not None]
        chosen = next((split for split in listed if split["chosen"]), None)
        shown = head["by_measure"]
        assert shown["measure"] == measure
        if not rivals:
            assert (shown["split"], shown["gap"]) == (None, None)
            continue
        scores = [sign * split["scores"][measure] for split in rivals]
        best = next(split for split, score in zip(rivals, scores, strict=True) if score >= max(scores) - 1e-12)
        assert shown["split"] == {"feature": best["feature"], **best["split"]}
        assert shown["score"] == best["scores"][measure]
        assert shown["margin"]["any"] == (pytest.approx(max(scores) - sorted(scores)[-2]) if len(scores) > 1 else None)
        others = [s for split, s in zip(rivals, scores, strict=True) if split["feature"] != best["feature"]]
        assert shown["margin"]["other_feature"] == (pytest.approx(max(scores) - max(others)) if others else None)
        if chosen is None:
            assert (shown["same"], shown["chosen_score"], shown["gap"]) == (None, None, None)
            continue
        assert shown["same"] == (best == chosen)
        assert shown["gap"] == pytest.approx(max(scores) - sign * chosen["scores"][measure])


def test_no_measure_no_comparison(client: FlaskClient, model: dict[str, Any]) -> None:
    """Without another measure heads say nothing of one."""
    assert all("by_measure" not in head for head in client.get(f"/models/{model['id']}/splits").json["nodes"])
