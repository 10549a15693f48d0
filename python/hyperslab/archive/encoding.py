"""How a variable is stored, in xarray's words: what `to_netcdf` needs to store it alike, with codec and level."""

from __future__ import annotations

from typing import Any

from hyperslab.archive.array import Array

# Numbers of HDF5's filters.
DEFLATE, SHUFFLE, FLETCHER32, SZIP, BZIP2, BLOSC, ZSTD = 1, 2, 3, 4, 307, 32001, 32015
WITH_LEVEL = {DEFLATE: "zlib", BZIP2: "bzip2", ZSTD: "zstd"}
# Blosc's compressors by their numbers; netCDF calls them so.
COMPRESSORS = ("blosc_lz", "blosc_lz4", "blosc_lz4hc", "blosc_snappy", "blosc_zlib", "blosc_zstd")
ENTROPY_CODING = 4  # in SZIP's mask; else nearest neighbours


def encoding(array: Array, dimensions: tuple[str, ...]) -> dict[str, Any]:
    """What xarray's variables keep of how an array is stored.

    Parameters
    ----------
    array : Array
        The array.
    dimensions : tuple[str, ...]
        The names of its axes.
    """
    chunks = array.chunks
    found: dict[str, Any] = {
        "dtype": str if array.is_text else array.dtype,
        "source": array.filename,
        "original_shape": array.shape,
        "chunksizes": chunks,
        "contiguous": chunks is None,
    }
    lengths = array.chunk_lengths
    if lengths is not None:
        found["preferred_chunks"] = dict(zip(dimensions, lengths, strict=True))
    if chunks is not None and array.format == "zarr":
        found["chunks"] = chunks
    codecs = array.codecs
    found.update(zlib="deflate" in codecs, shuffle="shuffle" in codecs, fletcher32="fletcher32" in codecs)
    if array.format == "hdf5":
        found.update(_filters(array))
    return found


def _filters(array: Array) -> dict[str, Any]:
    """Filters as netCDF4's `Variable.filters` has them; and blosc's and szip's settings as xarray writes them."""
    found: dict[str, Any] = dict.fromkeys(("zlib", "szip", "zstd", "bzip2", "blosc", "shuffle", "fletcher32"), False)
    found["complevel"] = 0
    for number, parameters in array.filters:
        if number in WITH_LEVEL:
            found[WITH_LEVEL[number]] = True
            found["complevel"] = _signed(parameters[0]) if parameters else 0
        elif number in (SHUFFLE, FLETCHER32):
            found["shuffle" if number == SHUFFLE else "fletcher32"] = True
        elif number == SZIP and len(parameters) > 1:
            coding = "ec" if parameters[0] & ENTROPY_CODING else "nn"
            found["szip"] = {"coding": coding, "pixels_per_block": parameters[1]}
            found.update(compression="szip", szip_coding=coding, szip_pixels_per_block=parameters[1])
        elif number == BLOSC and len(parameters) > 6 and parameters[6] < len(COMPRESSORS):
            compressor, shuffle = COMPRESSORS[parameters[6]], parameters[5]
            found.update(blosc={"compressor": compressor, "shuffle": shuffle}, complevel=parameters[4])
            found.update(compression=compressor, blosc_shuffle=shuffle)
    return found


def _signed(number: int) -> int:
    """A level, which of Zstandard may be below 0."""
    return number - (1 << 32) if number >= 1 << 31 else number
