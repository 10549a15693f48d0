"""The contenders: each writes one version after another into a file that stays open, and reads the versions."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from hyperslab.bench.histories.edits import Edit
from hyperslab.errors import MissingLibrary
from hyperslab.needed import missing
from hyperslab.storage.hdf5_plugins import plugins

Arrays = dict[str, np.ndarray[Any, Any]]
# The libraries of contenders that need more than h5py.
LIBRARIES = {"versioned-hdf5": "versioned_hdf5", "icechunk": "icechunk"}
Reading = Callable[[str | None], Arrays]
COMPRESSIONS = ("none", "gzip", "lzf", "blosc")


def _options(compression: str) -> dict[str, Any]:
    """h5py's options."""
    if compression == "blosc":
        return dict(plugins().Blosc())
    return {} if compression == "none" else {"compression": compression}


def _library(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ImportError as error:
        raise missing(name) from error


class HistoryFormat(ABC):
    """One contender, with its file open for writing.

    Parameters
    ----------
    path : Path
        The file or folder to create.
    chunk_length : int
        The length of a chunk along each axis, in elements.
    compression : str
        One of COMPRESSIONS.
    """

    name: ClassVar[str]
    keeps_versions: ClassVar[bool] = True
    _file: Any
    syncs: ClassVar[bool] = False

    @abstractmethod
    def __init__(self, path: Path, chunk_length: int, compression: str) -> None: ...

    @abstractmethod
    def add(self, number: int, edits: Mapping[str, Edit]) -> None:
        """Add a version. It can be read when this returns."""

    def close(self) -> None:
        """Close the file."""
        self._file.close()

    @staticmethod
    @abstractmethod
    def opened(path: Path) -> AbstractContextManager[Reading]:
        """Open the file for reading versions by name; None is the latest version."""

    @classmethod
    def latest(cls, path: Path) -> Arrays:
        """Open the file, read all arrays of its latest version, and close it."""
        with cls.opened(path) as read:
            return read(None)

    @classmethod
    def every(cls, path: Path, count: int) -> int:
        """Open the file and read all arrays of every version. Returns the number of elements."""
        with cls.opened(path) as read:
            return sum(array.size for number in range(count) for array in read(str(number)).values())


def _applied(group: Any, edits: Mapping[str, Edit]) -> None:
    """Apply the edits of a version to arrays that can be resized."""
    for name, edit in edits.items():
        array = group[name]
        if array.shape != edit.shape:
            array.resize(edit.shape)
        if len(edit.rows):
            array[edit.first_row :] = edit.rows


def _staged(
    version: Any, number: int, edits: Mapping[str, Edit], chunk_length: int, options: Mapping[str, Any]
) -> None:
    """Create the arrays in the first version and change them in later versions."""
    if number > 0:
        _applied(version, edits)
        return
    for name, edit in edits.items():
        version.create_dataset(name, data=edit.rows, chunks=(chunk_length,) * edit.rows.ndim, **options)


class OurHistory(HistoryFormat):
    """`hyperslab.VersionedFile`. Each version is synced."""

    name = "hyperslab"
    syncs = True

    def __init__(self, path: Path, chunk_length: int, compression: str) -> None:
        from hyperslab.versions import VersionedFile

        self._file = VersionedFile(path, "w")
        self._chunk_length, self._options = chunk_length, _options(compression)

    def add(self, number: int, edits: Mapping[str, Edit]) -> None:
        """Add a version."""
        with self._file.stage_version(str(number)) as version:
            _staged(version, number, edits, self._chunk_length, self._options)

    @staticmethod
    @contextmanager
    def opened(path: Path) -> Iterator[Reading]:
        """Open the file."""
        from hyperslab.versions import VersionedFile

        with VersionedFile(path) as file:
            yield lambda name: {key: array[...] for key, array in file[name].arrays.items()}


class UnsyncedHistory(OurHistory):
    """`hyperslab.VersionedFile` without syncing: like the other contenders, it survives a kill but not a power cut."""

    name = "hyperslab, not synced"
    syncs = False

    def __init__(self, path: Path, chunk_length: int, compression: str) -> None:
        from hyperslab.versions.commit import writing

        before, writing.SYSTEM = writing.SYSTEM, Unsynced()
        try:
            super().__init__(path, chunk_length, compression)
        finally:
            writing.SYSTEM = before


class Unsynced:
    """The functions of `os`, except those that wait for the disk."""

    def __getattr__(self, name: str) -> Any:
        import os

        return (lambda _: None) if name in ("fsync", "fdatasync") else getattr(os, name)


class VersionedHdf5History(HistoryFormat):
    """versioned-hdf5, with a flush after each version as in the published code."""

    name = "versioned-hdf5"

    def __init__(self, path: Path, chunk_length: int, compression: str) -> None:
        import h5py

        library = _library("versioned_hdf5")
        self._file = h5py.File(path, "w")
        self._versions = library.VersionedHDF5File(self._file)
        self._chunk_length, self._options = chunk_length, _options(compression)

    def add(self, number: int, edits: Mapping[str, Edit]) -> None:
        """Add a version."""
        with self._versions.stage_version(str(number)) as version:
            _staged(version, number, edits, self._chunk_length, self._options)
        self._file.flush()

    def close(self) -> None:
        """Close the file."""
        self._versions.close()
        self._file.close()

    @staticmethod
    @contextmanager
    def opened(path: Path) -> Iterator[Reading]:
        """Open the file."""
        import h5py

        with h5py.File(path) as file:
            versions = _library("versioned_hdf5").VersionedHDF5File(file)
            yield lambda name: {key: array[...] for key, array in versions[name].items()}


class IcechunkHistory(HistoryFormat):
    """Icechunk in a folder. Each version is a commit."""

    name = "icechunk"

    def __init__(self, path: Path, chunk_length: int, compression: str) -> None:
        icechunk = _library("icechunk")
        icechunk.set_logs_filter("error")  # otherwise it warns that several processes might commit to a local folder
        self._repository = icechunk.Repository.create(icechunk.local_filesystem_storage(str(path)))
        self._chunk_length, self._compression = chunk_length, compression

    def add(self, number: int, edits: Mapping[str, Edit]) -> None:
        """Add a version."""
        import zarr

        session = self._repository.writable_session("main")
        group = zarr.open_group(session.store, mode="a")
        if number == 0:
            for name, edit in edits.items():
                chunks = (self._chunk_length,) * edit.rows.ndim
                codecs = _zarr_codecs(self._compression)
                made = group.create_array(
                    name, shape=edit.shape, dtype=edit.rows.dtype, chunks=chunks, compressors=codecs
                )
                made[...] = edit.rows
        else:
            _applied(group, edits)
        session.commit(str(number))

    def close(self) -> None:
        """Do nothing: each version is already written."""

    @staticmethod
    @contextmanager
    def opened(path: Path) -> Iterator[Reading]:
        """Open the repository. Icechunk's name for a version is looked up when you ask for the version."""
        import zarr

        icechunk = _library("icechunk")
        repository = icechunk.Repository.open(icechunk.local_filesystem_storage(str(path)))
        identities: dict[str, str] = {}

        def read(name: str | None) -> Arrays:
            if name is None:
                session = repository.readonly_session("main")
            else:
                if not identities:
                    identities.update({entry.message: entry.id for entry in repository.ancestry(branch="main")})
                session = repository.readonly_session(snapshot_id=identities[name])
            group = zarr.open_group(session.store, mode="r")
            return {key: np.asarray(array[...]) for key, array in group.arrays()}

        yield read


def _zarr_codecs(compression: str) -> Any:
    from zarr.codecs import BloscCodec, GzipCodec

    codecs = {"none": None, "gzip": [GzipCodec(level=4)], "blosc": [BloscCodec()]}
    if compression not in codecs:
        raise MissingLibrary(f"Zarr 3 has no codec {compression}")
    return codecs[compression]


class PlainHistory(HistoryFormat):
    """h5py without versions: one file that holds only the latest version and is changed in place."""

    name = "h5py, unversioned"
    keeps_versions = False

    def __init__(self, path: Path, chunk_length: int, compression: str) -> None:
        import h5py

        self._file = h5py.File(path, "w")
        self._chunk_length, self._options = chunk_length, _options(compression)

    def add(self, number: int, edits: Mapping[str, Edit]) -> None:
        """Add a version."""
        if number == 0:
            for name, edit in edits.items():
                chunks = (self._chunk_length,) * edit.rows.ndim
                maxshape = (None,) * edit.rows.ndim
                self._file.create_dataset(name, data=edit.rows, chunks=chunks, maxshape=maxshape, **self._options)
        else:
            _applied(self._file, edits)
        self._file.flush()

    @staticmethod
    @contextmanager
    def opened(path: Path) -> Iterator[Reading]:
        """Open the file, which has a single version."""
        import h5py

        with h5py.File(path) as file:
            yield lambda _: {name: array[...] for name, array in file.items()}


HISTORY_FORMATS: dict[str, type[HistoryFormat]] = {
    kind.name: kind for kind in (OurHistory, UnsyncedHistory, VersionedHdf5History, IcechunkHistory, PlainHistory)
}


def spelled(name: str) -> str:
    """A contender's name as an option: `hyperslab, not synced` becomes `hyperslab-not-synced`."""
    return name.replace(", ", "-").replace(" ", "-")
