"""Zarr version 2 through zarr-python 3: one file per chunk in a directory.

Specification: https://zarr-specs.readthedocs.io/en/latest/v2/v2.0.html. Library: zarr (3 or newer) and numcodecs.
`deflate` is numcodecs' Zlib, `blosc-*` its Blosc with byte shuffle. A contiguous layout is one chunk. If you give no
layout, you get the defaults of zarr 2: chunks guessed from shape and itemsize, Blosc lz4 level 5 with shuffle, every
chunk stored. They are set here, because zarr-python 3 uses another default compressor for version 2.

Option: `threads`, the number of chunks that are processed at a time (None: zarr-python's default of 10). More
threads help little, because Python's interpreter lock limits them.

Cannot express: reading part of a chunk without decoding all of it, shards, more than 2 GiB in an encoded chunk.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any, ClassVar

from hyperslab.formats.contract import ArraySpec, Capabilities
from hyperslab.formats.zarr_metadata import V2_CODECS, v2_codec_json
from hyperslab.formats.zarr_python import Encoding, ZarrPython, chunks_of
from hyperslab.storage.chain import Codec, CodecChain

_PUBLISHED_DEFAULT = CodecChain([Codec("blosc-lz4", 5)])


class Zarr2(ZarrPython):
    """Zarr version 2."""

    zarr_format = 2
    name: ClassVar[str] = "zarr2"
    capabilities: ClassVar[Capabilities] = Capabilities(
        codecs=V2_CODECS,
        chunks=True,
        append=True,
        threads=True,
        urls=True,
        byte_order="either",
        notes="one file per chunk, decoded whole; contiguous is one chunk; several chunks at once in threads",
    )
    default_layout: ClassVar[str] = "guessed chunks, blosc-lz4:5"

    def encoding(self, spec: ArraySpec) -> Encoding:
        """The array's encoding. All codecs but the last are Zarr's filters; the last is its compressor."""
        codecs = _PUBLISHED_DEFAULT if spec.layout is None else spec.layout.codecs
        *filters, compressor = [_numcodec(codec, spec.dtype.itemsize) for codec in codecs] or [None]
        if codecs and codecs[-1].kind != "compressor":
            filters, compressor = [*filters, compressor], None
        encoding = Encoding(filters=filters or None, compressors=compressor, write_empty_chunks=True)
        return encoding if spec.layout is None else replace(encoding, chunks=chunks_of(spec.layout, spec.shape))


def _numcodec(codec: Codec, itemsize: int) -> Any:
    import numcodecs

    return numcodecs.get_codec(v2_codec_json(codec, itemsize))
