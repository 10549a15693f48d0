"""`JournaledFile` against a `bytearray`: what is written to it, in any pieces, can be read back and is in the file."""

from __future__ import annotations

import os
from contextlib import ExitStack, closing
from pathlib import Path

import hypothesis.strategies as st
import numpy as np
import pytest
from disks import Counting
from hypothesis import HealthCheck, given, settings
from test_stale_journals import commit_as_others, died_after, journal_of

import hyperslab as hs
from hyperslab.errors import ReadError
from hyperslab.journal.journaled_file import LARGE_NBYTES, TAIL_NBYTES, JournaledFile

MEMORY = np.random.default_rng(4).integers(0, 256, 1 << 22, np.uint8)
OTHER = np.random.default_rng(5).integers(0, 256, 1 << 21, np.uint8)
counts = st.sampled_from([1, 100, 5000, LARGE_NBYTES - 1, LARGE_NBYTES, 3 * LARGE_NBYTES, TAIL_NBYTES + 1])


class Model:
    """What a file holds, as a `bytearray`."""

    def __init__(self, journaled: JournaledFile, held: bytes) -> None:
        self.journaled, self.held = journaled, bytearray(held)

    def write(self, offset: int, data: np.ndarray) -> None:
        self.held.extend(bytes(max(0, offset + len(data) - len(self.held))))
        self.held[offset : offset + len(data)] = data.tobytes()
        self.journaled.seek(offset)
        assert self.journaled.write(memoryview(data)) == len(data)

    def check(self, offset: int, count: int) -> None:
        self.journaled.seek(offset)
        assert self.journaled.read(count) == bytes(self.held[offset : offset + count]).ljust(count, b"\0")


@settings(deadline=None, suppress_health_check=list(HealthCheck), max_examples=60)
@given(data=st.data())
def test_pieces(data: st.DataObject, tmp_path: Path) -> None:
    path = tmp_path / "file"
    begun = OTHER[: data.draw(st.sampled_from([0, 10_000, 200_000]))].tobytes()
    path.write_bytes(begun)
    journaled = JournaledFile(str(path))
    model, place = Model(journaled, begun), 0
    with closing(journaled), ExitStack() as stack:
        for _ in range(data.draw(st.integers(1, 12))):
            what = data.draw(st.sampled_from(["next", "next", "next", "jump", "other", "read", "commit", "lasting"]))
            count, end = data.draw(counts), len(model.held)
            place = place if place + count <= len(MEMORY) else 0
            if what == "next":  # in the file and in memory
                model.write(end, MEMORY[place : place + count])
                place += count
            elif what == "jump":
                place = data.draw(st.integers(0, len(MEMORY) - count))
                model.write(data.draw(st.integers(0, end + 100)), MEMORY[place : place + count])
                place += count
            elif what == "other":
                model.write(data.draw(st.integers(0, end + 100)), OTHER[:count])
            elif what == "read":
                model.check(data.draw(st.integers(0, end)), count)
            elif what == "commit":
                journaled.commit()
                assert path.read_bytes() == model.held
            else:
                stack.close()
                stack.enter_context(journaled.lasting(MEMORY))
        model.check(0, len(model.held))
        journaled.commit()
    assert path.read_bytes() == model.held


def test_pieces_of_lasting_memory_are_written_together(tmp_path: Path) -> None:
    counting = Counting()
    journaled = JournaledFile(str(tmp_path / "file"), system=counting)
    with journaled.lasting(MEMORY):
        for start in range(0, len(MEMORY), 1 << 16):
            journaled.write(memoryview(MEMORY[start : start + (1 << 16)]))
    assert counting.count == len(MEMORY) // TAIL_NBYTES
    journaled.commit()
    journaled.close()
    assert (tmp_path / "file").read_bytes() == MEMORY.tobytes()


def test_what_is_rolled_back_is_never_written(tmp_path: Path) -> None:
    path = tmp_path / "file"
    journaled = JournaledFile(str(path))
    with journaled.lasting(MEMORY):
        journaled.write(memoryview(MEMORY[: 1 << 16]))
        journaled.roll_back()
    assert os.stat(path).st_size == 0  # noqa: PTH116
    journaled.close()


@pytest.mark.parametrize("is_read_only", [False, True])
def test_a_journal_that_is_written_already_is_removed_by_readers(
    tmp_path: Path, is_read_only: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Otherwise it contradicts the file as soon as versioned-hdf5 commits, and nobody could open it with us again."""
    path, (before, journal) = tmp_path / "v.h5", died_after(0)
    path.write_bytes(before)
    journal_of(path).write_bytes(journal)
    with hs.VersionedFile(path, "r+"):
        pass
    journal_of(path).write_bytes(journal)  # the process was killed between the last write and the removal
    if is_read_only:
        monkeypatch.setattr("hyperslab.journal.settling._finish", lambda path: (_ for _ in ()).throw(ReadError(path)))
    assert len(hs.VersionedFile(path).versions) == 3
    assert journal_of(path).exists() == is_read_only
    if not is_read_only:
        commit_as_others(path, 3)
        assert len(hs.VersionedFile(path).versions) == 6
