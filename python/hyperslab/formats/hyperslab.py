"""HDF5 files written by h5py and read by hyperslab's own engine: shows what is gained without the HDF5 library.

Specification and library for writing: as in hdf5; the files are identical byte for byte. `open` for reading calls
`hyperslab.open`, which does not use the HDF5 library and fetches and decodes chunks with several threads. h5py does
everything that changes a file (`create`, and `open` with "r+"), including reads from a file open for writing.
`describe` uses h5py too, because a reader does not need to know the levels of codecs.

Options: `threads`, the number of threads that read and decode (default: one per core), and the options of hdf5,
which affect only writing. An array that hyperslab can read only through h5py is refused, because that would measure
h5py.

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
from hyperslab.meant import meant_or_known


@dataclass(frozen=True)
class Hyperslab(Hdf5):
    """HDF5 written through h5py, read through hyperslab."""

    threads: int | None = None

    name: ClassVar[str] = "hyperslab"
    extension: ClassVar[str] = ".h5"
    aliases: ClassVar[tuple[str, ...]] = ()  # the format hdf5 reads --data
    capabilities: ClassVar[Capabilities] = replace(
        Hdf5.capabilities,
        threads=True,
        notes="reads HDF5 without the HDF5 library; writes with h5py, which also reads files open for writing",
    )
    default_layout: ClassVar[str] = Hdf5.default_layout

    def __post_init__(self) -> None:
        if self.threads is not None and self.threads < 1:
            raise UsageError(f"format hyperslab: threads is {self.threads}; use at least 1")

    @classmethod
    def library(cls) -> Installed:
        """Hyperslab itself, and the libraries that write the files."""
        writing = Hdf5.library()
        return Installed("hyperslab", __version__, ((writing.name, writing.version), *writing.parts))

    def open(self, path: Path, mode: Literal["r", "r+"] = "r") -> ArrayFile:
        """Open a file with hyperslab to read it, or with h5py to change it."""
        if mode != "r":
            return super().open(path, mode)
        if not path.is_file():
            raise UsageError(f"{path} is not a file")
        return HyperslabFile(self, path, {})

    def open_url(self, url: str, storage_options: Mapping[str, Any]) -> ArrayFile:
        """Open a remote file with hyperslab."""
        return HyperslabFile(self, url, storage_options)


class HyperslabFile(ArrayFile):
    """A file that hyperslab reads."""

    def __init__(self, made_by: Hyperslab, path: Path | str, storage_options: Mapping[str, Any]) -> None:
        self._format, self._path = made_by, path
        self._root = hyperslab.open(path, storage_options=storage_options)

    def create_array(self, name: str, spec: ArraySpec) -> ArrayHandle:  # noqa: ARG002 - the interface's signature
        """Raise Refused, because the file is open for reading."""
        raise Refused(f"array {name!r} cannot be created: {self._path} is open for reading only")

    def open_array(self, name: str, spec: ArraySpec | None = None) -> ArrayHandle:  # noqa: ARG002 - the file describes itself
        """Find the array."""
        try:
            member = self._root[name]
        except KeyError:
            member = None
        if not isinstance(member, hyperslab.archive.Array):
            raise UsageError(f"{self._path} has no array {name!r}{meant_or_known(name, self.array_names())}")
        if member.via != "hyperslab":
            raise Refused(f"array {name!r} of {self._path} can only be read through h5py: {member.unsupported}")
        return HyperslabArray(member, self._format.threads)

    def array_names(self) -> list[str]:
        """The names of all arrays in all groups."""
        return [array.name.lstrip("/") for array in self._root.walk()]

    def describe(self, name: str) -> ArraySpec:
        """Read shape, dtype and layout with h5py."""
        file = Hdf5.open(self._format, Path(self._path))
        try:
            return file.describe(name)
        finally:
            file.close()

    def close(self) -> None:
        """Close the file."""
        self._root.close()


class HyperslabArray(ArrayHandle):
    """An array that hyperslab reads."""

    def __init__(self, array: hyperslab.archive.Array, threads: int | None) -> None:
        self._array, self._threads = array, threads

    def write(self, data: np.ndarray, selection: Selection | None = None) -> None:  # noqa: ARG002 - the interface's
        """Raise Refused, because the file is open for reading."""
        raise Refused(f"{self._array.filename} cannot be written: it is open for reading only")

    def read(self, selection: Selection | None = None) -> np.ndarray:
        """Read all chunks that the selection touches in one call, with several threads."""
        elements: np.ndarray = self._array.read(... if selection is None else selection, threads=self._threads)
        return elements
