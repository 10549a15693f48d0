"""`SeenVersions`: the versions of a file as somebody sees them, who may never ask for more than the current one."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from hyperslab.archive.remote import Remote, SourceResolver
from hyperslab.archive.tree import Group
from hyperslab.errors import ReadError
from hyperslab.versions.layout import names as layout
from hyperslab.versions.layout.names import FIRST_VERSION, VERSIONS
from hyperslab.versions.layout.reading import check_given_up, parsed, version_group, version_table
from hyperslab.versions.layout.table import VersionKey, VersionTable, data_version_of, group_of_versions
from hyperslab.versions.layout.version_group import VersionGroup


class SeenVersions:
    """The versions of a file: which is the current one from the start on, and all of them from when they are first
    asked for, as that takes the longer the more there are.

    Parameters
    ----------
    path : str | Remote
        The file; a far one too.
    chunk_cache_nbytes : int
        Memory for decoded chunks of each version.
    within : str
        The path of the group that versions are in, with "/" at its end.
    is_lazy : bool
        Look up chunks when arrays are read: only of files that nobody writes to without our journal.
    to_write : bool
        Whether versions will be added.
    settle : Callable[[], None]
        Called before the file is looked at.
    resolver : SourceResolver | None
        What it may lead to.

    Raises
    ------
    Unsupported
        The file has no versions, or those of a later layout.
    """

    def __init__(
        self,
        path: str | Remote,
        chunk_cache_nbytes: int,
        within: str = "",
        *,
        is_lazy: bool = True,
        to_write: bool = False,
        settle: Callable[[], None] = lambda: None,
        resolver: SourceResolver | None = None,
    ) -> None:
        self._path, self._chunk_cache_nbytes, self._within = path, chunk_cache_nbytes, within
        self._is_lazy, self._to_write, self._settle = is_lazy, to_write, settle
        self._resolver = resolver
        self._groups: dict[str, VersionGroup] = {}
        self.refresh()

    def refresh(self) -> None:
        """See what was committed since. Groups that were given stay as they are."""
        self._settle()
        root = parsed(self._path, 0, (f"{self._within}{VERSIONS}",), resolver=self._resolver).root[f"/{self._within}"]
        assert isinstance(root, Group)
        said = group_of_versions(root).attrs
        layout.check_data_version(data_version_of(said), root.filename, to_write=self._to_write)
        self._current = said.get("current_version")  # as the file says: it may not be committed
        self._table: VersionTable | None = None
        self._groups.clear()

    def forget_groups(self) -> None:
        """Let go of what was parsed of versions."""
        self._groups.clear()

    @property
    def said(self) -> VersionTable:
        """All versions that say that they were committed."""
        self._settle()
        return version_table(self._path, self._within, self._resolver)

    @property
    def table(self) -> VersionTable:
        """All versions. Can be set, by who changes them.

        Raises
        ------
        DamagedFile
            One says that it was not committed, and was; or nothing that can be read.
        """
        if self._table is None:
            found = self.said
            check_given_up(self._path, found, self._within, self._resolver)
            self._table = found.changed(None, self._current) if self._current in found else found
        return self._table

    @table.setter
    def table(self, table: VersionTable) -> None:
        self._table = table

    @property
    def current(self) -> str | None:
        """The name of the current version; None while there is none."""
        if self._table is None and self._committed(self._current) is not None:
            return str(self._current)
        return self.table.current

    def __getitem__(self, key: VersionKey) -> VersionGroup:
        """The group of a version.

        Raises
        ------
        KeyError
            There is no such version.
        IndexError
            There are not so many ancestors.
        """
        if self._table is None:
            is_current = key is None or (type(key) is int and key == 0)
            group = self._committed(self._current if is_current else key)
            if group is not None:
                return group
        name = self.table.find(key)
        if name not in self._groups:
            self._groups[name] = self._opened(name)
        return self._groups[name]

    def _committed(self, name: object) -> VersionGroup | None:
        """The group of a version by its name; None if there may be none, or it was not committed: the table knows."""
        if not isinstance(name, str) or name == FIRST_VERSION:
            return None
        if name not in self._groups:
            try:
                group = self._opened(name)
                if "prev_version" not in group.attrs or group.attrs.get("committed") is not np.True_:
                    return None
            except (KeyError, ReadError):
                return None
            self._groups[name] = group
        return self._groups[name]

    def _opened(self, name: str) -> VersionGroup:
        self._settle()
        cache_nbytes, resolver = self._chunk_cache_nbytes, self._resolver
        group = version_group(self._path, name, cache_nbytes, self._within, is_lazy=self._is_lazy, resolver=resolver)
        return VersionGroup(group)


def opened_version(
    location: str | Remote, version: VersionKey, chunk_cache_nbytes: int, resolver: SourceResolver | None = None
) -> Group:
    """What `hyperslab.open` gives when it is asked for a version."""
    return SeenVersions(location, chunk_cache_nbytes, resolver=resolver)[version]
