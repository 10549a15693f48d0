"""Make the files of a collection: one field over days, chunked and encoded as the test asks."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import netCDF4
import numpy as np
import xarray as xr

import hyperslab as hs

SHAPE = (5, 7)


def write(
    path: Path,
    days: np.ndarray,
    *,
    data: np.ndarray | None = None,
    units: str = "days since 2000-01-01",
    calendar: str = "standard",
    time_dtype: str = "f8",
    dtype: str = "f4",
    attrs: Mapping[str, Any] | None = None,
    encoding: Mapping[str, Any] | None = None,
    fill: Any = None,
    file_format: str = "NETCDF4",
) -> Path:
    """A file with `time`, `lat`, `lon` and the array `x` along all of them, whose stored numbers are `data`."""
    with netCDF4.Dataset(path, "w", format=file_format) as file:
        file.set_auto_maskandscale(False)
        file.title, file.history = "made for tests", path.stem
        for name, length in (("time", None), ("lat", SHAPE[0]), ("lon", SHAPE[1])):
            file.createDimension(name, length)
        time = file.createVariable("time", time_dtype, ("time",))
        time.units, time.calendar = units, calendar
        time[:] = days
        for name, length in (("lat", SHAPE[0]), ("lon", SHAPE[1])):
            file.createVariable(name, "f4", (name,))[:] = np.arange(length) * 2.5
        x = file.createVariable("x", dtype, ("time", "lat", "lon"), fill_value=fill, **(encoding or {}))
        x.set_auto_maskandscale(False)
        x.units = "m"
        x.setncatts(dict(attrs or {}))
        x[:] = numbers(len(days), dtype, len(path.stem)) if data is None else data
    return path


def numbers(count: int, dtype: str, seed: int) -> np.ndarray:
    """Random numbers, some of them -9 and 7, which tests mask."""
    drawn = np.random.default_rng(seed * 1000 + count).integers(-9, 100, (count, *SHAPE))
    return np.abs(drawn).astype(dtype) if np.dtype(dtype).kind == "u" else drawn.astype(dtype)


def by_xarray(paths: list[Path], **options: Any) -> xr.Dataset:
    """What xarray returns for the files, loaded and decoded one by one and then concatenated."""
    loaded = []
    for path in paths:
        with xr.open_dataset(path, engine="netcdf4", **options) as opened:
            loaded.append(opened.load())
    minimal = {"data_vars": "minimal", "coords": "minimal", "compat": "override", "combine_attrs": "override"}
    return xr.concat(loaded, "time", join="override", **minimal)


def by_hyperslab(paths: Any, **options: Any) -> xr.Dataset:
    """What our engine returns for them."""
    return xr.open_dataset(hs.open(paths, concat="time"), engine="hyperslab", **options).load()


def check(paths: list[Path], **options: Any) -> xr.Dataset:
    """Check that both are equal to the last bit, including dtypes; return ours."""
    ours, theirs = by_hyperslab(paths, **options), by_xarray(paths, **options)
    xr.testing.assert_identical(ours, theirs)
    for name in theirs.variables:
        assert ours[name].dtype.newbyteorder("=") == theirs[name].dtype.newbyteorder("="), name
    return ours
