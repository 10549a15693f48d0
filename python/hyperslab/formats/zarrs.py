"""Zarr version 3 through zarr-python with the Rust codec pipeline zarrs: the same files as `zarr3`.

Specification: https://zarr-specs.readthedocs.io/en/latest/v3/core/index.html. Library: zarr for the metadata, and
zarrs (https://zarrs-python.readthedocs.io), which reads, writes, encodes and decodes chunks in parallel in its own
threads. The pipeline applies only to the arrays that this format opens. It runs in strict mode: if it cannot do
something, the call is refused, and zarr-python never takes over.

Option: `threads`, the number of chunks that are processed at a time (None: one per core).

Cannot express: every k-th element (the pipeline supports only steps of 1), shuffle alone. Shards are possible.
"""

from __future__ import annotations

from contextlib import AbstractContextManager, nullcontext
from importlib.metadata import version
from typing import Any, ClassVar

from hyperslab.formats.contract import ArraySpec, Capabilities, Installed, imported
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
        imported("zarrs")  # this registers the pipeline
        return Installed("zarrs", version("zarrs"), (("zarr", zarr.__version__),))

    def encoding(self, spec: ArraySpec) -> Encoding:
        """The array's encoding in version 3."""
        return v3_encoding(spec)

    def pipeline(self) -> AbstractContextManager[Any]:
        """The context in which arrays are created or opened: it sets the Rust pipeline."""
        settings = {
            "codec_pipeline.path": "zarrs.ZarrsCodecPipeline",
            "codec_pipeline.strict": True,
            "codec_pipeline.chunk_concurrent_maximum": self.threads,
        }
        context: AbstractContextManager[Any] = import_zarr().config.set(settings)
        return context

    def during_io(self) -> AbstractContextManager[Any]:
        """An empty context, because the pipeline keeps the settings that it was created with."""
        return nullcontext()
