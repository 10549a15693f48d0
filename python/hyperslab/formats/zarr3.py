"""Zarr version 3 through zarr-python: one file per chunk in a directory.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html. Library: zarr (3 or newer).
`deflate` is the codec gzip, which has the same compressed stream in gzip's framing; `blosc-*` have byte
shuffle. A contiguous layout is one chunk; without a layout, zarr-python guesses chunks and compresses with
zstd. Stores of version 2 open as well.

Option: `threads`, how many chunks are worked on at a time (None: zarr-python's own 10). Python's interpreter
lock leaves little to gain from it.

Cannot express: shuffle alone (the specification has no such codec; zarr-python's extension warns that others
may not read it), a part of a chunk read without decoding all of it, more than 2 GiB in an encoded chunk.
Shards have a format of their own: `zarr3-sharded`.
"""

from __future__ import annotations

from typing import ClassVar

from hyperslab.formats.contract import ArraySpec, Capabilities
from hyperslab.formats.zarr_metadata import V3_CODECS
from hyperslab.formats.zarr_python import Encoding, ZarrPython, v3_encoding


class Zarr3(ZarrPython):
    """Zarr version 3, one file per chunk."""

    zarr_format = 3
    name: ClassVar[str] = "zarr3"
    capabilities: ClassVar[Capabilities] = Capabilities(
        codecs=V3_CODECS,
        chunks=True,
        append=True,
        threads=True,
        byte_order="either",
        notes="one file per chunk, decoded whole; contiguous is one chunk; deflate is in gzip's framing",
    )
    default_layout: ClassVar[str] = "guessed chunks, zstd:0"

    def encoding(self, spec: ArraySpec) -> Encoding:
        """As version 3 says it."""
        return v3_encoding(spec)
