"""The chunks that libraries choose if nobody tells them anything, asked of the libraries themselves."""

from __future__ import annotations

import warnings
from contextlib import suppress
from typing import Any

import numpy as np


def default_chunks(shape: tuple[int, ...], dtype: np.dtype[Any]) -> dict[str, tuple[int, ...]]:
    """The default chunk shapes by format: `hdf5`, `netcdf4`, `zarr3`. A library that is not installed is left out."""
    by_format: dict[str, tuple[int, ...]] = {}
    with suppress(Exception):  # private functions of libraries may move; then their default is not shown
        from h5py._hl.filters import guess_chunk

        by_format["hdf5"] = tuple(map(int, guess_chunk(shape, None, dtype.itemsize)))
    with suppress(Exception):
        by_format["netcdf4"] = _netcdf_chunks(shape, dtype)
    with suppress(Exception), warnings.catch_warnings():
        import zarr

        warnings.simplefilter("ignore")  # of types that Zarr 3 has no specification for
        made = zarr.create_array({}, shape=shape, dtype=dtype)
        by_format["zarr3"] = tuple(map(int, made.chunks))
    return {name: chunk for name, chunk in by_format.items() if len(chunk) == len(shape) and min(chunk) > 0}


def _netcdf_chunks(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    """What netCDF chooses for a variable with a codec. Without one, it stores the array in one piece."""
    import netCDF4

    with netCDF4.Dataset("default-chunks.nc", "w", diskless=True, persist=False) as made:
        names = [f"axis{axis}" for axis in range(len(shape))]
        for name, length in zip(names, shape, strict=True):
            made.createDimension(name, length)
        plain = dtype.newbyteorder("=") if dtype.kind in "iuf" else np.dtype(f"u{min(dtype.itemsize, 8)}")
        variable = made.createVariable("x", plain, names, zlib=True, complevel=1, fill_value=False)
        return tuple(map(int, variable.chunking()))
