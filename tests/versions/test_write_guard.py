"""The write guard: while a commit overwrites parts of a file, HDF5's library refuses to open the file for writing, but
everybody can read it. Between commits nobody notices the guard.
"""

from __future__ import annotations

import errno
import json
import shutil
import struct
import subprocess
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import h5py
import hypothesis.strategies as st
import numpy as np
import pytest
import versioned_hdf5
from disks import ALL, SECTOR_NBYTES, Counting
from hypothesis import given, settings
from test_half_applied import after, check_as_others, commit, elements, journals, prefixes
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import DamagedFile, MissingJournal, ReadError
from hyperslab.journal.journal import Journal
from hyperslab.journal.write_guard import Guard, addition, empty_file, guard_of
from hyperslab.versions import repair
from hyperslab.versions.commit import writing
from hyperslab.versions.commit.virtual import VirtualArrays

SYSTEM_PYTHON = "/usr/bin/python3"
REFUSED = "unknown message with 'fail if unknown' flag found"


def guard_in(stored: bytes) -> Guard | None:
    return guard_of(lambda offset, count: stored[offset : offset + count].ljust(count, b"\0"))


def is_set(path: Path) -> bool:
    """Whether the guard, which must exist, refuses writers."""
    guard = guard_in(path.read_bytes())
    assert guard is not None
    return guard.is_set


