"""However many collections are open: the descriptors that they hold are few of what the process may have."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import h5py
import pytest

PROGRAM = Path(__file__).with_name("descriptors.py")
FILE_COUNT = 300


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the descriptors of a process are told by /proc")
def test_many_collections_of_many_files(tmp_path: Path) -> None:
    for number in range(FILE_COUNT):
        with h5py.File(tmp_path / f"{number:03}.h5", "w") as file:
            file.create_dataset("x", data=[number], chunks=(1,), maxshape=(None,))
            file.create_dataset("packed", data=[number], chunks=(1,), compression="gzip")
    command = [sys.executable, str(PROGRAM), str(tmp_path), "256"]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.returncode == 0, done.stderr
    collections, alone, refused = done.stdout.split()
    assert int(collections) <= 256 // 4 + 30
    assert refused == "refused"
    assert int(alone) < 256
