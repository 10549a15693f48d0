"""A journal lies beside a file that it does not belong to, or no longer: nothing is touched, and an error says what to
do. If it belongs to the file, the commit is finished, wherever both were moved to.
"""

from __future__ import annotations

import os
import shutil
import struct
import subprocess
import sys
import tempfile
import zlib
from collections.abc import Callable, Iterator
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import ALL, Dying
from test_crashes import check, commit, committed, state_of, text
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import HyperslabError, ReadError, StaleJournal, UsageError
from hyperslab.journal.journal import Foreign, Journal, Torn, found_journal
from hyperslab.journal.write_guard import is_set_in
from hyperslab.versions import repair
from hyperslab.versions.commit import writing


@pytest.fixture
def cut_short(tmp_path: Path) -> Callable[..., Path]:
    """A file with v0 and v1, and the journal of v2, of which nothing or some was applied."""

    def make(name: str = "v.h5", applied: int = 0) -> Path:
        path = tmp_path / name
        for one, content in zip((path, journal_of(path)), died_after(applied), strict=True):
            one.write_bytes(content)
        assert isinstance(found_journal(str(path)), Journal)
        return path

    return make


@cache
def died_after(applied: int) -> tuple[bytes, bytes]:
    """The file and its journal, the same for all tests."""
    with tempfile.TemporaryDirectory() as folder, pytest.MonkeyPatch.context() as patched:
        path = committed(Path(folder, "v.h5"), 2)
        patched.setattr(writing, "SYSTEM", Dying(applied))
        with hs.VersionedFile(path, "r+") as file:
            commit(file, 2)
        patched.undo()
        return path.read_bytes(), journal_of(path).read_bytes()


def journal_of(path: Path) -> Path:
    return path.with_name(f"{path.name}.journal")


def commit_as_others(path: Path, first: int = 2) -> None:
    """Three versions made by versioned-hdf5, which does not know journals."""
    for number in range(first, first + 3):
        with h5py.File(path, "r+") as file, VersionedHDF5File(file).stage_version(f"v{number}") as version:
            state = state_of(number)
            version["x"][...] = state["x"]
            version["g/grown"].resize(state["g/grown"].shape)
            version["g/grown"][...] = state["g/grown"]
            version["words"][:] = state["words"]


def check_as_others(path: Path, count: int) -> None:
    """All versions exist and are right, for h5py and versioned-hdf5, which do not know journals."""
    with h5py.File(path) as file:
        theirs = VersionedHDF5File(file)
        assert sorted(theirs.versions) == [f"v{number}" for number in range(count)]
        for number in range(count):
            for name, data in state_of(number).items():
                np.testing.assert_array_equal(text(theirs[f"v{number}"][name][()]), text(data))


def snapshot(folder: Path) -> dict[str, bytes]:
    return {one.name: one.read_bytes() for one in folder.iterdir()}


OPENERS: dict[str, Callable[[Path], Any]] = {
    "r": hs.VersionedFile,
    "r+": lambda path: hs.VersionedFile(path, "r+"),
    "a": lambda path: hs.VersionedFile(path, "a"),
    "w": lambda path: hs.VersionedFile(path, "w"),
    "open": hs.open,
    "open version": lambda path: hs.open(path, version=0),
}


def refused(path: Path, *whose: str) -> None:
    """However you open the file, nothing in the folder changes, and the error names the journal and what to do."""
    before = snapshot(path.parent)
    for name in whose or OPENERS:
        with pytest.raises(StaleJournal) as raised:
            OPENERS[name](path)
        assert str(journal_of(path)) in str(raised.value)
        assert "move the journal away" in str(raised.value)
        assert snapshot(path.parent) == before, name


@pytest.mark.parametrize("applied", [*range(24), 1000] if ALL else [0, 1, 2, 5, 9, 14, 20, 1000])
def test_others_commit_over_it(cut_short: Callable[..., Path], applied: int) -> None:
    """Whatever was applied of our commit: others are refused, or their versions exist, and ours as far as the file
    shows.
    """
    path = cut_short(applied=applied)
    before = path.read_bytes()
    with h5py.File(path) as file:
        first = len(VersionedHDF5File(file).versions)
    if is_set_in(str(path)):
        with pytest.raises(OSError, match="unknown message"):
            commit_as_others(path, first)
        assert path.read_bytes() == before
        assert check(path, 3) == 3
        return
    commit_as_others(path, first)
    refused(path)
    check_as_others(path, first + 3)
    journal_of(path).unlink()
    assert check(path, first + 3) == first + 3


