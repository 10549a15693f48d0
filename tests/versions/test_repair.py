"""Repair saves everything in damaged files that can be proved, and nothing wrong."""

from __future__ import annotations

import io
import os
import random
import subprocess
import sys
import tempfile
from functools import cache
from pathlib import Path
from typing import Any

import h5py
import hdf5plugin
import numpy as np
import pytest
import versioned_hdf5
from disks import ALL, Dying
from test_crashes import commit, state_of, text
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import HyperslabError, UsageError
from hyperslab.versions import repair
from hyperslab.versions.commit import writing
from hyperslab.versions.layout.fingerprint_log import LOG


def values(name: str) -> dict[str, Any]:
    return state_of(int(name[1:]))


def check_all_right(path: Path, *, may_be_old: bool = False) -> int:
    """What is in a repaired file is right, and both libraries can go on with it. Returns the number of arrays.

    Where a deletion was stopped, a mapping may be old although the table of hashes is new: then the array is another's,
    and only a fingerprint tells.
    """
    count = 0
    with hs.VersionedFile(path) as file, h5py.File(path) as h5:
        theirs = VersionedHDF5File(h5)
        assert set(theirs.versions) == set(file.versions)
        for name in file:
            for array in file[name].walk():
                inner = array.name.split(f"/{name}/", 1)[1]
                found = text(array[...])
                versions = [name, *(file if may_be_old else ())]
                right = next((one for one in versions if np.array_equal(found, text(values(one)[inner]))), name)
                np.testing.assert_array_equal(found, text(values(right)[inner]), f"{name} {inner}")
                np.testing.assert_array_equal(text(theirs[name][inner][()]), found)
                count += 1
    return count


@pytest.fixture(params=["ours", "theirs"])
def good(request: Any, tmp_path: Path) -> Path:
    path = tmp_path / "good.h5"
    path.write_bytes(made_by(request.param))
    return path


@cache
def made_by(library: str) -> bytes:
    """The same file for all tests."""
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "good.h5")
        if library == "ours":
            with hs.VersionedFile(path, "w") as file:
                for number in range(4):
                    commit(file, number)
        else:
            with h5py.File(path, "w") as file:
                for number in range(4):
                    commit(VersionedHDF5File(file), number)  # type: ignore[arg-type]
        return path.read_bytes()


def test_a_good_file_loses_nothing(good: Path, tmp_path: Path) -> None:
    with h5py.File(good, "r+") as file:
        file["_version_data/versions/v1"].attrs["author"] = "A"
    before = good.read_bytes()
    found = repair(good, tmp_path / "new.h5")
    assert found.is_complete
    assert (found.versions, found.notes, found.mended_chunk_count) == (["v0", "v1", "v2", "v3"], [], 0)
    assert check_all_right(found.output) == 16
    assert good.read_bytes() == before
    with hs.VersionedFile(good) as old, hs.VersionedFile(found.output) as new:
        assert {name: old.table[name] for name in old} == {name: new.table[name] for name in new}
        assert new.current_version == "v3"
        assert new["v1"].attrs["author"] == "A"
        for name in old:
            for array in old[name].walk():
                twin = new[name][array.name.split(f"/{name}/", 1)[1]]
                assert twin.dtype == array.dtype
                assert twin.chunks == array.chunks
                assert twin.codecs == array.codecs
    with pytest.raises(UsageError, match="already"):
        repair(good, found.output)


def test_a_wrong_chunk(good: Path, tmp_path: Path) -> None:
    with h5py.File(good, "r+") as file:
        raw = file["_version_data/same/raw_data"]
        raw[3] += 1
        raw = file["_version_data/x/raw_data"]
        raw[-40] = 17  # in the last version
    found = repair(good, tmp_path / "new.h5")
    assert {(one.version, one.path) for one in found.lost} == {("v3", "x"), *((f"v{n}", "same") for n in range(4))}
    assert "SHA-256" in str(found.lost[0])
    assert check_all_right(found.output) == 11


def test_hashes_that_are_gone(good: Path, tmp_path: Path) -> None:
    with h5py.File(good, "r+") as file:
        del file["_version_data/x/hash_table"]
    found = repair(good, tmp_path / "new.h5")
    assert {one.path for one in found.lost} == {"x"}
    assert check_all_right(found.output) == 12
    found = repair(good, tmp_path / "kept.h5", keep_unproved=True)
    assert found.is_complete
    assert check_all_right(found.output) == 16


