"""The order of a commit's writes where the file ended in the middle of an object, as a killed commit may leave it."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from hyperslab.journal.write_order import Overwritten, steps_of

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
