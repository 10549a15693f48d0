"""What xarray's variables say of how they are stored, and attributes, as netCDF4 and h5netcdf have them."""

from __future__ import annotations

import warnings
from pathlib import Path

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr

CODECS = {
    "zlib": {"compression": "zlib", "complevel": 7},
    "zstd": {"compression": "zstd", "complevel": 9},
    "bzip2": {"compression": "bzip2", "complevel": 3},
    "blosc": {"compression": "blosc_lz4", "complevel": 5, "blosc_shuffle": 2},
    "szip": {"compression": "szip", "szip_coding": "ec", "szip_pixels_per_block": 16},
    "shuffled": {"zlib": True, "complevel": 2, "shuffle": True, "fletcher32": True},
    "none": {},
}


@pytest.mark.parametrize("codec", CODECS)
def test_codec_and_level_are_kept(tmp_path: Path, codec: str) -> None:
    values = np.arange(400_000, dtype="i4").reshape(400, 1000)
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("x", 400)
        file.createDimension("y", 1000)
        try:
            made = file.createVariable("v", "i4", ("x", "y"), chunksizes=(100, 250), **CODECS[codec])
        except RuntimeError as error:
            pytest.skip(f"this netCDF-C has no {codec}: {error}")
        made[:] = values
        filters = made.filters()
    with xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as theirs:
        said = {name: theirs.v.encoding[name] for name in (*filters, "chunksizes", "preferred_chunks", "contiguous")}
    if codec == "szip":
        del said["complevel"]  # 0, by which netCDF4 would write without any codec
    opened = xr.open_dataset(tmp_path / "a.nc", engine="hyperslab")
    assert {name: opened.v.encoding[name] for name in said} == said
    opened.to_netcdf(tmp_path / "b.nc", engine="netcdf4")
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file["v"].filters() == filters
        assert file["v"].chunking() == [100, 250]
        np.testing.assert_array_equal(file["v"][:], values)


def test_lzf_is_named_as_h5netcdf_names_it(tmp_path: Path) -> None:
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file.create_dataset("v", data=np.zeros((10, 10)), chunks=(5, 5), compression="lzf")
    encoding = xr.open_dataset(tmp_path / "a.h5", engine="hyperslab").v.encoding
    assert (encoding["compression"], encoding["compression_opts"]) == ("lzf", None)


def test_enumerations_keep_their_name(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("t", 2)
        kind = file.createEnumType(np.uint8, "cloud_type", {"clear": 0, "cloudy": 1})
        file.createVariable("clouds", kind, ("t",), fill_value=1)[:] = [0, 1]
    xr.open_dataset(tmp_path / "a.nc", engine="hyperslab").to_netcdf(tmp_path / "b.nc", engine="netcdf4")
    with netCDF4.Dataset(tmp_path / "b.nc") as file:
        assert file["clouds"].datatype.name == "cloud_type"
        assert file["clouds"].datatype.enum_dict == {"clear": 0, "cloudy": 1}


def test_fill_values_of_fixed_text_mask(tmp_path: Path) -> None:
    made = xr.Dataset({"s": ("x", np.array([b"a", b"X", b"c"], "S1"), {}, {"_FillValue": b"X"})})
    made.to_netcdf(tmp_path / "a.nc", engine="netcdf4")
    with xr.open_dataset(tmp_path / "a.nc", engine="netcdf4") as theirs:
        ours = xr.open_dataset(tmp_path / "a.nc", engine="hyperslab")
        xr.testing.assert_identical(ours.load(), theirs.load())
    assert ours.s.encoding["_FillValue"] == b"X"


def test_attributes_of_bytes(tmp_path: Path) -> None:
    with netCDF4.Dataset(tmp_path / "a.nc", "w") as file:
        file.setncattr("long", bytes(range(1, 256)))
        file.setncattr("nothing", b"\0")
    with h5py.File(tmp_path / "b.h5", "w") as file:
        file.attrs["words"] = np.array([b"one", b"three"])
        sequences = np.empty(2, object)
        sequences[:] = [np.arange(2, dtype="i4"), np.arange(3, dtype="i4")]
        file.attrs.create("sequences", sequences, dtype=h5py.vlen_dtype("i4"))
        file.attrs["one"] = np.bytes_(b"\xc3")
    opened = xr.open_dataset(tmp_path / "a.nc", engine="hyperslab")
    assert opened.attrs == {"long": bytes(range(1, 256)).decode(errors="replace"), "nothing": ""}
    with pytest.warns(UnicodeWarning, match="attribute 'one' of h5netcdf object '/', returning bytes"):
        opened = xr.open_dataset(tmp_path / "b.h5", engine="hyperslab")
    assert opened.attrs["words"] == ["one", "three"]
    assert opened.attrs["one"] == b"\xc3"
    assert opened.attrs["sequences"].dtype == object


def test_text_in_fields_is_bytes(tmp_path: Path) -> None:
    dtype = np.dtype([("name", h5py.string_dtype()), ("n", "i4")])
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["v"] = np.array([("ä", 1), ("bc", 2)], dtype)
        expected = file["v"][...]
    read = xr.open_dataset(tmp_path / "a.h5", engine="hyperslab").v.values
    assert read.tolist() == expected.tolist() == [("ä".encode(), 1), (b"bc", 2)]


def test_complex_numbers_as_netcdf4_and_h5netcdf_write_them(tmp_path: Path) -> None:
    values = np.array([1 + 2j, 3 - 4j])
    with netCDF4.Dataset(tmp_path / "a.nc", "w", auto_complex=True) as file:
        file.createDimension("x", 2)
        file.createVariable("v", "c16", ("x",))[:] = values
    opened = xr.open_dataset(tmp_path / "a.nc", engine="hyperslab", auto_complex=True)
    np.testing.assert_array_equal(opened.v.values, values)


def test_nothing_is_warned_of(tmp_path: Path) -> None:
    xr.Dataset({"a": ("x", [1.0, 2.0])}, attrs={"title": "ocean"}).to_netcdf(tmp_path / "a.nc")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        xr.open_dataset(tmp_path / "a.nc", engine="hyperslab").load()
