"""Variables that are shorter than their unlimited dimension are padded with fill values, as in netCDF4."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import h5py
import netCDF4
import numpy as np
import pytest
import xarray as xr
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import hyperslab as hs
from draws import few
from hyperslab.errors import Refused

FEW = settings(max_examples=few(40), deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
KINDS = ["i1", "u1", "<i2", ">u2", "i4", "u4", "i8", "u8", "f4", ">f8"]


def write(path: Path, variables: list[tuple[str, str, tuple[str, ...], dict[str, int], Any]]) -> None:
    """Create variables `name, dtype, dimensions`, each written up to a given length of its unlimited dimensions."""
    with netCDF4.Dataset(path, "w") as file:
        for name in ("time", "level"):
            file.createDimension(name, None)
        file.createDimension("x", 3)
        for name, kind, dimensions, written, fill in variables:
            endian = "big" if kind.startswith(">") else "native"
            variable = file.createVariable(name, kind, dimensions, fill_value=fill, endian=endian)
            shape = tuple(written.get(dimension, 3) for dimension in dimensions)
            if all(shape):
                variable[tuple(slice(0, length) for length in shape)] = numbers(shape)


def as_netcdf(path: Path) -> dict[str, np.ndarray[Any, Any]]:
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        return {name: variable[...] for name, variable in file.variables.items()}


@pytest.mark.parametrize("fill", [None, 7, False])
@pytest.mark.parametrize("kind", KINDS)
def test_what_is_behind_the_end_is_the_fill_value_that_netcdf_gives(tmp_path: Path, kind: str, fill: Any) -> None:
    path = tmp_path / "short.nc"
    short, long = {"time": 2}, {"time": 5}
    write(path, [("short", kind, ("time", "x"), short, fill), ("long", "i4", ("time",), long, None)])
    expected, read = as_netcdf(path), hs.open(path)
    assert read["short"].shape == (5, 3)
    assert read["short"].dtype == np.dtype(kind)
    np.testing.assert_array_equal(read["short"][:], expected["short"])
    np.testing.assert_array_equal(read["short"][1:4, ::2], expected["short"][1:4, ::2])
    np.testing.assert_array_equal(read["short"].read(hs.Points([[4, 1], [0, 2]])), expected["short"][[4, 0], [1, 2]])


@st.composite
def files(draw: st.DrawFn) -> list[tuple[str, str, tuple[str, ...], dict[str, int], Any]]:
    dimensions = st.sampled_from([("time",), ("time", "x"), ("x", "level"), ("time", "level"), ("level", "x", "time")])
    lengths = st.fixed_dictionaries({"time": st.integers(0, 4), "level": st.integers(0, 4)})
    count = draw(st.integers(1, 4))
    made = [
        (f"v{k}", draw(st.sampled_from(KINDS)), draw(dimensions), draw(lengths), draw(st.sampled_from([None, 9])))
        for k in range(count)
    ]
    if draw(st.booleans()):
        made.append(("time", "f8", ("time",), draw(lengths), None))
    return made


def numbers(shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    return np.arange(np.prod(shape)).reshape(shape) % 100


@FEW
@given(files())
def test_values_are_where_they_were_written_and_fill_values_elsewhere(
    tmp_path: Path, variables: list[tuple[str, str, tuple[str, ...], dict[str, int], Any]]
) -> None:
    """Shapes are netCDF's. Its values only where the first dimension alone is unlimited: netCDF-C 4.9 reads what was
    written into the front of its buffer whatever the shape, so that it moves in `v(x, time)`, and leaves parts of the
    buffer as they were in `v(time, level)`."""
    path = tmp_path / "drawn.nc"
    write(path, variables)
    judged, read = as_netcdf(path), hs.open(path)
    in_xarray = xr.open_dataset(path, engine="hyperslab", decode_cf=False)
    for name, kind, dimensions, lengths, fill in variables:
        written = tuple(lengths.get(dimension, 3) for dimension in dimensions)
        shape = judged[name].shape
        expected = np.full(shape, netCDF4.default_fillvals[np.dtype(kind).str[1:]] if fill is None else fill, kind)
        if all(written):
            expected[tuple(slice(0, length) for length in written)] = numbers(written)
        assert read[name].shape == shape, name
        np.testing.assert_array_equal(read[name][...], expected, err_msg=name)
        np.testing.assert_array_equal(in_xarray[name], expected, err_msg=name)
        if set(dimensions[1:]) <= {"x"}:
            np.testing.assert_array_equal(judged[name], expected, err_msg=name)


def test_variables_in_groups_below_count_too(tmp_path: Path) -> None:
    path = tmp_path / "groups.nc"
    with netCDF4.Dataset(path, "w") as file:
        file.createDimension("time", None)
        file.createVariable("short", "f4", ("time",))[0:1] = 3
        file.createGroup("below").createVariable("long", "i2", ("time",))[0:4] = 5
        own = file.createGroup("other")
        own.createDimension("time", None)
        own.createVariable("apart", "i2", ("time",))[0:2] = 1
    with netCDF4.Dataset(path) as file:
        file.set_auto_mask(False)
        expected = file["short"][:]
        assert file["other/apart"].shape == (2,)
    read = hs.open(path)
    np.testing.assert_array_equal(read["short"][:], expected)
    assert (read["short"].shape, read["below/long"].shape, read["other/apart"].shape) == ((4,), (4,), (2,))


def test_plain_hdf5_is_as_h5py_has_it(tmp_path: Path) -> None:
    path = tmp_path / "plain.h5"
    with h5py.File(path, "w") as file:
        for name, length in (("time", 5), ("short", 2)):
            file.create_dataset(name, data=np.arange(length), maxshape=(None,))
        file["time"].make_scale("time")
        file["short"].dims[0].attach_scale(file["time"])
    assert hs.open(path)["short"].shape == (2,)


def test_collections_of_such_files_are_as_long_as_their_dimensions(tmp_path: Path) -> None:
    paths = [tmp_path / f"{k}.nc" for k in range(3)]
    for k, path in enumerate(paths):
        written = [("time", "f8", ("time",), {"time": 4}, None), ("v", "f4", ("time", "x"), {"time": 1 + k}, -1)]
        write(path, written)
    expected = np.concatenate([as_netcdf(path)["v"] for path in paths])
    together = hs.open(paths, concat="time", order="any")
    assert together["v"].shape == (12, 3)
    np.testing.assert_array_equal(together["v"][:], expected)


def test_references_say_so_or_are_refused(tmp_path: Path) -> None:
    """Our own references keep everything; Zarr and kerchunk can express it only if chunks end there."""
    path, saved = tmp_path / "short.nc", tmp_path / "short.hs"
    write(path, [("short", "f4", ("time",), {"time": 2}, None), ("long", "i4", ("time",), {"time": 5}, None)])
    expected = as_netcdf(path)["short"]
    hs.index(path).save(saved)
    np.testing.assert_array_equal(hs.open(saved)["short"][:], expected)
    exported = tmp_path / "short.json"
    with pytest.raises(Refused, match="short"):
        hs.index(path).save(exported, inline_threshold=0)
    written = hs.index(path).save(exported, inline_threshold=0, skip_unsupported=True)
    assert list(written.left_out) == ["short"]
    hs.index(path).save(exported)
    np.testing.assert_array_equal(hs.open(exported)["short"][:], expected)
