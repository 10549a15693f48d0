"""HDF5 files written by h5py and read by zarr-python, through hyperslab's manifest, which presents them as Zarr.

Specification and library for writing: as in hdf5; the files are identical byte for byte. `open` for reading makes
hyperslab's manifest of the file, presents it as a `ZarrStore`, and lets zarr-python read that store with hyperslab's
codec pipeline. Any program that reads Zarr would read an HDF5 file in this way. h5py does everything that changes a
file. `describe` uses h5py too, because the store gives Zarr decoded chunks.

Options: those of hdf5, which affect only writing. Cannot express: codecs or growth without chunks, shards.
"""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractContextManager, nullcontext
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import hyperslab.archive
from hyperslab._core import __version__
from hyperslab.errors import UsageError
from hyperslab.formats.contract import ArrayFile, ArraySpec, Capabilities, Installed
from hyperslab.formats.hdf5 import Hdf5
from hyperslab.formats.zarr_python import ZarrFile, import_zarr


@dataclass(frozen=True)
class Hdf5Zarr(Hdf5):
    """HDF5 written through h5py, read through zarr-python and hyperslab's manifest."""

    name: ClassVar[str] = "hdf5-zarr"
    extension: ClassVar[str] = ".h5"
    aliases: ClassVar[tuple[str, ...]] = ()  # the format hdf5 reads --data
    capabilities: ClassVar[Capabilities] = replace(
        Hdf5.capabilities,
        compound=False,
        notes="reads HDF5 through zarr-python; writes with h5py, which also reads files open for writing",
    )
    default_layout: ClassVar[str] = Hdf5.default_layout

    @classmethod
    def library(cls) -> Installed:
        """zarr-python, with hyperslab below it and the libraries that write the files."""
        writing = Hdf5.library()
        parts = (("hyperslab", __version__), (writing.name, writing.version), *writing.parts)
        return Installed("zarr", import_zarr().__version__, parts)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open a file with zarr-python to read it, or with h5py to change it."""
        if mode != "r":
            return super().open(path, mode)
        if not path.is_file():
            raise UsageError(f"{path} is not a file")
        return ManifestFile(path, self, {})

    def open_url(self, url: str, storage_options: Mapping[str, Any]) -> ArrayFile:
        """Index a remote file, and open it with zarr-python."""
        return ManifestFile(url, self, storage_options)

    def pipeline(self) -> AbstractContextManager[Any]:
        """The context in which arrays are opened: it sets hyperslab's codec pipeline."""
        pipeline = {"codec_pipeline.path": "hyperslab.archive.zarr_pipeline.Pipeline"}
        held: AbstractContextManager[Any] = import_zarr().config.set(pipeline)
        return held

    def during_io(self) -> AbstractContextManager[Any]:
        """An empty context: one call reads a selection, with as many threads as there are cores."""
        return nullcontext()


class ManifestFile(ZarrFile):
    """A file that hyperslab presents as a Zarr hierarchy."""

    def __init__(self, where: Path | str, kind: Hdf5Zarr, storage_options: Mapping[str, Any]) -> None:
        from hyperslab.archive.zarr_store import ZarrStore

        self._archive = hyperslab.open(where, storage_options=storage_options)
        super().__init__(Path(where), import_zarr().open_group(ZarrStore(self._archive), mode="r"), kind)

    def describe(self, name: str) -> ArraySpec:
        """Read shape, dtype and layout with h5py."""
        file = Hdf5().open(self._path)
        try:
            return file.describe(name)
        finally:
            file.close()

    def close(self) -> None:
        """Close the file."""
        super().close()
        self._archive.close()
