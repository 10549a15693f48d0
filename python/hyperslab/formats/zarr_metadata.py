"""Codecs as Zarr metadata describe them, in version 3's `zarr.json` and in version 2's `.zarray`.

Specifications: https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html and
https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html. Version 3 has no zlib framing: `deflate` is its codec
`gzip`, which has the same compressed stream with another header. Codecs that hyperslab does not write keep their own
names, so that any array can be described.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Literal

import numpy as np

from hyperslab.formats.contract import ArraySpec
from hyperslab.storage.chain import Codec
from hyperslab.storage.table import written_names

V2_CODECS = written_names("zarr2")
V3_CODECS = written_names("zarr3")

# Blosc cannot take a buffer of 2 GiB; numcodecs' gzip and zstd have the same limit.
_ENCODED_CHUNK_LIMIT = 2**31 - 1
# The levels of zarr-python's own classes, used if you give none; 0 means zstd's own default.
_V2_LEVELS = {"deflate": 1, "gzip": 1, "zstd": 0}
_V3_LEVELS = {"deflate": 5, "zstd": 0}


def v3_codec_json(codec: Codec, itemsize: int) -> dict[str, Any]:
    """A codec of ours as an entry of version 3's `codecs`."""
    return _levelled(codec, _V3_LEVELS).zarr3(itemsize)[0]


def v3_codec(entry: Mapping[str, Any]) -> Codec:
    """An entry of version 3's `codecs` as a codec of ours."""
    codec = Codec.of_zarr(entry["name"], entry.get("configuration") or {})
    return replace(codec, name="deflate") if codec.name == "gzip" else codec


def _levelled(codec: Codec, levels: Mapping[str, int]) -> Codec:
    return codec if codec.level is not None else replace(codec, level=levels.get(codec.name))


def v3_serializer_json(dtype: np.dtype[Any]) -> dict[str, Any]:
    """The codec that turns elements into bytes, in the byte order of `dtype`."""
    if dtype.itemsize == 1:
        return {"name": "bytes"}
    orders = {"<": "little", ">": "big", "=": sys.byteorder}
    return {"name": "bytes", "configuration": {"endian": orders[dtype.byteorder]}}


def v3_stored_dtype(dtype: np.dtype[Any], serializer: Mapping[str, Any]) -> np.dtype[Any]:
    """`dtype` in the byte order in which it is stored."""
    orders: dict[str, Literal["<", ">"]] = {"little": "<", "big": ">"}
    endian = (serializer.get("configuration") or {}).get("endian")
    return dtype.newbyteorder(orders[endian]) if endian in orders else dtype


def v2_codec_json(codec: Codec, itemsize: int) -> dict[str, Any]:
    """A codec of ours as version 2 and numcodecs configure it."""
    return _levelled(codec, _V2_LEVELS).zarr2(itemsize)[0]


def v2_codec(entry: Mapping[str, Any]) -> Codec:
    """A filter or compressor of version 2 as a codec of ours."""
    return Codec.of_zarr(entry["id"], entry)


def encoded_chunk_reasons(spec: ArraySpec) -> Iterator[str]:
    """Why a chunk (or the one chunk of a contiguous layout) is too large for the codecs."""
    if spec.layout is None or not spec.layout.codecs:
        return
    nbytes = spec.dtype.itemsize
    for length in spec.layout.chunk_shape or spec.shape:
        nbytes *= length
    if nbytes > _ENCODED_CHUNK_LIMIT:
        yield f"codecs accept chunks below 2 GiB, but this layout's have {nbytes} bytes; choose smaller chunks"


def shard_reasons(spec: ArraySpec) -> Iterator[str]:
    """Why a shard shape does not fit its chunks."""
    if spec.layout is None or spec.layout.shard_shape is None:
        return
    chunk_shape, shard_shape = spec.layout.chunk_shape, spec.layout.shard_shape
    if spec.layout.contiguous:
        yield "shards need a chunk shape"
    elif not _divides(chunk_shape, shard_shape):
        yield f"shard shape {shard_shape} is not a multiple of the chunk shape {chunk_shape}"


def _divides(chunk_shape: Sequence[int], shard_shape: Sequence[int]) -> bool:
    if len(chunk_shape) != len(shard_shape):
        return False
    pairs = zip(chunk_shape, shard_shape, strict=True)
    return all(shard >= chunk and shard % chunk == 0 for chunk, shard in pairs)
