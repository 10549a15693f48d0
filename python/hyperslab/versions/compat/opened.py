"""`Opened`: what all handles of an open HDF5 file share, so that each sees at once what another commits or deletes."""

from __future__ import annotations

from typing import Any, ClassVar
from weakref import WeakValueDictionary

import h5py

from hyperslab.archive.tree.array import Array as ArchiveArray
from hyperslab.errors import DamagedFile
from hyperslab.versions.file import VersionedFile
from hyperslab.versions.layout.names import DATA, DATA_VERSION, VERSIONS
from hyperslab.versions.layout.table import VersionTable


def is_outdated(f: h5py.Group) -> bool:
    """Whether the versions have an earlier layout, with other hashes."""
    return DATA in f and int(f[VERSIONS].attrs.get("data_version", 1)) < DATA_VERSION


class Opened:
    """An HDF5 file with versions, or a group of one, that h5py has open.

    `generation` grows whenever versions are deleted or rewritten; then everything must be looked up again.
    """

    _known: ClassVar[WeakValueDictionary[tuple[int, int], Opened]] = WeakValueDictionary()

    def __init__(self, f: h5py.Group) -> None:
        self.f: Any = f
        self.native: VersionedFile = VersionedFile(f.file.filename if self.is_writable and is_outdated(f) else f)
        self.generation: int = 0
        self._seen = self._state()

    @classmethod
    def of(cls, f: h5py.Group) -> Opened:
        """The object of this file, whichever handle you have."""
        about = h5py.h5o.get_info(f.id)
        key = (about.fileno, about.addr)
        known = cls._known.get(key)
        if known is None or not known.f:
            known = cls._known[key] = cls(f)
        return known

    @property
    def is_writable(self) -> bool:
        """Whether the file is open for writing."""
        return bool(self.f.file.mode != "r")

    @property
    def path(self) -> str:
        """The path of the group of versions in the file."""
        return f"{self.f.name.rstrip('/')}/{VERSIONS}"

    def upgraded(self) -> None:
        """Set the layout to ours, so that versions can be added."""
        self.f[VERSIONS].attrs["data_version"] = DATA_VERSION
        self.native = VersionedFile(self.f)
        self.changed()

    @property
    def table(self) -> VersionTable:
        """All versions that are in the file now."""
        if self.is_writable and self._state() != self._seen:
            self.changed()
        return self.native.table

    def changed(self) -> None:
        """Forget what is known of the file, because it was changed."""
        self.native.refresh()
        self.generation += 1
        self._seen = self._state()

    def committed(self) -> None:
        """Note that a version was added; what is known stays true."""
        self._seen = self._state()

    def array(self, version: str, path: str) -> ArchiveArray:
        """An array of a committed version.

        Raises
        ------
        KeyError
            There is none.
        """
        self.table  # noqa: B018 -- notices changes
        array = self.native[version][path]
        if not isinstance(array, ArchiveArray):
            raise DamagedFile(f"{path} of version {version!r} is no longer an array")
        return array

    def raw(self, path: str) -> Any:
        """All chunks that an array ever had, as an h5py array; None if there was never such an array."""
        return self.f.get(f"{DATA}/{path}/raw_data")

    def _state(self) -> tuple[int, str]:
        versions = self.f[VERSIONS]
        return len(versions), versions.attrs["current_version"]
