"""The service under test, with models of its own in a temporary directory."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from service.settings import Settings
from tests.making import open_app
from tests.oracle.contract import Service


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Service]:
    """One application for a module's tests, driven by Flask's test client."""
    models = tmp_path_factory.mktemp("models")
    settings = Settings.from_environment({"TREEWRIGHT_MODELS_URL": str(models), "TREEWRIGHT_LOG_LEVEL": "ERROR"})
    with open_app(settings) as app:
        yield Service(app.test_client())
