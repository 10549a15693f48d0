"""HDF5 files written by h5py and read by zarr-python: our manifest shows them as a Zarr hierarchy.

Specification and library of writing: as hdf5, byte for byte the same files. `open` for reading makes hyperslab's
manifest of the file, shows it as a `ZarrStore`, and lets zarr-python read that with hyperslab's codec pipeline: what
anybody's program does that reads Zarr and is given an HDF5 file. What changes a file is h5py's. `describe` asks h5py
too, because the chunks are shown to Zarr decoded.

Options: those of hdf5, which act on writing alone. Cannot express: codecs or growth without chunks, shards.
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
    aliases: ClassVar[tuple[str, ...]] = ()  # --data is read by hdf5
    capabilities: ClassVar[Capabilities] = replace(
        Hdf5.capabilities,
        compound=False,
        notes="reads HDF5 through zarr-python; writes, and reads of a file open for writing, are h5py's",
    )
    default_layout: ClassVar[str] = Hdf5.default_layout

    @classmethod
    def library(cls) -> Installed:
        """zarr-python, with hyperslab below it and what writes for it."""
        writing = Hdf5.library()
        parts = (("hyperslab", __version__), (writing.name, writing.version), *writing.parts)
        return Installed("zarr", import_zarr().__version__, parts)

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open a file: by zarr-python to read it, by h5py to change it."""
        if mode != "r":
            return super().open(path, mode)
        if not path.is_file():
            raise UsageError(f"{path} is not a file")
        return ManifestFile(path, self, {})

    def open_url(self, url: str, storage_options: Mapping[str, Any]) -> ArrayFile:
        """Index a file far away, and open it by zarr-python."""
        return ManifestFile(url, self, storage_options)

    def pipeline(self) -> AbstractContextManager[Any]:
        """What must hold while arrays are opened: hyperslab's codec pipeline."""
        pipeline = {"codec_pipeline.path": "hyperslab.archive.zarr_pipeline.Pipeline"}
        held: AbstractContextManager[Any] = import_zarr().config.set(pipeline)
        return held

    def during_io(self) -> AbstractContextManager[Any]:
        """Nothing: one call reads a selection, by as many threads as there are cores."""
        return nullcontext()


class ManifestFile(ZarrFile):
    """A file as the hierarchy that hyperslab shows."""

    def __init__(self, where: Path | str, kind: Hdf5Zarr, storage_options: Mapping[str, Any]) -> None:
        from hyperslab.archive.zarr_store import ZarrStore

        self._archive = hyperslab.open(where, storage_options=storage_options)
        super().__init__(Path(where), import_zarr().open_group(ZarrStore(self._archive), mode="r"), kind)

    def describe(self, name: str) -> ArraySpec:
        """What h5py says of it."""
        file = Hdf5().open(self._path)
        try:
            return file.describe(name)
        finally:
            file.close()

    def close(self) -> None:
        """Let go of the file."""
        super().close()
        self._archive.close()
