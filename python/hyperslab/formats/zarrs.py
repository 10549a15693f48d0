"""Zarr version 3 through zarr-python with the Rust codec pipeline zarrs: the same files as `zarr3`.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html. Library: zarr for the metadata,
zarrs (https://zarrs-python.readthedocs.io) for reading, writing, encoding and decoding of chunks, which it
does in parallel in its own threads. The pipeline is in force for the arrays that this format opens and for no
other. It is used strictly: what it cannot do is refused, and never done by zarr-python in its place.

Option: `threads`, how many chunks are worked on at a time (None: one per core).

Cannot express: every k-th element (the pipeline knows steps of 1 only), shuffle alone. Shards may be given.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from typing import Any, ClassVar

from hyperslab.errors import MissingLibrary
from hyperslab.formats.contract import ArraySpec, Capabilities, Installed
from hyperslab.formats.zarr_metadata import V3_CODECS
from hyperslab.formats.zarr_python import Encoding, ZarrPython, import_zarr, v3_encoding


class Zarrs(ZarrPython):
    """Zarr version 3 with chunks read and written in Rust."""

    zarr_format = 3
    name: ClassVar[str] = "zarrs"
    capabilities: ClassVar[Capabilities] = Capabilities(
        codecs=V3_CODECS,
        chunks=True,
        shards=True,
        strided=False,
        append=True,
        threads=True,
        byte_order="either",
        notes="the files of zarr3, read and written in parallel in Rust; steps of 1 only",
    )
    default_layout: ClassVar[str] = "guessed chunks, zstd:0"

    @classmethod
    def library(cls) -> Installed:
        """The zarrs pipeline, and zarr-python above it."""
        zarr = import_zarr()
        try:
            import zarrs  # noqa: F401 - importing it registers the pipeline
        except ImportError as error:
            raise MissingLibrary("zarrs is not installed: pip install 'hyperslab[formats]'") from error
        return Installed("zarrs", version("zarrs"), (("zarr", zarr.__version__),))

    def encoding(self, spec: ArraySpec) -> Encoding:
        """As version 3 says it."""
        return v3_encoding(spec)

    def pipeline(self) -> AbstractContextManager[Any]:
        """The Rust pipeline while an array is created or opened."""
        settings = {
            "codec_pipeline.path": "zarrs.ZarrsCodecPipeline",
            "codec_pipeline.strict": True,
            "codec_pipeline.chunk_concurrent_maximum": self.threads,
        }
        context: AbstractContextManager[Any] = import_zarr().config.set(settings)
        return context

    def during_io(self) -> AbstractContextManager[Any]:
        """Nothing more: the pipeline keeps what it was made with."""
        return nullcontext()