@pytest.mark.parametrize("change", ["attribute", "new array", "opened to write"])
def test_h5py_writes_over_it(cut_short: Callable[..., Path], change: str) -> None:
    path = cut_short()
    with h5py.File(path, "r+") as file:
        if change == "attribute":
            file.attrs["who"] = "h5py"
        elif change == "new array":
            file["mine"] = np.arange(1000)
    refused(path)
    journal_of(path).unlink()
    assert check(path, 2) == 2
    with h5py.File(path) as file:
        assert (file.attrs.get("who") == "h5py") == (change == "attribute")
        assert ("mine" in file) == (change == "new array")


def plain(path: Path) -> Path:
    with h5py.File(path, "w") as file:
        file["x"] = np.arange(100_000)
    return path


def of_the_same_length(path: Path) -> Path:
    """With other versions, but as long as the file that was cut short: zeros follow."""
    committed(path, 2)
    with open(path, "r+b") as file:
        file.truncate((path.parent / "v.h5").stat().st_size)
    return path


OTHERS: dict[str, Callable[[Path], Path]] = {
    "plain": plain,
    "versioned": lambda path: committed(path, 3),
    "as long": of_the_same_length,
    "empty": lambda path: (path.write_bytes(b"") and path) or path,
    "no HDF5": lambda path: (path.write_text("notes\n") and path) or path,
}


@pytest.mark.parametrize("other", OTHERS)
def test_another_file_takes_its_name(cut_short: Callable[..., Path], other: str) -> None:
    path = cut_short()
    made = OTHERS[other](path.with_name("other.h5"))
    held = made.read_bytes()
    made.rename(path)
    refused(path, *({"empty": ["a", "w"], "no HDF5": ["r+", "a", "w"]}.get(other, [])))
    assert path.read_bytes() == held


def test_a_backup_is_put_back(cut_short: Callable[..., Path], tmp_path: Path) -> None:
    """A backup from before the last version: it is undamaged, and shorter."""
    path = cut_short()
    backup = committed(tmp_path / "backup.h5", 1)
    shutil.copyfile(backup, path)
    refused(path)
    journal_of(path).unlink()
    assert check(path, 1) == 1


def test_the_file_is_moved_without_it(cut_short: Callable[..., Path], tmp_path: Path) -> None:
    """The file has all versions but the last; no new file is begun beside the journal."""
    path = cut_short()
    moved = path.rename(tmp_path / "moved.h5")
    refused(path, "a", "w")
    assert not path.exists()
    check_as_others(moved, 2)
    moved.rename(path)
    assert check(path, 3) == 3


@pytest.mark.parametrize("applied", [0, 3, 8, 1000] if ALL else [3, 1000])
@pytest.mark.parametrize("how", ["moved", "copied", "renamed folder", "by a link"])
def test_both_are_moved(cut_short: Callable[..., Path], tmp_path: Path, how: str, applied: int) -> None:
    path = cut_short(applied=applied)
    folder = tmp_path / "elsewhere"
    if how == "renamed folder":
        (tmp_path / "inner").mkdir()
        for one in (path, journal_of(path)):
            one.rename(tmp_path / "inner" / one.name)
        (tmp_path / "inner").rename(folder)
    else:
        folder.mkdir()
        for one in (path, journal_of(path)):
            (shutil.copyfile if how == "copied" else shutil.move)(one, folder / one.name)
    found = folder / path.name
    if how == "by a link":
        (tmp_path / "link.h5").symlink_to(found)
        found = tmp_path / "link.h5"
        with hs.open(found, version="v2") as root:
            np.testing.assert_array_equal(root["x"][...], state_of(2)["x"])
    assert hs.VersionedFile(found).versions == ["v0", "v1", "v2"]
    assert check(folder / path.name, 3) == 3