def test_a_version_without_time_and_one_that_is_gone(good: Path, tmp_path: Path) -> None:
    with h5py.File(good, "r+") as file:
        del file["_version_data/versions/v1"]
        file["_version_data/versions/v3"].attrs["timestamp"] = "yesterday"
    found = repair(good, tmp_path / "new.h5")
    assert [str(one) for one in found.notes] == ["v2: its parent 'v1' does not exist: it has no parent now"]
    assert [one.version for one in found.lost] == ["v3"]
    assert check_all_right(found.output) == 8
    assert hs.VersionedFile(found.output).current_version == "v2"


def stopped_deletions() -> list[tuple[str, int]]:
    """The function of versioned-hdf5 that fails, and at which call."""
    return [
        *[("_recreate_hashtable", number) for number in range(0, 4, 1 if ALL else 3)],
        *[("_recreate_virtual_dataset", number) for number in range(0, 4, 1 if ALL else 3)],
        *[("vds_fillvalue", number) for number in range(0, 12, 1 if ALL else 5)],
    ]


@pytest.mark.parametrize(("function", "number"), stopped_deletions())
def test_a_deletion_by_versioned_hdf5_that_was_interrupted(
    good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, function: str, number: int
) -> None:
    original, calls = getattr(versioned_hdf5.replay, function), 0

    def failing(*arguments: Any, **options: Any) -> Any:
        nonlocal calls
        calls += 1
        if calls == number + 1:
            raise MemoryError
        return original(*arguments, **options)

    monkeypatch.setattr(versioned_hdf5.replay, function, failing)
    with h5py.File(good) as file:
        has_fingerprints = LOG in file
    with h5py.File(good, "r+") as file, pytest.raises(MemoryError):
        versioned_hdf5.delete_versions(file, ["v1"])
    found = repair(good, tmp_path / "new.h5")
    lost = {(one.version, one.path) for one in found.lost}
    count = check_all_right(found.output, may_be_old=function == "vds_fillvalue" and not has_fingerprints)
    assert count + len(lost) == 16
    if has_fingerprints:
        assert {version for version, _ in lost} <= {"v1"}
    if function == "_recreate_hashtable" and not number:  # in the first array: everything exists, but moved
        assert {version for version, _ in lost} == {"v1"}
        assert found.mended_chunk_count > 0
    else:
        kept = repair(good, tmp_path / "kept.h5", keep_unproved=True)
        assert len(kept.lost) <= len(lost)


def test_a_commit_by_versioned_hdf5_that_was_stopped(tmp_path: Path) -> None:
    """Its next version is based on half a version: that cannot be undone, but it is reported."""
    path = tmp_path / "v.h5"
    with h5py.File(path, "w") as file:
        commit(VersionedHDF5File(file), 0)  # type: ignore[arg-type]
        versions = file["_version_data/versions"]
        half = versions.create_group("v1")
        half.attrs["prev_version"], half.attrs["committed"] = "v0", False
        half.attrs["timestamp"] = "2030-01-01 00:00:00.000000+0000"
        file.copy(versions["v0/x"], half, "x")
        versions.attrs["current_version"] = "v1"
        with VersionedHDF5File(file).stage_version("v2") as version:
            version["x"][...] = state_of(2)["x"]
    found = repair(path, tmp_path / "new.h5")
    assert [str(one) for one in found.lost] == ["v1: it was never committed"]
    assert "arrays may be missing" in str(found.notes[0])
    assert found.notes[0].version == "v2"
    assert found.versions == ["v0", "v2"]
    assert check_all_right(found.output) == 5


