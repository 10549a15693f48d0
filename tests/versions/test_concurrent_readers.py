"""Readers in processes of their own while versions are committed and deleted: never a wrong value, never an error.

`HYPERSLAB_CRASHES=all` makes 1000 commits; else a few.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import hyperslab as hs

COMMITS = 1000 if os.environ.get("HYPERSLAB_CRASHES") == "all" else 40
READERS = 3
LENGTH = 3000


def x_of(number: int) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    """What x is in version `number`: of each commit some elements."""
    made = np.arange(LENGTH)
    for commit in range(1, number + 1):
        made[commit * 37 % LENGTH :][:20] = -commit
    return made


def read(path: str) -> None:
    """Check versions again and again until the last one is there; print how many were read."""
    rng, count = np.random.default_rng(os.getpid()), 0
    file = hs.VersionedFile(path, chunk_cache_nbytes=0)
    print("ready", flush=True)
    while f"v{COMMITS}" not in file:
        file.refresh()
        names = file.versions
        held = [(name, file[name]) for name in rng.choice(names, min(3, len(names)), replace=False)] if names else []
        for _ in range(3):  # what is held stays the same, whatever others do meanwhile
            for name, group in held:
                number = int(name[1:])
                np.testing.assert_array_equal(group["x"][...], x_of(number))
                np.testing.assert_array_equal(group["grows"][...], np.full(number + 1, number))
                count += 1
    print(count)


def test_readers_while_others_commit(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file:
        with file.stage_version("v0") as version:
            version.create_dataset("x", data=x_of(0), chunks=(50,), compression="gzip")
            version.create_dataset("grows", data=[0], chunks=(16,))
        command = [sys.executable, "-c", f"import sys; sys.path.insert(0, {str(Path(__file__).parent)!r});"]
        command[-1] += "from test_concurrent_readers import read; read(sys.argv[1])"
        readers = [
            subprocess.Popen([*command, str(path)], stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
            for _ in range(READERS)
        ]
        for reader in readers:
            assert reader.stdout is not None
            assert reader.stdout.readline() == "ready\n"
        for number in range(1, COMMITS + 1):
            with file.stage_version(f"v{number}") as version:
                start = number * 37 % LENGTH
                version["x"][start : start + 20] = -number
                version["grows"].resize((number + 1,))
                version["grows"][...] = number
    counts = []
    for reader in readers:
        out, error = reader.communicate(timeout=120)
        assert reader.returncode == 0, error
        counts.append(int(out))
    assert min(counts) > 0
    print(f"{COMMITS} commits, {sum(counts)} versions read meanwhile by {READERS} readers")


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
