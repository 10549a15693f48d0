"""A half-applied commit as h5py and versioned-hdf5 see it, which do not know its journal. After every step, and in the
middle of each step, the old versions exist and are right; the new version does not exist, or it is complete.

`HYPERSLAB_CRASHES=all` tries 24 commits and deletions, whose group of versions grows by several nodes; otherwise three.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import h5py
import numpy as np
import pytest
from disks import ALL, SECTOR_NBYTES, Dying
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.journal.journal import Journal, Step, found_journal
from hyperslab.versions.commit import writing

LENGTH = 400


def elements(number: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    return np.where(np.arange(LENGTH) % (number + 2) == 0, number, np.arange(LENGTH))


def commit(file: hs.VersionedFile, number: int) -> None:
    with file.stage_version(f"v{number}") as version:
        if not number:
            version.create_dataset("x", data=elements(0), chunks=(20,))
            version.create_dataset("words", data=np.array(["a"] * 30, object), dtype=h5py.string_dtype(), chunks=(8,))
            version.create_dataset("same", data=np.arange(50), chunks=(16,))
        version["x"][...] = elements(number)
        version["words"][number % 30] = f"word {number}"
        if number % 5 == 4:
            version.create_dataset(f"new{number}", data=np.arange(number), chunks=(4,))


def check_as_others(path: Path, before: list[str], after: list[str]) -> bool:
    """What others find. Returns whether it is the state after the commit."""
    with h5py.File(path) as file:
        theirs = VersionedHDF5File(file)
        found = sorted(set(theirs.versions))  # a name that moves from one node to another is in both meanwhile
        assert found in (sorted(before), sorted(after))
        assert theirs.current_version in (before[-1], after[-1])
        assert theirs.current_version in found
        for name in found:
            number = int(name[1:])
            group = file["_version_data/versions"][name]
            np.testing.assert_array_equal(group["x"][()], elements(number))
            assert group["words"][number % 30] == f"word {number}".encode()
            np.testing.assert_array_equal(group["same"][()], np.arange(50))
            assert group.attrs["prev_version"] == "__first_version__" or group.attrs["prev_version"] in found
            assert group.attrs["committed"]
            np.testing.assert_array_equal(theirs[name]["x"][()], elements(number))
        return found == sorted(after) and before != after


def prefixes(steps: list[Step]) -> Iterator[list[tuple[int, bytes]]]:
    """What was written when a process was killed, also in the middle of a step."""
    done: list[tuple[int, bytes]] = []
    yield list(done)
    for step in steps:
        if step is not None:
            yield [*done, (step[0], step[1][: len(step[1]) // 2 // 4096 * 4096])]  # whole pages, as in Linux
            done.append(step)
            yield list(done)


def cuts(steps: list[Step], rng: random.Random) -> Iterator[list[tuple[int, bytes]]]:
    """What may have reached the disk when the power was cut: any of the writes between two barriers."""
    done: list[tuple[int, bytes]] = []
    phase: list[tuple[int, bytes]] = []
    for step in [*steps, None]:
        if step is not None:
            phase.append(step)
            continue
        yield [*done, *(one for one in phase if rng.random() < 0.5)]
        done += phase
        phase = []


def after(begun: bytes, written: list[tuple[int, bytes]]) -> bytes:
    stored = bytearray(begun)
    for offset, data in written:
        stored[offset : offset + len(data)] = data
    return bytes(stored)


def journals(
    path: Path, monkeypatch: pytest.MonkeyPatch, works: list[Callable[[hs.VersionedFile], None]]
) -> Iterator[tuple[bytes, Journal, list[str], list[str]]]:
    """For each work: the file when its journal is complete, that journal, and the versions before and after."""
    for number, work in enumerate(works):
        with hs.VersionedFile(path, "r+") as file:
            before = file.versions
        with monkeypatch.context() as patched:
            patched.setattr(writing, "SYSTEM", Dying())
            with hs.VersionedFile(path, "r+") as file:
                work(file)
        journal, begun = found_journal(str(path)), path.read_bytes()
        assert isinstance(journal, Journal), number
        with hs.VersionedFile(path) as file:
            yield begun, journal, before, file.versions


def count_exposed(path: Path, found: Iterator[tuple[bytes, Journal, list[str], list[str]]]) -> tuple[int, int]:
    """Check all states; returns the numbers of journals and states."""
    rng, journal_count, state_count = random.Random(2), 0, 0
    other = path.with_name("other.h5")
    for begun, journal, before, behind in found:
        journal_count += 1
        seen = []
        for written in prefixes(journal.steps):
            other.write_bytes(after(begun, written))
            seen.append(check_as_others(other, before, behind))
        assert seen == sorted(seen)  # once the version exists it stays
        for written in [one for _ in range(4 if ALL else 1) for one in cuts(journal.steps, rng)]:
            other.write_bytes(after(begun, written))
            seen.append(check_as_others(other, before, behind))
        state_count += len(seen)
    return journal_count, state_count


@pytest.fixture
def begun(tmp_path: Path) -> Path:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        commit(file, 0)
    return path


@pytest.mark.slow
def test_commits(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    works = [lambda file, number=number: commit(file, number) for number in range(1, 25 if ALL else 3)]
    print(*count_exposed(begun, journals(begun, monkeypatch, works)), "journals and states")


@pytest.mark.slow
def test_a_group_of_versions_that_gets_more_nodes(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hs.VersionedFile(begun, "r+") as file:
        for number in range(1, 7):
            commit(file, number)
    works = [lambda file, number=number: commit(file, number) for number in range(7, 11 if ALL else 9)]
    count_exposed(begun, journals(begun, monkeypatch, works))


def test_which_is_current(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hs.VersionedFile(begun, "r+") as file:
        commit(file, 1)

    def change(file: hs.VersionedFile) -> None:
        file.current_version = "v0"

    for stored, journal, before, behind in journals(begun, monkeypatch, [change]):
        other = begun.with_name("other.h5")
        for written in prefixes(journal.steps):
            other.write_bytes(after(stored, written))
            with h5py.File(other) as file:
                assert VersionedHDF5File(file).current_version in ("v0", "v1")
        assert sorted(before) == sorted(behind)


def test_sectors_are_what_disks_write() -> None:
    assert SECTOR_NBYTES == 512
