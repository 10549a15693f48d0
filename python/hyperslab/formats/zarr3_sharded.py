"""Zarr version 3 with shards through zarr-python: many chunks in one file, with an index at its end.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/codecs/sharding-indexed/index.html. Library: zarr (3 or
newer). The codecs are those of `zarr3`; they encode the chunks inside a shard. A layout must give both a chunk shape
and a shard shape, and the shard shape must be a multiple of the chunk shape. If you give no layout, `shards="auto"`
applies: zarr-python's own (experimental) choice, with chunks of up to 1 MiB, and shards of two chunks along every
axis that has more than eight.

Option: `threads`, the number of chunks that are processed at a time (None: zarr-python's default of 10). More
threads help little, because Python's interpreter lock limits them.

Cannot express: a contiguous layout, shuffle alone, writing part of a shard without rewriting all of it.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from dataclasses import replace
from typing import ClassVar

from hyperslab.formats.contract import ArraySpec, Capabilities, Need
from hyperslab.formats.zarr_metadata import V3_CODECS
from hyperslab.formats.zarr_python import Encoding, ZarrPython, v3_encoding


class Zarr3Sharded(ZarrPython):
    """Zarr version 3, one file per shard."""

    zarr_format = 3
    name: ClassVar[str] = "zarr3-sharded"
    capabilities: ClassVar[Capabilities] = Capabilities(
        codecs=V3_CODECS,
        contiguous=False,
        chunks=True,
        shards=True,
        sharded_only=True,
        append=True,
        threads=True,
        byte_order="either",
        notes="one file per shard; writing part of a shard rewrites it; deflate is in gzip's framing",
    )
    default_layout: ClassVar[str] = "guessed chunks and shards, zstd:0"

    def encoding(self, spec: ArraySpec) -> Encoding:
        """The array's encoding in version 3, always with shards."""
        encoding = v3_encoding(spec)
        return replace(encoding, shards="auto") if spec.layout is None else encoding

    def pipeline(self) -> AbstractContextManager[None]:
        """A context that hides zarr-python's warning that automatic shards are experimental."""
        return _without_the_warning()

    def _reasons(self, spec: ArraySpec, need: Need) -> Iterator[str]:
        yield from super()._reasons(spec, need)
        if spec.layout is not None and spec.layout.shard_shape is None:
            yield "needs a shard shape; without shards use zarr3"


@contextmanager
def _without_the_warning() -> Iterator[None]:
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", "Automatic shard shape inference is experimental")
        yield
