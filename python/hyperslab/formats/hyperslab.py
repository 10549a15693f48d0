"""HDF5 files written by h5py and read by hyperslab's own engine: what reading without the HDF5 library gains.

Specification and library of writing: as hdf5, byte for byte the same files. `open` for reading goes through
`hyperslab.open`: no HDF5 library, chunks fetched and decoded by several threads. What changes a file (`create`,
and `open` with "r+") is h5py's, including the reads that are made meanwhile. `describe` asks h5py too, because
levels of codecs are not part of what reading needs.

Options: `threads`, how many threads read and decode (by default one per core), and those of hdf5, which act on
writing alone. What hyperslab could only read through h5py is refused when it is read: it would measure h5py.

Cannot express: codecs or growth without chunks, shards.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, ClassVar, Literal

import numpy as np

import hyperslab.archive
from hyperslab._core import Hyperslab as Selection
from hyperslab._core import __version__
from hyperslab.errors import Refused, UsageError
from hyperslab.formats.contract import ArrayFile, ArrayHandle, ArraySpec, Capabilities, Installed
from hyperslab.formats.hdf5 import Hdf5


@dataclass(frozen=True)
class Hyperslab(Hdf5):
    """HDF5 written through h5py, read through hyperslab."""

    threads: int | None = None

    name: ClassVar[str] = "hyperslab"
    extension: ClassVar[str] = ".h5"
    aliases: ClassVar[tuple[str, ...]] = ()  # --data is read by hdf5
    capabilities: ClassVar[Capabilities] = replace(
        Hdf5.capabilities,
        threads=True,
        notes="reads HDF5 without the HDF5 library; writes, and reads of a file open for writing, are h5py's",
    )
    default_layout: ClassVar[str] = Hdf5.default_layout

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"format hyperslab: {self.threads} threads; use at least 1")

    @classmethod
    def library(cls) -> Installed:
        """Hyperslab itself, and what writes for it."""
        writing = Hdf5.library()
        return Installed("hyperslab", __version__, ((writing.name, writing.version), *writing.parts))

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open a file: by hyperslab to read it, by h5py to change it."""
        if mode != "r":
            return super().open(path, mode)
        if not path.is_file():
            raise UsageError(f"{path} is not a file")
        return HyperslabFile(self, path, {})

    def open_url(self, url: str, storage_options: Mapping[str, Any]) -> ArrayFile:
        """Open a file far away by hyperslab."""
        return HyperslabFile(self, url, storage_options)


class HyperslabFile(ArrayFile):
    """A file that hyperslab reads."""

    def __init__(self, made_by: Hyperslab, path: Path | str, storage_options: Mapping[str, Any]) -> None:
        self._format, self._path = made_by, path
        self._root = hyperslab.open(path, storage_options=storage_options)

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:  # noqa: ARG002 - the contract's signature
        """Refused: the file is open for reading."""
        raise Refused(f"{self._path} is open for reading: array {name!r} cannot be created")

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - says it itself
        """Find the array."""
        try:
            found = self._root[name]
        except KeyError:
            found = None
        if not isinstance(found, hyperslab.archive.Array):
            raise UsageError(f"{self._path} has no array {name!r}; it has {', '.join(self.array_names())}")
        if found.via != "hyperslab":
            raise Refused(f"array {name!r} of {self._path} is read through h5py: {found.unsupported}")
        return HyperslabArray(found, self._format.threads)

    def array_names(self) -> list[str]:
        """Every array, in all groups."""
        return [array.name.lstrip("/") for array in self._root.walk()]

    def describe(self, name: str) -> ArraySpec:
        """What h5py says of it."""
        file = Hdf5.open(self._format, Path(self._path))
        try:
            return file.describe(name)
        finally:
            file.close()

    def close(self) -> None:
        """Let go of the file."""
        self._root.close()


class HyperslabArray(ArrayHandle):
    """An array that hyperslab reads."""

    def __init__(self, array: hyperslab.archive.Array, threads: int | None) -> None:
        self._array, self._threads = array, threads

    def write(self, data: np.ndarray, selection: Selection | None = None) -> None:  # noqa: ARG002 - as the contract
        """Refused: the file is open for reading."""
        raise Refused(f"{self._array.filename} is open for reading: nothing can be written")

    def read(self, selection: Selection | None = None) -> np.ndarray:
        """One read of all chunks that the selection touches, by several threads."""
        found: np.ndarray = self._array.read(... if selection is None else selection, threads=self._threads)
        return found
