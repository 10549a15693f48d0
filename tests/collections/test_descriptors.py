"""However many collections are open, they hold only a small part of the file descriptors of the process."""

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


FORKING = """
import os, sys, threading
from pathlib import Path
import numpy as np
import hyperslab as hs

paths = sorted(str(path) for path in Path(sys.argv[1]).iterdir())
expected = np.arange(len(paths))
collections = [hs.open(paths, concat=0) for _ in range(3)]
for collection in collections:
    assert (collection["x"][...] == expected).all()
held = len(os.listdir("/proc/self/fd"))
assert held > len(paths) // 2, held  # files are held, which a child has too
stop = threading.Event()

def read_on():
    while not stop.is_set():
        assert (collections[0]["packed"][...] == expected).all()

threads = [threading.Thread(target=read_on) for _ in range(2)]
for thread in threads:
    thread.start()
children = []
for number in range(8):
    child = os.fork()
    if not child:  # whatever the threads held when it was forked
        wrong = sum((one[name][...] != expected).sum() for one in collections for name in ("x", "packed"))
        collections.clear()
        os._exit(1 if wrong else 0)
    children.append(child)
states = [os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) for child in children]
stop.set()
for thread in threads:
    thread.join()
for collection in collections:  # what children closed is open here
    assert (collection["x"][...] == expected).all()
print(states)
"""


@pytest.mark.skipif(not Path("/proc/self/fd").exists(), reason="the descriptors of a process are told by /proc")
def test_forked_children_read_what_their_parent_holds_open(tmp_path: Path) -> None:
    for number in range(24):
        with h5py.File(tmp_path / f"{number:03}.h5", "w") as file:
            file.create_dataset("x", data=[number])
            file.create_dataset("packed", data=[number], chunks=(1,), maxshape=(None,), compression="gzip")
    command = [sys.executable, "-W", "ignore", "-c", FORKING, str(tmp_path)]
    done = subprocess.run(command, capture_output=True, text=True, timeout=280)
    assert done.stdout == f"{[0] * 8}\n", done.stderr
