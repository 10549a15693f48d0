"""The example of versions runs for a newcomer."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

EXAMPLE = Path(__file__).parents[2] / "examples" / "versions.py"


@pytest.mark.slow
def test_example(tmp_path: Path) -> None:
    command = [sys.executable, "-W", "error", str(EXAMPLE), str(tmp_path / "survey.h5")]
    done = subprocess.run(command, capture_output=True, text=True, timeout=200)
    assert done.returncode == 0, done.stderr
    for line in (
        "about to commit: <hyperslab.ArrayDiff 'depth': changed, 1 chunks differ>",
        "june was cancelled; versions: march, april, may",
        "in april: [-1. -1. -1.]",
        "two versions ago: (100000,) now: (100500,)",
        "on 01 May: -1.0 m",
        "march → april: in depth, 1 chunks and 10 elements changed (20000 to 20010), 0 elements were added",
        "april → may: in depth, 1 chunks and 0 elements changed (none), 500 elements were added",
        "everything is as it was committed: True",
        "march alone, in a file for any HDF5 reader: 25 chunks in march.h5",
    ):
        assert line in done.stdout.splitlines(), done.stdout
    assert "3 versions in " in done.stdout
    assert (tmp_path / "march.h5").is_file()
