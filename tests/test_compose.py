"""compose.yaml says what the service and its proxy understand."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
import yaml

from service.__main__ import main
from service.settings import Settings
from service.store.database import locate_database

PROJECT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def services() -> dict[str, dict[str, Any]]:
    """The services by name."""
    compose = yaml.safe_load((PROJECT / "compose.yaml").read_text())
    assert {name for service in compose["services"].values() for name in find_volumes(service)} == set(
        compose["volumes"]
    )
    found: dict[str, dict[str, Any]] = compose["services"]
    return found


def find_volumes(service: dict[str, Any]) -> set[str]:
    """The named volumes of a service."""
    sources = {volume.partition(":")[0] for volume in service.get("volumes", [])}
    return {source for source in sources if not source.startswith(".")}


def test_what_is_there(services: dict[str, dict[str, Any]]) -> None:
    """A proxy, web processes, a worker and PostgreSQL; only the proxy has a port, and only on this machine."""
    assert set(services) == {"database", "web", "worker", "proxy"}
    assert {name for name, service in services.items() if "ports" in service} == {"proxy"}
    assert services["proxy"]["ports"][0].startswith("127.0.0.1:")
    for service in services.values():
        for other in service.get("depends_on", {}):
            assert other in services


@pytest.mark.parametrize("name", ["web", "worker"])
def test_commands_and_settings(services: dict[str, dict[str, Any]], name: str) -> None:
    """The containers run commands that there are, with settings that there are, on the database that is beside them."""
    service = services[name]
    assert service["command"][0] in main.commands
    environment = {key: re.sub(r"\$\{\w+:-(\w+)\}", r"\1", text) for key, text in service["environment"].items()}
    assert all(key.removeprefix("TREEWRIGHT_").lower() in Settings.__annotations__ for key in environment)
    settings = Settings.from_environment(environment)
    url = locate_database(settings)
    database = services["database"]["environment"]
    password = re.sub(r"\$\{\w+:-(\w+)\}", r"\1", database["POSTGRES_PASSWORD"])
    assert (url.host, url.username, url.database, url.password) == (
        "database",
        database["POSTGRES_USER"],
        database["POSTGRES_DB"],
        password,
    )
    assert settings.models_directory() == Path(service["volumes"][0].partition(":")[2])
    assert settings.worker is False


def test_the_proxy_agrees_with_the_service(services: dict[str, dict[str, Any]]) -> None:
    """The proxy collects bodies of every size that the service takes, waits as long, and sends nothing twice."""
    path = services["proxy"]["volumes"][0].partition(":")[0]
    text = (PROJECT / path).read_text()
    size = re.search(r"client_max_body_size (\d+)m;", text)
    assert size is not None
    assert int(size[1]) * 2**20 > Settings().max_body_bytes
    assert text.count(f"proxy_read_timeout {Settings().timeout}s;") == 2
    assert "proxy_request_buffering on;" in text
    assert "proxy_next_upstream off;" in text
    assert re.search(r"location ~ \^/jobs/.*\n(?:.*\n)*?\s+proxy_buffering off;", text)
    assert f"listen {services['proxy']['ports'][0].rpartition(':')[2]};" in text
    assert "server web:8000;" in text