class Dies(io.FileIO):
    """A file under versioned-hdf5 whose process is killed at a write, of which only the first part is done."""

    left = 1 << 60

    def write(self, data: Any) -> int:
        self.left -= 1
        if self.left == 0:
            super().write(bytes(data)[: len(data) // 2])
            os._exit(9)
        return super().write(data)  # type: ignore[return-value]


def killed_at(path: Path, stop_at: int) -> int:
    """Commit with versioned-hdf5 in a process that is killed at a write. Returns how many versions it had flushed."""
    receiving, sending = os.pipe()
    child = os.fork()
    if child == 0:
        try:
            dies = Dies(path, "w+")
            file = h5py.File(dies, "w")
            dies.left = stop_at
            versions = VersionedHDF5File(file)
            for number in range(4):
                commit(versions, number)  # type: ignore[arg-type]
                file.flush()
                os.write(sending, b".")
        finally:
            os._exit(0)
    os.close(sending)
    os.waitpid(child, 0)
    with os.fdopen(receiving, "rb") as pipe:
        return len(pipe.read())


@pytest.mark.slow
def test_kills_of_versioned_hdf5(tmp_path: Path) -> None:
    """Every saved version is right; of those that were flushed before, nearly all are saved."""
    rng, saved, flushed_count, unreadable = random.Random(4), 0, 0, 0
    for _ in range(300 if ALL else 8):
        path, new = tmp_path / "v.h5", tmp_path / "new.h5"
        for one in (path, new):
            one.unlink(missing_ok=True)
        flushed = killed_at(path, rng.randint(20, 300))
        flushed_count += flushed
        try:
            found = repair(path, new)
        except HyperslabError:
            unreadable += 1
            continue
        check_all_right(new)
        saved += sum(name in found.versions for name in (f"v{number}" for number in range(flushed)))
    print(f"{saved} of {flushed_count} flushed versions, {unreadable} files with nothing to save")
    assert saved >= flushed_count // 2


KILLED = """
import os, sys; sys.path.insert(0, sys.argv[2])
import h5py; from versioned_hdf5 import VersionedHDF5File; from test_crashes import commit
file = h5py.File(sys.argv[1], "w", libver="latest")
for number in range(3):
    commit(VersionedHDF5File(file), number)
    file.flush()
os._exit(0)
"""


def test_a_file_that_is_marked_as_open(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    subprocess.run([sys.executable, "-c", KILLED, str(path), str(Path(__file__).parent)], check=True)
    with pytest.raises(OSError, match="consistency flags"):
        h5py.File(path)
    found = repair(path, tmp_path / "new.h5")
    assert found.versions == ["v0", "v1", "v2"]
    assert found.is_complete
    assert check_all_right(found.output) == 12


def test_a_commit_that_its_journal_finishes(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        commit(file, 0)
    with monkeypatch.context() as patched:
        patched.setattr(writing, "SYSTEM", Dying())
        with hs.VersionedFile(path, "r+") as file:
            commit(file, 1)
    before, journal = path.read_bytes(), Path(f"{path}.journal").read_bytes()
    found = repair(path, tmp_path / "new.h5")
    assert found.versions == ["v0", "v1"]
    assert check_all_right(found.output) == 8
    assert (path.read_bytes(), Path(f"{path}.journal").read_bytes()) == (before, journal)
    assert sorted(one.name for one in tmp_path.iterdir()) == ["new.h5", "v.h5", "v.h5.journal"]


def filters_in(path: Path, array: str) -> list[tuple[Any, ...]]:
    with h5py.File(path) as file:
        plist = file[f"_version_data/{array}/raw_data"].id.get_create_plist()
        return [plist.get_filter(place)[::2] for place in range(plist.get_nfilters())]


@pytest.mark.parametrize("library", ["ours", "theirs"])
def test_filters_keep_their_levels(tmp_path: Path, library: str) -> None:
    options: dict[str, dict[str, Any]] = {
        "none": {},
        "gzip": {"compression": "gzip", "compression_opts": 7, "shuffle": True, "fletcher32": True},
        "fast": {"compression": "gzip", "compression_opts": 1},
        "lzf": {"compression": "lzf"},
        "scaled": {"scaleoffset": 0, "compression": "gzip", "compression_opts": 2},
        "blosc": dict(hdf5plugin.Blosc(cname="zstd", clevel=8, shuffle=hdf5plugin.Blosc.BITSHUFFLE)),
        "zstd": dict(hdf5plugin.Zstd(clevel=11)),
        "bitshuffle": dict(hdf5plugin.Bitshuffle(cname="lz4")),
    }
    path, data = tmp_path / "v.h5", np.arange(1000).reshape(50, 20)
    with h5py.File(path, "w") as file:
        versions: Any = hs.VersionedFile(file) if library == "ours" else VersionedHDF5File(file)
        with versions.stage_version("v0") as version:
            for name, codecs in options.items():
                version.create_dataset(name, data=data, chunks=(8, 20), **codecs)
    found = repair(path, tmp_path / "new.h5")
    assert found.is_complete
    assert found.notes == []
    for name in options:
        assert filters_in(found.output, name) == filters_in(path, name)
        np.testing.assert_array_equal(hs.open(found.output, version="v0")[name][...], data)


def test_a_filter_that_is_not_here_is_said(good: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys.modules[repair.__module__], "_can_encode", lambda number: number != 1)
    found = repair(good, tmp_path / "new.h5")
    assert found.is_complete
    assert {(one.version, one.path) for one in found.notes} == {("v0", "x"), ("v0", "g/grown"), ("v0", "same")}
    assert "cannot encode with filter 1" in str(found.notes[0])
    assert filters_in(found.output, "x") == []
