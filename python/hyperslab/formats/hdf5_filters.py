"""The HDF5 filters of our codecs: how to request each in a file, and how to recognise it.

Registered numbers: https://github.com/HDFGroup/hdf5_plugins/blob/master/docs/RegisteredFilterPlugins.md. Filters
that hyperslab does not write (szip, nbit, …) have names too, so that any file can be described.
"""

from __future__ import annotations

from typing import Any

from hyperslab.formats.contract import Codec
from hyperslab.needed import advice

WRITABLE = frozenset(["shuffle", "deflate", "lzf", "zstd", "blosc-lz4", "blosc-zstd"])

_DEFLATE, _SHUFFLE, _LZF, BLOSC, _ZSTD = 1, 2, 32000, 32001, 32015
_NAMES = {
    _DEFLATE: "deflate",
    _SHUFFLE: "shuffle",
    3: "fletcher32",
    4: "szip",
    5: "nbit",
    6: "scaleoffset",
    307: "bzip2",
    _LZF: "lzf",
    BLOSC: "blosc",
    32004: "lz4",
    32008: "bitshuffle",
    32013: "zfp",
    _ZSTD: "zstd",
    32026: "blosc2",
}
_NUMBERS = {name: number for number, name in _NAMES.items()}
BLOSC_COMPRESSORS = {0: "blosclz", 1: "lz4", 2: "lz4hc", 3: "snappy", 4: "zlib", 5: "zstd"}
_BLOSC_NUMBERS = {name: number for number, name in BLOSC_COMPRESSORS.items()}
_BLOSC_SHUFFLES = {0: "-noshuffle", 1: "", 2: "-bitshuffle"}
# The libraries' levels if you give none: h5py's for deflate, hdf5plugin's for the others.
_DEFAULT_LEVELS = {"deflate": 4, "zstd": 3, "blosc-lz4": 5, "blosc-zstd": 5}


def add_filter(properties: Any, codec: Codec) -> None:
    """Append a codec to the pipeline of a dataset creation property list."""
    level = _DEFAULT_LEVELS.get(codec.name) if codec.level is None else codec.level
    if codec.name == "shuffle":
        properties.set_shuffle()
    elif codec.name == "deflate":
        properties.set_deflate(level)
    else:
        # Optional, as in the libraries: a chunk that does not become smaller is stored uncompressed.
        properties.set_filter(_number(codec), 1, _values(codec, level))


def filters_of(dataset: Any) -> tuple[Codec, ...]:
    """The codec chain of a dataset, read from the file."""
    properties = dataset.id.get_create_plist()
    return tuple(_codec(*properties.get_filter(index)) for index in range(properties.get_nfilters()))


def missing_filter(h5py: Any, codec: Codec) -> str | None:
    """Why a codec cannot be used (its filter is not installed), or None."""
    if codec.name not in WRITABLE or h5py.h5z.filter_avail(_number(codec)):
        return None
    return f"codec {codec.name} is not installed: {advice('hdf5plugin')}"


def _number(codec: Codec) -> int:
    return BLOSC if codec.name.startswith("blosc-") else _NUMBERS[codec.name]


def _values(codec: Codec, level: int | None) -> tuple[int, ...]:
    if codec.name.startswith("blosc-"):
        # The filter fills in the first four (versions, element and chunk size); 1 is its byte shuffle.
        return (0, 0, 0, 0, level or 0, 1, _BLOSC_NUMBERS[codec.name.removeprefix("blosc-")])
    return () if level is None else (level,)


def _codec(number: int, flags: int, values: tuple[int, ...], label: bytes) -> Codec:  # noqa: ARG001 - HDF5's tuple
    if number == BLOSC and len(values) >= 7:
        compressor = BLOSC_COMPRESSORS.get(values[6], str(values[6]))
        return Codec(f"blosc-{compressor}{_BLOSC_SHUFFLES.get(values[5], '')}", values[4])
    has_level = number in (_DEFLATE, _ZSTD) and bool(values)
    return Codec(_NAMES.get(number, f"hdf5-filter-{number}"), values[0] if has_level else None)
