"""`VersionedHDF5File` as in versioned-hdf5, on top of `hyperslab.VersionedFile`."""

from __future__ import annotations

import datetime as dt
import logging
import uuid
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

import h5py
import numpy as np

from hyperslab.errors import HyperslabError
from hyperslab.versions.compat.groups import InMemoryGroup
from hyperslab.versions.compat.opened import Opened, is_outdated
from hyperslab.versions.compat.read_only import ReadOnlyGroup
from hyperslab.versions.compat.rebuilding import rebuild, stored_arrays
from hyperslab.versions.compat.text import as_h5py
from hyperslab.versions.compat.versions import (
    all_versions,
    get_nth_previous_version,
    get_version_by_timestamp,
    set_current_version,
)
from hyperslab.versions.layout.names import DATA, FIRST_VERSION, VERSIONS, Time, stored_time

logger: logging.Logger = logging.getLogger(__name__)


@dataclass(frozen=True)
class Box:
    """A part of an array: start and stop on each axis. Index the array with `raw`."""

    bounds: tuple[tuple[int, int], ...]

    @property
    def raw(self) -> tuple[slice, ...]:
        """The part as slices."""
        return tuple(slice(start, stop, 1) for start, stop in self.bounds)


class VersionedHDF5File:
    """The versions of an HDF5 file: `file["v1"]["x"][...]` reads, `with file.stage_version("v2") as group:` adds one.

    Parameters
    ----------
    f : h5py.Group
        An open `h5py.File`, or a group of one. You close it yourself.

    Raises
    ------
    ValueError
        The file has no versions and is open for reading, or its layout is newer than this release knows.
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
                    "%s has data_version %d, which hashed text in another way: before you add versions, call"
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
        """Whether this object or the h5py file was closed."""
        self._closed = self._closed or not self.f.id
        return self._closed

    @property
    def current_version(self) -> str:
        """The name of the current version; `__first_version__` if there is none. You can set it."""
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

    def __getitem__(self, item: str | int | Time | None) -> InMemoryGroup | ReadOnlyGroup:
        """The group of a version.

        You can ask by name; by time in UTC, which gives the last version committed at or before it; by 0 or None for
        the current version; or by -n for its n-th ancestor.

        Raises
        ------
        ValueError
            The file is closed, or the version is not committed yet.
        KeyError
            The version does not exist.
        IndexError
            The current version has fewer ancestors.
        """
        if self.closed:
            raise ValueError("File is closed")
        if item is None:
            return self.get_version_by_name(self.current_version)
        if isinstance(item, str):
            return self.get_version_by_name(item)
        if isinstance(item, int | np.integer):
            if item > 0:
                raise IndexError(f"{item} is not an ancestor: 0 is the current version, -1 the one before")
            return self.get_version_by_name(get_nth_previous_version(self.f, self.current_version, -int(item)))
        if isinstance(item, dt.datetime | np.datetime64):
            return self.get_version_by_timestamp(item)
        raise KeyError(f"{item!r} is not a key for versions: use a name, a number or a time")

    def get_version_by_name(self, version: str) -> InMemoryGroup | ReadOnlyGroup:
        """The group of a version by its name; "" gives the empty version that all others start from."""
        if version.startswith("/"):
            raise ValueError(f"{version!r} is not the name of a version, which has no '/': use the h5py file itself")
        if version == self._staging:
            raise ValueError(f"version {version!r} is still being made: you can get it after it is committed")
        version = version or FIRST_VERSION
        if version not in self._versions:
            raise KeyError(f"there is no version {version!r} in {self.f.file.filename}")
        if not self._opened.is_writable:
            return ReadOnlyGroup(self._opened, version)
        return InMemoryGroup(self._opened, version)

    def get_version_by_timestamp(self, timestamp: Time, exact: bool = False) -> InMemoryGroup | ReadOnlyGroup:
        """The group of the last version committed at or before a time in UTC; with `exact` only at that time."""
        return self.get_version_by_name(get_version_by_timestamp(self.f, timestamp, exact))

    def __delitem__(self, item: str) -> None:
        """Delete a version, and the data that no other version has."""
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
        """Make a new version: change the group that the `with` statement gives; its end commits the version.

        Parameters
        ----------
        version_name : str, optional
            The name of the version; by default a new unique name.
        prev_version : str, optional
            The version to start from; by default the current one. Use "" to start with nothing.
        make_current : bool
            Whether the new version becomes the current one.
        timestamp : datetime.datetime or numpy.datetime64, optional
            The time of the commit, in UTC; by default now.

        Raises
        ------
        ValueError
            The version exists already, its parent does not exist, the time is not in UTC, or the file is closed.
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
        """The chunks of an array that differ between two versions, with their elements in both.

        The `raw` attribute of each key holds the chunk's bounds in the array, as slices. The elements are None where
        the array of a version does not reach.
        """
        if self.closed:
            raise ValueError("File is closed")
        return _differences(self._opened, name, version1, version2)

    def rebuild_hashtables(self) -> None:
        """Make all tables of hashes again."""
        for path in stored_arrays(self.f):
            rebuild(self.f, path)
        self._opened.upgraded()

    def rebuild_object_dtype_hashtables(self) -> None:
        """Make the tables of hashes again for text of variable length, which earlier layouts hashed in another way."""
        logger.info("Rebuilding hash tables of text of variable length in %s", self.f.file.filename)
        for path in self._paths_of_text():
            rebuild(self.f, path)
        self._opened.upgraded()

    def _paths_of_text(self) -> Iterator[str]:
        return (path for path in stored_arrays(self.f) if self.f[f"{DATA}/{path}/raw_data"].dtype.kind == "O")

    def close(self) -> None:
        """Let go of the file, which stays open."""
        if hasattr(self, "f"):
            del self.f
        self._closed = True

    def __repr__(self) -> str:
        if self.closed:
            return "<Closed VersionedHDF5File>"
        return f'<VersionedHDF5File object "{self.f.file.filename}" (mode {self.f.file.mode})>'


def _differences(opened: Opened, name: str, first: str, second: str) -> dict[Box, tuple[Any, Any]]:
    """The chunks that differ, with their elements in both versions; None where a version has no such part.

    Raises
    ------
    KeyError
        A version does not have the array.
    """
    dtypes = [opened.array(version, name).dtype for version in (first, second)]
    changed = opened.native.diff(first, second).arrays.get(name)
    by_box: dict[Box, tuple[Any, Any]] = {}
    if changed is None:
        return by_box
    for chunk in changed.changed_chunks():
        starts = [position * length for position, length in zip(chunk.chunk_index, changed.chunk_shape, strict=True)]
        boxes, parts = [], []
        for part, dtype in zip((chunk.before, chunk.after), dtypes, strict=True):
            shape = () if part is None else part.shape
            boxes.append(Box(tuple((start, start + length) for start, length in zip(starts, shape, strict=False))))
            parts.append(None if part is None else as_h5py(part, dtype))
        if boxes[0] == boxes[1]:
            by_box[boxes[0]] = (parts[0], parts[1])
            continue
        if parts[0] is not None:
            by_box[boxes[0]] = (parts[0], None)
        if parts[1] is not None:
            by_box[boxes[1]] = (None, parts[1])
    return by_box
