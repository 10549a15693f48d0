"""The formats that hyperslab can write, read and compare. Each is one file, and one line in `FORMATS`."""

from __future__ import annotations

import importlib
from collections.abc import Mapping
from typing import Any

from hyperslab.errors import MissingLibrary, UsageError
from hyperslab.formats.contract import Format, Installed
from hyperslab.meant import meant_or_choose

# name -> module and class; imported only on demand, so that a missing library affects only its own format
FORMATS: dict[str, str] = {
    "null": "hyperslab.formats.null:Null",
    "raw": "hyperslab.formats.raw:Raw",
    "npy": "hyperslab.formats.npy:Npy",
    "csv": "hyperslab.formats.csv:Csv",
    "hdf5": "hyperslab.formats.hdf5:Hdf5",
    "hyperslab": "hyperslab.formats.hyperslab:Hyperslab",
    "hdf5-zarr": "hyperslab.formats.hdf5_zarr:Hdf5Zarr",
    "hdf5-compound": "hyperslab.formats.hdf5_compound:Hdf5Compound",
    "netcdf4": "hyperslab.formats.netcdf4:NetCDF4",
    "netcdf3": "hyperslab.formats.netcdf3:NetCDF3",
    "zarr2": "hyperslab.formats.zarr2:Zarr2",
    "zarr3": "hyperslab.formats.zarr3:Zarr3",
    "zarr3-sharded": "hyperslab.formats.zarr3_sharded:Zarr3Sharded",
    "zarrs": "hyperslab.formats.zarrs:Zarrs",
    "tensorstore": "hyperslab.formats.tensorstore:TensorStore",
    "fits": "hyperslab.formats.fits:Fits",
    "hdf4": "hyperslab.formats.hdf4:Hdf4",
    "pdb": "hyperslab.formats.pdb:Pdb",
    "blosc2": "hyperslab.formats.blosc2:Blosc2",
    "tiledb": "hyperslab.formats.tiledb:TileDB",
}


def format_class(name: str) -> type[Format]:
    """The class of a format; raises UsageError with the known names if there is no such format."""
    if name not in FORMATS:
        raise UsageError(f"unknown format {name!r}{meant_or_choose(name, FORMATS)}")
    module, _, attribute = FORMATS[name].partition(":")
    made: type[Format] = getattr(importlib.import_module(module), attribute)
    return made


def make_format(name: str, options: Mapping[str, Any] | None = None) -> Format:
    """A format with its options; raises UsageError if the format does not have one of the options."""
    known = format_class(name)
    try:
        return known(**(options or {}))
    except TypeError as error:
        raise UsageError(f"format {name}: {error}; see `hyperslab formats {name}`") from error


def availability(name: str) -> Installed | MissingLibrary:
    """The installed library of a format, or an error that says what is missing and how to install it."""
    try:
        return format_class(name).library()
    except MissingLibrary as missing:
        return missing
