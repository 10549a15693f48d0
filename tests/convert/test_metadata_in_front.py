"""Whoever writes an HDF5 file here puts all of its metadata in front of its chunks, whatever else was asked for."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from convert_sources import make_rich

import hyperslab as hs
from hyperslab.conversion.front import has_metadata_in_front

SHAPE = (20, 40, 50)
GROWTH = {"fixed": SHAPE, "first": (None, 40, 50), "second": (20, None, 50), "two": (None, None, 50)}


def elements() -> np.ndarray[Any, Any]:
    return np.random.default_rng(3).integers(0, 90, SHAPE).astype("f4")


def make(path: Path, version: str) -> None:
    """Two arrays of each kind of chunk index, written in turn so that the indexes lie among the chunks."""
    data = elements()
    with h5py.File(path, "w", libver=version) as file:
        arrays = [
            file.create_dataset(f"{name}-{codec}", SHAPE, "f4", chunks=(1, 20, 25), maxshape=limits, compression=codec)
            for name, limits in GROWTH.items()
            for codec in (None, "gzip")
        ]
        for step in range(SHAPE[0]):
            for array in arrays:
                array[step] = data[step]
        file.create_dataset("time", data=np.arange(200.0), chunks=(1,), maxshape=(None,))
        file.create_dataset("names", data=["one", "two"] * 30, dtype=h5py.string_dtype(), chunks=(10,))


@pytest.fixture(scope="module")
def sources(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Path]:
    root = tmp_path_factory.mktemp("front")
    paths = {"old": root / "old.h5", "latest": root / "latest.h5", "rich": root / "rich.h5"}
    make(paths["old"], "earliest")
    make(paths["latest"], "latest")
    make_rich(paths["rich"])
    hs.convert(paths["old"], root / "old.zarr", format="zarr2", skip_unsupported=True)
    return {**paths, "zarr": root / "old.zarr"}


def in_front(path: Path) -> bool:
    with hs.open(path) as group:
        return has_metadata_in_front(group)


WAYS: dict[str, dict[str, Any]] = {
    "as it is": {},
    "relayout": {"relayout": True},
    "other chunks": {"chunks": "3,40,50", "codec": "shuffle+deflate:1"},
    "out of order": {"chunks": "20,4,5", "memory": 1 << 17},
    "filtered by libhdf5": {"chunks": "10,10,10", "codec": "lzf"},
}


@pytest.mark.parametrize(
    ("name", "way"), [*((name, way) for name in ("old", "latest") for way in WAYS), ("rich", "as it is")]
)
def test_conversions_from_hdf5(sources: dict[str, Path], tmp_path: Path, name: str, way: str) -> None:
    target = tmp_path / "target.h5"
    if name != "rich":
        assert not in_front(sources[name])
    hs.convert(sources[name], target, **WAYS[way])
    assert in_front(target)
    with h5py.File(target) as file, h5py.File(sources[name]) as source:
        assert list(file) == list(source)  # nothing is left of what made room


@pytest.mark.parametrize("format", ["hdf5", "netcdf4"])
def test_conversions_from_other_formats(sources: dict[str, Path], tmp_path: Path, format: str) -> None:
    hs.convert(sources["zarr"], tmp_path / "target.nc", format=format)
    assert in_front(tmp_path / "target.nc")
    with h5py.File(tmp_path / "target.nc") as file:
        assert np.array_equal(file["fixed-gzip"], elements())
        assert file["names"][:2].tolist() == [b"one", b"two"]


@pytest.mark.parametrize("unlimited", [[], ["time"]])
@pytest.mark.parametrize("is_dask", [False, True])
def test_saved_datasets(tmp_path: Path, unlimited: list[str], is_dask: bool) -> None:
    xarray = pytest.importorskip("xarray")
    pytest.importorskip("netCDF4")
    data = xarray.DataArray(elements(), dims=("time", "lat", "lon"), coords={"time": np.arange(20.0)})
    bounds = xarray.DataArray(np.zeros((20, 2)), dims=("time", "bounds"))
    dataset = xarray.Dataset({"a": data, "b": data + 1, "time_bnds": bounds, "names": (("lat",), ["x" * 9] * 40)})
    encoding = {name: {"zlib": True, "chunksizes": (1, 20, 50)} for name in ("a", "b")}
    given = dataset.chunk({"time": 7}) if is_dask else dataset
    hs.save(given, tmp_path / "saved.nc", encoding=encoding, unlimited_dims=unlimited)
    assert in_front(tmp_path / "saved.nc")
    with xarray.open_dataset(tmp_path / "saved.nc", engine="netcdf4") as made:
        xarray.testing.assert_identical(made.load(), dataset)
        assert made.encoding["unlimited_dims"] == set(unlimited)


@pytest.mark.parametrize("format", ["hdf5", "netcdf4"])
def test_exported_versions(tmp_path: Path, format: str) -> None:
    with hs.VersionedFile(tmp_path / "versions.h5", "w") as file:
        with file.stage_version("first") as version:
            for name in ("a", "b"):
                version.create_dataset(name, data=elements(), chunks=(1, 20, 25))
            version.create_dataset("text", data=["one", "two"] * 30, dtype=h5py.string_dtype(), chunks=(10,))
        file.export("first", tmp_path / "first.nc", format=format)
    assert in_front(tmp_path / "first.nc")


@pytest.mark.parametrize("chunk", [(16, 64, 64), (1, 64, 64), (128, 16, 16)])
def test_room_that_is_left_over_takes_next_to_nothing(tmp_path: Path, chunk: tuple[int, ...]) -> None:
    source, target = tmp_path / "source.h5", tmp_path / "target.h5"
    data = np.random.default_rng(4).integers(0, 1 << 16, (128, 64, 64)).astype("u4")
    with h5py.File(source, "w") as file:
        for name in ("a", "b"):
            file.create_dataset(name, data=data, chunks=(8, 64, 64))
    hs.convert(source, target, chunks=",".join(map(str, chunk)), memory=1 << 20)
    with h5py.File(tmp_path / "plain.h5", "w") as file:
        for name in ("a", "b"):
            file.create_dataset(name, data=data, chunks=chunk)
    assert target.stat().st_size <= 1.005 * (tmp_path / "plain.h5").stat().st_size
    assert in_front(target)


def test_sparse_arrays_reserve_what_they_have(tmp_path: Path) -> None:
    source = tmp_path / "sparse.h5"
    with h5py.File(source, "w") as file:
        array = file.create_dataset("x", (4096, 4096), "f4", chunks=(16, 16), fillvalue=1)  # 65,536 chunks
        array[:64, :64] = 2
    hs.convert(source, tmp_path / "kept.h5")
    hs.convert(source, tmp_path / "encoded.h5", codec="deflate:1", chunks="32,8", memory=1 << 20, verify="none")
    for name in ("kept", "encoded"):
        assert in_front(tmp_path / f"{name}.h5")
        assert (tmp_path / f"{name}.h5").stat().st_size < 64 << 10