def test_a_hard_link_has_no_journal(cut_short: Callable[..., Path], tmp_path: Path) -> None:
    """Through it all but the last version exist; writing through it makes the journal stale."""
    path = cut_short()
    link = tmp_path / "link.h5"
    link.hardlink_to(path)
    assert hs.VersionedFile(link).versions == ["v0", "v1"]
    with hs.VersionedFile(link, "r+") as file:
        commit(file, 2)
        commit(file, 3)
    refused(path)
    assert check(link, 4) == 4


def test_a_plain_file_is_opened_after_its_commit(cut_short: Callable[..., Path]) -> None:
    path = cut_short()
    with hs.open(path) as root:
        assert "v2" in root["_version_data/versions"]
    assert not journal_of(path).exists()


TORN = [
    b"",
    b"H",
    b"HSLABJ0",
    b"HSLABJ02",
    bytes(512),
    bytes(3000),
    b"HSLABJ01",
    b"HSLABJ01ab",
]


@pytest.mark.parametrize("stored", TORN, ids=lambda stored: f"{stored[:8].decode()} {len(stored)}")
def test_a_torn_journal_is_removed_by_writers_only(tmp_path: Path, stored: bytes) -> None:
    path = committed(tmp_path / "v.h5", 1)
    journal_of(path).write_bytes(stored)
    assert isinstance(found_journal(str(path)), Torn)
    assert hs.VersionedFile(path).versions == ["v0"]
    assert hs.open(path, version="v0")["x"].shape == (500,)
    assert journal_of(path).read_bytes() == stored
    assert check(path, 1) == 1


@pytest.mark.parametrize("keep", [0.1, 0.5, 0.99])
def test_sectors_of_a_journal_are_missing(cut_short: Callable[..., Path], keep: float) -> None:
    """After a power cut: the file is as it was before."""
    path = cut_short()
    stored = bytearray(journal_of(path).read_bytes())
    rng = np.random.default_rng(1)
    for start in range(0, len(stored), 512):
        if rng.random() > keep or start == 1024:
            stored[start : start + 512] = bytes(len(stored[start : start + 512]))
    journal_of(path).write_bytes(stored)
    assert hs.VersionedFile(path).versions == ["v0", "v1"]
    assert check(path, 2) == 2


def of_first_format(journal: Journal) -> bytes:
    """A journal as hyperslab wrote it before journals proved which file they belong to."""
    last = [(offset, states[-1]) for offset, states in journal.states()]
    body = b"".join(struct.pack("<QI", offset, len(data)) + data for offset, data in last)
    head = struct.pack("<8sQQQ", b"HSLABJ01", len(body), journal.before_nbytes, journal.after_nbytes)
    return head + struct.pack("<I", zlib.crc32(body, zlib.crc32(head))) + body


@pytest.mark.parametrize("applied", [0, 1, 3])
def test_a_journal_of_the_first_format(cut_short: Callable[..., Path], applied: int) -> None:
    """It does not say what was there before: it is refused by name, and nothing is touched."""
    path = cut_short(applied=applied)
    journal = found_journal(str(path))
    assert isinstance(journal, Journal)
    stored = of_first_format(journal)
    journal_of(path).write_bytes(stored)
    refused(path)
    with pytest.raises(StaleJournal, match=r"of an earlier hyperslab.*Nothing was changed"):
        hs.VersionedFile(path)
    for short in (stored[:100], stored[:-1], stored[:200] + b"x" + stored[201:]):
        journal_of(path).write_bytes(short)  # it was never complete: its commit had not begun to overwrite
        assert isinstance(found_journal(str(path)), Torn)


def test_a_journal_of_the_first_format_that_is_done(cut_short: Callable[..., Path]) -> None:
    path = cut_short(applied=1000)
    journal = found_journal(str(path))
    assert isinstance(journal, Journal)
    journal_of(path).write_bytes(of_first_format(journal))
    assert hs.VersionedFile(path).versions == ["v0", "v1", "v2"]
    assert check(path, 3) == 3
    assert not journal_of(path).exists()


FOREIGN = [b"my own notes", b"\xd9\xd5\x05\xf9\x20\xa1\x63\xd7" + bytes(600), bytes(512) + b"x" * 600]


