"""What a copy means to its readers: missing values, attributes, names, and nothing instead of what was left out."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import hyperslab as hs

h5py = pytest.importorskip("h5py", reason="not installed: pip install 'hyperslab[formats]'")
netcdf4 = pytest.importorskip("netCDF4", reason="not installed: pip install 'hyperslab[netcdf]'")
xarray = pytest.importorskip("xarray", reason="not installed: pip install 'hyperslab[xarray]'")
zarr = pytest.importorskip("zarr", reason="not installed: pip install 'hyperslab[zarr]'")

ATTRIBUTES: dict[str, Any] = {"nested": {"a": [1, {"b": None}]}, "none": None, "mixed": [1, "x"],
                              "flags": [True, False], "empty": [], "large": 2**64 - 1,
                              "larges": [1, 2**64 - 1]}  # fmt: skip
ENGINES = {"netcdf4": "netcdf4", "zarr2": "zarr", "zarr3": "zarr"}


def with_missing() -> Any:
    made = xarray.Dataset({
        "floats": ("x", np.array([1, np.nan, 3], np.float32)),
        "packed": ("x", [1.0, np.nan, 3.0]),
        "unsigned": ("x", np.array([1, 2, 2**64 - 1], np.uint64)),
        "dates": ("x", np.array(["2000-01-01", "NaT", "2001-01-01"], "M8[ns]")),
    })  # fmt: skip
    made["floats"].encoding["_FillValue"] = -5.0
    made["packed"].encoding.update(dtype="i2", scale_factor=0.5, _FillValue=-9)
    made["unsigned"].encoding["_FillValue"] = 2**64 - 1
    return made


@pytest.mark.parametrize("target", ["netcdf4", "zarr2", "zarr3"])
@pytest.mark.parametrize("version", [2, 3])
def test_missing_values_of_zarr_stay_missing(tmp_path: Path, version: int, target: str) -> None:
    with_missing().to_zarr(tmp_path / "a.zarr", zarr_format=version)
    hs.convert(tmp_path / "a.zarr", tmp_path / "b", format=target)
    expected = xarray.open_zarr(tmp_path / "a.zarr").load()
    with xarray.open_dataset(tmp_path / "b", engine=ENGINES[target]) as found:
        for name in expected.variables:
            xarray.testing.assert_identical(expected[name].drop_attrs(), found[name].load().drop_attrs())
    assert np.isnan(expected["floats"][1])
    assert np.isnan(expected["packed"][1])


@pytest.mark.parametrize("version", [2, 3])
def test_references_to_zarr_keep_missing_values(tmp_path: Path, version: int) -> None:
    with_missing().to_zarr(tmp_path / "a.zarr", zarr_format=version)
    hs.index(tmp_path / "a.zarr").save(tmp_path / "a.json")
    expected = xarray.open_zarr(tmp_path / "a.zarr")["floats"].load()
    found = xarray.open_dataset(tmp_path / "a.json", engine="hyperslab")["floats"].load()
    np.testing.assert_array_equal(expected, found)
    assert np.isnan(found[1])


@pytest.mark.parametrize("version", [2, 3])
def test_attributes_of_zarr_stay_what_they_are(tmp_path: Path, version: int) -> None:
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=version)
    group.attrs.update(ATTRIBUTES)
    group.create_array("x", shape=(3,), chunks=(3,), dtype="i4").attrs.update(ATTRIBUTES)
    for target in ("zarr2", "zarr3"):
        hs.convert(tmp_path / "a.zarr", tmp_path / target, format=target)
        found = zarr.open_group(tmp_path / target, mode="r")
        assert dict(found.attrs) == ATTRIBUTES
        assert ATTRIBUTES.items() <= dict(found["x"].attrs).items()
    done = hs.convert(tmp_path / "a.zarr", tmp_path / "a.nc")
    assert not done.losses
    assert any("'nested' is JSON, and becomes text" in said for _, said in done.notes)
    with netcdf4.Dataset(tmp_path / "a.nc") as file:
        assert file.getncattr("nested") == '{"a": [1, {"b": null}]}'
        assert file.getncattr("large") == 2**64 - 1
    shown = hs.open(tmp_path / "a.zarr").attrs
    for name in ("nested", "none", "mixed", "flags", "empty", "large"):
        assert shown[name] == ATTRIBUTES[name]
    assert shown["larges"].tolist() == ATTRIBUTES["larges"]


@pytest.mark.parametrize("target", ["zarr2", "zarr3"])
def test_nothing_takes_the_place_of_what_was_left_out(tmp_path: Path, target: str) -> None:
    """Arrays that Zarr cannot hold stood in the copy all the same, full of empty text."""
    with h5py.File(tmp_path / "a.h5", "w") as file:
        file["kept"] = np.arange(3)
        file["led"] = np.array([file["kept"].ref], h5py.ref_dtype)
        lists = file.create_dataset("lists", (2,), h5py.vlen_dtype("i4"))
        lists[0] = [1, 2]
    done = hs.convert(tmp_path / "a.h5", tmp_path / "b", format=target, skip_unsupported=True)
    assert sorted(path for path, _ in done.losses) == ["led", "lists"]
    assert list(zarr.open_group(tmp_path / "b", mode="r", use_consolidated=False)) == ["kept"]


def test_dates_and_text_of_zarr_in_hdf5(tmp_path: Path) -> None:
    """These ended in a TypeError of h5py."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    kinds = {"dates": np.array(["2000-01-01", "NaT"], "M8[ns]"), "spans": np.array([1, 2], "m8[s]"),
             "texts": np.array(["äb", "c"])}  # fmt: skip
    for name, values in kinds.items():
        group.create_array(name, shape=(2,), chunks=(2,), dtype=values.dtype)[:] = values
    hs.convert(tmp_path / "a.zarr", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        np.testing.assert_array_equal(file["dates"][:], kinds["dates"])
        np.testing.assert_array_equal(file["spans"][:], kinds["spans"])
        assert file["texts"].asstr()[:].tolist() == ["äb", "c"]
    done = hs.convert(tmp_path / "a.zarr", tmp_path / "a.nc", skip_unsupported=True)
    assert sorted(path for path, _ in done.losses) == ["dates", "spans"]
    with netcdf4.Dataset(tmp_path / "a.nc") as file:
        assert file["texts"][:].tolist() == ["äb", "c"]


def test_an_array_that_is_all_of_a_hierarchy_gets_the_name_of_its_folder_in_hdf5(tmp_path: Path) -> None:
    zarr.create_array(tmp_path / "height.zarr", shape=(5,), chunks=(2,), dtype="i4")[:] = np.arange(5)
    hs.convert(tmp_path / "height.zarr", tmp_path / "a.h5")
    with h5py.File(tmp_path / "a.h5") as file:
        assert file["height"][:].tolist() == [0, 1, 2, 3, 4]
    hs.convert(tmp_path / "height.zarr", tmp_path / "a.zarr")
    assert zarr.open_array(tmp_path / "a.zarr", mode="r")[:].tolist() == [0, 1, 2, 3, 4]


def test_a_variable_called_like_a_dimension_keeps_its_name(tmp_path: Path) -> None:
    with netcdf4.Dataset(tmp_path / "a.nc", "w") as file:
        file.createDimension("lat", 3)
        file.createDimension("lon", 4)
        file.createVariable("lat", "f4", ("lon", "lat"))[:] = np.arange(12).reshape(4, 3)
    hs.convert(tmp_path / "a.nc", tmp_path / "a.zarr")
    found = zarr.open_group(tmp_path / "a.zarr", mode="r")
    assert list(found) == ["lat"]
    np.testing.assert_array_equal(found["lat"][:], np.arange(12).reshape(4, 3))


def test_plugins_of_netcdf4_are_not_in_the_way(tmp_path: Path) -> None:
    """netCDF4 sets HDF5_PLUGIN_PATH. Its plugin for Blosc then refuses arrays in h5py's libhdf5."""
    group = zarr.open_group(tmp_path / "a.zarr", mode="w", zarr_format=2)
    codec = {"id": "blosc", "cname": "lz4", "clevel": 5, "shuffle": 1, "blocksize": 0}
    numcodecs = pytest.importorskip("numcodecs")
    for name in "xyz":
        made = group.create_array(
            name, shape=(4000,), chunks=(1000,), dtype="i4", compressors=numcodecs.get_codec(codec)
        )
        made[:] = np.arange(4000)
    program = (
        "import netCDF4, hyperslab as hs\n"
        f"hs.convert({str(tmp_path / 'a.zarr')!r}, {str(tmp_path / 'a.h5')!r})\n"
        f"print(hs.open({str(tmp_path / 'a.h5')!r})['z'].codecs)\n"
    )
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    assert "blosc" in done.stdout
    with hs.open(tmp_path / "a.h5") as found:
        assert all(np.array_equal(found[name][:], np.arange(4000)) for name in "xyz")
