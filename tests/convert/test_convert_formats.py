"""To Zarr and NetCDF4, from every format: judged by zarr-python, netCDF4, xarray and ncdump."""

from __future__ import annotations

import json
import re
import shutil
import subprocess
from pathlib import Path
from typing import Any

import h5py
import numpy as np
import pytest
from convert_sources import make_rich

import hyperslab as hs
from hyperslab.errors import Refused, UsageError

xarray = pytest.importorskip("xarray")
zarr = pytest.importorskip("zarr")
netcdf4 = pytest.importorskip("netCDF4")
ZARR_CODECS = (
    "none",
    "zstd-3",
    "gzip-5",
    "deflate-4+shuffle",
    "blosc-lz4-5+shuffle",
    "blosc-zstd-3+bits",
    "lz4",
    "crc32c",
)


def climate() -> Any:
    random = np.random.default_rng(2)
    values = random.normal(280, 10, (24, 30, 50)).round(1)
    values[3, :5] = np.nan
    return xarray.Dataset(
        {
            "temperature": (("time", "lat", "lon"), values.astype("f4"), {"units": "K", "valid": [1.0, 2.0]}),
            "mask": (("lat", "lon"), random.integers(0, 2, (30, 50)).astype("i1")),
            "name": (("lat",), np.array([f"row {n}" for n in range(30)], dtype=object)),
            "count": ((), np.int32(4)),
        },
        {
            "time": np.datetime64("2020-01-01", "ns") + np.arange(24) * np.timedelta64(1, "D"),
            "lat": np.linspace(-90, 90, 30),
            "lon": np.linspace(0, 359, 50),
        },
        {"title": "climate ✓", "numbers": np.arange(3)},
    )


