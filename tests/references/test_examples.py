"""The examples for references run as they are."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"


@pytest.mark.slow
@pytest.mark.parametrize(("name", "needs"), [("to_icechunk", "icechunk"), ("with_virtualizarr", "virtualizarr")])
def test_example(name: str, needs: str, tmp_path: Path) -> None:
    pytest.importorskip(needs)
    command = [sys.executable, EXAMPLES / f"{name}.py", tmp_path]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    assert "equal to what netCDF4 reads" in done.stdout
    assert "Warning" not in done.stderr


def test_round_trips() -> None:
    """Each writer's references are read by each reader."""
    for library in ("xarray", "zarr", "netCDF4"):
        pytest.importorskip(library)
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / "references.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) >= 5
    assert all(line.endswith(": right") or ": left out: " in line for line in lines), done.stdout
    assert "hyperslab's .json read by zarr-python: right" in lines
