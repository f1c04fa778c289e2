"""What the tests of the image share: the engine's client, and the image itself, built once."""

from __future__ import annotations

import os
import subprocess
import uuid
from collections.abc import Iterator

import pytest

from tests.running import PROJECT

HARDENED = ["--read-only", "--tmpfs", "/tmp", "--cap-drop", "ALL", "--security-opt", "no-new-privileges"]  # noqa: S108 - in the container


def docker(*arguments: str) -> str:
    """What the engine's client prints; `tests/container/engine.sh` says which client and which engine."""
    client = os.environ.get("DOCKER")
    assert client, "run these tests by `make test-container`"
    done = subprocess.run([client, *arguments], capture_output=True, text=True, check=False)
    assert done.returncode == 0, f"docker {' '.join(arguments)}\n{done.stdout}{done.stderr}"
    return done.stdout.strip()


@pytest.fixture(scope="session")
def image() -> Iterator[str]:
    """The image built from this tree."""
    tag = f"treewright-test:{uuid.uuid4().hex[:12]}"
    python = os.environ.get("BASE_PYTHON", "3.13")
    docker("build", "--network", "host", "--build-arg", f"PYTHON={python}", "--tag", tag, str(PROJECT))
    yield tag
    docker("image", "rm", "--force", tag)
