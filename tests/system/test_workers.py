"""Two worker processes are one service: what one of them stores or deletes, the other one knows at once."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest

from service.samples import DAYS, train_tennis
from tests.running import Serve

pytestmark = pytest.mark.system

TENNIS_QUESTION = {"data": {"records": DAYS}}


def test_a_model_serves_at_once_in_the_worker_that_did_not_train_it(serve: Serve) -> None:
    """One worker trains while the other is suspended; then that one alone predicts, lists and audits."""
    server = serve()
    first, second = server.workers()
    with server.only(first) as client:
        assert client.post("/train", train_tennis()).status == 201
    with server.only(second) as client:
        answer = client.post("/models/play-tennis/predict", TENNIS_QUESTION)
        assert (answer.status, answer.body["predictions"]) == (200, ["No"])
        assert [model["name"] for model in client.get("/models").body["models"]] == ["play-tennis"]
        assert client.get("/models/play-tennis/splits?node=0").body["splits"][0]["feature"] == "outlook"


def test_a_newer_version_answers_for_the_name_in_every_worker(serve: Serve) -> None:
    """A worker that has served version 1 under the bare name serves version 2 as soon as the other has trained it."""
    server = serve()
    first, second = server.workers()
    for trainer, version in ((first, 1), (second, 2)):
        with server.only(trainer) as client:
            assert client.post("/train", train_tennis()).body["version"] == version
        for worker in (first, second):
            with server.only(worker) as client:
                assert client.post("/models/play-tennis/predict", TENNIS_QUESTION).body["model"]["version"] == version


def test_a_deleted_model_is_gone_from_every_worker(serve: Serve) -> None:
    """Both workers have the model loaded; once one deletes it, every route of both answers 404."""
    server = serve()
    first, second = server.workers()
    assert server.client.post("/train", train_tennis()).status == 201
    for worker in (first, second):
        with server.only(worker) as client:
            assert client.post("/models/play-tennis/predict", TENNIS_QUESTION).status == 200
    with server.only(first) as client:
        assert client.ask("DELETE", "/models/play-tennis").status == 204
    for worker in (first, second):
        with server.only(worker) as client:
            assert client.post("/models/play-tennis/predict", TENNIS_QUESTION).status == 404
            assert client.get("/models/play-tennis").status == 404
            assert client.get("/models/play-tennis/splits").status == 404
            assert client.get("/models").body["models"] == []


def test_versions_of_a_name_have_no_gap_under_concurrent_training(serve: Serve) -> None:
    """Twelve trainings of one name, in both workers at the same time, become versions 1 to 12."""
    server = serve()
    with ThreadPoolExecutor(6) as threads:
        answers = list(threads.map(lambda _: server.client.post("/train", train_tennis()), range(12)))
    assert [answer.status for answer in answers] == [201] * 12
    assert sorted(answer.body["version"] for answer in answers) == list(range(1, 13))
