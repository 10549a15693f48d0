"""The example of references runs: each writer's references are read by each reader."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLES = Path(__file__).parents[2] / "examples"
for library in ("xarray", "zarr", "netCDF4"):
    pytest.importorskip(library)


def test_round_trips() -> None:
    command = [sys.executable, "-W", "ignore", str(EXAMPLES / "references.py")]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    lines = done.stdout.splitlines()
    assert len(lines) >= 5
    assert all(line.endswith(": right") or ": left out: " in line for line in lines), done.stdout
    assert "hyperslab's .json read by zarr-python: right" in lines
