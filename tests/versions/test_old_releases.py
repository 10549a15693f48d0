"""Files of older releases of versioned-hdf5, after its own upgrade: nothing that versions show is overwritten.

`old_releases/text-1.3.14.h5` was written by such a release, which stored equal chunks of text several times. An upgrade
keeps each hash once, so that `largest_index` is less than the slots that versions show. If
`HYPERSLAB_OLD_VERSIONED_HDF5` is the path of a Python with such a release, the file is made again.
"""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from versioned_hdf5 import VersionedHDF5File

import hyperslab as hs

OLD = Path(__file__).with_name("old_releases")
PYTHON = os.environ.get("HYPERSLAB_OLD_VERSIONED_HDF5")
VERSIONS = "_version_data/versions"
RAW, TABLE = "_version_data/text/raw_data", "_version_data/text/hash_table"


def shown(path: Path) -> dict[str, dict[str, list[Any]]]:
    """The elements of every version, read by h5py alone."""
    with h5py.File(path) as file:
        groups = {name: group for name, group in file[VERSIONS].items() if name != "__first_version__"}
        return {
            name: {array: np.asarray(found[()]).tolist() for array, found in group.items()}
            for name, group in groups.items()
        }


def upgraded(path: Path) -> Path:
    """Upgrade as versioned-hdf5 recommends; then versions show slots beyond those that count."""
    with h5py.File(path, "r+") as file:
        VersionedHDF5File(file).rebuild_object_dtype_hashtables()
        room = file[RAW].shape[0] // file[RAW].chunks[0]
        assert (int(file[TABLE].attrs["largest_index"]), room) == (6, 11)
    return path


@pytest.fixture
def old(tmp_path: Path) -> Path:
    path = tmp_path / "old.h5"
    if PYTHON:
        subprocess.run([PYTHON, str(OLD / "make_file.py"), str(path)], check=True)
    else:
        shutil.copy(OLD / "text-1.3.14.h5", path)
    return path


def same_versions(path: Path, before: dict[str, Any]) -> None:
    """Everything is as it was, for h5py and for us."""
    after = shown(path)
    assert {name: after[name] for name in before} == before
    with hs.VersionedFile(path) as file:
        for name, arrays in before.items():
            for array, elements in arrays.items():
                read = np.asarray(file[name][array][...]).tolist()
                assert [one.encode() if isinstance(one, str) else one for one in read] == elements, (name, array)


@pytest.mark.parametrize("borrowed", [False, True])
def test_a_commit_overwrites_nothing_that_a_version_shows(old: Path, borrowed: bool) -> None:
    before = shown(upgraded(old))
    with h5py.File(old) as file:
        room = file[RAW].shape[0]
    if borrowed:
        with h5py.File(old, "r+") as file, hs.VersionedFile(file).stage_version("ours") as version:
            version["text"][3:6] = ["x", "y", "z"]
    else:
        with hs.VersionedFile(old, "r+") as file, file.stage_version("ours") as version:
            version["text"][3:6] = ["x", "y", "z"]
    same_versions(old, before)
    with h5py.File(old) as file:
        assert file[RAW].shape[0] == room + 3
        assert file[TABLE].attrs["largest_index"] == room // 3 + 1
        assert file[TABLE]["shape"][:, 0].tolist() == list(range(0, room + 3, 3))
    before = shown(old)
    with h5py.File(old, "r+") as file, VersionedHDF5File(file).stage_version("theirs") as version:
        version["text"][3:6] = np.array(["u", "v", "w"], object)  # this now takes an unused slot
    same_versions(old, before)
    assert shown(old)["theirs"]["text"][3:6] == [b"u", b"v", b"w"]


def test_nothing_shrinks_what_a_commit_was_cut_short_left(tmp_path: Path) -> None:
    path = tmp_path / "v.h5"
    with hs.VersionedFile(path, "w") as file, file.stage_version("a") as version:
        version.create_dataset("x", data=np.arange(5000), chunks=(4096,))
    with h5py.File(path, "r+") as file:
        raw = file["_version_data/x/raw_data"]
        raw.resize((raw.shape[0] + 3 * raw.chunks[0],))  # as after a kill between chunks and hashes
    with hs.VersionedFile(path, "r+") as file:
        with file.stage_version("b") as version:
            version["x"][0] = 7
        assert file.verify().is_whole
        with h5py.File(path, locking=False) as seen:
            assert seen["_version_data/x/raw_data"].shape[0] == 6 * 4096
        assert file.stats().arrays[0].unreferenced_count == 3
        file.repack()
        assert file.stats().arrays[0].unreferenced_count == 0
        assert (file["a"]["x"][0], file["b"]["x"][0]) == (0, 7)
    with h5py.File(path) as seen:
        assert seen["_version_data/x/raw_data"].shape[0] == 3 * 4096


@pytest.mark.parametrize(
    "change",
    [
        lambda file: file.delete_versions("b"),
        lambda file: file.delete_versions(["a", "c"], repack=False),
        lambda file: file.repack(),
        lambda file: file.modify_metadata("text", compression="gzip"),
        lambda file: file.modify_metadata("text", chunks=(4,)),
    ],
)
def test_what_stays_is_whole_after_our_own_changes(old: Path, change: Callable[[hs.VersionedFile], None]) -> None:
    before = shown(upgraded(old))
    with hs.VersionedFile(old, "r+") as file:
        change(file)
        left = file.versions
        with file.stage_version("ours") as version:
            version["text"][3:6] = ["x", "y", "z"]
    same_versions(old, {name: before[name] for name in left})


def test_versions_of_an_old_release_are_read_as_they_are(old: Path) -> None:
    same_versions(old, shown(old))
