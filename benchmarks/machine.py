"""What the figures were measured on, and with which versions."""

from __future__ import annotations

import os
import platform
import subprocess
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import numpy as np

PROJECT = Path(__file__).parents[1]
PACKAGES = ("numpy", "joblib", "orjson", "flask", "gunicorn", "scikit-learn", "lightgbm", "ydf")
BESIDE = ("mlserver", "mlserver-sklearn", "numpy", "scikit-learn")
VARIABLES = ("OPENBLAS_CORETYPE", "OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "LOKY_MAX_CPU_COUNT")


def describe_machine() -> list[str]:
    """Lines for a list: processor, memory, system, versions, what the environment sets, the machine's other load."""
    set_here = [f"{name}={os.environ[name]}" for name in VARIABLES if name in os.environ]
    processor = _find(Path("/proc/cpuinfo"), "model name") or platform.processor()
    system = f"{_gibibytes():.1f} GiB of memory, {platform.system()} {platform.release()}"
    return [
        f"{os.cpu_count()} cores, {processor}, {system}",
        f"Python {platform.python_version()}, {', '.join(filter(None, map(_version, PACKAGES)))}",
        f"numpy {_describe_numpy()}; environment: {', '.join(set_here) or 'nothing that steers threads or kernels'}",
        f"load average over a minute at the start: {os.getloadavg()[0]:.1f}",
    ]


def describe_mlserver(python: Path) -> str | None:
    """The versions in MLServer's environment, or None where there is none."""
    if not python.exists():
        return None
    code = f"from importlib.metadata import version; print(*(n + ' ' + version(n) for n in {BESIDE}), sep=', ')"
    return subprocess.run([python, "-c", code], capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603


def find_commit() -> str:
    """The short hash of the commit, with a plus where the service differs from it."""
    commit = _git("rev-parse", "--short", "HEAD")
    return commit + "+" if commit and _git("status", "--porcelain", "service") else commit


def _git(*arguments: str) -> str:
    try:
        command = ["git", *arguments]
        return subprocess.run(command, cwd=PROJECT, capture_output=True, text=True, check=True).stdout.strip()  # noqa: S603
    except (OSError, subprocess.CalledProcessError):  # not a checkout
        return ""


def _version(package: str) -> str:
    try:
        return f"{package} {version(package)}"
    except PackageNotFoundError:
        return ""


def _find(path: Path, key: str) -> str:
    if not path.exists():
        return ""
    lines = path.read_text(encoding="utf-8").splitlines()
    return next((line.partition(":")[2].strip() for line in lines if line.startswith(key)), "")


def _gibibytes() -> float:
    return int((_find(Path("/proc/meminfo"), "MemTotal") or "0").split()[0]) / 2**20


def _describe_numpy() -> str:
    config = np.show_config(mode="dicts")
    blas = config["Build Dependencies"]["blas"]
    return f"with {blas['name']} {blas['version']}, compiled by {config['Compilers']['c']['name']}"
