"""What crash tests need: time for every crash point, and a second reader that answers quickly."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest
from disks import ALL

from hyperslab.versions.inspect import witness

HERE = Path(__file__).parent
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
def second_reader_is_forked(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """`verify` asks HDF5 in a process that first imports everything, which takes half a second; crash tests call it
    hundreds of times. So this forks a process instead, unless the file is open here in a way that only another process
    can handle.
    """
    if request.node.originalname in OF_THE_REAL_ONE:
        return
    from flips import ask

    real = witness.ask

    def forked(path: str, names: Any) -> witness.Testimony:
        found = ask(path, names)
        return real(path, names) if any("lock" in what for what, _, _ in found.damages) else found

    monkeypatch.setattr(witness, "ask", forked)
