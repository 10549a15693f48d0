"""The chunks that libraries choose if nobody tells them anything, asked of the libraries themselves."""

from __future__ import annotations

import warnings
from collections.abc import Iterable
from contextlib import suppress
from typing import Any

import numpy as np


def default_chunks(shape: tuple[int, ...], dtype: np.dtype[Any], formats: Iterable[str]) -> dict[str, tuple[int, ...]]:
    """The default chunk shapes by format: `hdf5`, `netcdf4`, `zarr3`. A library that is not installed is left out.

    Only the libraries of the formats that are asked about are imported.
    """
    by_format: dict[str, tuple[int, ...]] = {}
    for name in formats:
        with suppress(Exception):  # private functions of libraries may move; then their default is not shown
            by_format[name] = _CHUNKS[name](shape, dtype)
    return {name: chunk for name, chunk in by_format.items() if len(chunk) == len(shape) and min(chunk) > 0}


def _hdf5_chunks(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    from h5py._hl.filters import guess_chunk

    return tuple(map(int, guess_chunk(shape, None, dtype.itemsize)))


def _zarr_chunks(shape: tuple[int, ...], dtype: np.dtype[Any]) -> tuple[int, ...]:
    import zarr

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of types that Zarr 3 has no specification for
        return tuple(map(int, zarr.create_array({}, shape=shape, dtype=dtype).chunks))


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


_CHUNKS = {"hdf5": _hdf5_chunks, "netcdf4": _netcdf_chunks, "zarr3": _zarr_chunks}
