"""`save` writes what xarray writes: judged by xarray itself, netCDF4 and zarr-python."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from test_convert_formats import climate

import hyperslab as hs
import hyperslab.conversion.accessor
from hyperslab.errors import UsageError

xarray = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")
netcdf4 = pytest.importorskip("netCDF4")


def large() -> Any:
    made = climate()
    random = np.random.default_rng(5)
    made["pressure"] = (("time", "level", "lat", "lon"), random.integers(0, 900, (24, 7, 30, 50)).astype("f8"))
    made["when"] = (("time", "big"), made.time.values[:, None] + np.arange(5000).astype("m8[h]")[None])
    return made


ENCODINGS: list[dict[str, Any]] = [
    {},
    {"pressure": {"zlib": True, "complevel": 4, "shuffle": True, "chunksizes": (5, 7, 11, 50)}},
    {"pressure": {"dtype": "i2", "scale_factor": 0.5, "_FillValue": -1, "compression": "zlib"}},
    {"pressure": {"dtype": ">f4", "chunksizes": (24, 1, 30, 50), "fletcher32": True}},
    {"when": {"units": "hours since 2000-01-01", "dtype": "i4", "zlib": True}},
]


@pytest.mark.parametrize("encoding", ENCODINGS, ids=range(len(ENCODINGS)))
@pytest.mark.parametrize("is_dask", [False, True])
def test_netcdf_as_xarray_writes_it(tmp_path: Path, encoding: dict[str, Any], is_dask: bool) -> None:
    dataset = large()
    given = dataset.chunk({"time": 6}) if is_dask else dataset
    hs.save(given, tmp_path / "ours.nc", encoding=encoding, unlimited_dims=["time"])
    given.to_netcdf(tmp_path / "theirs.nc", encoding=encoding, unlimited_dims=["time"], engine="netcdf4")
    options: dict[str, Any] = {"engine": "netcdf4", "mask_and_scale": False, "decode_times": False}
    with (
        xarray.open_dataset(tmp_path / "ours.nc", **options) as a,
        xarray.open_dataset(tmp_path / "theirs.nc", **options) as b,
    ):
        xarray.testing.assert_identical(a.load(), b.load())
    with netcdf4.Dataset(tmp_path / "ours.nc") as a, netcdf4.Dataset(tmp_path / "theirs.nc") as b:
        for name in b.variables:
            assert a.variables[name].filters() == b.variables[name].filters()
            assert a.variables[name].chunking() == b.variables[name].chunking()
            assert a.variables[name].dtype == b.variables[name].dtype
    size = (tmp_path / "ours.nc").stat().st_size / (tmp_path / "theirs.nc").stat().st_size
    assert size < 1.02


NUMBERS = np.random.default_rng(7).random((300, 400))
ODD: dict[str, tuple[Any, dict[str, Any]]] = {
    "characters": (("x", np.array([f"abc{k}" for k in range(60_000)], "S8")), {}),
    "characters of texts": (("x", np.array([f"äbc{k}" for k in range(60_000)], object)), {"dtype": "S1"}),
    "encoded characters": (("x", np.array([f"abc{k}" for k in range(60_000)], "S8")), {"zlib": True}),
    "rounded": (("x", "y"), {"least_significant_digit": 2, "zlib": True}),
    "quantized": (("x", "y"), {"significant_digits": 3, "quantize_mode": "BitGroom", "zlib": True}),
}  # fmt: skip


@pytest.mark.parametrize("kind", ODD)
def test_what_only_netcdf4_does_is_done(tmp_path: Path, kind: str) -> None:
    """Large arrays of characters lost all of them, and nothing was rounded."""
    variable, encoding = ODD[kind]
    if isinstance(variable[1], str):
        variable = (variable, NUMBERS)
    dataset = xarray.Dataset({"v": variable})
    hs.save(dataset, tmp_path / "ours.nc", encoding={"v": encoding})
    dataset.to_netcdf(tmp_path / "theirs.nc", encoding={"v": encoding}, engine="netcdf4")
    with xarray.open_dataset(tmp_path / "ours.nc") as a, xarray.open_dataset(tmp_path / "theirs.nc") as b:
        xarray.testing.assert_identical(a.load(), b.load())
    assert (tmp_path / "ours.nc").stat().st_size < 1.05 * (tmp_path / "theirs.nc").stat().st_size


def test_a_variable_called_like_a_dimension_of_others(tmp_path: Path) -> None:
    dataset = xarray.Dataset({"v": (("x", "z"), NUMBERS), "x": (("y", "q"), NUMBERS[:, ::-1])})
    hs.save(dataset, tmp_path / "ours.nc")
    with xarray.open_dataset(tmp_path / "ours.nc", engine="netcdf4") as found:
        xarray.testing.assert_identical(found.load(), dataset)


@pytest.mark.parametrize("format", ["zarr2", "zarr3"])
@pytest.mark.parametrize("is_dask", [False, True])
def test_zarr_as_xarray_writes_it(tmp_path: Path, format: Any, is_dask: bool) -> None:
    dataset = large()
    given = dataset.chunk({"time": 6}) if is_dask else dataset
    encoding = {} if is_dask else {"pressure": {"chunks": (6, 7, 30, 50)}}
    hs.save(given, tmp_path / "ours.zarr", format=format, encoding=encoding)
    version = 2 if format == "zarr2" else 3
    given.to_zarr(tmp_path / "theirs.zarr", zarr_format=version, encoding=encoding, consolidated=True)
    xarray.testing.assert_identical(
        xarray.open_zarr(tmp_path / "ours.zarr").load(), xarray.open_zarr(tmp_path / "theirs.zarr").load()
    )
    ours, theirs = zarr.open_group(tmp_path / "ours.zarr"), zarr.open_group(tmp_path / "theirs.zarr")
    assert str(ours["pressure"].metadata) == str(theirs["pressure"].metadata)  # NaN is not NaN


def test_shards_of_zarr(tmp_path: Path) -> None:
    dataset = large()
    encoding = {"pressure": {"chunks": (3, 7, 10, 25), "shards": (24, 7, 30, 50)}}
    hs.save(dataset, tmp_path / "ours.zarr", encoding=encoding)
    xarray.testing.assert_identical(xarray.open_zarr(tmp_path / "ours.zarr")["pressure"].load().drop_attrs(),
                                    dataset["pressure"].drop_attrs())  # fmt: skip
    assert len(list((tmp_path / "ours.zarr" / "pressure" / "c").rglob("0"))) >= 1


def test_what_is_saved_replaces_what_was_saved(tmp_path: Path) -> None:
    for name, format in (("a.zarr", "zarr3"), ("b.zarr", "zarr2"), ("c.nc", "netcdf4")):
        for factor in (1, 2):
            hs.save(large()[["pressure"]] * factor, tmp_path / name, format=format)
    with hs.open(tmp_path / "a.zarr") as zarr3, hs.open(tmp_path / "b.zarr") as zarr2, hs.open(tmp_path / "c.nc") as nc:
        for found in (zarr3, zarr2, nc):
            np.testing.assert_array_equal(found["pressure"][...], large()["pressure"] * 2)


@pytest.mark.parametrize("encoding", [{}, {"zlib": True, "chunksizes": (24, 1, 30, 50)}])
def test_arrays_of_dask_stay_within_the_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: dict[str, Any]
) -> None:
    from hyperslab.conversion import saving

    computed: list[int] = []
    elements = saving._elements

    def counted(part: Any) -> Any:
        computed.append(part.nbytes)
        return elements(part)

    monkeypatch.setattr(saving, "_elements", counted)
    dataset = large()[["pressure"]].chunk({"time": 3})
    hs.save(dataset, tmp_path / "a.nc", encoding={"pressure": encoding}, memory=2 << 20)
    assert computed
    assert max(computed) <= 1 << 20 < dataset["pressure"].nbytes
    with netcdf4.Dataset(tmp_path / "a.nc") as file:
        np.testing.assert_array_equal(file["pressure"], dataset["pressure"])


def test_the_accessor_and_refusals(tmp_path: Path) -> None:
    dataset = large()
    dataset.hyperslab.save(tmp_path / "a.nc")
    dataset["pressure"].hyperslab.save(tmp_path / "b.nc")
    with xarray.open_dataarray(tmp_path / "b.nc") as found:
        np.testing.assert_array_equal(found, dataset["pressure"])
    with pytest.raises(UsageError, match="no variable 'nothing'"):
        hs.save(dataset, tmp_path / "c.nc", encoding={"nothing": {}})
    with pytest.raises(UsageError, match="format is not clear"):
        hs.save(dataset, tmp_path / "c")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.nc", "b.nc"]
