"""`VersionedHDF5File`, as versioned-hdf5 has it, on top of `hyperslab.VersionedFile`."""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import h5py
import numpy as np

from hyperslab.errors import HyperslabError
from hyperslab.versions.compat.differences import Box, differences
from hyperslab.versions.compat.groups import InMemoryGroup
from hyperslab.versions.compat.opened import Opened, is_outdated
from hyperslab.versions.compat.read_only import CommittedGroup
from hyperslab.versions.compat.rebuilding import rebuild, stored_arrays
from hyperslab.versions.compat.versions import (
    all_versions,
    get_nth_previous_version,
    get_version_by_timestamp,
    set_current_version,
)
from hyperslab.versions.layout.names import DATA, FIRST_VERSION, VERSIONS, Time, stored_time

VersionGroup = InMemoryGroup | CommittedGroup
logger = logging.getLogger(__name__)


class VersionedHDF5File:
    """The versions of an HDF5 file: `file["v1"]["x"][...]` reads, `with file.stage_version("v2") as group:` adds one.

    Parameters
    ----------
    f : h5py.Group
        An `h5py.File`, or a group of one. Closing it is its owner's.

    Raises
    ------
    ValueError
        The file has no versions and is open for reading, or those of a later layout.
    """

    def __init__(self, f: h5py.Group) -> None:
        try:
            self._opened = Opened.of(f)
        except HyperslabError as error:
            raise ValueError(str(error)) from error
        self.f = f
        self._closed = False
        self._staging: str | None = None
        if is_outdated(f):
            if any(self._paths_of_text()):
                logger.warning(
                    "%s has data_version %d, which hashed text otherwise: to add versions, first call"
                    " rebuild_object_dtype_hashtables()",
                    f.file.filename,
                    self.data_version_identifier,
                )
            elif self._opened.is_writable:
                self._opened.upgraded()

    @property
    def _versions(self) -> Any:
        return self.f[VERSIONS]

    @property
    def _version_data(self) -> Any:
        return self.f[DATA]

    @property
    def closed(self) -> bool:
        """Whether this, or the h5py file, was closed."""
        self._closed = self._closed or not self.f.id
        return self._closed

    @property
    def current_version(self) -> str:
        """The name of the current version, `__first_version__` while there is none. Can be set."""
        name: str = self._versions.attrs["current_version"]
        return name

    @current_version.setter
    def current_version(self, version_name: str) -> None:
        set_current_version(self.f, version_name)

    @property
    def data_version_identifier(self) -> int:
        """The number of the layout."""
        return int(self._versions.attrs.get("data_version", 1))

    @data_version_identifier.setter
    def data_version_identifier(self, version: int) -> None:
        self._versions.attrs["data_version"] = version

    @property
    def versions(self) -> list[str]:
        """The names of all versions."""
        return list(all_versions(self.f))

    def __iter__(self) -> Iterator[str]:
        return all_versions(self.f)

    def __contains__(self, name: object) -> bool:
        return name in self.versions

    def __getitem__(self, item: str | int | Time | None) -> VersionGroup:
        """The group of a version: by name, by time in UTC (the last one then or before), 0 or None for the current
        one, -n for its ancestors.

        Raises
        ------
        ValueError
            The file was closed, or the version is not committed yet.
        KeyError
            There is no such version.
        IndexError
            There are not so many ancestors.
        """
        if self.closed:
            raise ValueError("File is closed")
        if item is None:
            return self.get_version_by_name(self.current_version)
        if isinstance(item, str):
            return self.get_version_by_name(item)
        if isinstance(item, int | np.integer):
            if item > 0:
                raise IndexError(f"{item} is no ancestor: 0 is the current version, -1 the one before")
            return self.get_version_by_name(get_nth_previous_version(self.f, self.current_version, -int(item)))
        if isinstance(item, dt.datetime | np.datetime64):
            return self.get_version_by_timestamp(item)
        raise KeyError(f"{item!r} is neither a version's name, nor a number or a time that one can be found by")

    def get_version_by_name(self, version: str) -> VersionGroup:
        """The group of a version; "" for the empty one that all begin from."""
        if version.startswith("/"):
            raise ValueError(f"{version!r} is no version: their names have no '/'; use the h5py file itself")
        if version == self._staging:
            raise ValueError(f"version {version!r} is being made: it can be had when it is committed")
        version = version or FIRST_VERSION
        if version not in self._versions:
            raise KeyError(f"there is no version {version!r} in {self.f.file.filename}")
        if not self._opened.is_writable:
            return CommittedGroup(self._opened, version)
        return InMemoryGroup(self._opened, version)

    def get_version_by_timestamp(self, timestamp: Time, exact: bool = False) -> VersionGroup:
        """The group of the last version committed at a time (UTC) or before; with `exact` only at it."""
        return self.get_version_by_name(get_version_by_timestamp(self.f, timestamp, exact))

    def __delitem__(self, item: str) -> None:
        """Delete a version, with the data that no other has."""
        if not isinstance(item, str):
            raise NotImplementedError("versions are deleted by name")
        if item not in self._versions:
            raise KeyError(item)
        self._opened.native.delete_versions([item])
        self._opened.changed()

    @contextmanager
    def stage_version(
        self,
        version_name: str | None = None,
        prev_version: str | None = None,
        make_current: bool = True,
        timestamp: Time | None = None,
    ) -> Iterator[InMemoryGroup]:
        """Make a new version: what the `with` statement gives can be changed; at its end that is committed.

        Parameters
        ----------
        version_name : str | None
            The version's name; made up if it is None.
        prev_version : str | None
            The version to start from, by default the current one; "" to start from nothing.
        make_current : bool
            Whether it becomes the current version.
        timestamp : Time | None
            When it was committed, in UTC, if not now.

        Raises
        ------
        ValueError
            There is such a version already, or no such parent; the time is not in UTC; the file is closed.
        """
        if self.closed:
            raise ValueError("File is closed")
        name = str(uuid.uuid4()) if version_name is None else version_name
        table = self._opened.table
        parent = prev_version if prev_version is not None else table.current
        with self._opened.native.stage_version(name, prev_version, make_current, timestamp) as root:
            group = InMemoryGroup(self._opened, name, staged=root)
            group.attrs.update(prev_version=parent or FIRST_VERSION, committed=False, timestamp=stored_time(timestamp))
            self._staging = name
            try:
                yield group
            finally:
                self._staging = None
        self._opened.committed()

    def get_diff(self, name: str, version1: str, version2: str) -> dict[Box, tuple[Any, Any]]:
        """The chunks of an array that differ between two versions, each with its elements in both.

        The key's `raw` is the chunk's slot, as slices. Where the array of one version does not reach, its elements
        are None.
        """
        if self.closed:
            raise ValueError("File is closed")
        return differences(self._opened, name, version1, version2)

    def rebuild_hashtables(self) -> None:
        """Make all tables of hashes anew."""
        for path in stored_arrays(self.f):
            rebuild(self.f, path)
        self._opened.upgraded()

    def rebuild_object_dtype_hashtables(self) -> None:
        """Make the tables of hashes of text of any length anew, which earlier layouts had otherwise."""
        logger.info("Rebuilding hash tables of text of any length in %s", self.f.file.filename)
        for path in self._paths_of_text():
            rebuild(self.f, path)
        self._opened.upgraded()

    def _paths_of_text(self) -> Iterator[str]:
        return (path for path in stored_arrays(self.f) if self.f[f"{DATA}/{path}/raw_data"].dtype.kind == "O")

    def close(self) -> None:
        """Let go of the file; it stays open."""
        if hasattr(self, "f"):
            del self.f
        self._closed = True

    def __repr__(self) -> str:
        if self.closed:
            return "<Closed VersionedHDF5File>"
        return f'<VersionedHDF5File object "{self.f.file.filename}" (mode {self.f.file.mode})>'