@pytest.fixture(scope="module")
def made(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with a file of ours and one from versioned-hdf5, with attributes and a comment in its root, in several
    blocks.
    """
    folder = tmp_path_factory.mktemp("made")
    with hs.VersionedFile(folder / "ours.h5", "w") as ours:
        commit(ours, 0)
    path = folder / "theirs.h5"
    with h5py.File(path, "w") as file:
        with VersionedHDF5File(file).stage_version("v0") as version:
            version.create_dataset("x", data=elements(0), chunks=(20,))
            version.create_dataset("words", data=np.array(["a"] * 30, object), dtype=h5py.string_dtype(), chunks=(8,))
            version["words"][0] = "word 0"
            version.create_dataset("same", data=np.arange(50), chunks=(16,))
        file.attrs["who"] = "somebody" * 20
        file.attrs["when"] = 3
        h5py.h5o.set_comment(file.id, b"of the user")
    assert guard_in(path.read_bytes()) is None
    return folder


@pytest.fixture
def ours(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made / "ours.h5", tmp_path))


@pytest.fixture
def theirs(made: Path, tmp_path: Path) -> Path:
    return Path(shutil.copy(made / "theirs.h5", tmp_path))


@pytest.fixture(params=["ours", "theirs"])
def begun(request: pytest.FixtureRequest) -> Path:
    found: Path = request.getfixturevalue(request.param)
    return found


def half_applied(
    path: Path, monkeypatch: pytest.MonkeyPatch, count: int
) -> Iterator[tuple[bytes, Journal, list[str], list[str]]]:
    return journals(path, monkeypatch, [lambda file, number=number: commit(file, number) for number in range(1, count)])


def refuses_writers(path: Path) -> bool:
    """Whether h5py and versioned-hdf5 cannot write. If so, no byte has changed."""
    before = path.read_bytes()
    for mode in ("r+", "a"):
        try:
            with h5py.File(path, mode) as file, VersionedHDF5File(file).stage_version("another") as version:
                version["x"][0] = -1
        except OSError as error:
            if REFUSED not in str(error):
                raise
        else:
            path.write_bytes(before)
            return False
        assert path.read_bytes() == before
    return True


def test_others_cannot_write_while_a_commit_overwrites(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """From the end of the first phase to the beginning of the last step; readers are never refused."""
    other = begun.with_name("other.h5")
    for stored, journal, before, behind in half_applied(begun, monkeypatch, 8 if ALL else 3):
        first_barrier = journal.steps.index(None)
        states = list(prefixes(journal.steps))
        seen = []
        for written in states:
            other.write_bytes(after(stored, written))
            check_as_others(other, before, behind)
            seen.append(refuses_writers(other))
        assert not seen[0]
        assert not seen[-1]
        assert seen[:-1] == sorted(seen[:-1])  # writers are refused until the last step is done
        assert all(seen[2 * first_barrier : -1])


def test_what_is_torn_is_on_the_disk_before_others_may_write(begun: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The last step shares its sync with the one sector that names the current version, or with nothing."""
    counts = set()
    for stored, journal, _, _ in half_applied(begun, monkeypatch, 12):
        last = journal.steps[len(journal.steps) - journal.steps[::-1].index(None) :]
        *others, (offset, data) = [step for step in last if step is not None]
        end = after(stored, [step for step in journal.steps if step is not None])
        guard = guard_in(end)
        assert guard is not None
        assert (offset, data) == (guard.offset, b"\0")
        earlier = after(stored, [step for step in journal.steps[: -len(last)] if step is not None])
        pieces = [range(at, at + len(new)) for at, new in others if len(new) > 8]  # free space takes 8 bytes
        counts.add(len({at // SECTOR_NBYTES for piece in pieces for at in piece if earlier[at] != end[at]}))
    assert counts <= {0, 1}


def test_a_new_guard_takes_one_sector_of_what_was_there(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (stored, journal, _, _), *_ = half_applied(theirs, monkeypatch, 2)
    guard = guard_in(after(stored, [step for step in journal.steps if step is not None]))
    assert guard is not None
    assert guard.offset >= journal.before_nbytes
    first = journal.steps[: journal.steps.index(None)]
    (_, superblock), (root, header) = first[:2]  # type: ignore[misc]
    assert superblock.startswith(b"\x89HDF")
    assert (root, root + len(header) <= SECTOR_NBYTES) == (guard.root, True)


@pytest.mark.skipif(not Path(SYSTEM_PYTHON).exists(), reason="no other HDF5 to ask")
def test_an_older_library_refuses_too(ours: Path) -> None:
    if subprocess.run([SYSTEM_PYTHON, "-c", "import importlib.util as u; assert u.find_spec('h5py')"],
                      capture_output=True, check=False).returncode:  # fmt: skip
        pytest.skip("no other h5py")
    others = {kind: Path(shutil.copy(ours, ours.with_name(f"{kind}.h5"))) for kind in (0, 255)}
    for kind, path in others.items():
        set_to(path, kind)
    asked = [[str(others[kind]), mode] for kind in others for mode in ("r", "r+")]
    program = (
        "import json, sys, h5py\n"
        "for path, mode in json.loads(sys.argv[1]):\n"
        "    try:\n"
        "        with h5py.File(path, mode) as file: print(sorted(file))\n"
        "    except OSError as error: print(error)\n"
    )
    ran = subprocess.run([SYSTEM_PYTHON, "-c", program, json.dumps(asked)], capture_output=True, text=True, check=True)
    *may, refused = ran.stdout.splitlines()
    assert len(may) == 3
    assert all("_version_data" in said and REFUSED not in said for said in may)
    assert REFUSED in refused


def set_to(path: Path, kind: int) -> None:
    """Give the guard's message a type."""
    stored = bytearray(path.read_bytes())
    guard = guard_in(bytes(stored))
    assert guard is not None
    stored[guard.offset] = kind
    path.write_bytes(stored)


def write(path: Path) -> None:
    with h5py.File(path, "r+") as file, VersionedHDF5File(file).stage_version("theirs") as version:
        version["x"][0] = -1


def delete(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        versioned_hdf5.delete_versions(file, ["v1"])


def store_otherwise(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        versioned_hdf5.modify_metadata(file, "x", chunks=(50,))


def write_attributes(path: Path) -> None:
    with h5py.File(path, "r+") as file:
        for number in range(30):
            file.attrs[f"attribute {number}"] = "a" * 7 * number
        for number in range(0, 30, 2):
            del file.attrs[f"attribute {number}"]
        h5py.h5o.set_comment(file.id, b"a comment")
    with h5py.File(path, "r+") as file:
        del file.attrs["attribute 1"]
        file.attrs["small"] = np.int8(1)


def repack_by_h5repack(path: Path) -> None:
    if shutil.which("h5repack") is None:
        pytest.skip("no h5repack")
    subprocess.run(["h5repack", path, f"{path}.new"], check=True)
    Path(f"{path}.new").rename(path)


def repack_by_h5py(path: Path) -> None:
    """As h5repack does it: all objects are copied into a new file."""
    with h5py.File(path) as old, h5py.File(f"{path}.new", "w") as new:
        for name in old:
            old.copy(name, new)
    Path(f"{path}.new").rename(path)


def ours_deletes(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        file.delete_versions("v1")


def ours_deletes_in_place(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        file.delete_versions("v1", repack=False)


def ours_stores_otherwise(path: Path) -> None:
    with hs.VersionedFile(path, "r+") as file:
        file.modify_metadata("x", chunks=(50,), repack=False)


WORKS = (
    write, delete, store_otherwise, write_attributes, repack_by_h5repack, repack_by_h5py, ours_deletes,
    ours_deletes_in_place, ours_stores_otherwise,
)  # fmt: skip


@pytest.mark.parametrize("work", WORKS)
def test_others_and_we_take_turns(begun: Path, work: Callable[[Path], None]) -> None:
    with hs.VersionedFile(begun, "r+") as file:
        for number in range(1, 4):
            commit(file, number)
    assert not is_set(begun)
    for number in range(4, 6):
        if number == 4 or work in (write_attributes, repack_by_h5py):
            work(begun)
        with hs.VersionedFile(begun, "r+") as file:
            commit(file, number)
            assert number < 5 or file.verify().is_whole  # of all versions
        assert not is_set(begun)
        assert not refuses_writers(begun)
    with h5py.File(begun) as h5:
        found = VersionedHDF5File(h5)
        for number in (0, 2, 3, 4, 5):
            np.testing.assert_array_equal(found[f"v{number}"]["x"][()], elements(number))


def test_root_attributes_stay(theirs: Path) -> None:
    with hs.VersionedFile(theirs, "r+") as file:
        commit(file, 1)
    with h5py.File(theirs, "r+") as file:
        assert dict(file.attrs) == {"who": "somebody" * 20, "when": 3}
        del file.attrs["who"]
    with h5py.File(theirs) as file:
        assert dict(file.attrs) == {"when": 3}


def test_opening_alone_changes_nothing(theirs: Path) -> None:
    before = theirs.read_bytes()
    with suppress(ZeroDivisionError), hs.VersionedFile(theirs, "r+") as file, file.stage_version("v1") as version:
        version["x"][0] = 1 // 0
    assert theirs.read_bytes() == before


def test_a_guard_that_is_rolled_back_comes_with_the_next_commit(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with hs.VersionedFile(theirs, "r+") as file:
        with monkeypatch.context() as patched, suppress(ZeroDivisionError), file.stage_version("v1") as version:
            version["x"][0] = 1
            patched.setattr(VirtualArrays, "finish", lambda self: 1 // 0)
        assert file.versions == ["v0"]
        commit(file, 1)
    assert not is_set(theirs)


def test_a_full_disk_that_gets_room_again(theirs: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    class Full(Counting):
        is_full = True

        def pwrite(self, descriptor: int, data: Any, offset: int) -> int:
            if self.is_full:
                raise OSError(errno.ENOSPC, "full")
            return super().pwrite(descriptor, data, offset)

    disk, before = Full(), theirs.read_bytes()
    monkeypatch.setattr(writing, "SYSTEM", disk)
    with hs.VersionedFile(theirs, "r+") as file:
        with pytest.raises(OSError, match="full"):
            commit(file, 1)
        assert theirs.read_bytes() == before
        disk.is_full = False
        commit(file, 1)
        np.testing.assert_array_equal(file["v1"]["x"][...], elements(1))
    with hs.VersionedFile(theirs, "r+") as file:
        commit(file, 2)
    assert not is_set(theirs)


def test_files_of_later_layouts_have_none(tmp_path: Path) -> None:
    path = tmp_path / "later.h5"
    with h5py.File(path, "w", libver="latest") as file, VersionedHDF5File(file).stage_version("v0") as version:
        version.create_dataset("x", data=elements(0), chunks=(20,))
    with hs.VersionedFile(path, "r+") as file, file.stage_version("v1") as version:
        version["x"][...] = elements(1)
    assert guard_in(path.read_bytes()) is None
    with h5py.File(path) as h5:
        np.testing.assert_array_equal(VersionedHDF5File(h5)["v1"]["x"][()], elements(1))


def test_the_journal_is_gone(ours: Path, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The file can be read and repaired; it can be written once its journal is back."""
    with hs.VersionedFile(ours, "r+") as file:
        commit(file, 1)
    (stored, journal, *_), *_ = journals(ours, monkeypatch, [lambda file: commit(file, 2)])
    assert journal.steps[-2] is not None
    steps = [step for step in journal.steps[:-1] if step is not None]
    behind = journal.steps.index(None)
    ours.write_bytes(half := after(stored, steps[:behind]))
    name = f"{ours}.journal"
    assert not Path(name).exists()
    for mode in ("r+", "a"):
        with pytest.raises(MissingJournal, match="versions repair") as raised:
            hs.VersionedFile(ours, mode)  # type: ignore[arg-type]
        assert f"as {name}, and open" in str(raised.value)
    with hs.VersionedFile(ours) as file:
        assert file.versions == ["v0", "v1"]
        np.testing.assert_array_equal(file["v1"]["x"][...], elements(1))
        assert "is missing or incomplete" in file.verify().damages[0].what
    repaired = repair(ours, tmp_path / "repaired.h5")
    assert repaired.versions == ["v0", "v1"]
    assert "is missing or incomplete" in repaired.notes[0].reason
    assert ours.read_bytes() == half
    with hs.VersionedFile(tmp_path / "repaired.h5", "r+") as file:
        commit(file, 2)
    Path(name).write_bytes(journal.packed()[:-SECTOR_NBYTES])
    with pytest.raises(MissingJournal):
        hs.VersionedFile(ours, "r+")
    assert "is missing or incomplete" in repair(ours, tmp_path / "again.h5").notes[0].reason
    assert Path(name).read_bytes() == journal.packed()[:-SECTOR_NBYTES]
    Path(name).write_bytes(journal.packed())
    with hs.VersionedFile(ours, "r+") as file:
        assert file.versions == ["v0", "v1", "v2"]
        commit(file, 3)
        assert file.verify().is_whole
    assert not is_set(ours)
    assert issubclass(MissingJournal, ReadError)
    assert not issubclass(MissingJournal, DamagedFile)


def test_a_file_that_is_emptied_needs_no_journal(ours: Path) -> None:
    set_to(ours, 255)
    with hs.VersionedFile(ours, "w") as file:
        commit(file, 0)
    assert not is_set(ours)


def test_a_header_without_room_for_another_message_gets_no_guard() -> None:
    stored = bytearray(empty_file())

    def read(offset: int, count: int) -> bytes:
        return bytes(stored[offset : offset + count]).ljust(count, b"\0")

    writes = addition(read, len(stored))
    root = next(offset for offset, _ in writes if offset < SECTOR_NBYTES)
    struct.pack_into("<H", stored, root + 2, 0xFFFF)  # how many messages it has
    assert writes
    assert addition(read, len(stored)) == []


@settings(deadline=None, max_examples=500 if ALL else 60)
@given(data=st.data())
def test_what_damaged_headers_say(data: st.DataObject) -> None:
    """Whatever is there, nothing is raised, little is read, and only the first sector would be overwritten."""
    stored = bytearray(empty_file())
    for _ in range(data.draw(st.integers(1, 4))):
        at = data.draw(st.one_of(st.integers(8, 200), st.integers(790, len(stored) - 8)))
        value = data.draw(st.sampled_from([0, 1, 255, 1 << 16, 1 << 62, (1 << 63) + 5, (1 << 64) - 1, 96, 136, at]))
        struct.pack_into("<Q", stored, at, value & (1 << 64) - 1)
    read_nbytes = []

    def read(offset: int, count: int) -> bytes:
        assert 0 <= offset <= 1 << 62
        read_nbytes.append(count)
        return bytes(stored[offset : offset + count]).ljust(count, b"\0")

    guard_of(read)
    for offset, written in addition(read, len(stored)):
        assert offset >= len(stored) or offset + len(written) <= SECTOR_NBYTES
    assert sum(read_nbytes) < 1 << 23
