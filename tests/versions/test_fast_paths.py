"""What is done in one go is what is done chunk by chunk."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest

import hyperslab as hs
from hyperslab._core import add_mappings, hash_chunks
from hyperslab.versions import virtual
from hyperslab.versions.layout import chunk_hash

SHAPES = [
    ((1000,), (16,)),
    ((37, 23), (5, 4)),
    ((9, 8, 7), (2, 3, 7)),
    ((0, 3), (2, 2)),
    ((5,), (10,)),
    ((600_000,), (9,)),
]


@pytest.mark.parametrize(("shape", "chunk_shape"), SHAPES, ids=str)
@pytest.mark.parametrize("dtype", ["<f8", ">i2", "S3", "i4,f2"])
def test_hashes(shape: tuple[int, ...], chunk_shape: tuple[int, ...], dtype: str) -> None:
    data = np.frombuffer(np.random.default_rng(0).bytes(int(np.prod(shape)) * np.dtype(dtype).itemsize), dtype)
    array = data.reshape(shape)
    together = hash_chunks(data.view(np.uint8).copy(), shape, chunk_shape, array.itemsize)
    grid = tuple(-(-length // chunk) for length, chunk in zip(shape, chunk_shape, strict=True))
    for number, index in enumerate(list(np.ndindex(grid))[:100]):
        box = tuple(slice(i * c, (i + 1) * c) for i, c in zip(index, chunk_shape, strict=True))
        assert together[32 * number : 32 * number + 32] == chunk_hash(array[box])
    assert len(together) == 32 * int(np.prod(grid))


def test_data_of_another_shape_are_refused() -> None:
    with pytest.raises(ValueError, match="not of the shape"):
        hash_chunks(np.zeros(7, np.uint8), (2,), (1,), 4)


@pytest.mark.parametrize(("shape", "chunk_shape"), SHAPES[:5], ids=str)
def test_mappings_by_libhdf5_and_through_h5py(
    tmp_path: Path, shape: tuple[int, ...], chunk_shape: tuple[int, ...]
) -> None:
    functions = virtual.loaded_functions()
    assert functions is not None
    count = int(np.prod([-(-length // chunk) for length, chunk in zip(shape, chunk_shape, strict=True)]))
    places = np.random.default_rng(1).integers(-1, 5, count)
    with h5py.File(tmp_path / "v.h5", "w") as file:
        raw = file.create_dataset("raw", (5 * chunk_shape[0], *chunk_shape[1:]), "f8", chunks=chunk_shape)
        found = []
        for way in ("libhdf5", "h5py"):
            plist = h5py.h5p.create(h5py.h5p.DATASET_CREATE)
            plist.set_layout(h5py.h5d.VIRTUAL)
            target, source = h5py.h5s.create_simple(shape), h5py.h5s.create_simple(raw.shape)
            if way == "h5py":
                virtual.add_mappings_through_h5py(plist, target, source, shape, raw, places)
            else:
                add_mappings(functions, (plist.id, target.id, source.id), "/raw", shape, chunk_shape, places)
            found.append([mapping(plist, number) for number in range(plist.get_virtual_count())])
        assert found[0] == found[1]
        assert len(found[0]) == np.count_nonzero(places != -1)


def mapping(plist: Any, number: int) -> tuple[Any, ...]:
    target, source = plist.get_virtual_vspace(number), plist.get_virtual_srcspace(number)
    names = plist.get_virtual_filename(number), plist.get_virtual_dsetname(number)
    return (*names, target.get_regular_hyperslab(), source.get_regular_hyperslab())


def test_libhdf5_refusing_is_an_error() -> None:
    functions = virtual.loaded_functions()
    assert functions is not None
    with pytest.raises(RuntimeError, match="libhdf5 refused"):
        add_mappings(functions, (0, 0, 0), "/raw", (4,), (2,), np.array([0, 1]))
    with pytest.raises(ValueError, match="address 0"):
        add_mappings((0, 0), (0, 0, 0), "/raw", (4,), (2,), np.array([0, 1]))


def test_a_whole_version_without_libhdf5_found(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(virtual, "loaded_functions", lambda: None)
    data = np.random.default_rng(2).random((50, 20))
    with hs.VersionedFile(tmp_path / "v.h5", "w") as file:
        with file.stage_version("a") as version:
            version.create_dataset("x", data=data, chunks=(7, 3))
        np.testing.assert_array_equal(file["a"]["x"][...], data)
