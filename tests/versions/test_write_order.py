"""The order of a commit's writes where the file ended in the middle of an object, as a killed commit may leave it."""

from __future__ import annotations

import os
import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab as hs
from hyperslab.journal.write_order import Overwritten, narrowed, steps_of
from hyperslab.versions.commit import writing

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")

HEAP = b"HEAP" + bytes(4) + struct.pack("<QQQ", 88, 1, 4096)
NAMES = b"SNOD" + bytes([1, 0]) + struct.pack("<H", 3) + bytes(320)
TREE = b"TREE" + bytes([1, 0]) + struct.pack("<H", 2) + bytes(16) + bytes(24 * 65 + 8 * 64)


@pytest.mark.parametrize("before", ["the same", "something else"])
@pytest.mark.parametrize("whole", [HEAP, NAMES, TREE, b"GCOL" + bytes(60)])
def test_objects_that_are_cut_anywhere(whole: bytes, before: str, tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["x"] = 1
    content = (tmp_path / "a.h5").read_bytes()
    for nbytes in range(1, len(whole) + 1):
        new = whole[:nbytes]
        old = new if before == "the same" else bytes(nbytes)
        overwritten = [Overwritten(1000, old, new), Overwritten(9000, bytes(8), bytes(range(8)))]
        steps = steps_of(overwritten, lambda offset, length: content[offset : offset + length], None)
        written = dict(step for step in steps if step is not None)
        assert written[1000] == new, f"the first {nbytes} bytes"
        assert written[9000] == bytes(range(8))


class CountedBytes:
    """The system's calls, and how many bytes they wrote."""

    def __init__(self) -> None:
        self.nbytes = 0

    def __getattr__(self, name: str) -> Any:
        return getattr(os, name)

    def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
        self.nbytes += len(memoryview(data).cast("B"))
        return os.pwrite(descriptor, data, offset)


def test_a_commit_does_not_write_the_names_of_all_versions_again(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """libhdf5 does: they are one block. With 5,000 versions a commit wrote three times as much as with 50."""
    system = CountedBytes()
    monkeypatch.setattr(writing, "SYSTEM", system)
    took = []
    with hs.VersionedFile(tmp_path / "x.h5", "w") as file:
        for number in range(100):
            before = system.nbytes
            with file.stage_version(f"{number:0200}") as version:
                if not number:
                    version.create_dataset("x", data=np.arange(40.0), chunks=(10,))
                version["x"][number % 40] = -number
            took.append(system.nbytes - before)
    assert np.median(took[-20:]) < 1.5 * np.median(took[10:30])
    with h5py.File(tmp_path / "x.h5") as h5:
        assert len(h5["_version_data/versions"]) == 101


@pytest.mark.parametrize("changes", [[3000, 4100], [0], [10_239], [1, 3000, 9000], list(range(0, 10_240, 700))])
def test_only_what_changes_of_a_long_object_is_written(changes: list[int]) -> None:
    old = bytes(range(256)) * 40
    new = bytearray(old)
    for at in changes:
        new[at] ^= 1
    one, short = Overwritten(700, old, bytes(new)), Overwritten(90_000, b"abc", b"abd")
    kept, steps = narrowed([one, short], [(700, bytes(new)), None, (90_000, b"abd")])
    assert kept[-1] == short
    assert steps[-2:] == [None, (90_000, b"abd")]
    assert [(part.offset, part.new) for part in kept[:-1]] == steps[:-2]
    made = bytearray(old)
    for part in kept[:-1]:
        assert made[part.offset - 700 : part.offset - 700 + len(part.old)] == part.old
        made[part.offset - 700 : part.offset - 700 + len(part.new)] = part.new
    assert made == new
    most = len(set(changes)) * 512 * 6
    assert sum(len(part.new) for part in kept[:-1]) <= min(most, len(old))
