"""What a model keeps: deleted on demand, less where that would be too much, of a summary as much as is asked for."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pathlib import Path

    from flask.testing import FlaskClient

    from service.settings import Settings
    from tests.api.conftest import Expect
    from tests.conftest import MakeApp


def find_files(settings: Settings, model_id: str) -> list[str]:
    """The names of a model's files."""
    folder: Path = next(settings.models_directory().glob(f"*/{model_id}"))
    return sorted(path.name for path in folder.iterdir())


def test_data_are_deleted(
    client: FlaskClient, settings: Settings, model: dict[str, Any], problem_of: Expect, tennis: dict[str, list[Any]]
) -> None:
    """The file is gone, the audit a 409 with its remedy, though it was asked just before; tree and predictions stay."""
    assert client.get("/models/golf/splits").json["splits"]
    assert find_files(settings, model["id"]) == ["data.joblib", "model.joblib"]
    assert client.delete("/models/golf/data").status_code == 204
    assert find_files(settings, model["id"]) == ["model.joblib"]
    for accept in ("application/json", "text/csv"):
        answer = client.get("/models/golf/splits", headers={"Accept": accept})
        assert "retain='data'" in problem_of(answer, 409)["detail"]
    assert "retain='data'" in problem_of(client.get("/models/golf/stability"), 409)["detail"]
    described = {"node": 0, "feature": "windy", "split": {"type": "subset", "categories": [["false"], ["true"]]}}
    problem_of(client.post("/models/golf/splits/score", json=described), 409)
    assert client.get("/models/golf").json["retention"] == "none"
    assert client.get("/models/golf/tree").status_code == 200
    assert client.post("/models/golf/predict", json={"data": {"columns": tennis}}).status_code == 200


@pytest.mark.usefixtures("model")
def test_deleting_again_changes_nothing(client: FlaskClient) -> None:
    """A second deletion is a 204 as well, and no change of the record: its tag stays."""
    tags = [client.delete("/models/golf/data").headers["ETag"] for _ in range(2)]
    assert tags[0] == tags[1] == client.get("/models/golf").headers["ETag"]


@pytest.mark.usefixtures("model")
def test_conditions(client: FlaskClient, problem_of: Expect) -> None:
    """With the tag of an older state nothing is deleted, with that of the newest the data are."""
    seen = client.get("/models/golf").headers["ETag"]
    client.patch("/models/golf", json={"description": "changed"})
    problem_of(client.delete("/models/golf/data", headers={"If-Match": seen}), 412)
    assert client.get("/models/golf/splits").status_code == 200
    newest = client.get("/models/golf").headers["ETag"]
    assert client.delete("/models/golf/data", headers={"If-Match": newest}).status_code == 204


def test_which_version(client: FlaskClient, problem_of: Expect, tennis: dict[str, list[Any]]) -> None:
    """A bare name of several versions is a conflict; of the one that is named the other keeps its data."""
    for _ in range(2):
        client.post("/train", json={"data": {"columns": tennis}, "target": "play", "name": "two"})
    assert "two@2" in problem_of(client.delete("/models/two/data"), 409)["detail"]
    assert client.delete("/models/two@1/data").status_code == 204
    assert client.get("/models/two@2/splits").status_code == 200
    problem_of(client.delete("/models/none/data"), 404)


def test_another_process_forgets_them(make_app: MakeApp, problem_of: Expect, tennis: dict[str, list[Any]]) -> None:
    """A worker that has the data in its memory does not answer from them once another one has deleted them."""
    here, there = make_app().test_client(), make_app().test_client()
    assert here.post("/train", json={"data": {"columns": tennis}, "target": "play", "name": "both"}).status_code == 201
    assert there.get("/models/both/splits?node=0").status_code == 200
    assert here.delete("/models/both/data").status_code == 204
    problem_of(there.get("/models/both/splits?node=0"), 409)


def test_too_much_to_keep(make_app: MakeApp, tennis: dict[str, list[Any]]) -> None:
    """Data over the limit become a summary, with a warning that names the setting; who asked for that is not warned."""
    client = make_app(max_retained_cells=41).test_client()
    body = {"data": {"columns": tennis}, "target": "play", "name": "large"}
    record = client.post("/train", json=body).json
    assert record["retention"] == "summary"
    assert any("TREEWRIGHT_MAX_RETAINED_CELLS" in warning for warning in record["warnings"])
    assert client.get("/models/large/splits").json["retention"] == "summary"
    assert client.post("/train", json=body | {"retain": "summary"}).json["warnings"] == []
    assert client.post("/train", json=body | {"retain": "none"}).json["retention"] == "none"


@pytest.mark.parametrize("kept", [1, 3])
def test_as_much_as_is_asked_for(client: FlaskClient, tennis: dict[str, list[Any]], kept: int) -> None:
    """`summary_splits` of the request goes before the setting: so many of each feature in each node, the best."""
    body = {"data": {"columns": tennis}, "target": "play", "name": "brief", "retain": "summary", "summary_splits": kept}
    assert client.post("/train", json=body).status_code == 201
    brief = client.get("/models/brief/splits").json
    assert f"the {kept} best" in brief["warnings"][0]
    assert "ranks count all" in brief["warnings"][0]
    by_other = client.get("/models/brief/splits?measure=entropy_cost").json
    assert "count only what was kept" in by_other["warnings"][0]
    counts = [(split["node"], split["feature"]) for split in brief["splits"]]
    assert max(map(counts.count, counts)) == kept


@pytest.mark.parametrize("kept", [0, 1001, "5", 2.5])
def test_how_much_cannot_be_kept(client: FlaskClient, places_of: Expect, tennis: dict[str, Any], kept: Any) -> None:  # noqa: ANN401 - any JSON
    """What is no whole number from 1 to 1000 is refused."""
    body = {"data": {"columns": tennis}, "target": "play", "summary_splits": kept}
    assert set(places_of(client.post("/train", json=body), 422)) == {"/summary_splits"}
