"""Zarr version 3 through zarr-python: one file per chunk in a directory.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html. Library: zarr (3 or newer). `deflate`
is the codec gzip, which has the same compressed stream in gzip's framing; `blosc-*` include byte shuffle. A
contiguous layout is one chunk. If you give no layout, zarr-python guesses chunks and compresses with zstd. Stores of
version 2 can be opened too.

Option: `threads`, the number of chunks that are processed at a time (None: zarr-python's default of 10). More
threads help little, because Python's interpreter lock limits them.

Cannot express: shuffle alone (the specification has no such codec; zarr-python has an extension, but warns that
other libraries may not read it), reading part of a chunk without decoding all of it, more than 2 GiB in an encoded
chunk. Shards have their own format: `zarr3-sharded`.
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
        """The array's encoding in version 3."""
        return v3_encoding(spec)
