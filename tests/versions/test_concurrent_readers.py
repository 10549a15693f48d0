"""Readers in their own processes while versions are committed and deleted: never a wrong value, never an error.

`HYPERSLAB_CRASHES=all` makes 1000 commits; otherwise fewer.
"""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from disks import ALL
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs
from hyperslab.errors import UsageError

COMMITS = 1000 if ALL else 40
READERS = 3
LENGTH = 3000
COMMITS_AT_A_TIME = 5


def x_of(number: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """What x is in version `number`: each commit changes some elements."""
    made = np.arange(LENGTH)
    for commit in range(1, number + 1):
        made[commit * 37 % LENGTH :][:20] = -commit
    return made


def begin(path: Path) -> None:
    with hs.VersionedFile(path, "w") as file, file.stage_version("v0") as version:
        version.create_dataset("x", data=x_of(0), chunks=(50,), compression="gzip")
        version.create_dataset("grows", data=[0], chunks=(16,))


def commit(file: hs.VersionedFile, number: int) -> None:
    with file.stage_version(f"v{number}") as version:
        start = number * 37 % LENGTH
        version["x"][start : start + 20] = -number
        version["grows"].resize((number + 1,))
        version["grows"][...] = number


def check(name: str, group: Any) -> None:
    number = int(name[1:])
    np.testing.assert_array_equal(group["x"][...], x_of(number))
    np.testing.assert_array_equal(group["grows"][...], np.full(number + 1, number))


def some(rng: np.random.Generator, names: Iterable[str], count: int = 3) -> list[str]:
    known = list(names)
    return [known[place] for place in rng.choice(len(known), min(count, len(known)), replace=False)]


def read(path: str) -> None:
    """Check versions again and again until the last one exists; print how many were read."""
    rng, count = np.random.default_rng(os.getpid()), 0
    file = hs.VersionedFile(path, chunk_cache_nbytes=0)
    print("ready", flush=True)
    while f"v{COMMITS}" not in file:
        file.refresh()
        held = [(name, file[name]) for name in some(rng, file.versions)]
        for _ in range(3):  # what a reader holds stays the same, whatever others do meanwhile
            for name, group in held:
                check(name, group)
                count += 1
    print(count)


def read_by_others(path: str) -> None:
    """The same through h5py and versioned-hdf5, whenever HDF5's lock says that no writer has the file open."""
    rng, count, is_last = np.random.default_rng(os.getpid()), 0, False
    print("ready", flush=True)
    while not is_last:
        start = time.monotonic()
        try:
            file = h5py.File(path)
        except BlockingIOError:
            time.sleep(0.001)
            continue
        with file:
            theirs = VersionedHDF5File(file)
            for name in some(rng, theirs.versions):
                check(name, theirs[name])
                check(name, file["_version_data/versions"][name])
                count += 2
            is_last = f"v{COMMITS}" in file["_version_data/versions"]
        time.sleep(max(0.01, time.monotonic() - start))  # lets the writer in, however slow this machine reads
    print(count)


@contextmanager
def readers(path: Path, function: Callable[[str], None], reader_count: int) -> Iterator[list[int]]:
    """Processes that read; afterwards, how many versions each has read."""
    code = f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r});"
    code += f"from test_concurrent_readers import {function.__name__} as read; read(sys.argv[1])"
    command = [sys.executable, "-c", code, str(path)]
    pipe = subprocess.PIPE
    running = [subprocess.Popen(command, stdout=pipe, stderr=pipe, text=True) for _ in range(reader_count)]
    for reader in running:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "ready\n"
    counts: list[int] = []
    try:
        yield counts
        for reader in running:
            out, error = reader.communicate(timeout=300)
            assert reader.returncode == 0, error
            counts.append(int(out))
    finally:
        for reader in running:
            reader.kill()
    assert min(counts) > 0


@pytest.mark.slow
def test_readers_while_others_commit(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    begin(path)
    with hs.VersionedFile(path, "r+") as file, readers(path, read, READERS) as counts:
        for number in range(1, COMMITS + 1):
            commit(file, number)
    assert hs.VersionedFile(path).verify().is_whole
    print(f"{COMMITS} commits, {sum(counts)} versions read meanwhile by {READERS} readers")


@pytest.mark.slow
def test_readers_with_other_libraries_between_commits(tmp_path: Path) -> None:
    """A writer that has the file open for some commits at a time; both sides wait for the other's lock."""
    path = tmp_path / "v.h5"
    begin(path)
    refused = number = 0
    with readers(path, read_by_others, 2) as counts:
        while number < COMMITS:
            try:
                file = hs.VersionedFile(path, "r+")
            except UsageError as error:
                assert "open elsewhere" in str(error)  # noqa: PT017 -- anything else is an error
                refused += 1
                time.sleep(0.001)
                continue
            with file:
                for number in range(number + 1, min(number + COMMITS_AT_A_TIME, COMMITS) + 1):  # noqa: B020
                    commit(file, number)
            time.sleep(0.01)  # lets readers in
    print(f"{COMMITS} commits, {sum(counts)} versions read between them, {refused} times the writer had to wait")


@pytest.mark.parametrize("repack", [True, False])
def test_readers_while_others_delete(tmp_path: Path, repack: bool) -> None:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        for number in range(12):
            with file.stage_version(f"v{number}") as version:
                if not number:
                    version.create_dataset("x", data=x_of(0), chunks=(50,), compression="gzip")
                version["x"][...] = x_of(number)
    reader = hs.VersionedFile(path, chunk_cache_nbytes=0)
    held = {name: reader[name]["x"] for name in reader}
    with hs.VersionedFile(path, "r+") as file:
        for number in range(0, 12, 3):
            file.delete_versions(f"v{number}", repack=repack)
            with file.stage_version(f"v{100 + number}") as version:
                version["x"][...] = np.random.default_rng(number).integers(0, 1 << 40, LENGTH)
            for name, array in held.items():
                np.testing.assert_array_equal(array[...], x_of(int(name[1:])))
            reader.refresh()
            assert reader.versions == file.versions
