"""The settings are what their table, the environment and the documentation say."""

from __future__ import annotations

import dataclasses
import re
from pathlib import Path

import pytest

from service.errors import SettingsError
from service.settings import Settings, variable_of

DOCS = Path(__file__).parents[1] / "docs" / "settings.md"


def test_the_documentation_lists_every_setting() -> None:
    """The table in docs/settings.md has each setting's variable, default and help, in the order of the code."""
    rows = [line.strip("| ").split(" | ") for line in DOCS.read_text().splitlines() if line.startswith("| `")]
    documented = [(variable.strip("`"), default.strip("`"), explanation) for variable, default, explanation in rows]
    assert documented == [
        (variable_of(field.name), written(field.default), field.metadata["help"])
        for field in dataclasses.fields(Settings)
    ]


def written(default: object) -> str:
    """A default as it would stand in the environment."""
    return str(default).lower() if isinstance(default, bool) else str(default)


def test_the_defaults_can_be_said() -> None:
    """Every default, written into the environment, is read back as itself."""
    environment = {variable_of(field.name): written(field.default) for field in dataclasses.fields(Settings)}
    assert Settings.from_environment(environment) == Settings() == Settings.from_environment({})


def test_variables_are_read() -> None:
    """A number, a switch, a choice and a text are read from their variables, spaces and case aside."""
    settings = Settings.from_environment(
        {
            "TREEWRIGHT_MAX_ROWS": " 1000 ",
            "TREEWRIGHT_SAMPLE": "No",
            "TREEWRIGHT_LOG_LEVEL": "debug",
            "TREEWRIGHT_MODELS_URL": "/data/Models",
        }
    )
    assert settings == Settings(max_rows=1000, sample=False, log_level="DEBUG", models_url="/data/Models")


@pytest.mark.parametrize("text", ["1", "true", "YES", "on"])
def test_switches(text: str) -> None:
    """A switch has several words for on."""
    assert Settings.from_environment({"TREEWRIGHT_SAMPLE": text}).sample is True


def test_what_is_not_ours_is_left_alone() -> None:
    """Empty variables count as unset, and unknown ones, such as Kubernetes sets for a service's port, do no harm."""
    environment = {"TREEWRIGHT_MAX_ROWS": "", "TREEWRIGHT_PORT": "tcp://10.0.0.1:8000", "MAX_ROWS": "x"}
    assert Settings.from_environment(environment) == Settings()


@pytest.mark.parametrize(
    ("variable", "text", "message"),
    [
        ("TREEWRIGHT_MAX_ROWS", "many", "'many' is not a whole number"),
        ("TREEWRIGHT_MAX_ROWS", "1.5", "'1.5' is not a whole number"),
        ("TREEWRIGHT_MAX_ROWS", "0", "0 is less than 1"),
        ("TREEWRIGHT_WORKERS", "-1", "-1 is less than 1"),
        ("TREEWRIGHT_SAMPLE", "maybe", "'maybe' is neither true nor false"),
        ("TREEWRIGHT_RETAIN", "all", "'all' is not one of data, summary, none"),
        ("TREEWRIGHT_LOG_LEVEL", "loud", "'loud' is not one of DEBUG, INFO, WARNING, ERROR"),
    ],
)
def test_bad_values(variable: str, text: str, message: str) -> None:
    """A value that cannot be used is refused with its variable and what would be right."""
    with pytest.raises(SettingsError, match=re.escape(f"{variable}: {message}")) as caught:
        Settings.from_environment({variable: text})
    assert [fault.place for fault in caught.value.faults] == [variable]


def test_all_bad_values_are_told_at_once() -> None:
    """Two mistakes are two faults of one error: an operator starts again once, not twice."""
    with pytest.raises(SettingsError) as caught:
        Settings.from_environment({"TREEWRIGHT_THREADS": "x", "TREEWRIGHT_TIMEOUT": "y"})
    assert [fault.place for fault in caught.value.faults] == ["TREEWRIGHT_THREADS", "TREEWRIGHT_TIMEOUT"]


@pytest.mark.parametrize(
    ("url", "path"),
    [
        ("models/", "models"),
        ("/data/a%20b", "/data/a%20b"),
        ("file:///data/a%20b", "/data/a b"),
        ("file://localhost/x", "/x"),
    ],
)
def test_models_directory(url: str, path: str) -> None:
    """Models lie in a directory, said as a path or as a file URL."""
    assert Settings(models_url=url).models_directory() == Path(path)


@pytest.mark.parametrize("url", ["s3://bucket/models", "memory://", "file://host/models", "https://host/models"])
def test_models_elsewhere(url: str) -> None:
    """Any other place is refused with the variable, not taken for a strange path."""
    with pytest.raises(SettingsError, match=r"TREEWRIGHT_MODELS_URL: .* give a local directory"):
        Settings(models_url=url).models_directory()


def test_a_password_is_not_printed() -> None:
    """The settings can be logged: the URL that may hold a password is left out."""
    assert "secret" not in repr(Settings(database_url="postgresql://me:secret@host/db"))


def test_settings_do_not_change() -> None:
    """Settings are frozen, so that all parts see the same."""
    with pytest.raises(dataclasses.FrozenInstanceError):
        Settings().max_rows = 1  # type: ignore[misc] # what is tested