@pytest.mark.parametrize("stored", FOREIGN, ids=["text", "another's journal", "zeros and more"])
def test_somebody_elses_file_has_its_name(tmp_path: Path, stored: bytes) -> None:
    path = committed(tmp_path / "v.h5", 1)
    journal_of(path).write_bytes(stored)
    assert isinstance(found_journal(str(path)), Foreign)
    assert hs.VersionedFile(path).versions == ["v0"]
    for mode in ("r+", "a", "w"):
        with pytest.raises(StaleJournal, match="move it away"):
            OPENERS[mode](path)
    assert journal_of(path).read_bytes() == stored
    assert hs.VersionedFile(path).versions == ["v0"]


@pytest.mark.parametrize("kind", ["folder", "link", "fifo"])
def test_what_is_no_file_has_its_name(tmp_path: Path, kind: str) -> None:
    path = committed(tmp_path / "v.h5", 1)
    other, journal = tmp_path / "other", journal_of(path)
    other.write_bytes(b"mine")
    {"folder": journal.mkdir, "link": lambda: journal.symlink_to(other), "fifo": lambda: os.mkfifo(journal)}[kind]()
    assert hs.VersionedFile(path).versions == ["v0"]
    with pytest.raises(StaleJournal, match="move it away"):
        hs.VersionedFile(path, "r+")
    assert other.read_bytes() == b"mine"


def test_somebody_makes_a_file_of_its_name_meanwhile(tmp_path: Path) -> None:
    path = committed(tmp_path / "v.h5", 1)
    with hs.VersionedFile(path, "r+") as file:
        journal_of(path).write_bytes(b"mine")
        with pytest.raises(StaleJournal, match="was not there before"):
            commit(file, 1)
        assert journal_of(path).read_bytes() == b"mine"
        journal_of(path).unlink()
        commit(file, 1)
    assert check(path, 2) == 2


def flips(stored: bytes) -> Iterator[int]:
    rng = np.random.default_rng(3)
    yield from (0, 3, 8, 12, 512, 520, len(stored) - 1)
    yield from rng.integers(0, len(stored), 200 if ALL else 20).tolist()


def test_a_damaged_journal(cut_short: Callable[..., Path]) -> None:
    """Such a journal is never believed and never removed: half of the commit may have been applied."""
    path = cut_short(applied=6)
    stored, before = journal_of(path).read_bytes(), path.read_bytes()
    for at in flips(stored):
        damaged = bytearray(stored)
        damaged[at] ^= 0x10
        journal_of(path).write_bytes(damaged)
        with pytest.raises(StaleJournal):
            hs.VersionedFile(path, "r+")
        assert (path.read_bytes(), journal_of(path).read_bytes()) == (before, bytes(damaged))
    journal_of(path).write_bytes(stored)
    assert check(path, 3) == 3


@pytest.mark.parametrize("whose", ["a file of yours", "an earlier attempt"])
def test_a_file_named_new(tmp_path: Path, whose: str) -> None:
    path = committed(tmp_path / "v.h5", 3)
    beside = tmp_path / "v.h5.hyperslab-new"
    beside.write_bytes(b"mine" if whose == "a file of yours" else writing.BEGUN + bytes(3000))
    with hs.VersionedFile(path, "r+") as file:
        if whose == "a file of yours":
            with pytest.raises(UsageError, match=r"v\.h5\.hyperslab-new"):
                file.delete_versions("v1")
            assert beside.read_bytes() == b"mine"
            beside.unlink()
        file.delete_versions("v1")
        assert file.versions == ["v0", "v2"]
    assert not beside.exists()


