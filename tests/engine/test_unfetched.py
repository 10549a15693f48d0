"""One chunk that cannot be had leaves the others readable, and errors say of which array, chunk and file they are."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab.cli.verify import verified
from hyperslab.errors import DamagedFile, ReadError, Unsupported

zarr = pytest.importorskip("zarr")

WRITTEN = np.arange(400.0).reshape(20, 20)


@pytest.mark.parametrize("libver", ["earliest", "v108", "latest"])
@pytest.mark.parametrize("compression", ["gzip", None])
@pytest.mark.parametrize("max_shape", [(20, 20), (None, 20), (None, None)])
def test_a_chunk_past_the_end_is_damaged_by_itself(
    tmp_path: Path, libver: str, compression: str | None, max_shape: tuple[Any, ...]
) -> None:
    path = tmp_path / "a.h5"
    with h5py.File(path, "w", libver=libver) as file:
        array = file.create_dataset("a", (20, 20), "f8", chunks=(5, 5), maxshape=max_shape, compression=compression)
        array[:5] = WRITTEN[:5]
        file["more"] = np.zeros(10_000)  # the metadata stand before what is cut off
        file.flush()
        array[5:] = WRITTEN[5:]
        info = [array.id.get_chunk_info(number) for number in range(16)]
        last = max(info, key=lambda one: one.byte_offset)
    with path.open("r+b") as raw:
        raw.truncate(last.byte_offset + last.size - 1)
    try:
        array = hs.open(path)["a"]
    except DamagedFile:
        pytest.skip("metadata are behind the chunks")
    if array.damaged:
        pytest.skip("the index of the chunks is cut off, or there is none")
    at = tuple(slice(start, start + 5) for start in last.chunk_offset)
    index = [start // 5 for start in last.chunk_offset]
    with pytest.raises(DamagedFile, match=rf"array /a of .*a\.h5, chunk \{index}.* at offset {last.byte_offset}"):
        array[at]
    for one in info:
        if one.byte_offset != last.byte_offset:
            place = tuple(slice(start, start + 5) for start in one.chunk_offset)
            np.testing.assert_array_equal(array[place], WRITTEN[place])
    (found,) = (one for one in verified(hs.open(path), lambda *_: None) if one.name == "/a")
    assert (found.status, found.damaged_count, found.chunk_count) == ("damaged", 1, 15)


def test_a_subchunk_past_the_end_is_damaged_by_itself(tmp_path: Path) -> None:
    group = zarr.create_group(tmp_path / "a.zarr")
    group.create_array("x", shape=(8,), chunks=(2,), shards=(8,), dtype="i4", compressors=None)[:] = np.arange(8)
    shard = next(tmp_path.glob("a.zarr/x/c/*"))
    stored = bytearray(shard.read_bytes())
    place = len(stored) - 4 - 16  # the last entry of the index, before its checksum
    stored[place : place + 8] = (10_000).to_bytes(8, "little")
    google_crc32c = pytest.importorskip("google_crc32c")
    stored[-4:] = google_crc32c.value(bytes(stored[-4 - 64 : -4])).to_bytes(4, "little")
    shard.write_bytes(stored)
    array = hs.open(tmp_path / "a.zarr")["x"]
    np.testing.assert_array_equal(array[:6], np.arange(6))
    with pytest.raises(DamagedFile, match=r"chunk \[3\] at offset 10000"):
        array[6:]


def test_a_missing_external_file_is_told_with_the_array(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("g/a", (4,), "i4", external=[("gone.raw", 0, 16)])
    with pytest.raises(ReadError, match=r"array /g/a: .*gone\.raw: "):
        hs.open(tmp_path / "a.h5")["g/a"][...]


@pytest.fixture
def somebody() -> Iterator[Path]:
    """A folder, read by somebody who is not the superuser."""
    with tempfile.TemporaryDirectory() as folder:
        Path(folder).chmod(0o777)
        is_superuser = os.geteuid() == 0
        if is_superuser:
            os.seteuid(65534)
        try:
            yield Path(folder)
        finally:
            if is_superuser:
                os.seteuid(0)


@pytest.mark.parametrize("name", ["c/0", "zarr.json"])
def test_what_may_not_be_read_is_neither_damaged_nor_unsupported(somebody: Path, name: str) -> None:
    group = zarr.create_group(somebody / "a.zarr")
    group.create_array("x", shape=(8,), chunks=(2,), shards=(8,), dtype="i4")[:] = 1
    group.create_array("y", shape=(2,), chunks=(2,), dtype="i4")[:] = 1
    (somebody / "a.zarr" / "x" / name).chmod(0)
    root = hs.open(somebody / "a.zarr")
    np.testing.assert_array_equal(root["y"][:], 1)
    with pytest.raises(ReadError, match="ermission denied") as caught:
        root["x"][:]
    assert not isinstance(caught.value, DamagedFile | Unsupported)
    if name == "zarr.json":
        with pytest.raises(ReadError, match="ermission denied"):
            _ = root.arrays  # without `x` it would say that there is no such array
    else:
        assert "y" in root.arrays
    (found,) = (one for one in verified(root, lambda *_: None) if one.name.strip("/") == "x")
    assert found.status == "unreadable"
