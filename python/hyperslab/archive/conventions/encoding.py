"""Describe variables as xarray's other engines do.

`encoding` says how a variable is stored, so that `to_netcdf` can write it in the same way, with codec and level. Other
functions give attributes and text in fields the types that netCDF4 and h5netcdf give them.
"""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from hyperslab.archive.tree.array import Array
from hyperslab.archive.tree.attributes import filled
from hyperslab.archive.tree.group import Group
from hyperslab.storage.table import TABLE

# The identifiers of HDF5's filters.
SHUFFLE, FLETCHER32, SZIP, LZF, BLOSC = 2, 3, 4, 32000, 32001
# netCDF's names: of the filters with a level, and of Blosc's codecs by their numbers.
WITH_LEVEL = {row.hdf5: row.netcdf for row in TABLE if row.hdf5 and row.netcdf and row.most and not row.inner}
BLOSC_CODECS = {row.inner[0]: row.netcdf for row in TABLE if row.inner and row.netcdf}
ENTROPY_CODING = 4  # this bit of SZIP's mask means entropy coding; without it, nearest neighbour


def encoding(array: Array, dimensions: tuple[str, ...]) -> dict[str, Any]:
    """Return the `encoding` of xarray's variable for an array.

    Parameters
    ----------
    array : Array
        The array.
    dimensions : tuple of str
        The name of each axis.

    Returns
    -------
    dict[str, Any]
        `dtype`, `source`, `original_shape`, `chunksizes`, `contiguous`, `preferred_chunks`, and the codecs with their
        levels, under the names that xarray's engines for netCDF and Zarr use.
    """
    chunks = array.chunks
    settings: dict[str, Any] = {
        "dtype": str if array.is_text else _with_name(array.dtype, array.type_name),
        "source": array.filename,
        "original_shape": array.shape,
        "chunksizes": chunks,
        "contiguous": chunks is None,
    }
    lengths = array.chunk_lengths
    if lengths is not None:
        settings["preferred_chunks"] = dict(zip(dimensions, lengths, strict=True))
    if chunks is not None and array.format == "zarr":
        settings["chunks"] = chunks
    codecs = array.codecs
    settings.update(zlib="deflate" in codecs, shuffle="shuffle" in codecs, fletcher32="fletcher32" in codecs)
    if array.format == "hdf5":
        settings.update(_filters(array))
    return settings


def _filters(array: Array) -> dict[str, Any]:
    """Name the filters as netCDF4's `Variable.filters` does, and blosc's and szip's settings as xarray writes them."""
    settings: dict[str, Any] = dict.fromkeys(("zlib", "szip", "zstd", "bzip2", "blosc", "shuffle", "fletcher32"), False)
    settings["complevel"] = 0
    for number, parameters in array.filters:
        if number in WITH_LEVEL:
            settings[WITH_LEVEL[number]] = True
            settings["complevel"] = _signed(parameters[0]) if parameters else 0
        elif number in (SHUFFLE, FLETCHER32):
            settings["shuffle" if number == SHUFFLE else "fletcher32"] = True
        elif number == LZF:
            settings.update(compression="lzf", compression_opts=None)
        elif number == SZIP and len(parameters) > 1:
            coding = "ec" if parameters[0] & ENTROPY_CODING else "nn"
            settings["szip"] = {"coding": coding, "pixels_per_block": parameters[1]}
            settings.pop("complevel", None)  # with level 0, netCDF4 would write without any codec
            settings.update(compression="szip", szip_coding=coding, szip_pixels_per_block=parameters[1])
        elif number == BLOSC and len(parameters) > 6 and parameters[6] in BLOSC_CODECS:
            codec, shuffle = BLOSC_CODECS[parameters[6]], parameters[5]
            settings.update(blosc={"compressor": codec, "shuffle": shuffle}, complevel=parameters[4])
            settings.update(compression=codec, blosc_shuffle=shuffle)
    return settings


def _signed(number: int) -> int:
    """Convert a stored unsigned level to a signed one, because Zstandard has negative levels."""
    return number - (1 << 32) if number >= 1 << 31 else number


def _with_name(dtype: np.dtype[Any], type_name: str | None) -> np.dtype[Any]:
    """Add to the dtype of an enumeration the name that the type has in its file."""
    named = dict(dtype.metadata or {})
    if type_name is None or "enum" not in named:
        return dtype
    return np.dtype(dtype, metadata={**named, "enum_name": type_name})


def as_netcdf(name: str, value: Any, node: Group | Array) -> Any:
    """Convert the value of an attribute to the type that netCDF4 and h5netcdf give it.

    The `_FillValue` of text of fixed length stays bytes, like the elements of the array. Other bytes become text. Bytes
    that are not UTF-8 are replaced, as in netCDF4; a single byte stays bytes, with the warning that h5netcdf gives.

    Parameters
    ----------
    name : str
        The name of the attribute.
    value : object
        Its value, as `cf.attributes` gives it.
    node : Group or Array
        The group or array that has the attribute.
    """
    is_fixed_text = isinstance(node, Array) and node.dtype.kind == "S"
    if name == "_FillValue" and is_fixed_text and isinstance(value, str | bytes):
        return np.bytes_(value.encode() if isinstance(value, str) else value)
    if isinstance(value, np.ndarray) and value.dtype.kind == "S":
        return value.tolist() if value.dtype.itemsize == 1 else [one.decode(errors="replace") for one in value.flat]
    if isinstance(value, list) and not all(isinstance(one, str) for one in value):
        return filled((len(value),), np.dtype("O"), value)  # sequences of variable length
    if not isinstance(value, bytes) or name in ("_FillValue", "missing_value"):
        return value
    if len(value) == 1:
        said = f"'utf-8' codec can't decode bytes for attribute {name!r} of h5netcdf object {node.name!r}"
        warnings.warn(f"{said}, returning bytes undecoded.", UnicodeWarning, stacklevel=2)
        return value
    return value.decode(errors="replace")


def without_text_in_fields(read: Any) -> Any:
    """Encode the text of variable length in fields as bytes, as h5netcdf does; return anything else unchanged."""
    fields = getattr(getattr(read, "dtype", None), "fields", None)
    if not fields or not isinstance(read, np.ndarray):
        return read
    texts = [name for name, (dtype, *_) in fields.items() if (dtype.base.metadata or {}).get("vlen") is str]
    for name in texts:
        encoded = [one.encode() if isinstance(one, str) else one for one in read[name].reshape(-1)]
        read[name] = filled(read[name].shape, np.dtype("O"), encoded)
    return read