@pytest.fixture(scope="module")
def netcdf(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path: Path = tmp_path_factory.mktemp("climate") / "climate.nc"
    packed = {"dtype": "i2", "scale_factor": 0.1, "add_offset": 250.0, "_FillValue": -999, "zlib": True,
              "chunksizes": (1, 15, 25)}  # fmt: skip
    climate().to_netcdf(path, encoding={"temperature": packed}, unlimited_dims=["time"])
    return path


@pytest.mark.parametrize("format", ["zarr2", "zarr3"])
@pytest.mark.parametrize("verify", ["checksum", "library"])
def test_netcdf_to_zarr(netcdf: Path, tmp_path: Path, format: Any, verify: Any) -> None:
    hs.convert(netcdf, tmp_path / "a.zarr", format=format, chunks="time=24,lat=10,lon=20", verify=verify)
    found = xarray.open_zarr(tmp_path / "a.zarr")
    with xarray.open_dataset(netcdf) as before:
        xarray.testing.assert_identical(found.load(), before.load())
    assert zarr.open_group(tmp_path / "a.zarr")["temperature"].chunks == (24, 10, 20)


@pytest.mark.parametrize("codec", ZARR_CODECS)
@pytest.mark.parametrize("format", ["zarr2", "zarr3", "shards"])
def test_codecs_of_zarr(netcdf: Path, tmp_path: Path, codec: str, format: str) -> None:
    if format == "zarr2" and codec == "crc32c":
        pytest.skip("Zarr 2 has no crc32c")
    shards = {"shards": "time=24,lat=20,lon=20"} if format == "shards" else {}
    real: Any = "zarr3" if format == "shards" else format
    hs.convert(netcdf, tmp_path / "a.zarr", format=real, chunks="time=5,lat=10,lon=20", codec=codec, **shards)
    found = zarr.open_group(tmp_path / "a.zarr")["temperature"]
    with h5py.File(netcdf) as file:
        np.testing.assert_array_equal(found[...], file["temperature"][...])
    with hs.open(tmp_path / "a.zarr") as again:
        np.testing.assert_array_equal(again["temperature"][...], found[...])
    assert found.shards == ((25, 20, 20) if shards else None)


@pytest.mark.parametrize("format", ["zarr2", "zarr3"])
def test_groups_of_any_kind_to_zarr(tmp_path: Path, format: Any) -> None:
    make_rich(tmp_path / "rich.h5")
    with pytest.raises(Refused, match="ragged"):
        hs.convert(tmp_path / "rich.h5", tmp_path / "a.zarr", format=format)
    done = hs.convert(tmp_path / "rich.h5", tmp_path / "a.zarr", format=format, skip_unsupported=True)
    assert {"ragged", "null"} <= {path.strip("/") for path, _ in done.losses}
    assert any(path == "soft" for path, _ in done.notes)
    found = zarr.open_group(tmp_path / "a.zarr")
    with h5py.File(tmp_path / "rich.h5") as file:
        for path in ("inner/maps", "sparse", "contiguous", "scalar", "bytes", "flags"):
            np.testing.assert_array_equal(found[path][...], file[path][...], err_msg=path)
        assert list(found["texts"][...]) == [one.decode() for one in file["texts"][...]]


@pytest.mark.parametrize("format", ["zarr2", "zarr3"])
def test_zarr_to_netcdf(netcdf: Path, tmp_path: Path, format: Any) -> None:
    hs.convert(netcdf, tmp_path / "a.zarr", format=format)
    hs.convert(tmp_path / "a.zarr", tmp_path / "b.nc", chunks="lat=10", codec="deflate-4+shuffle", verify="library")
    with xarray.open_dataset(tmp_path / "b.nc", engine="netcdf4") as found, xarray.open_dataset(netcdf) as before:
        xarray.testing.assert_identical(found.load(), before.load())
    with netcdf4.Dataset(tmp_path / "b.nc") as file:
        assert file.variables["temperature"].filters()["zlib"]
        assert file.variables["temperature"].dimensions == ("time", "lat", "lon")
        assert file.data_model == "NETCDF4"


def test_other_formats_to_netcdf(tmp_path: Path) -> None:
    small = climate()[["temperature", "mask"]]
    small.to_netcdf(tmp_path / "a.nc", format="NETCDF3_CLASSIC", engine="netcdf4")
    hs.convert(tmp_path / "a.nc", tmp_path / "b.nc", codec="deflate-1")
    with (
        xarray.open_dataset(tmp_path / "b.nc", engine="netcdf4") as found,
        xarray.open_dataset(tmp_path / "a.nc") as old,
    ):
        xarray.testing.assert_identical(found.load(), old.load())


@pytest.mark.parametrize("target", ["b.nc", "b.zarr"])
def test_hdf4_and_fits_are_sources(tmp_path: Path, target: str) -> None:
    hdf4 = pytest.importorskip("pyhdf.SD")
    fits = pytest.importorskip("astropy.io.fits")
    values = np.random.default_rng(1).integers(0, 999, (6, 50, 40)).astype("i2")
    file = hdf4.SD(str(tmp_path / "a.hdf"), hdf4.SDC.WRITE | hdf4.SDC.CREATE)
    made = file.create("counts", hdf4.SDC.INT16, values.shape)
    for axis, name in enumerate(("time", "y", "x")):
        made.dim(axis).setname(name)
    made.setcompress(hdf4.SDC.COMP_DEFLATE, 6)
    made.set(values)
    made.endaccess()
    file.end()
    fits.HDUList(
        [fits.PrimaryHDU(), fits.CompImageHDU(values.astype(">f4"), name="SCI"), fits.ImageHDU(values, name="RAW")]
    ).writeto(tmp_path / "a.fits")
    quantized = fits.getdata(tmp_path / "a.fits", "SCI")  # astropy rounds numbers that it compresses
    for source in ("a.hdf", "a.fits"):
        hs.convert(tmp_path / source, tmp_path / target, codec="zstd-1" if target == "b.zarr" else "deflate-1",
                   overwrite=True)  # fmt: skip
        names = {"counts"} if source == "a.hdf" else {"SCI", "RAW"}
        with hs.open(tmp_path / source) as before:
            assert names <= {array.name.strip("/").rpartition("/")[2] for array in before.walk()}
            paths = [array.name.strip("/") for array in before.walk() if array.shape == values.shape]
        found = (
            zarr.open_group(tmp_path / target, mode="r") if target == "b.zarr" else netcdf4.Dataset(tmp_path / target)
        )
        for path in paths:
            np.testing.assert_array_equal(np.asarray(found[path][...]), quantized if "SCI" in path else values)


def test_a_collection_becomes_one_file(netcdf: Path, tmp_path: Path) -> None:
    with xarray.open_dataset(netcdf) as before:
        before.isel(time=slice(0, 10)).to_netcdf(tmp_path / "1.nc")
        before.isel(time=slice(10, 24)).to_netcdf(tmp_path / "2.nc")
        hs.convert([tmp_path / "1.nc", tmp_path / "2.nc"], tmp_path / "all.nc", concat="time", chunks="time=24,lat=5")
        with xarray.open_dataset(tmp_path / "all.nc") as found:
            np.testing.assert_array_equal(found.temperature, before.temperature)
            np.testing.assert_array_equal(found.time, before.time)


@pytest.mark.skipif(shutil.which("ncdump") is None, reason="not installed: netcdf-bin")
def test_ncdump_reads_it_equal(netcdf: Path, tmp_path: Path) -> None:
    (tmp_path / "same").mkdir()
    hs.convert(netcdf, tmp_path / "same" / netcdf.name, chunks="time=24")

    def dumped(path: Path) -> str:
        return subprocess.run(["ncdump", str(path)], check=True, capture_output=True, text=True).stdout

    assert dumped(netcdf) == dumped(tmp_path / "same" / netcdf.name)
    hs.convert(netcdf, tmp_path / "a.zarr")
    (tmp_path / "zarr").mkdir()
    hs.convert(tmp_path / "a.zarr", tmp_path / "zarr" / netcdf.name)
    assert "temperature:units" in dumped(tmp_path / "zarr" / netcdf.name)


@pytest.mark.skipif(shutil.which("h5dump") is None, reason="not installed: hdf5-tools")
def test_h5dump_reads_it_equal(tmp_path: Path) -> None:
    make_rich(tmp_path / "rich.h5")
    hs.convert(tmp_path / "rich.h5", tmp_path / "copy.h5", chunks={"inner/maps": [20, 4, 4]})

    def dumped(path: Path) -> str:
        call = ["h5dump", "-d", "/inner/maps", "-d", "/texts", "-d", "/sparse", path.name]
        said = subprocess.run(call, check=True, capture_output=True, text=True, cwd=path.parent).stdout
        return re.sub(r"DATASET \d+", "DATASET", said.replace(path.name, ""))

    assert dumped(tmp_path / "rich.h5") == dumped(tmp_path / "copy.h5")


def test_an_advice_is_applied(netcdf: Path, tmp_path: Path) -> None:
    advice = {"arrays": {"temperature": {"chunks": [24, 6, 10], "codec": "zstd-1"}}}
    (tmp_path / "advice.json").write_text(json.dumps(advice))
    hs.convert(netcdf, tmp_path / "a.zarr", like=tmp_path / "advice.json")
    found = zarr.open_group(tmp_path / "a.zarr")["temperature"]
    assert found.chunks == (24, 6, 10)


def test_what_advise_saved_is_applied(netcdf: Path, tmp_path: Path) -> None:
    from hyperslab.conversion.advice import AdviceFile, AdvisedArray

    arrays = {
        "/temperature": AdvisedArray(format="hdf5", chunks=[24, 6, 10], codec="deflate", level=2, shuffle=True),
        "/lat": AdvisedArray(format="hdf5", chunks=[3], keep=True),
    }
    AdviceFile(source="a.nc", arrays=arrays).save(tmp_path / "advice.json")
    hs.convert(netcdf, tmp_path / "a.nc", like=tmp_path / "advice.json")
    with h5py.File(tmp_path / "a.nc") as file:
        found = file["temperature"]
        assert (found.chunks, found.compression_opts, found.shuffle) == ((24, 6, 10), 2, True)
        assert file["lat"].chunks is None
    arrays["/temperature"] = AdvisedArray(format="zarr3", chunks=[10, 6, 24], order=[2, 1, 0])
    AdviceFile(source="a.nc", arrays=arrays).save(tmp_path / "advice.json")
    with pytest.raises(UsageError, match="convert keeps their order"):
        hs.convert(netcdf, tmp_path / "a.zarr", like=tmp_path / "advice.json")


def test_shards_need_zarr_3(netcdf: Path, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="only Zarr 3 has shards"):
        hs.convert(netcdf, tmp_path / "a.zarr", format="zarr2", shards="time=24")
    with pytest.raises(UsageError, match="--relayout"):
        hs.convert(netcdf, tmp_path / "a.zarr", relayout=True)


@pytest.mark.parametrize("version", [2, 3])
@pytest.mark.parametrize("verify", ["checksum", "library"])
def test_an_array_at_the_root_of_a_zarr_store_stays_one(tmp_path: Path, version: Any, verify: Any) -> None:
    zarr = pytest.importorskip("zarr")
    names = {"dimension_names": ("y", "x")} if version == 3 else {}
    values = np.arange(1200, dtype="f4").reshape(40, 30)
    made = zarr.create_array(tmp_path / "a.zarr", shape=values.shape, chunks=(10, 30), dtype="f4", zarr_format=version,
                             **names)  # fmt: skip
    made[:] = values
    made.attrs["units"] = "K"
    for format in ("zarr2", "zarr3"):
        target = tmp_path / f"{format}.zarr"
        hs.convert(tmp_path / "a.zarr", target, format=format, chunks="20,15", codec="zstd:1", verify=verify)
        found = zarr.open_array(target, mode="r")
        assert (found.chunks, found.attrs["units"]) == ((20, 15), "K")
        np.testing.assert_array_equal(found[:], values)
        np.testing.assert_array_equal(hs.open(target)[""][:], values)