@pytest.mark.skipif(os.geteuid() != 0, reason="root becomes somebody else")
def test_who_may_not_write(cut_short: Callable[..., Path], tmp_path: Path) -> None:
    """What they cannot finish is not shown as finished, and the error says so; they ignore a torn journal."""
    path = cut_short()
    before = snapshot(tmp_path)
    for folder in (tmp_path, *tmp_path.parents):
        if folder.stat().st_uid == 0 and folder.is_relative_to(tempfile.gettempdir()):
            folder.chmod(folder.stat().st_mode | 0o55)
    os.seteuid(65534)
    try:
        with pytest.raises(ReadError, match="you have no permission to finish it"):
            hs.VersionedFile(path)
    finally:
        os.seteuid(0)
    assert snapshot(tmp_path) == before
    journal_of(path).write_bytes(journal_of(path).read_bytes()[:-512])
    os.seteuid(65534)
    try:
        assert hs.VersionedFile(path).versions == ["v0", "v1"]
    finally:
        os.seteuid(0)


READ_ONLY = """
import sys
import hyperslab as hs
from hyperslab.errors import HyperslabError

for path, count in zip(sys.argv[1::2], map(int, sys.argv[2::2])):
    with hs.VersionedFile(path) as file:
        assert file.versions == [f"v{number}" for number in range(count)], file.versions
        for name in file.versions:
            assert len(file[name]["x"][...]) == len(hs.open(path, version=name)["x"][...])
        file.diff("v0", "v1"), file.log(), file.stats()
        assert file.verify().is_whole
    for mode in ("r+", "a", "w"):
        try:
            hs.VersionedFile(path, mode)
        except (OSError, HyperslabError) as error:
            assert path in str(error), error
        else:
            raise AssertionError(mode)
    print("read")
"""


def mounted(folder: Path, *command: str) -> subprocess.CompletedProcess[str]:
    """What a command says if the folder is a read-only file system of its own."""
    mounting = 'mount --bind "$0" "$0" && mount -o remount,bind,ro "$0" || exit 99; exec "$@"'
    whole = ["unshare", "--mount", "sh", "-c", mounting, str(folder), *command]
    return subprocess.run(whole, capture_output=True, text=True, check=False)


def test_a_file_system_that_cannot_be_written_to(cut_short: Callable[..., Path], tmp_path: Path) -> None:
    """You can read versions from it. A commit that was cut short cannot be finished there, and the error says so."""
    if os.geteuid() != 0 or shutil.which("unshare") is None or mounted(tmp_path, "true").returncode:
        pytest.skip("takes root, and a system where it may mount")
    whole = committed(tmp_path / "whole.h5", 3)
    path = cut_short(applied=3)
    torn = committed(tmp_path / "torn.h5", 2)
    journal_of(torn).write_bytes(journal_of(path).read_bytes()[:-512])
    before = snapshot(tmp_path)
    files = (whole, 3), (torn, 2), (path, 3)
    words = [str(word) for one in files for word in one]
    done = mounted(tmp_path, sys.executable, "-c", READ_ONLY, *words)
    assert done.stdout == "read\n" * 2, done.stderr
    assert "ReadError" in done.stderr
    assert "was interrupted" in done.stderr
    assert snapshot(tmp_path) == before


def test_repair_goes_on_without_a_journal_of_another(cut_short: Callable[..., Path], tmp_path: Path) -> None:
    path = cut_short()
    commit_as_others(path)
    before = snapshot(tmp_path)
    found = repair(path, tmp_path / "new.h5")
    assert sorted(found.versions) == ["v0", "v1", "v2", "v3", "v4"]
    assert any("journal" in note.reason for note in found.notes)
    (tmp_path / "new.h5").unlink()
    assert snapshot(tmp_path) == before


def test_an_h5py_file_beside_it(cut_short: Callable[..., Path]) -> None:
    from hyperslab.versions.compat import VersionedHDF5File as Ours

    path = cut_short()
    before = path.read_bytes()
    for mode in ("r", "r+"):
        with h5py.File(path, mode) as file:
            with pytest.raises(UsageError, match="open it once by its path"):
                hs.VersionedFile(file)
            with pytest.raises(ValueError, match="open it once by its path"):
                Ours(file)
        path.write_bytes(before)  # h5py cuts off what it does not know
    hs.VersionedFile(path).close()
    with h5py.File(path, "r+") as file:
        assert hs.VersionedFile(file).versions == ["v0", "v1", "v2"]


def test_errors_are_of_one_tree() -> None:
    assert issubclass(StaleJournal, ReadError)
    assert issubclass(ReadError, HyperslabError)
