"""Shared by the tests of the bench: small studies, and runs of the command line as users make them."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest
import yaml

from command_line import run_hyperslab

TINY = {
    "name": "tiny",
    "title": "small enough for a test",
    "formats": ["raw", "npy"],
    "shape": [64, 32, 32],
    "operations": ["write", "read-all"],
}


@pytest.fixture(scope="session")
def tiny() -> dict[str, object]:
    """The tiny study."""
    return TINY


@pytest.fixture
def study(tmp_path: Path) -> Callable[..., Path]:
    """Writes a study file: the tiny one with the test's changes."""

    def write(**different: object) -> Path:
        path = tmp_path / "study.yaml"
        path.write_text(yaml.safe_dump({**TINY, **different}))
        return path

    return write


@pytest.fixture
def hyperslab() -> Callable[..., subprocess.CompletedProcess[str]]:
    """Runs the command line and returns its output and exit status."""

    def run(*arguments: object) -> subprocess.CompletedProcess[str]:
        return run_hyperslab(*arguments)

    return run


@pytest.fixture
def on_disk(tmp_path: Path) -> Path:
    """A directory whose files can be made cold. Skips if temporary files are in memory."""
    if _is_in_memory(tmp_path):
        pytest.skip("temporary files are on tmpfs: nothing there can be cold")
    return tmp_path


def _is_in_memory(path: Path) -> bool:
    mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    nearest = max((m for m in mounts if path.resolve().is_relative_to(m[1])), key=lambda m: len(m[1]))
    return nearest[2] in ("tmpfs", "ramfs")
