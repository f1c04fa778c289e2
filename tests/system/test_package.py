"""What a build of the package contains."""

from __future__ import annotations

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

from service import __version__
from tests.running import PROJECT

pytestmark = pytest.mark.system


def test_wheel_holds_code_and_data(tmp_path: Path) -> None:
    """Every file of the package is in the wheel, not only its modules, and the version is the package's own."""
    build = [sys.executable, "-m", "hatchling", "build", "--target", "wheel", "--directory", str(tmp_path)]
    subprocess.run(build, cwd=PROJECT, check=True, capture_output=True)
    (wheel,) = tmp_path.glob("*.whl")
    assert wheel.name.startswith(f"treewright-{__version__}-")
    with zipfile.ZipFile(wheel) as archive:
        packed = {name for name in archive.namelist() if ".dist-info/" not in name}
    present = [path for path in (PROJECT / "service").rglob("*") if path.is_file() and "__pycache__" not in path.parts]
    assert packed == {path.relative_to(PROJECT).as_posix() for path in present}
    assert {"service/samples/titanic.csv", "service/py.typed"} <= packed
