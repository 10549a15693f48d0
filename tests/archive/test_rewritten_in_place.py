"""The time of the last change of any kind tells that a file was written to, when its other times were put back."""

from __future__ import annotations

import os
import shutil
from pathlib import Path

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.errors import FileChanged

VALUES = np.arange(40_000, dtype="i4").reshape(400, 100)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    with h5py.File(tmp_path / "a.h5", "w") as made:
        made.create_dataset("x", data=VALUES, chunks=(40, 100), compression="gzip")
        made.create_dataset("plain", data=VALUES, chunks=(40, 100))
    return tmp_path / "a.h5"


def rewrite(path: Path, offset: int, nbytes: int) -> None:
    """Write in place, and put the modification time back."""
    before = path.stat()
    with path.open("r+b") as raw:
        raw.seek(offset)
        raw.write(bytes(nbytes))
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))


def test_a_chunk_of_a_file_is_never_stale(file: Path) -> None:
    with h5py.File(file) as opened:
        chunk = opened["plain"].id.get_chunk_info(3)
    with hs.open(file) as opened:
        assert opened["plain"][125, 5] == VALUES[125, 5]
        rewrite(file, chunk.byte_offset, chunk.size)
        with pytest.raises(FileChanged, match=r"a\.h5"):
            opened["plain"][125, 5]
    assert hs.open(file)["plain"][125, 5] == 0


def test_a_chunk_of_a_zarr_hierarchy_is_never_stale(file: Path, tmp_path: Path) -> None:
    hs.convert(file, tmp_path / "a.zarr", codec="none")
    with hs.open(tmp_path / "a.zarr") as opened:
        assert opened["x"][5, 5] == VALUES[5, 5]
        chunk = next(path for path in sorted((tmp_path / "a.zarr" / "x").rglob("*")) if path.stat().st_size == 16_000)
        rewrite(chunk, 0, 16_000)
        with pytest.raises(FileChanged):
            opened["x"][:]


@pytest.mark.parametrize("what", ["unlinked", "linked", "moved", "replaced", "another mode"])
def test_what_changes_no_bytes_disturbs_nobody(file: Path, what: str) -> None:
    with hs.open(file) as opened:
        array = opened["x"]
        assert (array[:100] == VALUES[:100]).all()
        if what == "unlinked":
            file.unlink()
        elif what == "linked":
            file.with_name("b.h5").hardlink_to(file)
        elif what == "moved":
            file.rename(file.with_name("b.h5"))
        elif what == "replaced":
            shutil.copy(file, file.with_name("b.h5"))
            file.with_name("b.h5").replace(file)
        else:
            file.chmod(0o400)
        assert (array[:] == VALUES).all()
