"""What crash tests need: time for every crash point, and a second reader that answers quickly."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any

import pytest
from disks import ALL
from flips import ask, later

from command_line import run_python
from hyperslab.versions.inspect import witness

HERE = Path(__file__).parent
OWN_PID = os.getpid()
IMPORTED = ("h5py", "hdf5plugin", "hyperslab.journal.settling", "hyperslab.versions.inspect.second_look")
OF_THE_REAL_ONE = ("test_hashes_that_are_wrong_or_missing", "test_a_file_that_is_open_for_writing_can_be_verified")


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if ALL and item.path.parent == HERE:
            item.add_marker(pytest.mark.timeout(7200))


@pytest.fixture(autouse=True)
def _nothing_waits_for_the_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    """No test cuts the power of this machine: those that play power cuts see each sync through the disks of `disks.py`.
    A file that cannot be synced is still an error.
    """
    for name in ("fsync", "fdatasync"):
        monkeypatch.setattr(os, name, lambda descriptor: os.fstat(descriptor) and None)


@pytest.fixture(autouse=True)
def second_reader_is_prepared(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` asks HDF5 in a process that first imports everything, which takes half a second; crash tests call it
    hundreds of times. So that process is forked from one that has imported it all.
    """
    if request.node.originalname not in OF_THE_REAL_ONE:
        monkeypatch.setattr(witness, "hired", later(ask_prepared))


def ask_prepared(path: str, names: Any) -> witness.Testimony:
    """What a hired witness does, but for its limits of time."""
    if os.getpid() != OWN_PID:  # the answers are for the process that prepared it
        return ask(path, names)
    given = json.dumps([path, None if names is None else list(names)])
    done = run_python(f"from {witness.__name__} import main; main()", modules=IMPORTED, input=given)
    testimony = witness.Testimony()
    for line in done.stdout.splitlines():
        testimony.hear(json.loads(line))
    if not testimony.is_complete:
        witness._add_ending(testimony, done.returncode, done.stderr.decode(errors="replace"))
    return testimony
